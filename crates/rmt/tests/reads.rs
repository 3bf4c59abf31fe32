//! The reads program: it keeps the laws, and its page shows what it is.

mod common;

use midflight_rmt::Target;
use midflight_rmt::reads::{Config, Reads};

#[test]
fn print() {
    for config in [Config::FLAIR, Config::LARGEST] {
        let reads = Reads::build(config, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"));
        println!("{}\n{}", reads.program().report(), reads.program().stages());
    }
}
