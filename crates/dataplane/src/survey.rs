//! Copies tables in steps, for the surveys of all programs.

/// `MF_SURVEY_STEP`: elements that one call visits.
pub(crate) const STEP: usize = 512;

/// Appends the elements of one call.
///
/// # Safety
/// `find` writes as many elements as it returns, at most [`STEP`].
pub(crate) unsafe fn step<T>(all: &mut Vec<T>, find: impl FnOnce(*mut T) -> u32) {
    all.reserve(STEP);
    let count = find(all.spare_capacity_mut().as_mut_ptr().cast());
    // SAFETY: this many were written, and there was room for the most that a call finds.
    unsafe { all.set_len(all.len() + (count as usize).min(STEP)) };
}
