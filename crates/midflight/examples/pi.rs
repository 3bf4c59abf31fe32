//! Map and reduce: many tasks throw darts at a square; the client counts how many hit the circle.
//!
//! `cargo run --release --example pi`

use midflight::{Client, Executor, Job, Switch};
use std::error::Error;

const TASKS: u64 = 64;
const DARTS: u64 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let switch = Switch::builder().start()?;
    let _executor = Executor::builder()
        .switch(switch.local_addr())
        .register("darts", |_task, seed| {
            let seed = u64::from_be_bytes(seed.try_into().map_err(|_| "a seed has 8 bytes")?);
            Ok::<_, &str>(hits(seed).to_be_bytes().to_vec())
        })
        .start()?;
    let client = Client::builder().switch(switch.local_addr()).connect()?;

    // Map: one task per seed.
    let job = client.submit(Job::builder("darts").tasks((0..TASKS).map(u64::to_be_bytes)).build())?;
    // Reduce: take the counts as they come, in any order.
    let mut inside = 0;
    for (_, outcome) in job.completions() {
        inside += u64::from_be_bytes(outcome?.value.as_slice().try_into()?);
    }
    let pi = 4.0 * inside as f64 / (TASKS * DARTS) as f64;
    println!("pi is about {pi:.4}");
    assert!((pi - std::f64::consts::PI).abs() < 0.01);
    Ok(())
}

/// Number of a task's darts that hit. The same seed gives the same count, so a second attempt does no harm.
fn hits(seed: u64) -> u64 {
    let mut state = seed + 1;
    let mut draw = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let hit = |x: f64, y: f64| x * x + y * y <= 1.0;
    (0..DARTS).filter(|_| hit(draw(), draw())).count() as u64
}
