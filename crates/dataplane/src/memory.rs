//! Zeroed memory that costs nothing until it is touched.

use memmap2::MmapMut;

/// One region, zeroed at first. Pages come from the system when they are first touched, so a large bound is no cost by itself.
#[derive(Debug)]
pub(crate) struct Region(MmapMut);

impl Region {
    /// `None` where `bytes` is 0, or more than the system has.
    pub(crate) fn zeroed(bytes: u64) -> Option<Self> {
        if bytes == 0 {
            return None;
        }
        let map = MmapMut::map_anon(usize::try_from(bytes).ok()?).ok()?;
        // A queue is walked in no order that a processor's page tables foresee. A system without huge pages only is slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Some(Self(map))
    }

    /// A page boundary.
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut()
    }
}
