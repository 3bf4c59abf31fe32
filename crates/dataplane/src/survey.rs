//! What the surveys of all programs have in common: tables that are copied in steps, for people who watch.

/// `MF_SURVEY_STEP`: elements that one call visits.
pub(crate) const STEP: usize = 512;

/// Appends what a call finds.
///
/// # Safety
/// `find` writes as many elements as it says, at most [`STEP`].
pub(crate) unsafe fn step<T>(all: &mut Vec<T>, find: impl FnOnce(*mut T) -> u32) {
    all.reserve(STEP);
    let count = find(all.spare_capacity_mut().as_mut_ptr().cast());
    // SAFETY: so many were written, and there was room for all that a call may find.
    unsafe { all.set_len(all.len() + (count as usize).min(STEP)) };
}
