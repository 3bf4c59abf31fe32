//! Keys and values of a load, and the distribution of keys.

use anyhow::{Context, Result, anyhow};
use midflight_host::cache::{CacheClient, Value};
use rand_distr::{Distribution, Zipf};
use rand_pcg::Pcg64;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A key's number must fit a tag.
pub(crate) const KEYS_MAX: u32 = 1 << 24;
const WRITERS: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Keys {
    count: u32,
    zipf: Zipf<f64>,
    value_bytes: usize,
}

impl Keys {
    /// Zipf's law with this exponent; 0 is uniform.
    pub(crate) fn new(count: u32, exponent: f64, value_bytes: usize) -> Result<Self> {
        let zipf = Zipf::new(f64::from(count), exponent).context("keys by Zipf's law")?;
        Ok(Self { count, zipf, value_bytes })
    }

    pub(crate) fn draw(&self, random: &mut Pcg64) -> u32 {
        // From 1 to the count. Frequent keys are not neighbours on the servers, which hash them.
        (self.zipf.sample(random) as u32 - 1).min(self.count - 1)
    }

    pub(crate) fn name(number: u32) -> String {
        format!("bench:{number:08}")
    }

    fn value(&self, number: u32) -> Vec<u8> {
        number.to_be_bytes().into_iter().cycle().take(self.value_bytes).collect()
    }

    /// Whether this is the value of that key.
    pub(crate) fn is_value(&self, number: u32, value: &Value) -> bool {
        // The length, not the flags: Redis keeps no flags.
        value.bytes.len() == self.value_bytes
            && value.bytes.iter().zip(number.to_be_bytes().iter().cycle()).all(|(is, should)| is == should)
    }

    /// Calls `told` after each key.
    pub(crate) fn set_all(&self, client: &CacheClient, stop: &AtomicBool, told: &(dyn Fn() + Sync)) -> Result<()> {
        let next = AtomicU32::new(0);
        let write = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= self.count || stop.load(Relaxed) {
                    return Ok(());
                }
                let set = client.set(Self::name(number), self.value(number));
                if let Err(error) = set {
                    next.store(self.count, Relaxed);
                    return Err(error).context("the keys cannot be set before the load");
                }
                told();
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a writer panicked"))?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn an_exponent_prefers_few_keys_and_0_none() {
        let of_first = |exponent| {
            let (keys, mut random) = (Keys::new(10_000, exponent, 8).unwrap(), Pcg64::seed_from_u64(1));
            (0..20_000).filter(|_| keys.draw(&mut random) == 0).count()
        };
        // 1 / (1 + 1/2^0.99 + … + 1/10000^0.99) = 9.8 %
        assert!((1_700..2_300).contains(&of_first(0.99)));
        assert!(of_first(0.0) < 20);
    }

    #[test]
    fn a_value_is_that_of_one_key_only() {
        let keys = Keys::new(10, 0.0, 6).unwrap();
        let value = Value { bytes: keys.value(3), flags: 0 };
        assert_eq!(value.bytes, [0, 0, 0, 3, 0, 0]);
        assert!(keys.is_value(3, &value) && !keys.is_value(4, &value));
        assert!(!keys.is_value(3, &Value { bytes: keys.value(4), ..value.clone() }));
        assert!(!keys.is_value(3, &Value { bytes: value.bytes[..5].to_vec(), flags: 0 }));
    }
}
