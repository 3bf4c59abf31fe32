//! Systems side by side: bars for throughput and for latency, on logarithmic axes.

use super::plots::{AXIS, Area, GRID, OFFERED, RUNNING, WIDTH, failed, svg, text};
use anyhow::Result;
use midflight_terminal::units;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

/// What is drawn of a system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar<'a> {
    pub name: &'a str,
    /// Drawn in our colour.
    pub ours: bool,
    pub tasks_per_s: f64,
    pub latency_us: f64,
}

const ROW: u32 = 30;
const HEADER: u32 = 40;
const FOOTER: u32 = 32;
/// To the left, where the systems' names stand.
const NAMES: i32 = 140;
/// Behind the longest bar, for its value.
const VALUES: i32 = 84;
/// Between the two panels.
const GAP: i32 = 24;
/// A bar's share of its row's height.
const THICKNESS: f64 = 0.62;

/// One half of the picture.
struct Panel {
    title: &'static str,
    value: fn(&Bar<'_>) -> f64,
    label: fn(f64) -> String,
    /// Of a power of ten on the axis.
    tick: fn(f64) -> String,
}

const THROUGHPUT: Panel = Panel {
    title: "No-op tasks a second: more is better",
    value: |bar| bar.tasks_per_s,
    label: |value| units::thousands(value.round() as u64),
    tick: |value| units::thousands(value.round() as u64),
};
const LATENCY: Panel = Panel {
    title: "Round trip of one task, median: less is better",
    value: |bar| bar.latency_us,
    label: |value| units::time((value * 1e3).round() as u64),
    tick: |value| units::short_time(value * 1e3),
};

/// A picture with a row for each bar, in their order. There is at least one, and all values are above zero.
pub(crate) fn throughput_and_latency(bars: &[Bar<'_>]) -> Result<String> {
    let rows = u32::try_from(bars.len())?;
    svg(HEADER + rows * ROW + FOOTER, |area| {
        area.fill(&WHITE).map_err(failed)?;
        let panel = (WIDTH as i32 - NAMES - 2 * VALUES - GAP) / 2;
        for (index, bar) in (0..).zip(bars) {
            let middle = HEADER as i32 + index * ROW as i32 + ROW as i32 / 2;
            text(area, bar.name, (NAMES - 10, middle), HPos::Right, 14)?;
        }
        draw(area, bars, &THROUGHPUT, NAMES, panel)?;
        draw(area, bars, &LATENCY, NAMES + panel + VALUES + GAP, panel)
    })
}

/// Draws one panel; `left` and `width` are of its bars.
fn draw(area: &Area<'_>, bars: &[Bar<'_>], panel: &Panel, left: i32, width: i32) -> Result<()> {
    let bottom = (HEADER as i32) + bars.len() as i32 * ROW as i32;
    text(area, panel.title, (left, HEADER as i32 / 2), HPos::Left, 15)?;
    let axis = Axis::of(bars.iter().map(panel.value), left, width);
    for power in axis.first..=axis.last {
        let x = axis.at(10f64.powi(power));
        let colour = if power == axis.first { AXIS } else { GRID };
        area.draw(&PathElement::new([(x, HEADER as i32), (x, bottom)], colour)).map_err(failed)?;
        let tick = (panel.tick)(10f64.powi(power));
        text(area, &tick, (x, bottom + FOOTER as i32 / 2), HPos::Center, 12)?;
    }
    for (index, bar) in (0..).zip(bars) {
        let value = (panel.value)(bar);
        let middle = HEADER as i32 + index * ROW as i32 + ROW as i32 / 2;
        let half = (f64::from(ROW) * THICKNESS / 2.0).round() as i32;
        let colour = if bar.ours { RUNNING } else { OFFERED };
        let corners = [(left, middle - half), (axis.at(value), middle + half)];
        area.draw(&Rectangle::new(corners, colour.filled())).map_err(failed)?;
        text(area, &(panel.label)(value), (axis.at(value) + 6, middle), HPos::Left, 13)?;
    }
    Ok(())
}

/// A logarithmic axis over whole decades, that begins below the smallest value so that each has a bar.
struct Axis {
    first: i32,
    last: i32,
    left: i32,
    width: i32,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>, left: i32, width: i32) -> Self {
        let (least, most) = values
            .map(f64::log10)
            .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        // A value at a decade itself would have no bar.
        let first = (least - 0.1).floor() as i32;
        Self { first, last: (most.ceil() as i32).max(first + 1), left, width }
    }

    fn at(&self, value: f64) -> i32 {
        let share = (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        self.left + (share * f64::from(self.width)).round() as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars() -> Vec<Bar<'static>> {
        let bar = |name, ours, tasks_per_s, latency_us| Bar { name, ours, tasks_per_s, latency_us };
        vec![
            bar("nats", false, 607_532.0, 107.8),
            bar("midflight-kernel", true, 512_345.0, 28.1),
            bar("midflight-user", true, 301_000.0, 61.4),
            bar("nats-jetstream", false, 134_795.0, 243.5),
            bar("ray-compiled", false, 27_220.0, 46.2),
            bar("ray-actors", false, 4_808.0, 545.0),
            bar("ray", false, 2_012.0, 1_265.0),
            bar("dask", false, 1_932.0, 2_627.0),
            bar("hyperqueue", false, 657.0, 4_046.0),
        ]
    }

    #[test]
    fn every_system_has_its_name_and_both_its_values() {
        let picture = throughput_and_latency(&bars()).unwrap();
        if let Some(path) = std::env::var_os("MIDFLIGHT_BARS_SAMPLE") {
            std::fs::write(path, &picture).unwrap();
        }
        for text in ["nats-jetstream", "134,795", "244 µs", "midflight-kernel", "28.1 µs", "4.05 ms", "more is better"]
        {
            assert!(picture.contains(text), "{text}");
        }
        assert_eq!(picture.matches("#0D9488").count(), 4, "two of us in two panels");
    }

    #[test]
    fn longer_bars_are_larger_values_and_all_have_one() {
        let axis = Axis::of([10.0, 999.0, 1_000.0].into_iter(), 100, 300);
        assert_eq!((axis.first, axis.last), (0, 3));
        assert_eq!((axis.at(1.0), axis.at(10.0), axis.at(1_000.0)), (100, 200, 400));
        let one = Axis::of([5.0].into_iter(), 0, 100);
        assert_eq!((one.first, one.last), (0, 1));
    }

    #[test]
    fn one_system_alone_is_a_picture_too() {
        assert!(throughput_and_latency(&bars()[..1]).unwrap().contains("607,532"));
    }
}
