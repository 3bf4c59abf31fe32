//! The model's steps in words, for the report of a broken rule.

use super::state::{Message, Sid};
use super::world::Step;
use std::fmt::{Display, Formatter, Result};

struct SwitchName(u8);

impl Display for SwitchName {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "switch {}", char::from(b'A' + self.0))
    }
}

struct ReplicaNames(u8);

impl Display for ReplicaNames {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let numbers: Vec<String> = (0..8).filter(|one| self.0 >> one & 1 == 1).map(|one: u8| one.to_string()).collect();
        match &numbers[..] {
            [] => write!(f, "itself"),
            [one] => write!(f, "replica {one}"),
            more => write!(f, "replicas {}", more.join(" and ")),
        }
    }
}

impl Display for Sid {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "session {}.{}", self.term, self.number)
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Write { operation, leader, sid, seq, switch, .. } => {
                write!(
                    f,
                    "WRITE of operation {operation}, SEQ {seq} of {sid}, from {} to replica {leader}",
                    SwitchName(switch)
                )
            }
            Self::LeaderRead { operation, leader, sid, seq, switch, .. } => write!(
                f,
                "leader-only READ of operation {operation}, SEQ {seq} of {sid}, from {} to replica {leader}",
                SwitchName(switch)
            ),
            Self::Read { operation, replica, sid, log_index, switch, .. } => write!(
                f,
                "READ of operation {operation} at index {log_index} of {sid}, from {} to replica {replica}",
                SwitchName(switch)
            ),
            Self::Close { operation: Some(operation), sid, seq, log_index, switch, .. } => write!(
                f,
                "WRITE_REPLY to operation {operation}, SEQ {seq} of {sid}, index {log_index}, to {}",
                SwitchName(switch)
            ),
            Self::Close { operation: None, sid, seq, log_index, switch, .. } => {
                write!(f, "REFRESH or error, SEQ {seq} of {sid}, index {log_index}, to {}", SwitchName(switch))
            }
            Self::Activate { sid, leader, switch, .. } => {
                write!(f, "ACTIVATE of {sid} from replica {leader} to {}", SwitchName(switch))
            }
            Self::TimeoutNow { replica, term } => write!(f, "TIMEOUT_NOW of term {term} to replica {replica}"),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Pass { operation, switch, .. } => write!(f, "operation {operation} passes {}", SwitchName(switch)),
            Self::PassHalf { operation, switch } => {
                write!(f, "operation {operation} half passes {}", SwitchName(switch))
            }
            Self::Deliver(message) => write!(f, "arrives: {message}"),
            Self::DeliverCopy(message) => write!(f, "a copy arrives: {message}"),
            Self::Refresh(message) => write!(f, "the leader refreshes for the {message}"),
            Self::Replicate { leader, follower, is_heard } => {
                let unheard = if is_heard { "" } else { "; the answer is lost" };
                write!(f, "replica {leader} replicates to replica {follower}{unheard}")
            }
            Self::Heartbeat { leader, loses_chunk } => {
                let lost = if loses_chunk { ", of which a chunk is lost" } else { "" };
                write!(f, "replica {leader} sends ACTIVATE{lost}")
            }
            Self::Elect { candidate, voters, switch } => {
                write!(
                    f,
                    "replica {candidate} is elected by {}, and proposes a session at {}",
                    ReplicaNames(voters),
                    SwitchName(switch)
                )
            }
            Self::Change { leader, voters } => {
                write!(f, "replica {leader} proposes votes for {}", ReplicaNames(voters))
            }
            Self::Move { leader, switch } => write!(f, "replica {leader} proposes a session at {}", SwitchName(switch)),
            Self::Fence { leader, .. } => write!(f, "a switch confirms to replica {leader} that a session has ended"),
            Self::Transfer { leader, to } => write!(f, "replica {leader} begins to hand over to replica {to}"),
            Self::Abort { leader } => write!(f, "replica {leader} gives up handing over"),
            Self::Flush { leader, operation } => write!(f, "operation {operation} asks replica {leader} for FLUSHDB"),
            Self::Open { leader } => write!(f, "an opening of the client's id reaches replica {leader}"),
            Self::Expire { leader } => write!(f, "replica {leader} proposes to forget the client's id"),
            Self::AppendOutside { leader } => write!(f, "replica {leader} appends what waited outside of its log"),
            Self::RestartSwitch { switch } => write!(f, "{} restarts", SwitchName(switch)),
            Self::RestartReplica { replica } => write!(f, "replica {replica} restarts"),
            Self::Wipe { replica } => write!(f, "replica {replica} loses its disk"),
            Self::Tick(None) => write!(f, "a step of all clocks"),
            Self::Tick(Some(party)) => write!(f, "a step of the clock of party {party}"),
        }
    }
}
