//! The plots of a replay's page, as SVG.

use anyhow::{Result, anyhow};
use midflight_papers::findings::plot::Scale;
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ticks::Ticks;
use midflight_cli::replay::delays::Distribution;
use midflight_cli::replay::series::Point;

pub(super) const RUNNING: RGBColor = RGBColor(13, 148, 136);
pub(super) const OFFERED: RGBColor = RGBColor(100, 116, 139);
pub(super) const WAITING: RGBColor = RGBColor(217, 119, 6);
/// Delay, pacing, queueing, dispatch.
pub(super) const PART_COLOURS: [RGBColor; 4] =
    [RGBColor(30, 41, 59), RGBColor(13, 148, 136), RGBColor(217, 119, 6), RGBColor(37, 99, 235)];

pub(super) const TIME_POINTS: usize = 480;

pub(super) const WIDTH: u32 = 960;
const CDF_HEIGHT: u32 = 340;
const TIME_HEIGHT: u32 = 220;
pub(super) const INK: RGBColor = RGBColor(71, 85, 105);
const GRID: RGBColor = RGBColor(226, 232, 240);
const AXIS: RGBColor = RGBColor(148, 163, 184);

pub(super) struct Curve<'a> {
    pub name: String,
    pub colour: RGBColor,
    pub distribution: &'a Distribution,
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) fn svg(height: u32, draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        draw(&area)?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticks, Ticks>>;

/// With the margins of all charts.
pub(super) fn framed<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart.margin(8).margin_right(24).x_label_area_size(30).y_label_area_size(52);
    chart
}

/// The usual axes, grid and labels.
pub(super) fn mesh<'a, 'b, 'c>(chart: &'c mut Chart<'a, 'b>) -> MeshStyle<'a, 'c, Ticks, Ticks, SVGBackend<'b>> {
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(GRID).axis_style(AXIS).label_style(words(13));
    mesh
}

pub(super) fn words(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// To the right, vertically centred.
pub(super) const BESIDE: Pos = Pos { h_pos: HPos::Left, v_pos: VPos::Center };

pub(super) fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw a plot: {error}")
}

/// Cumulative distributions over a logarithmic time axis. Values below the axis are drawn at its left edge.
pub(super) fn cumulative(curves: &[Curve<'_>]) -> Result<String> {
    const SHORTEST_NS: f64 = 1e3;
    let longest_ns = curves.iter().map(|curve| curve.distribution.max_ns()).max().unwrap_or(0) as f64;
    let end_ns = 10f64.powf(longest_ns.max(SHORTEST_NS * 10.0).log10().ceil());
    let time = Ticks { scale: Scale::LogTime, range: SHORTEST_NS..end_ns };
    svg(CDF_HEIGHT, |area| {
        let share = Ticks { scale: Scale::Share, range: 0.0..1.0 };
        let mut chart = framed(area).build_cartesian_2d(time, share).map_err(failed)?;
        mesh(&mut chart).y_labels(6).draw().map_err(failed)?;
        for curve in curves {
            let points = steps(curve.distribution, SHORTEST_NS, end_ns);
            chart.draw_series(LineSeries::new(points, curve.colour.stroke_width(2))).map_err(failed)?;
        }
        Ok(())
    })
}

/// Drops points that a screen cannot distinguish; between distant values it is a step.
fn steps(distribution: &Distribution, start_ns: f64, end_ns: f64) -> Vec<(f64, f64)> {
    let all: Vec<(f64, f64)> = distribution.cumulative().into_iter().map(|(ns, share)| (ns as f64, share)).collect();
    let within = all.partition_point(|&(ns, _)| ns <= start_ns);
    let below = within.checked_sub(1).map_or(0.0, |last| all[last].1);
    let mut points = vec![(start_ns, below)];
    let (mut x, mut y) = (start_ns, below);
    for &(ns, share) in &all[within..] {
        if ns / x > 1.1 {
            points.push((ns, y));
        }
        if ns / x > 1.005 || share - y > 0.002 || share >= 1.0 {
            points.push((ns, share));
            (x, y) = (ns, share);
        }
    }
    if distribution.count() > 0 {
        points.push((end_ns, 1.0));
    }
    points
}

/// Busy executors and arriving work.
pub(super) fn load(points: &[Point], executors: u32) -> Result<String> {
    let offered = moving_mean(points, points.len() / 20);
    let executors = f64::from(executors);
    let top = offered.iter().map(|&(_, y)| y).fold(executors, f64::max) * 1.08;
    let running: Vec<(f64, f64)> = points.iter().map(|point| (point.at_s, point.running)).collect();
    over_time(points, top, |chart| {
        draw_area(chart, &running, RUNNING)?;
        chart.draw_series(LineSeries::new(offered, OFFERED.stroke_width(2))).map_err(failed)?;
        let all = [(0.0, executors), (last_s(points), executors)];
        chart.draw_series(DashedLineSeries::new(all, 6, 4, INK.stroke_width(1))).map_err(failed)?;
        Ok(())
    })
}

/// Waiting tasks, over time.
pub(super) fn queue(points: &[Point]) -> Result<String> {
    let waiting: Vec<(f64, f64)> = points.iter().map(|point| (point.at_s, point.waiting as f64)).collect();
    let top = waiting.iter().map(|&(_, y)| y).fold(4.0, f64::max) * 1.08;
    over_time(points, top, |chart| draw_area(chart, &waiting, WAITING))
}

fn over_time(points: &[Point], top: f64, draw: impl FnOnce(&mut Chart<'_, '_>) -> Result<()>) -> Result<String> {
    let time = Ticks { scale: Scale::Seconds, range: 0.0..last_s(points) };
    svg(TIME_HEIGHT, |area| {
        let number = Ticks { scale: Scale::Number, range: 0.0..top };
        let mut chart = framed(area).build_cartesian_2d(time, number).map_err(failed)?;
        mesh(&mut chart).x_labels(12).y_labels(5).disable_x_mesh().draw().map_err(failed)?;
        draw(&mut chart)
    })
}

fn draw_area(chart: &mut Chart<'_, '_>, line: &[(f64, f64)], colour: RGBColor) -> Result<()> {
    let (fill, edge) = (colour.mix(0.22), colour.stroke_width(1));
    chart.draw_series(AreaSeries::new(line.iter().copied(), 0.0, fill).border_style(edge)).map_err(failed)?;
    Ok(())
}

fn last_s(points: &[Point]) -> f64 {
    points.last().map_or(1.0, |point| point.at_s)
}

/// Work arrives in bursts: a mean over `radius` points to each side shows the load.
fn moving_mean(points: &[Point], radius: usize) -> Vec<(f64, f64)> {
    let mean = |index: usize| {
        let around = &points[index.saturating_sub(radius)..(index + radius + 1).min(points.len())];
        around.iter().map(|point| point.offered).sum::<f64>() / around.len() as f64
    };
    (0..points.len()).map(|index| (points[index].at_s, mean(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shorter_than_the_axis_stands_at_its_left_edge() {
        let mut distribution = Distribution::default();
        [0, 0, 50_000, 100_000].into_iter().for_each(|ns| distribution.record(ns));
        let points = steps(&distribution, 1e3, 1e6);
        assert_eq!(points[0], (1e3, 0.5));
        assert_eq!(points.last(), Some(&(1e6, 1.0)));
    }

    #[test]
    fn the_moving_mean_keeps_the_level() {
        let point = |i: u32| Point { at_s: f64::from(i), waiting: 0, running: 0.0, offered: f64::from(i % 2) * 2.0 };
        let points: Vec<Point> = (0..100).map(point).collect();
        assert!(moving_mean(&points, 10)[20..80].iter().all(|&(_, y)| (y - 1.0).abs() < 0.1));
    }
}
