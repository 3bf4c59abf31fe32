//! YCSB's workloads B and C, on keys drawn uniformly or by Zipf's law.

use rand::RngExt;
use rand_distr::{Distribution, Zipf};
use rand_pcg::Pcg64;

const KEYS: u32 = 10_000;
pub(super) const VALUE_BYTES: usize = 100;
/// YCSB's exponent.
const ZIPF: f64 = 0.99;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skew {
    Uniform,
    Zipf,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    pub(super) name: &'static str,
    /// Share, 0 to 1.
    pub(super) writes: f64,
    pub(super) skew: Skew,
}

impl Mix {
    pub(super) const C: Self = Self { name: "C", writes: 0.0, skew: Skew::Uniform };
    pub(super) const C_ZIPF: Self = Self { name: "C.zipf", writes: 0.0, skew: Skew::Zipf };
    pub(super) const B: Self = Self { name: "B", writes: 0.05, skew: Skew::Uniform };
    pub(super) const B_ZIPF: Self = Self { name: "B.zipf", writes: 0.05, skew: Skew::Zipf };
    pub(super) const WRITES: Self = Self { name: "writes", writes: 1.0, skew: Skew::Uniform };
}

pub(super) struct Keys {
    zipf: Zipf<f64>,
}

impl Keys {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self { zipf: Zipf::new(f64::from(KEYS), ZIPF)? })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..KEYS).map(key)
    }

    pub(super) fn draw(&self, skew: Skew, random: &mut Pcg64) -> Vec<u8> {
        key(match skew {
            Skew::Uniform => random.random_range(0..KEYS),
            // From 1 to KEYS. Frequent keys are not neighbours in the store, which hashes them.
            Skew::Zipf => self.zipf.sample(random) as u32 - 1,
        })
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("user{number:08}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_zipf_draw_prefers_few_keys_and_a_uniform_one_none() {
        let (keys, mut random) = (Keys::new().unwrap(), Pcg64::seed_from_u64(1));
        let mut of_first = |skew| (0..20_000).filter(|_| keys.draw(skew, &mut random) == key(0)).count();
        // 1 / (1 + 1/2^0.99 + … + 1/10000^0.99) = 9.8 %
        assert!((1_700..2_300).contains(&of_first(Skew::Zipf)));
        assert!(of_first(Skew::Uniform) < 20);
    }
}
