//! Errors in files are reported precisely.

use midflight_placement::{Accelerator, Topology, input};

const NETWORK: &str = r#"
core = ["c0"]
[[pods]]
id = "p0"
switches = ["a0"]
[[racks]]
id = "r0"
within = "p0"
tor = "t0"
hosts = ["h0", "h1"]
[[racks]]
id = "r1"
within = "p0"
tor = "t1"
hosts = ["h2"]
"#;

fn network(text: &str) -> Result<Topology, String> {
    input::topology(text, &Accelerator::paper("default".into())).map_err(|error| error.to_string())
}

fn wrong_network(text: &str, parts: &[&str]) {
    let error = network(text).expect_err(text);
    parts.iter().for_each(|part| assert!(error.contains(part), "no {part:?} in {error:?}"));
    assert!(!error.contains('\n'), "{error:?}");
}

fn wrong_traffic(text: &str, parts: &[&str]) {
    let error = input::traffic(text, &network(NETWORK).expect("it is right")).expect_err(text).to_string();
    parts.iter().for_each(|part| assert!(error.contains(part), "no {part:?} in {error:?}"));
}

#[test]
fn n8_networks_that_make_no_sense_are_refused_with_the_reason() {
    let network = |from: &str, to: &str| {
        assert!(NETWORK.contains(from));
        NETWORK.replacen(from, to, 1)
    };
    wrong_network(&network("tor = \"t0\"\n", ""), &["rack `r0` has no ToR switch"]);
    wrong_network(&network("t1", "t0"), &["switch `t0` is there twice"]);
    wrong_network(&network("h2", "h0"), &["host `h0` is there twice"]);
    wrong_network(&network("within = \"p0\"", "within = \"p9\""), &["rack `r0` is within `p9`", "no such pod"]);
    wrong_network(&network("within = \"p0\"\n", ""), &["rack `r0` is in no pod"]);
    wrong_network(&network("\"r1\"", "\"r0\""), &["`r0` is the name of two racks"]);
    wrong_network(&network("core", "coer"), &["line 2", "coer"]);
    wrong_network("core = []", &["no racks"]);
    wrong_network("fat_tree = 16\ncore = [\"c\"]", &["fat_tree has its own switches"]);
    wrong_network("fat_tree = 7", &["fat-tree:7", "even"]);
    let with = |more: &str| format!("{NETWORK}{more}");
    wrong_network(&with("[[pods]]\nid = \"p1\"\nwithin = \"p1\"\n"), &["`p1`", "within itself"]);
    let deep = "[[pods]]\nid = \"p1\"\nwithin = \"p0\"\n[[racks]]\nid = \"r2\"\nwithin = \"p1\"\ntor = \"t2\"\n";
    wrong_network(&with(deep), &["rack `r2` is in tier 3 and rack `r0` in tier 2"]);
    wrong_network(&with("[[accelerators]]\nswitches = [\"x\"]\n"), &["no switch `x`"]);
    wrong_network(&with("[[accelerators]]\nswitches = [\"a0\", \"a0\"]\n"), &["`a0` has two accelerators"]);
    for (key, value) in [("cores", "0"), ("utilisation", "1.5"), ("utilisation", "nan"), ("service_time_us", "-5.0")] {
        let keys = format!("[[accelerators]]\nswitches = [\"a0\"]\n{key} = {value}\n");
        wrong_network(&with(&keys), &[key]);
    }
}

#[test]
fn n8_traffic_that_makes_no_sense_is_refused_with_the_reason() {
    let group = |keys: &str, rates: &str| format!("[[groups]]\n{keys}\nrequests_per_s = {rates}\n");
    wrong_traffic("", &["no groups"]);
    wrong_traffic(&group("rack = \"r0\"", "[1.0, 2.0]"), &["group `r0`", "2 entries", "needs 3"]);
    wrong_traffic(&group("rack = \"r0\"", "[1.0, 2.0, -3.0]"), &["group `r0`", "-3 requests"]);
    wrong_traffic(&group("rack = \"r0\"", "[1.0, nan, 3.0]"), &["group `r0`", "NaN"]);
    wrong_traffic(&group("rack = \"r0\"", "[1.0, 1e300, 3.0]"), &["group `r0`", "from 0 to 1000000000"]);
    wrong_traffic(&group("rack = \"r7\"", "[1, 2, 3]"), &["no rack `r7`"]);
    wrong_traffic(&group("hosts = [\"h7\"]", "[1, 2, 3]"), &["no host `h7`"]);
    wrong_traffic(
        &group("id = \"g\"\nhosts = [\"h0\", \"h2\"]", "[1, 2, 3]"),
        &["`h0` is in rack `r0`", "`h2` in rack `r1`"],
    );
    wrong_traffic(&group("hosts = []", "[1, 2, 3]"), &["has no hosts"]);
    wrong_traffic(&group("id = \"g\"", "[1, 2, 3]"), &["neither rack nor hosts"]);
    let both = group("rack = \"r0\"", "[1, 2, 3]") + &group("hosts = [\"h0\"]", "[1, 2, 3]");
    wrong_traffic(&both, &["rack `r0` is counted twice"]);
    let twice = group("id = \"a\"\nrack = \"r0\"", "[1, 2, 3]") + &group("id = \"b\"\nrack = \"r0\"", "[1, 2, 3]");
    wrong_traffic(&twice, &["rack `r0` is counted twice"]);
    let host = group("hosts = [\"h0\"]", "[1, 2, 3]");
    wrong_traffic(
        &(host.clone() + &group("id = \"g\"\nhosts = [\"h1\", \"h0\"]", "[1, 2, 3]")),
        &["host `h0` is in two"],
    );
    wrong_traffic(&(host.clone() + &host), &["group `h0` is there twice"]);
}

#[test]
fn n4_networks_of_one_two_and_four_tiers_and_json_are_read() {
    let one = network("[[racks]]\nid = \"r\"\ntor = \"t\"\nhosts = 3\n").expect("one tier");
    assert_eq!((one.tiers(), one.hosts()), (1, 3));
    let two =
        network(r#"{"core": ["c"], "racks": [{"id": "r", "tor": "t"}, {"id": "s", "tor": "u"}]}"#).expect("two tiers");
    assert_eq!((two.tiers(), two.operators().len()), (2, 3));
    let text = "core = [\"c\"]\nwithout_accelerator = [\"c\"]\n[[pods]]\nid = \"q\"\nwithin = \"p\"\nswitches = [\"b\"]\n\
                [[pods]]\nid = \"p\"\nswitches = [\"a\"]\n[[racks]]\nid = \"r\"\nwithin = \"q\"\ntor = \"t\"\n";
    let four = network(text).expect("four tiers");
    let tier = |id: &str| four.operator(id).map(|operator| four.tier(operator));
    assert_eq!((four.tiers(), tier("a"), tier("b"), tier("t"), tier("c")), (4, Some(1), Some(2), Some(3), None));
}

#[test]
fn n4_an_accelerator_that_is_shared_has_one_limit() {
    let keys =
        "[accelerator]\nutilisation = 0.25\n[[accelerators]]\nid = \"s\"\nswitches = [\"a0\", \"c0\"]\ncores = 2\n";
    let network = network(&format!("{NETWORK}{keys}")).expect("it is right");
    let accelerator = |id: &str| network.operators()[network.operator(id).expect(id)].accelerator;
    assert_eq!(accelerator("a0"), accelerator("c0"));
    assert_eq!(network.accelerators()[accelerator("a0")].limit(), 100_000_000);
    assert_eq!(network.accelerators()[accelerator("t0")].limit(), 50_000_000);
}

#[test]
fn traffic_that_is_written_is_read_again() {
    let network = network(NETWORK).expect("it is right");
    let text = "[[groups]]\nrack = \"r1\"\nrequests_per_s = [1.5, 2.0, 0.001]\n[[groups]]\nid = \"both\"\n\
                hosts = [\"h0\", \"h1\"]\nrequests_per_s = [0.0, 1.0, 7.0]\n";
    let groups = input::traffic(text, &network).expect("it is right");
    let again = input::traffic(&input::write_traffic(&groups, &network), &network).expect("it is right too");
    assert_eq!(groups, again);
}
