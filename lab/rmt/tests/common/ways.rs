//! Searches named instances, and checks their transcripts on the internals' pages.

use crate::common::page_shows;
use midflight_rmt::Watch;
use midflight_rmt::tasks::check::Verdict;
use midflight_rmt::tasks::check::instances::{Judgement, named};

/// The result of a search of the instance of this name, which must be as expected.
pub(crate) fn searched(name: &str) -> Verdict {
    let named = named(name).unwrap_or_else(|| panic!("no instance {name}"));
    let verdict = named.search(1, &Watch::default()).unwrap_or_else(|refusal| panic!("{refusal}"));
    println!("{} states, {} steps, depth {}, {:?}", verdict.states, verdict.steps, verdict.depth, verdict.seen);
    verdict.violations.iter().for_each(|violation| println!("{violation}"));
    assert_eq!(named.judge(&verdict), Judgement::AsExpected, "{name}: {:?}", named.finds);
    verdict
}

/// Checks that the page has the transcript of a search of the instance of this name.
pub(crate) fn page_shows_way(page: &str, name: &str) {
    let verdict = searched(name);
    let [violation] = &verdict.violations[..] else { panic!("{name} finds nothing") };
    page_shows(page, &format!("way: {name}"), &format!("```text\n{violation}```\n"));
}
