//! The papers' evaluations, run again in the simulator.
//!
//! | where | what |
//! |---|---|
//! | [`cell`] | one run of one scheduler on one cluster under one load: data in, data out |
//! | [`experiment`] | the same of either program |
//! | `schemes` | the schedulers that Midflight is compared with, as they run in a cell |
//! | [`figures`] | the papers' figures: which cells to run, and what their results say |
//! | `differences` | for the report: what comes out differently, and why |
//! | [`findings`] | rows with verdicts, estimates over seeds, and plots, as data: they know nothing of the simulator |
//! | [`netrs`] | the same for the replicas program: one run of who chooses replicas, in a network |
//! | [`calibration`] | every constant that stands for the papers' hardware or software, each with its reason |

pub mod calibration;
pub mod cell;
mod differences;
pub mod experiment;
pub mod figures;
pub mod findings;
pub mod netrs;

mod schemes;
