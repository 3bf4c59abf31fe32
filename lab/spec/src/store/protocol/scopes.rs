//! The searches: small worlds, each with one kind of fault, and the planted errors that each must refute.

use super::history::Kind::{self, Flush, Read, Write, WriteByWrongHash};
use super::planted::Planted;
use super::scope::{Members, ReplyCheck, Scope, Timing};
use super::state::Budget;

const NOTHING: Budget = Budget {
    writes: 0,
    reads: 0,
    refreshes: 0,
    ticks: 0,
    copies: 0,
    heartbeats: 0,
    lost_acks: 0,
    elections: 0,
    transfers: 0,
    moves: 0,
    switch_restarts: 0,
    replica_restarts: 0,
    wipes: 0,
    opens: 0,
    expiries: 0,
    changes: 0,
};

fn scope(name: &'static str, about: &'static str, states: u64, operations: &'static [Kind], budget: Budget) -> Scope {
    Scope {
        name,
        about,
        states,
        operations,
        one_writer: false,
        budget,
        members: Members::Three,
        switches: 2,
        timing: Timing::ALIKE,
        reply_check: ReplyCheck::Strict,
        is_founding: false,
        planted: None,
    }
}

fn writes() -> Scope {
    let budget = Budget { writes: 3, reads: 1, copies: 1, ..NOTHING };
    Scope {
        switches: 1,
        ..scope("writes", "retries, copies, loss, reordering of writes", 86_000, &[Write, Write, Read], budget)
    }
}

/// A lasting session, including key groups whose write is lost.
fn reads() -> Scope {
    let budget = Budget { writes: 2, reads: 3, refreshes: 1, ..NOTHING };
    Scope {
        switches: 1,
        ..scope("reads", "reads beside a write and its retry, REFRESH", 105_000, &[Write, Read, Read], budget)
    }
}

/// The leader moves the session to another switch, or begins another one at the same.
fn moves() -> Scope {
    let budget = Budget { writes: 2, reads: 1, heartbeats: 2, moves: 1, ticks: 2, ..NOTHING };
    scope("moves", "a session moves to another switch", 2_360_000, &[Write, Read], budget)
}

/// The switch loses its state, and the leader begins another session there.
fn switch_restart() -> Scope {
    let budget = Budget { writes: 2, reads: 1, heartbeats: 2, moves: 1, switch_restarts: 1, ..NOTHING };
    Scope { switches: 1, ..scope("switch-restart", "the switch restarts", 160_000, &[Write, Read], budget) }
}

fn election() -> Scope {
    let budget = Budget { writes: 1, reads: 1, heartbeats: 2, elections: 1, ticks: 4, ..NOTHING };
    scope("election", "another replica leads", 1_050_000, &[Write, Read], budget)
}

fn replica_restart() -> Scope {
    let budget = Budget { replica_restarts: 1, ticks: 2, ..election().budget };
    scope("replica-restart", "an election around a replica that restarts", 1_250_000, &[Write, Read], budget)
}

/// A leader restarts while writes of its session are in flight.
fn leader_restart() -> Scope {
    let budget =
        Budget { writes: 2, reads: 2, elections: 1, transfers: 1, replica_restarts: 1, lost_acks: 1, ..NOTHING };
    Scope {
        switches: 1,
        ..scope("leader-restart", "a leader restarts in its session", 4_270_000, &[Write, Read, Read], budget)
    }
}

fn elections() -> Scope {
    let budget = Budget { writes: 1, reads: 1, heartbeats: 2, elections: 2, transfers: 2, ..NOTHING };
    scope("elections", "two elections in quick succession", 6_900_000, &[Write, Read], budget)
}

fn transfer() -> Scope {
    let budget = Budget { writes: 1, reads: 1, heartbeats: 2, elections: 1, transfers: 1, ticks: 2, ..NOTHING };
    scope("transfer", "leadership is handed over, or that is aborted", 1_720_000, &[Write, Read], budget)
}

fn retry() -> Scope {
    let budget = Budget { writes: 3, reads: 1, heartbeats: 1, elections: 1, transfers: 1, ..NOTHING };
    let base = scope("retry", "a repeat in the next leader's session", 6_040_000, &[Write, Write, Read], budget);
    Scope { switches: 1, ..base }
}

fn flush() -> Scope {
    let budget = Budget { writes: 1, reads: 2, heartbeats: 1, ticks: 2, ..NOTHING };
    Scope { switches: 1, ..scope("flush", "FLUSHDB beside writes and reads", 39_000, &[Write, Flush, Read], budget) }
}

/// A replica lost its disk, and a leader does not know that it was replaced.
fn wipe() -> Scope {
    let budget = Budget { writes: 1, reads: 2, heartbeats: 1, elections: 1, transfers: 1, wipes: 1, ..NOTHING };
    scope("wipe", "a replica loses its disk, a deposed leader fills it", 6_010_000, &[Write, Read, Read], budget)
}

/// A leader that other voters may not hear counts on a learner.
fn learning() -> Scope {
    let budget = Budget { writes: 1, reads: 1, heartbeats: 2, elections: 1, ticks: 2, ..NOTHING };
    let base = scope("learning", "a fourth replica learns, another one leads", 6_850_000, &[Write, Read], budget);
    Scope { members: Members::WithLearner, ..base }
}

/// The set has grown from three voters to four, and some do not know it when another leader is elected.
fn growing() -> Scope {
    let budget = Budget { ticks: 1, ..learning().budget };
    let base = scope("growing", "a fourth replica has got its vote, another leads", 2_480_000, &[Write, Read], budget);
    Scope { members: Members::Grown, timing: Timing::SHORT, ..base }
}

/// Replicas leave one after the other, and those that have left elect a leader.
fn shrinking() -> Scope {
    let budget = Budget {
        writes: 1,
        reads: 1,
        heartbeats: 1,
        elections: 1,
        replica_restarts: 1,
        ticks: 2,
        changes: 2,
        ..NOTHING
    };
    scope("shrinking", "two of three replicas leave, one restarts", 4_630_000, &[Write, Read], budget)
}

fn founding() -> Scope {
    let budget = Budget { wipes: 1, replica_restarts: 1, ..NOTHING };
    Scope { is_founding: true, ..scope("founding", "members found a set, disks are lost", 200_000, &[], budget) }
}

/// A client's id expires while copies of its messages are in flight.
fn clients() -> Scope {
    let budget = Budget { writes: 3, reads: 1, opens: 2, expiries: 1, ..NOTHING };
    let base = scope(
        "clients",
        "a client's id expires, copies of its messages are late",
        348_000,
        &[Write, Write, Read],
        budget,
    );
    Scope { switches: 1, one_writer: true, ..base }
}

fn drift() -> Scope {
    let budget = Budget { writes: 1, reads: 1, heartbeats: 1, moves: 1, ticks: 30, ..NOTHING };
    Scope {
        timing: Timing::DRIFT,
        ..scope("drift", "a session moves, by clocks that run apart", 3_590_000, &[Write, Read], budget)
    }
}

/// An election with clock drift: the promise outlasts the leader's lease, and the fence the session's.
fn drift_election() -> Scope {
    let budget = Budget { writes: 1, reads: 1, heartbeats: 2, elections: 1, ticks: 40, ..NOTHING };
    let base = scope("drift-election", "another replica leads, clocks run apart", 32_000_000, &[Write, Read], budget);
    Scope { timing: Timing::DRIFT, ..base }
}

/// The scopes in which no search may find anything.
#[must_use]
pub fn all() -> Vec<Scope> {
    vec![
        writes(),
        reads(),
        moves(),
        switch_restart(),
        election(),
        replica_restart(),
        leader_restart(),
        elections(),
        transfer(),
        retry(),
        flush(),
        wipe(),
        learning(),
        growing(),
        shrinking(),
        founding(),
        clients(),
        drift(),
        drift_election(),
    ]
}

/// The scope in which this error is planted.
#[must_use]
pub fn with(planted: Planted) -> Scope {
    let base = match planted {
        Planted::AcceptedOutsideLog => writes(),
        Planted::TwoMappings => Scope { operations: &[WriteByWrongHash, Read], ..reads() },
        Planted::RefreshTooLow | Planted::TwoStepRead => reads(),
        Planted::OldSessionWrite => moves(),
        Planted::SeqReused | Planted::OneSidTwoIncarnations => switch_restart(),
        Planted::ReplySeqOfFormerSession => {
            Scope { states: 700_000, operations: &[Write, Write, Read], ..switch_restart() }
        }
        Planted::VotesByTicks
        | Planted::CampaignInsidePromise
        | Planted::LeaderReadWithoutLease
        | Planted::HeartbeatWithoutLease => election(),
        Planted::VoteAfterRestart => replica_restart(),
        Planted::RestartedLeaderCloses | Planted::AppliedBeforeCommit => leader_restart(),
        Planted::FenceLastOnly | Planted::FenceNamesSwitch => elections(),
        Planted::LeaseAfterAbort | Planted::ActivateWithoutEcho | Planted::EndedSessionRevived => transfer(),
        Planted::LostChunk | Planted::FlushBeforeFence => flush(),
        Planted::LogLength => wipe(),
        Planted::LearnerCounted => learning(),
        Planted::QuorumOfBefore => growing(),
        Planted::ChangeForgotten | Planted::TwoChangesAtOnce | Planted::OutsidersServe => shrinking(),
        Planted::FoundsAlone | Planted::BeginsUnaccepted | Planted::FoundersUnchecked => founding(),
        Planted::ClientsForgotten => retry(),
        Planted::ClientChoosesId => clients(),
        Planted::NoDriftBound => {
            let fence = Timing::DRIFT.switch_lease;
            Scope { timing: Timing { fence, ..Timing::DRIFT }, ..drift() }
        }
        Planted::PromiseWithoutDrift => {
            let promise = Timing::DRIFT.leader_lease;
            Scope { states: 10_000_000, timing: Timing { promise, ..Timing::DRIFT }, ..drift_election() }
        }
    };
    Scope { planted: Some(planted), ..base }
}
