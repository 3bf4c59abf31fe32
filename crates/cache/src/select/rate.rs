//! C3's rate control per server (NSDI 2015, section 3.2 and Algorithm 2). A token bucket whose rate grows with the cube of the time since
//! its last cut, like TCP CUBIC's window. The rate is cut when responses come more slowly than requests may go.

use midflight_endpoint::{MS, Nanos};

/// δ, the interval of rates: section 4, and `rateInterval` in the authors' simulator.
const INTERVAL: Nanos = 20 * MS;
/// β: a cut multiplies the rate by this. Section 4.
const CUT_TO: f64 = 0.2;
/// γ, in requests per interval and cubed millisecond; makes the flat part of the curve about 100 ms long, as in section 4.
const GROWTH: f64 = 0.000_004;
/// s_max: largest step. Section 4.
const STEP_MAX: f64 = 10.0;
/// No cut for this long after a rise, until responses show its effect: two intervals, section 4.
const HYSTERESIS: Nanos = 2 * INTERVAL;
/// Size of a bucket: `maxTokens` of the simulator.
const BURST: f64 = 10.0;
/// Initial requests per interval, as in the simulator.
const RATE_FIRST: f64 = 5.0;
/// R₀ before the first cut: the simulator's `valueOfLastDecrease`.
const CUT_FIRST: f64 = 10.0;
/// Lower bound of a cut, so a token comes within 0.2 s. As in the authors' Cassandra (their simulator has 0.0001).
const RATE_MIN: f64 = 0.1;
/// Weight of the last interval in the response rate: the simulator's `alpha`.
const NEWEST: f64 = 0.9;
/// Initial responses per interval, as in the simulator.
const RESPONSES_FIRST: f64 = 10.0;
/// Tolerance for rounding.
const ALMOST_ONE: f64 = 1.0 - 1e-9;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    requests: f64,
    tokens: f64,
    filled_at: Nanos,
    /// R₀: the rate before its last cut.
    before_cut: f64,
    times: Option<Times>,
    /// Responses per interval, averaged over intervals with responses.
    responses: f64,
    /// The current interval, and its responses.
    interval: u64,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    cut: Nanos,
    raised: Nanos,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            requests: RATE_FIRST,
            tokens: BURST,
            filled_at: 0,
            before_cut: CUT_FIRST,
            times: None,
            responses: RESPONSES_FIRST,
            interval: 0,
            count: 0,
        }
    }
}

impl Rate {
    /// Takes a token, or returns when there is one.
    pub(super) fn take(&mut self, now: Nanos) -> Result<(), Nanos> {
        let each = self.requests / INTERVAL as f64;
        let tokens = (self.tokens + each * now.saturating_sub(self.filled_at) as f64).min(BURST);
        if tokens < ALMOST_ONE {
            return Err(now.saturating_add(((1.0 - tokens) / each).ceil() as Nanos).max(now + 1));
        }
        (self.tokens, self.filled_at) = ((tokens - 1.0).max(0.0), now);
        Ok(())
    }

    pub(super) fn answered(&mut self, now: Nanos) {
        self.count_response(now);
        let times = *self.times.get_or_insert(Times { cut: now, raised: now });
        if self.requests < self.responses {
            let since_cut = now.saturating_sub(times.cut) as f64 / MS as f64;
            let rate = cubic(self.before_cut, since_cut);
            self.requests = rate.min(self.requests + STEP_MAX).max(RATE_MIN);
            self.times = Some(Times { raised: now, ..times });
        } else if self.requests > self.responses && now.saturating_sub(times.raised) > HYSTERESIS {
            self.before_cut = self.requests;
            self.requests = (self.requests * CUT_TO).max(RATE_MIN);
            self.times = Some(Times { cut: now, ..times });
        }
    }

    /// Skips intervals without a response; otherwise a selector that sends little would be cut to that little.
    fn count_response(&mut self, now: Nanos) {
        let interval = now / INTERVAL;
        if interval > self.interval {
            if self.count > 0 {
                self.responses = NEWEST * f64::from(self.count) + (1.0 - NEWEST) * self.responses;
            }
            (self.interval, self.count) = (interval, 0);
        }
        self.count = self.count.saturating_add(1);
    }
}

/// γ·(ΔT − ∛(β·R₀/γ))³ + R₀, ΔT in milliseconds.
fn cubic(before_cut: f64, since_cut_ms: f64) -> f64 {
    let from_flat = since_cut_ms - (CUT_TO * before_cut / GROWTH).cbrt();
    GROWTH * from_flat * from_flat * from_flat + before_cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cubic_starts_below_the_old_rate_is_flat_there_and_goes_on() {
        // R₀ = 20: the flat part is at ∛(0.2 × 20 / 0.000004) = ∛1,000,000 = 100 ms.
        // At 0: 20 − 0.000004 × 10⁶ = 16. At 100 ms: 20. At 200 ms: 24. At 50 ms: 20 − 0.000004 × 125,000 = 19.5.
        for (ms, rate) in [(0.0, 16.0), (50.0, 19.5), (100.0, 20.0), (200.0, 24.0)] {
            assert!((cubic(20.0, ms) - rate).abs() < 1e-9, "{ms} ms: {}", cubic(20.0, ms));
        }
    }

    #[test]
    fn tokens_come_at_the_rate_and_a_bucket_holds_ten() {
        let mut rate = Rate::default();
        let start = 1_000 * MS;
        assert_eq!((0..10).filter(|_| rate.take(start).is_ok()).count(), 10);
        // 5 in 20 ms: one every 4 ms.
        assert_eq!(rate.take(start), Err(start + 4 * MS));
        assert_eq!(rate.take(start + MS), Err(start + 4 * MS));
        assert_eq!(rate.take(start + 4 * MS), Ok(()));
        assert_eq!((0..20).filter(|_| rate.take(start + 500 * MS).is_ok()).count(), 10);
    }

    #[test]
    fn the_rate_is_cut_to_a_fifth_when_responses_come_more_slowly_and_rises_again() {
        let mut rate = Rate { requests: 20.0, ..Rate::default() };
        // 10 responses per interval against 20, but no cut within 40 ms of the first response.
        for at in 0..=40 {
            if at % 2 == 0 {
                rate.answered(at * MS);
            }
        }
        assert_eq!(rate.requests, 20.0);
        rate.answered(42 * MS);
        assert_eq!((rate.requests, rate.before_cut), (4.0, 20.0));
        // 4 < 10: the cubic at once, 16 − and some; the largest step of 10 makes it 14.
        rate.answered(42 * MS);
        assert_eq!(rate.requests, 14.0);
        // 14 > 10, but the rise was just before.
        rate.answered(44 * MS);
        assert_eq!(rate.requests, 14.0);
    }

    #[test]
    fn a_token_comes_within_a_fifth_of_a_second_whatever_responses_do() {
        let mut rate = Rate::default();
        for i in 0..1_000 {
            rate.answered(i * 1_000 * MS);
            rate.answered(i * 1_000 * MS + 500 * MS);
            assert!(rate.requests >= RATE_MIN && rate.requests.is_finite());
        }
        let now = 1_000_000 * MS;
        let next = (0..11).find_map(|_| rate.take(now).err()).unwrap();
        assert!(next <= now + 200 * MS + 1, "{}", next - now);
    }
}
