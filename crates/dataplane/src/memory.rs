//! Zeroed memory that costs nothing until it is touched.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// A cache line: the core's records start on one.
const ALIGNMENT: usize = 64;

/// One region, zeroed at first. Large regions come from the system untouched, so a large bound is no cost by itself.
#[derive(Debug)]
pub(crate) struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the region is plain memory, owned like a Vec<u8>.
unsafe impl Send for Region {}

impl Region {
    /// `None` where `bytes` is 0 or more than an address space holds.
    pub(crate) fn zeroed(bytes: u64) -> Option<Self> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?, ALIGNMENT).ok()?;
        if layout.size() == 0 {
            return None;
        }
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        NonNull::new(start).map_or_else(|| handle_alloc_error(layout), |start| Some(Self { start, layout }))
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated by `zeroed` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
