//! The papers' evaluations, run again in the simulator.
//!
//! | where | what |
//! |---|---|
//! | [`cell`] | one run of one scheduler on one cluster under one load, as data |
//! | [`experiment`] | a run of either evaluation |
//! | `schemes` | the baseline schedulers, as they run in a cell |
//! | [`figures`] | the papers' figures: cells to run, and reduction of their results |
//! | `differences` | differences from the papers, and why, for the report |
//! | [`findings`] | rows with verdicts, estimates over seeds, and plots, as data, independent of the simulator |
//! | [`netrs`] | one run of replica selection in a network |
//! | [`flair`] | one run of a store |
//! | [`calibration`] | every constant that stands for the papers' hardware or software, with its reason |

pub mod calibration;
pub mod cell;
mod differences;
pub mod experiment;
pub mod figures;
pub mod findings;
pub mod flair;
pub mod netrs;

mod schemes;
