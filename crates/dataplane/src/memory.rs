//! Zeroed memory for a program's state.

#[cfg(feature = "sanitize")]
pub(crate) use heap::Region;
#[cfg(not(feature = "sanitize"))]
pub(crate) use mapped::Region;

/// The system provides pages on first access, so a large bound costs nothing by itself.
#[cfg(not(feature = "sanitize"))]
mod mapped {
    use memmap2::MmapMut;

    #[derive(Debug)]
    pub(crate) struct Region(MmapMut);

    impl Region {
        /// `None` if `bytes` is 0, or exceeds the system's memory.
        pub(crate) fn zeroed(bytes: u64) -> Option<Self> {
            if bytes == 0 {
                return None;
            }
            let map = MmapMut::map_anon(usize::try_from(bytes).ok()?).ok()?;
            // Access is irregular, and huge pages save address translations. Without them it is only slower.
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

/// From the heap: ASan guards its ends, but not those of mapped pages.
#[cfg(feature = "sanitize")]
mod heap {
    use std::cell::UnsafeCell;

    #[repr(align(64))]
    #[derive(Debug)]
    struct Line(#[expect(dead_code, reason = "C reads and writes it")] UnsafeCell<[u8; 64]>);

    #[derive(Debug)]
    pub(crate) struct Region(Vec<Line>);

    impl Region {
        /// `None` if `bytes` is 0.
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
