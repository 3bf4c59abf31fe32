use crate::store::cluster::{Cluster, PREFERRED_SWITCH, replica_host};
use anyhow::{Context, Result, bail};
use midflight_net::{Disorder, Lab, Loss, Place, Way};
use rustix::process::Signal;

#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    victim: Victim,
    fault: Fault,
}

/// The victim by its role when the fault occurs.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Leader,
    Follower,
    /// The one with the session.
    Switch,
    Everybody,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Kill,
    Stop,
    /// Cut off from all others.
    Cut(Way),
    /// Cut off from the first switch only.
    CutFromSwitch(Way),
    FillDisk,
    /// On all links.
    Disorder,
}

const fn kind(name: &'static str, victim: Victim, fault: Fault, what: &'static str) -> Kind {
    Kind { name, what, victim, fault }
}

pub(super) static KINDS: &[Kind] = {
    use Fault::{Cut, CutFromSwitch, FillDisk, Kill, Stop};
    use Victim::{Everybody, Follower, Leader, Switch};
    use Way::{Both, FromHost, ToHost};
    &[
        kind("leader-killed", Leader, Kill, "the leader is killed (SIGKILL), and started again"),
        kind("follower-killed", Follower, Kill, "a follower is"),
        kind("switch-killed", Switch, Kill, "the switch is"),
        kind("all-killed", Everybody, Kill, "all replicas and switches are, at once"),
        kind("leader-stopped", Leader, Stop, "the leader is stopped (SIGSTOP), and goes on"),
        kind("follower-stopped", Follower, Stop, "a follower is"),
        kind("switch-stopped", Switch, Stop, "the switch's process is"),
        kind("leader-cut", Leader, Cut(Both), "the leader is cut off from all others"),
        kind("follower-cut", Follower, Cut(Both), "a follower is"),
        kind("switch-cut", Switch, Cut(Both), "the switch is"),
        kind("leader-deaf", Leader, Cut(ToHost), "nothing comes to the leader"),
        kind("leader-mute", Leader, Cut(FromHost), "nothing that the leader sends arrives"),
        kind("follower-deaf", Follower, Cut(ToHost), "nothing comes to a follower"),
        kind("follower-mute", Follower, Cut(FromHost), "nothing that a follower sends arrives"),
        kind("switch-deaf", Switch, Cut(ToHost), "nothing comes to the switch"),
        kind("switch-mute", Switch, Cut(FromHost), "nothing that the switch sends arrives"),
        kind("leader-off-switch", Leader, CutFromSwitch(Both), "leader and switch are cut off from each other only"),
        kind("follower-off-switch", Follower, CutFromSwitch(Both), "a follower and the switch are"),
        kind("switch-not-to-leader", Leader, CutFromSwitch(ToHost), "nothing comes from the switch to the leader"),
        kind("leader-not-to-switch", Leader, CutFromSwitch(FromHost), "nothing comes from the leader to the switch"),
        kind("leader-disk-full", Leader, FillDisk, "the leader's disk is full; then there is room"),
        kind("follower-disk-full", Follower, FillDisk, "the same of a follower"),
        kind("disorder", Everybody, Fault::Disorder, "all links lose datagrams, bring some twice, and some late"),
    ]
};

/// The actual victim.
#[derive(Clone, Copy, Debug)]
pub(super) enum Struck {
    Replica(usize),
    Switch,
    Everybody,
}

impl Kind {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    pub(super) fn needs_small_disks(&self) -> bool {
        self.fault == Fault::FillDisk
    }

    /// The session must be at the first switch.
    pub(super) fn strike(&self, store: &mut Cluster<'_>) -> Result<Struck> {
        let lab = store.lab().context("faults need a lab")?;
        let struck = match self.victim {
            Victim::Leader => Struck::Replica(store.leader()?),
            Victim::Follower => Struck::Replica(store.leader()? % store.size().replicas + 1),
            Victim::Switch => Struck::Switch,
            Victim::Everybody => Struck::Everybody,
        };
        match (self.fault, struck) {
            (Fault::Kill, Struck::Replica(id)) => store.kill_replica(id),
            (Fault::Kill, Struck::Switch) => store.kill_switch(PREFERRED_SWITCH),
            (Fault::Kill, Struck::Everybody) => kill_all(store),
            (Fault::Stop, _) => signal(store, struck, Signal::STOP)?,
            (Fault::Cut(way), Struck::Replica(id)) => lab.cut(replica_host(id), way, None)?,
            (Fault::Cut(way), _) => each_host(lab, |host| lab.cut(host, way.reversed(), Some(Place::Switch)))?,
            (Fault::CutFromSwitch(way), Struck::Replica(id)) => lab.cut(replica_host(id), way, Some(Place::Switch))?,
            (Fault::FillDisk, Struck::Replica(id)) => store.disk(id)?.fill()?,
            (Fault::Disorder, _) => lab.disorder(disorder()?)?,
            (Fault::CutFromSwitch(_) | Fault::FillDisk, _) => bail!("{} is a fault of replicas", self.name),
        }
        Ok(struck)
    }

    pub(super) fn mend(&self, store: &mut Cluster<'_>, struck: Struck) -> Result<()> {
        let lab = store.lab().context("faults need a lab")?;
        match (self.fault, struck) {
            (Fault::Kill, Struck::Replica(id)) => store.start_replica(id)?,
            (Fault::Kill, Struck::Switch) => store.start_switch(PREFERRED_SWITCH)?,
            (Fault::Kill, Struck::Everybody) => store.start_all()?,
            (Fault::Stop, _) => signal(store, struck, Signal::CONT)?,
            (Fault::Cut(_) | Fault::CutFromSwitch(_), _) => each_host(lab, |host| lab.mend(host))?,
            (Fault::FillDisk, Struck::Replica(id)) => {
                store.wait_until_full(id)?;
                store.disk(id)?.make_room()?;
            }
            (Fault::FillDisk, _) => bail!("{} is a fault of replicas", self.name),
            (Fault::Disorder, _) => lab.order()?,
        }
        Ok(())
    }
}

fn kill_all(store: &mut Cluster<'_>) {
    store.processes().for_each(|process| process.signal(Signal::KILL));
    (1..=store.size().switches).for_each(|number| store.kill_switch(number));
    (1..=store.size().replicas).for_each(|id| store.kill_replica(id));
}

fn signal(store: &mut Cluster<'_>, struck: Struck, signal: Signal) -> Result<()> {
    match struck {
        Struck::Replica(id) => store.replica(id)?.signal(signal),
        Struck::Switch => store.switch(PREFERRED_SWITCH)?.signal(signal),
        Struck::Everybody => store.processes().for_each(|process| process.signal(signal)),
    }
    Ok(())
}

fn each_host(lab: &Lab, act: impl Fn(usize) -> Result<(), midflight_net::LabError>) -> Result<()> {
    Ok((0..lab.hosts().len()).try_for_each(act)?)
}

/// Applies to each of a link's two interfaces; a request and its response pass eight of them.
fn disorder() -> Result<Disorder> {
    Ok(Disorder { lost: Loss::new(0.005)?, copied: Loss::new(0.03)?, late: Loss::new(0.03)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_by_its_name() {
        for kind in KINDS {
            assert!(Kind::named(kind.name).is_some_and(|found| std::ptr::eq(found, kind)), "{}", kind.name);
        }
    }
}
