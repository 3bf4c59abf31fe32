//! Bar charts of throughput and latency, on logarithmic axes.

use super::plots::{Area, BESIDE, OFFERED, RUNNING, WIDTH, failed, framed, mesh, svg, words};
use super::ticks::Ticks;
use anyhow::Result;
use midflight_papers::findings::plot::Scale;
use midflight_terminal::units;
use plotters::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar<'a> {
    pub name: &'a str,
    /// In Midflight's colour.
    pub ours: bool,
    pub tasks_per_s: f64,
    pub latency_us: f64,
}

const ROW: u32 = 30;
/// Height around the rows: title and axis.
const AROUND: u32 = 72;
/// Width of the systems' names.
const NAMES: u32 = 116;
/// The value after the longest bar.
const VALUES: u32 = 72;
/// A bar's share of its row's height.
const THICKNESS: f64 = 0.62;

struct Panel {
    title: &'static str,
    value: fn(&Bar<'_>) -> f64,
    label: fn(f64) -> String,
    axis: Scale,
}

const THROUGHPUT: Panel = Panel {
    title: "No-op tasks a second: more is better",
    value: |bar| bar.tasks_per_s,
    label: |value| units::thousands(value.round() as u64),
    axis: Scale::LogNumber,
};
const LATENCY: Panel = Panel {
    title: "Round trip of one task, median: less is better",
    value: |bar| bar.latency_us * 1e3,
    label: |value| units::time(value.round() as u64),
    axis: Scale::LogTime,
};

/// One row per bar. At least one, with all values above zero.
pub(crate) fn throughput_and_latency(bars: &[Bar<'_>]) -> Result<String> {
    let rows = u32::try_from(bars.len())?;
    svg(AROUND + rows * ROW, |area| {
        area.fill(&WHITE).map_err(failed)?;
        let (left, right) = area.split_horizontally(WIDTH / 2);
        draw(&left, bars, &THROUGHPUT)?;
        draw(&right, bars, &LATENCY)
    })
}

fn draw(area: &Area<'_>, bars: &[Bar<'_>], panel: &Panel) -> Result<()> {
    let rows = (1..=bars.len()).rev().map(|row| row as f64);
    let (values, lines) = (bars.iter().map(panel.value), Ticks::of(Scale::Whole, rows.clone()));
    // The shortest bar also needs some length.
    let axis = Ticks::of(panel.axis, values.clone().flat_map(|value| [value / 4.0, value]));
    let start = axis.range.start;
    let mut frame = framed(area);
    let mut chart = frame
        .caption(panel.title, words(17))
        .margin_right(VALUES)
        .y_label_area_size(NAMES)
        .build_cartesian_2d(axis, lines)
        .map_err(failed)?;
    let name = |row: &f64| bars.iter().nth_back(*row as usize - 1).map_or(String::new(), |bar| bar.name.into());
    mesh(&mut chart).disable_y_mesh().y_labels(2 * bars.len()).y_label_formatter(&name).draw().map_err(failed)?;
    for ((bar, value), row) in bars.iter().zip(values).zip(rows) {
        let colour = if bar.ours { RUNNING } else { OFFERED };
        let corners = [(start, row - THICKNESS / 2.0), (value, row + THICKNESS / 2.0)];
        let label = Text::new((panel.label)(value), (6, 0), words(14).pos(BESIDE));
        chart.draw_series([Rectangle::new(corners, colour.filled())]).map_err(failed)?;
        chart.draw_series([EmptyElement::at((value, row)) + label]).map_err(failed)?;
    }
    Ok(())
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
    fn one_system_alone_is_a_picture_too() {
        assert!(throughput_and_latency(&bars()[..1]).unwrap().contains("607,532"));
    }
}
