//! YCSB's workloads A, B and C, on keys drawn uniformly or by Zipf's law, from clients in a closed loop.

use midflight_host::store::Operation;
use rand::RngExt;
use rand_distr::{Distribution, Zipf};
use rand_pcg::Pcg64;

pub(super) const KEYS: u32 = 10_000;
/// As in the papers: keys of 24 bytes, values of 1 KB.
const VALUE_BYTES: usize = 1_000;
/// YCSB's exponent.
pub(super) const ZIPF: f64 = 0.99;
/// A replica that used up its share is idle for most of a period. Its backlog must not starve the others, so enough clients wait for a
/// period of all.
pub(super) const CLIENTS: u32 = 1_024;

#[derive(Clone, Debug)]
pub(super) struct Mix {
    pub(super) name: String,
    /// Share, 0 to 1.
    pub(super) writes: f64,
    /// Exponent; 0: uniform.
    pub(super) zipf: f64,
    pub(super) clients: u32,
}

impl Mix {
    pub(super) fn new(name: impl Into<String>, writes: f64) -> Self {
        Self { name: name.into(), writes, zipf: 0.0, clients: CLIENTS }
    }

    /// Uniform, and by Zipf's law.
    pub(super) fn both(name: &str, writes: f64) -> [Self; 2] {
        [Self::new(name, writes), Self { zipf: ZIPF, ..Self::new(format!("{name}.zipf"), writes) }]
    }
}

pub(super) fn put(key: u32) -> Operation {
    Operation::Put { key: name(key), value: vec![b'v'; VALUE_BYTES] }
}

fn name(key: u32) -> Vec<u8> {
    format!("user{key:020}").into_bytes()
}

/// Draws operations.
pub(super) struct Draw {
    writes: f64,
    zipf: Option<Zipf<f64>>,
}

impl Draw {
    pub(super) fn of(mix: &Mix) -> anyhow::Result<Self> {
        let zipf = (mix.zipf > 0.0).then(|| Zipf::new(f64::from(KEYS), mix.zipf)).transpose()?;
        Ok(Self { writes: mix.writes, zipf })
    }

    /// And whether it is a write.
    pub(super) fn draw(&self, random: &mut Pcg64) -> (bool, Operation) {
        let key = match &self.zipf {
            None => random.random_range(0..KEYS),
            // From 1 to KEYS. Frequent keys are not neighbours in the store, which hashes them.
            Some(zipf) => zipf.sample(random) as u32 - 1,
        };
        let is_write = random.random_bool(self.writes);
        (is_write, if is_write { put(key) } else { Operation::Get { key: name(key) } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_zipf_draw_prefers_few_keys_and_a_uniform_one_none() {
        let [uniform, zipf] = Mix::both("C", 0.0).map(|mix| Draw::of(&mix).unwrap());
        let mut random = Pcg64::seed_from_u64(1);
        let first = Operation::Get { key: name(0) };
        let mut of_first = |draw: &Draw| (0..20_000).filter(|_| draw.draw(&mut random).1 == first).count();
        // 1 / (1 + 1/2^0.99 + … + 1/10000^0.99) = 9.8 %
        assert!((1_700..2_300).contains(&of_first(&zipf)));
        assert!(of_first(&uniform) < 20);
    }
}
