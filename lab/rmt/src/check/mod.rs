//! Applies the laws to a whole program.

mod exclusive;
mod form;
mod once;
mod order;
mod uses;

use crate::program::Source;
use crate::{Refusal, Report, Target};

/// Refuses the program, or reports the resources that it uses.
pub(crate) fn check(source: &Source, target: &Target) -> Result<Report, Refusal> {
    form::check(source, target)?;
    order::check(source)?;
    once::check(source)?;
    Report::draw(source, target)
}

pub(crate) use uses::{Reads, table_reads, table_writes};
