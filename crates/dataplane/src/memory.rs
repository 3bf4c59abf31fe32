//! Zeroed memory for a queue.

#[cfg(feature = "sanitize")]
pub(crate) use heap::Region;
#[cfg(not(feature = "sanitize"))]
pub(crate) use mapped::Region;

/// Pages come from the system when they are first touched, so a large bound is no cost by itself.
#[cfg(not(feature = "sanitize"))]
mod mapped {
    use memmap2::MmapMut;

    /// One region, zeroed at first.
    #[derive(Debug)]
    pub(crate) struct Region(MmapMut);

    impl Region {
        /// `None` where `bytes` is 0, or more than the system has.
        pub(crate) fn zeroed(bytes: u64) -> Option<Self> {
            if bytes == 0 {
                return None;
            }
            let map = MmapMut::map_anon(usize::try_from(bytes).ok()?).ok()?;
            // A queue is accessed in no regular order, and huge pages save address translations. Without them it is only slower.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            Some(Self(map))
        }

        /// A page boundary.
        pub(crate) fn start(&self) -> *mut u8 {
            self.0.as_ptr().cast_mut()
        }
    }
}

/// From the heap, whose ends ASan guards; it does not see those of mapped pages.
#[cfg(feature = "sanitize")]
mod heap {
    use std::cell::UnsafeCell;

    #[repr(align(64))]
    #[derive(Debug)]
    struct Line(#[expect(dead_code, reason = "C reads and writes it")] UnsafeCell<[u8; 64]>);

    /// One region, zeroed at first.
    #[derive(Debug)]
    pub(crate) struct Region(Vec<Line>);

    impl Region {
        /// `None` where `bytes` is 0.
        pub(crate) fn zeroed(bytes: u64) -> Option<Self> {
            let lines = usize::try_from(bytes).ok()?.div_ceil(size_of::<Line>());
            (lines > 0).then(|| Self((0..lines).map(|_| Line(UnsafeCell::new([0; 64]))).collect()))
        }

        /// The start of a cache line.
        pub(crate) fn start(&self) -> *mut u8 {
            self.0.as_ptr().cast_mut().cast()
        }
    }
}
