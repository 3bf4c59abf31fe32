//! Runs `transcripts/tasks/` with IPv4 and IPv6 frames.

use crate::capture::Port;
use crate::engine::FrameEngine;
use crate::shells::{lab, shells};
use midflight_net::Place;
use midflight_spec::transcript::{TasksVocabulary, run};
use std::path::Path;
use std::rc::Rc;

/// Byte for byte as in the files, whether XDP or TC answers.
#[test]
fn frames_tell_the_stories() {
    let Some(_) = shells() else { return };
    let Some(lab) = lab(1) else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts/tasks");
    let mut stories: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    stories.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    assert!(stories.len() >= 12);
    lab.within(Place::Switch, || {
        let port = Rc::new(Port::open("host0"));
        for ipv4 in [true, false] {
            for path in &stories {
                let story = std::fs::read_to_string(path).unwrap();
                let told = run::<TasksVocabulary>(&story, &mut |config, epoch, secret| {
                    Box::new(FrameEngine::new(config, epoch, secret, &port, ipv4))
                });
                assert_eq!(told.unwrap(), story, "{}", path.display());
            }
        }
    })
    .unwrap();
}
