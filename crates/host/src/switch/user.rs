//! A program in this process.

use super::hosted::Hosted;
use midflight_dataplane::Native;
use midflight_dataplane::program::SoftProgram;

impl<P: SoftProgram> Hosted<P> for Native<P> {}
