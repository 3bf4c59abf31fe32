//! Plots of figures as SVG: axes that fit the values, a legend, the paper's values as hollow marks.

use super::plots::{Area, BESIDE, Chart, INK, WIDTH, failed, framed, mesh, svg, words};
use super::ticks::Ticks;
use anyhow::Result;
use midflight_papers::findings::plot::{Curve, Hue, Plot, Point};
use plotters::element::DashedPathElement;
use plotters::prelude::*;

const HEIGHT: u32 = 380;
/// Approximate width of a letter of the legend: SVG has no text metrics.
const LETTER: u32 = 7;
const SWATCH: i32 = 20;
const DASH: (i32, i32) = (7, 5);
/// Also the width of a whisker's ends.
const DOT: u32 = 8;
const MARKS: &str = "value in the paper";

/// In a page it follows the reader's light or dark mode; for a file see [`standalone`].
pub(crate) fn draw(plot: &Plot) -> Result<String> {
    let (x, y) = axes(plot);
    let names = plot.curves.iter().map(|curve| curve.name.as_str()).chain([MARKS]);
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0) as u32;
    svg(HEIGHT, |area| {
        let (left, right) = area.split_horizontally(WIDTH - longest * LETTER - 36);
        draw_legend(&right, plot)?;
        let mut frame = framed(&left);
        frame.caption(&plot.title, words(17)).x_label_area_size(48).y_label_area_size(76);
        let mut chart = frame.build_cartesian_2d(x.clone(), y).map_err(failed)?;
        mesh(&mut chart).x_labels(8).y_labels(8).x_desc(plot.x.label).y_desc(plot.y.label).draw().map_err(failed)?;
        for (curve, aside) in plot.curves.iter().zip(asides(plot)) {
            let beside = |point: &Point| Point { x: x.beside(point.x, aside), ..*point };
            draw_curve(&mut chart, curve, &curve.points.iter().map(beside).collect::<Vec<_>>())?;
        }
        let marks = plot.marks.iter().map(|mark| EmptyElement::at((mark.x, mark.y)) + diamond(7, colour(mark.hue)));
        chart.draw_series(marks).map_err(failed)?;
        Ok(())
    })
}

fn draw_legend(area: &Area<'_>, plot: &Plot) -> Result<()> {
    let rows = (48..).step_by(20);
    let name = |name: &str, y| area.draw(&Text::new(name.to_owned(), (SWATCH + 8, y), words(13).pos(BESIDE)));
    for (curve, y) in plot.curves.iter().zip(rows.clone()) {
        let style = colour(curve.hue).stroke_width(3);
        // One dash that covers the whole swatch is a solid line.
        let dash = if curve.dashed { DASH.0 } else { SWATCH };
        area.draw(&DashedPathElement::new([(0, y), (SWATCH, y)], dash, DASH.1, style)).map_err(failed)?;
        name(&curve.name, y).map_err(failed)?;
    }
    if let (Some(y), false) = (rows.clone().nth(plot.curves.len()), plot.marks.is_empty()) {
        area.draw(&(EmptyElement::at((SWATCH / 2, y)) + diamond(6, INK))).map_err(failed)?;
        name(MARKS, y).map_err(failed)?;
    }
    Ok(())
}

/// As a file, with the page's colours for dark backgrounds.
pub(crate) fn standalone(picture: &str) -> String {
    const STYLE: &str = include_str!("dark.css");
    let style = format!("<style>\ntext {{ font-family: system-ui, sans-serif }}\n{STYLE}</style>\n");
    // The backend's first tag is the only one named svg.
    picture.replacen(">\n", &format!(">\n{style}"), 1)
}

pub(crate) fn colour(hue: Hue) -> RGBColor {
    const NTH: [RGBColor; 6] = [
        RGBColor(190, 18, 60),
        RGBColor(217, 119, 6),
        RGBColor(13, 148, 136),
        RGBColor(79, 70, 229),
        RGBColor(100, 116, 139),
        RGBColor(147, 51, 234),
    ];
    match hue {
        Hue::Ours => RGBColor(13, 148, 136),
        Hue::OursKernel => RGBColor(101, 163, 13),
        Hue::OursServer => RGBColor(59, 130, 246),
        Hue::AsicSafe => RGBColor(37, 99, 235),
        Hue::AsicPublished => RGBColor(234, 88, 12),
        Hue::Published => RGBColor(139, 92, 246),
        Hue::PublishedServer => RGBColor(217, 119, 6),
        Hue::Sparrow => RGBColor(225, 29, 72),
        Hue::SparrowTwo => RGBColor(236, 72, 153),
        Hue::SparrowFour => RGBColor(249, 115, 22),
        Hue::Other => RGBColor(100, 116, 139),
        Hue::Nth(index) => NTH[usize::from(index) % NTH.len()],
    }
}

/// A horizontal shift per curve, as a share of the axis, so that error bars do not overlap.
fn asides(plot: &Plot) -> impl Iterator<Item = f64> + use<> {
    const WHISKER: f64 = 0.012;
    let whiskers = plot.curves.iter().any(|curve| curve.points.iter().any(|point| point.spread.is_some()));
    let (step, count) = (if whiskers { WHISKER } else { 0.0 }, plot.curves.len());
    (0..count).map(move |index| (index as f64 - (count as f64 - 1.0) / 2.0) * step)
}

/// With room for curves, whiskers and marks.
fn axes(plot: &Plot) -> (Ticks, Ticks) {
    let marks = plot.marks.iter().map(|mark| (mark.x, mark.y));
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let spreads = points().filter_map(|point| point.spread.map(|(low, high)| [low, high])).flatten();
    let xs = points().map(|point| point.x).chain(marks.clone().map(|mark| mark.0));
    let ys = points().map(|point| point.y).chain(spreads).chain(marks.map(|mark| mark.1));
    (Ticks::of(plot.x.scale, xs), Ticks::of(plot.y.scale, ys))
}

fn draw_curve(chart: &mut Chart<'_, '_>, curve: &Curve, points: &[Point]) -> Result<()> {
    let hue = colour(curve.hue);
    let style = hue.stroke_width(2);
    let line = points.iter().map(|point| (point.x, point.y));
    if curve.dashed {
        chart.draw_series(DashedLineSeries::new(line, DASH.0, DASH.1, style)).map_err(failed)?;
    } else {
        chart.draw_series(LineSeries::new(line, style)).map_err(failed)?;
    }
    let whiskers = points.iter().filter_map(|point| Some((point, point.spread?)));
    let whiskers =
        whiskers.map(|(Point { x, y, .. }, (low, high))| ErrorBar::new_vertical(*x, low, *y, high, hue.filled(), DOT));
    chart.draw_series(whiskers).map_err(failed)?;
    let dots = points.iter().filter(|point| curve.dots && point.spread.is_none());
    chart.draw_series(dots.map(|point| Circle::new((point.x, point.y), DOT / 2, hue.filled()))).map_err(failed)?;
    Ok(())
}

/// A hollow mark.
fn diamond(half: i32, colour: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(0, -half), (half, 0), (0, half), (-half, 0), (0, -half)], colour.stroke_width(2))
}
