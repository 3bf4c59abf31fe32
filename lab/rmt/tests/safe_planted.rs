//! Defects planted in the safe queue: the check finds each, by the rule and in the steps in `docs/internals/printed/asic.md`.
//! `UPDATE_DOCS=1 cargo test -p midflight-rmt --test safe_planted` writes them; then read the difference.

mod common;

use common::page_shows;
use midflight_rmt::Watch;
use midflight_rmt::tasks::check::instances::{Judgement, Named, planted};
use midflight_rmt::tasks::check::{Verdict, Violation};
use midflight_rmt::tasks::safe::Planted;
use std::collections::BTreeSet;

fn searched(named: &Named) -> Verdict {
    named.search(1, &Watch::default()).unwrap_or_else(|refusal| panic!("{}: {refusal}", named.name))
}

/// Those that break no rule are searched completely.
#[test]
fn each_planted_defect_is_refuted() {
    let verdicts: Vec<_> = planted().into_iter().map(|named| (searched(&named), named)).collect();
    for (verdict, named) in &verdicts {
        let found = verdict.violations.first().map(|found| (found.broken.rule, found.steps));
        assert_eq!(named.judge(verdict), Judgement::AsExpected, "{}: {found:?}, not {:?}", named.name, named.finds);
    }
    assert!(verdicts.iter().filter(|(_, named)| named.finds.is_some()).count() >= 12);
}

/// Each rule of the check fails for some defect.
#[test]
fn each_rule_refutes_a_defect() {
    let rules: BTreeSet<_> = planted().iter().filter_map(|named| named.finds).map(|(rule, _)| rule).collect();
    let all = ["T1", "T2", "T3", "T4", "T5", "T7", "progress", "registers"];
    assert_eq!(rules, BTreeSet::from(all));
}

#[test]
fn the_page_has_all_planted_defects() {
    let mut text = "| defect | what is wrong | instance | broken | steps |\n|---|---|---|---|---:|\n".to_owned();
    for planted in Planted::ALL {
        let (name, about, within) = (planted.name(), planted.about(), planted.within());
        let (rule, steps) = planted.finds().map_or(("nothing", String::new()), |(rule, n)| (rule, n.to_string()));
        text += &format!("| `{name}` | {about} | `{within}` | {rule} | {steps} |\n");
    }
    page_shows("printed/asic.md", "planted", &text);
}

/// One in which packets overtake each other, and one after which the work cannot end.
#[test]
fn the_page_shows_how_planted_defects_do_harm() {
    for name in ["late-credit", "search-begins-anew"] {
        let named = planted().into_iter().find(|named| named.name == name).unwrap_or_else(|| panic!("no {name}"));
        let verdict = searched(&named);
        let [found @ Violation { shortest: true, .. }] = &verdict.violations[..] else { panic!("{verdict:?}") };
        page_shows("printed/asic.md", &format!("planted: {name}"), &format!("```text\n{found}```\n"));
    }
}
