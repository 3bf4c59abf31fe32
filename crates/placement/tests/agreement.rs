//! On small random instances every method agrees with an exhaustive search (N5), and no plan violates a constraint (N4).

mod common;

use common::{least_rsnodes, small};
use midflight_placement::{Instance, Options, Outcome, Use, solve, violations};
use proptest::prelude::*;
use std::time::Duration;

fn outcome(instance: &Instance, methods: Use) -> Outcome {
    let outcome = solve(instance, &Options { methods, time_limit: Duration::from_secs(60) });
    if let Outcome::Solved(solved) = &outcome {
        assert_eq!(violations(instance, &solved.plan), vec![]);
        assert_eq!(solved.plan.under_drs().count(), 0);
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn n4_n5_first_fit_keeps_constraints_and_its_bound_is_one(instance in small()) {
        let least = least_rsnodes(&instance);
        match outcome(&instance, Use::FirstFit) {
            Outcome::Solved(solved) => {
                let least = least.expect("there is a plan");
                prop_assert!(solved.bound <= least && least <= solved.plan.cost());
            }
            Outcome::Infeasible => prop_assert_eq!(least, None),
            Outcome::Unknown => {}
        }
    }

    #[cfg(feature = "ilp")]
    #[test]
    fn n4_n5_full_form_aggregated_form_and_trying_all_plans_agree(instance in small()) {
        let least = least_rsnodes(&instance);
        for methods in [Use::Best, Use::Full] {
            match outcome(&instance, methods) {
                Outcome::Solved(solved) => {
                    prop_assert_eq!(Some(solved.plan.cost()), least, "{:?}", methods);
                    prop_assert_eq!(Some(solved.bound), least, "{:?}", methods);
                }
                Outcome::Infeasible => prop_assert_eq!(None, least, "{:?}", methods),
                Outcome::Unknown => prop_assert!(false, "{:?} found nothing", methods),
            }
        }
        match outcome(&instance, Use::Aggregated) {
            Outcome::Solved(solved) => {
                let least = least.expect("there is a plan");
                prop_assert!(solved.bound <= least && least <= solved.plan.cost());
            }
            Outcome::Infeasible => prop_assert_eq!(None, least),
            Outcome::Unknown => {}
        }
    }
}
