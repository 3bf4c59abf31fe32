//! The integer linear programs, solved by HiGHS.

pub(crate) mod aggregate;
pub(crate) mod columns;
pub(crate) mod full;
pub(crate) mod patterns;

use highs::{HighsModelStatus, Model, RowProblem, Sense};
use std::time::Duration;

/// Rounding may have lifted a dual bound above the integer that it stands for.
const ROUNDING: f64 = 1e-4;

pub(crate) struct Answer {
    /// Values of the columns, if it found a solution.
    pub values: Option<Vec<f64>>,
    /// No solution costs less; the objective is an integer.
    pub bound: usize,
    /// There is no solution.
    pub infeasible: bool,
}

/// Minimises; `start` is an initial solution. A problem that the solver cannot handle is answered like a timeout.
fn minimise(problem: RowProblem, start: Option<&[f64]>, limit: Duration) -> Answer {
    let nothing = Answer { values: None, bound: 0, infeasible: false };
    let Ok(mut model) = problem.try_optimise(Sense::Minimise) else { return nothing };
    let set = |model: &mut Model| -> Result<(), highs::TrySetOptionError> {
        model.try_set_option("output_flag", false)?;
        // One thread: the same answer on every machine, unless the time limit cuts it off.
        model.try_set_option("threads", 1)?;
        model.try_set_option("parallel", "off")?;
        model.try_set_option("time_limit", limit.as_secs_f64())?;
        // The objective is an integer, so a gap below 1 is none.
        model.try_set_option("mip_rel_gap", 0.0)?;
        model.try_set_option("mip_abs_gap", 0.999)
    };
    if set(&mut model).is_err() {
        return nothing;
    }
    if let Some(start) = start {
        // A start that the solver rejects costs only time.
        let _ = model.try_set_solution(Some(start), None, None, None);
    }
    let Ok(solved) = model.try_solve() else { return nothing };
    let infeasible = matches!(solved.status(), HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible);
    let found = solved.primal_solution_status() == highs::HighsSolutionStatus::Feasible;
    let dual = solved.double_info_value(c"mip_dual_bound").unwrap_or(0.0);
    // Without a solution the bound may be infinite.
    let bound = if dual.is_finite() { (dual - ROUNDING).ceil().max(0.0) as usize } else { 0 };
    Answer { values: found.then(|| solved.get_solution().columns().to_vec()), bound, infeasible }
}
