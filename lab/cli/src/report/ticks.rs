//! An axis: its range, grid lines and labels.

use midflight_papers::findings::plot::Scale;
use midflight_terminal::units;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(super) struct Ticks {
    pub(super) scale: Scale,
    pub(super) range: Range<f64>,
}

impl Ticks {
    /// With room for all finite `values`; a logarithmic axis skips those not above zero.
    pub(super) fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let usable = |value: &f64| value.is_finite() && (!logarithmic(scale) || *value > 0.0);
        let (low, high) = values.filter(usable).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        let range = match scale {
            Scale::LogTime | Scale::LogNumber => around_decades(low, high),
            Scale::Share => (if low >= 0.4 && high <= 1.0 { 0.4 } else { 0.0 })..1.0,
            Scale::Whole => low - 0.5..high + 0.5,
            Scale::Seconds | Scale::Time | Scale::Number => 0.0..if high > 0.0 { high * 1.04 } else { 1.0 },
        };
        Self { scale, range }
    }

    /// The position at a distance from `value`, given as a share of the axis.
    pub(super) fn beside(&self, value: f64, share: f64) -> f64 {
        let Range { start, end } = self.range;
        if logarithmic(self.scale) { value * (end / start).powf(share) } else { value + share * (end - start) }
    }

    fn decades(&self) -> Vec<f64> {
        let Range { start, end } = self.range;
        // Over few decades, labels at the decades alone would be too few.
        let multiples: &[f64] = if end / start <= 100.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = start.log10().floor() as i32..=end.log10().ceil() as i32;
        let all = powers.flat_map(|power| multiples.iter().map(move |multiple| multiple * 10f64.powi(power)));
        all.filter(|&value| value >= start * 0.999 && value <= end * 1.001).collect()
    }
}

impl Ranged for Ticks {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    /// A value beyond an end is drawn at that end.
    fn map(&self, value: &f64, pixels: (i32, i32)) -> i32 {
        let Range { start, end } = self.range;
        let within = value.clamp(start, end);
        let [from, to, at] = [start, end, within].map(|v| if logarithmic(self.scale) { v.log10() } else { v });
        RangedCoordf64::from(from..to).map(&at, pixels)
    }

    /// The grid lines; there are none without a label.
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return vec![];
        }
        if logarithmic(self.scale) {
            return self.decades();
        }
        let mut all = RangedCoordf64::from(self.range.clone()).key_points(hint);
        all.retain(|value| self.scale != Scale::Whole || value.fract() == 0.0);
        all
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Ticks {
    fn format_ext(&self, &value: &f64) -> String {
        match self.scale {
            Scale::LogTime | Scale::Time => units::short_time(value),
            Scale::LogNumber | Scale::Number | Scale::Whole => units::short_number(value),
            Scale::Seconds => format!("{} s", units::short_number(value)),
            Scale::Share => format!("{:.0} %", value * 100.0),
        }
    }
}

fn logarithmic(scale: Scale) -> bool {
    matches!(scale, Scale::LogTime | Scale::LogNumber)
}

/// The enclosing range between multiples 1, 2 or 5 of decades.
fn around_decades(low: f64, high: f64) -> Range<f64> {
    let floor = |value: f64| {
        let power = 10f64.powf((value.log10() + 1e-9).floor());
        [5.0, 2.0, 1.0].map(|multiple| multiple * power).into_iter().find(|&v| v <= value * 1.000_001).unwrap_or(power)
    };
    let first = floor(low * 0.95);
    let power = 10f64.powf((high * 1.05).log10().floor());
    let above = [1.0, 2.0, 5.0, 10.0].map(|multiple| multiple * power);
    let last = above.into_iter().find(|&v| v >= high * 1.05).unwrap_or(high * 10.0);
    first..if last > first { last } else { first * 10.0 }
}
