//! The fuzzers' corpora as frames: answered and counted as by the core in this process, or by the model.

use crate::capture::Port;
use crate::engine::FrameEngine;
use crate::shells::{config, lab, peer, shells};
use midflight_dataplane::TasksProgram;
use midflight_dataplane::program::Engine;
use midflight_net::Place;
use midflight_spec::tasks::{EPOCH, interpret};
use midflight_spec::transcript::{CheckedNative, EngineExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// In a lab's switch, where frames can leave.
fn with_port(act: impl FnOnce(&Rc<Port>) + Send) {
    let Some(_) = shells() else { return };
    let Some(lab) = lab(1) else { return };
    lab.within(Place::Switch, || act(&Rc::new(Port::open("host0")))).unwrap();
}

/// Any bytes as datagrams, in turn to one switch.
#[test]
fn datagrams_of_the_corpora_are_taken_as_by_the_core() {
    with_port(|port| {
        for ipv4 in [true, false] {
            let (mut core, mut frames) = (
                CheckedNative::<TasksProgram>::new(&config(), EPOCH, 1).unwrap(),
                FrameEngine::new(&config(), EPOCH, 1, port, ipv4),
            );
            for (path, datagram) in corpus("wire").into_iter().chain(corpus("core")) {
                let from = peer(true, 1);
                let (of_core, of_frames) = (core.ask(1_000, from, &datagram), frames.ask(1_000, from, &datagram));
                assert_eq!(of_frames, of_core, "{}", path.display());
            }
            assert_eq!(frames.stats(), core.stats());
            frames.check().unwrap();
            assert!(frames.taken[0] > 100, "{:?}", frames.taken);
        }
    });
}

/// Sequences of packets whose answers also go to other parties; each against the model.
#[test]
fn games_of_the_corpus_are_played_as_by_the_model() {
    with_port(|port| {
        let mut taken = [0; 3];
        for (number, (path, story)) in corpus("core").into_iter().enumerate() {
            let (secret, mut engine) = (number as u128, None);
            let played = interpret(&story, secret, |config| {
                engine.insert(FrameEngine::new(config, EPOCH, secret, port, number % 2 == 0))
            });
            played.unwrap_or_else(|difference| panic!("{}: {difference}", path.display()));
            let counts = engine.expect("it was started").taken;
            taken = std::array::from_fn(|shell| taken[shell] + counts[shell]);
        }
        assert!(taken[0] > 1_000 && taken[1] > 1_000, "{taken:?}");
    });
}
