//! A checker's view of a run, and the first violation.

use super::{Broken, Checked, Trace, Violation};
use crate::{Actor, Happening, NodeId, Observer};
use midflight_endpoint::Nanos;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// The first violation, and the lines of a traced run.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub(super) violation: Option<Violation>,
    pub(super) trace: Option<Trace>,
}

impl CheckReport {
    /// Without a violation. With a trace, each event becomes a line.
    #[must_use]
    pub fn new(trace: Option<Trace>) -> Self {
        Self { violation: None, trace }
    }

    fn broke(&mut self, at: Nanos, broken: Broken) {
        if let Some(trace) = &mut self.trace {
            trace.broken(at, &broken);
        }
        self.violation = Some(Violation { at, broken });
    }
}

/// A program's checker.
pub trait Findings: 'static {
    /// The report so far.
    fn report(&mut self) -> &mut CheckReport;

    /// A packet and its fields, in words.
    fn describe(datagram: &[u8]) -> String;

    /// An event recorded by the program's actors, in words; `None`: not worth a line.
    fn describe_event(trace: &Trace, what: &dyn Any) -> Option<String>;

    /// A datagram has arrived.
    ///
    /// # Errors
    /// The broken rule.
    fn arrived(&mut self, from: NodeId, to: NodeId, datagram: &[u8]) -> Checked {
        let _ = (from, to, datagram);
        Ok(())
    }

    /// A node's turn is over.
    ///
    /// # Errors
    /// The broken rule.
    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) -> Checked {
        let _ = (at, node, actor, datagram);
        Ok(())
    }

    /// What a trace says of that turn, besides later arrivals.
    fn said(&self, actor: &dyn Actor, datagram: Option<&[u8]>) -> Vec<String> {
        let _ = (actor, datagram);
        Vec::new()
    }

    /// An event of the world.
    ///
    /// # Errors
    /// The broken rule.
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) -> Checked;
}

/// Findings shared by the world's observer and the code that runs the world.
pub(super) struct Monitor<F>(pub(super) Rc<RefCell<F>>);

/// Stops checking after the first violation.
fn check<F: Findings>(findings: &mut F, at: Nanos, what: impl FnOnce(&mut F) -> Checked) {
    if findings.report().violation.is_none()
        && let Err(broken) = what(findings)
    {
        findings.report().broke(at, broken);
    }
}

impl<F: Findings> Observer for Monitor<F> {
    fn arrived(&mut self, at: Nanos, from: NodeId, to: NodeId, datagram: &[u8]) {
        let findings = &mut *self.0.borrow_mut();
        check(findings, at, |findings| findings.arrived(from, to, datagram));
        if let Some(trace) = &mut findings.report().trace {
            let text = format!("{} > {}: {}", trace.name(from), trace.name(to), F::describe(datagram));
            trace.line(at, &text);
        }
    }

    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) {
        let findings = &mut *self.0.borrow_mut();
        check(findings, at, |findings| findings.handled(at, node, actor, datagram));
        if findings.report().trace.is_none() {
            return;
        }
        let said = findings.said(actor, datagram);
        if let Some(trace) = &mut findings.report().trace {
            trace.turn_over();
            said.iter().for_each(|text| trace.line(at, &format!("{} {text}", trace.name(node))));
        }
    }

    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        let findings = &mut *self.0.borrow_mut();
        if let Some(trace) = &mut findings.report().trace {
            trace.happened(at, happening, F::describe_event);
        }
        check(findings, at, |findings| findings.happened(at, happening));
    }
}
