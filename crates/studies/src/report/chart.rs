//! The plots of figures, as SVG: axes that fit the values, a legend above, the paper's values as hollow marks.

use super::plots::{AXIS, Area, GRID, INK, WIDTH, failed, svg, text};
use super::ticks::Ticks;
use anyhow::Result;
use midflight_papers::findings::plot::{Curve, Hue, Plot};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const LEFT: i32 = 66;
const RIGHT: i32 = WIDTH as i32 - 24;
const TITLE: i32 = 14;
const LEGEND: i32 = 38;
const LEGEND_LINE: i32 = 21;
const PLOT_HEIGHT: i32 = 270;
const BELOW: i32 = 50;
/// A letter of size 13, roughly: SVG has no measure of text.
const LETTER: f64 = 7.1;
const SWATCH: i32 = 20;
const DASH: (i32, i32) = (7, 5);
/// Across a dot, and across the ends of a whisker.
const DOT: u32 = 8;

/// Draws `plot`; in a page of its own it follows the reader's light or dark, see [`standalone`].
pub(crate) fn draw(plot: &Plot) -> Result<String> {
    let legend = Legend::of(plot);
    let top = LEGEND + legend.lines * LEGEND_LINE;
    let frame = Frame::of(plot, top, top + PLOT_HEIGHT);
    svg((frame.bottom + BELOW) as u32, |area| {
        text(area, &plot.title, (LEFT, TITLE), HPos::Left, 15)?;
        legend.draw(area)?;
        frame.draw(area, plot)?;
        for (curve, aside) in plot.curves.iter().zip(asides(plot)) {
            frame.curve(area, curve, aside)?;
        }
        for mark in &plot.marks {
            diamond(area, frame.at(mark.x, mark.y), 7, colour(mark.hue))?;
        }
        Ok(())
    })
}

/// As a file: with colours for dark backgrounds, as the page has them.
pub(crate) fn standalone(picture: &str) -> String {
    const STYLE: &str = include_str!("dark.css");
    let style = format!("<style>\ntext {{ font-family: system-ui, sans-serif }}\n{STYLE}</style>\n");
    // The first tag of the backend is the only one named svg.
    picture.find(">\n").map_or_else(
        || picture.to_owned(),
        |end| {
            let (head, rest) = picture.split_at(end + 2);
            format!("{head}{style}{rest}")
        },
    )
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

/// How far each curve is moved to the side, so that error bars do not cover one another.
fn asides(plot: &Plot) -> impl Iterator<Item = i32> + use<> {
    const WHISKER: i32 = 10;
    let whiskers = plot.curves.iter().any(|curve| curve.points.iter().any(|point| point.spread.is_some()));
    let (step, count) = (if whiskers { WHISKER } else { 0 }, plot.curves.len() as i32);
    (0..count).map(move |index| (2 * index - count + 1) * step / 2)
}

/// Where each curve's name stands.
struct Legend<'a> {
    entries: Vec<(i32, i32, &'a Curve)>,
    /// Where the explanation of the marks stands, if there are any.
    marks: Option<(i32, i32)>,
    lines: i32,
}

const MARKS: &str = "value in the paper";

impl<'a> Legend<'a> {
    fn of(plot: &'a Plot) -> Self {
        let (mut x, mut line) = (LEFT, 0);
        let mut place = |name: &str| {
            let width = SWATCH + 8 + (name.chars().count() as f64 * LETTER) as i32 + 18;
            if x + width > RIGHT && x > LEFT {
                (x, line) = (LEFT, line + 1);
            }
            let at = (x, LEGEND + line * LEGEND_LINE);
            x += width;
            at
        };
        let entries = plot.curves.iter().map(|curve| {
            let (x, y) = place(&curve.name);
            (x, y, curve)
        });
        let entries = entries.collect();
        let marks = (!plot.marks.is_empty()).then(|| place(MARKS));
        Self { entries, marks, lines: line + 1 }
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        for &(x, y, curve) in &self.entries {
            line(area, &[(x, y), (x + SWATCH, y)], colour(curve.hue).stroke_width(3), curve.dashed)?;
            text(area, &curve.name, (x + SWATCH + 8, y), HPos::Left, 13)?;
        }
        let Some((x, y)) = self.marks else { return Ok(()) };
        diamond(area, (x + SWATCH / 2, y), 6, INK)?;
        text(area, MARKS, (x + SWATCH + 8, y), HPos::Left, 13)
    }
}

/// The axes, and where values are on the picture.
struct Frame {
    x: Ticks,
    y: Ticks,
    top: i32,
    bottom: i32,
}

impl Frame {
    fn of(plot: &Plot, top: i32, bottom: i32) -> Self {
        let marks = plot.marks.iter().map(|mark| (mark.x, mark.y));
        let points = || plot.curves.iter().flat_map(|curve| &curve.points);
        let spreads = points().filter_map(|point| point.spread.map(|(low, high)| [low, high])).flatten();
        let xs = points().map(|point| point.x).chain(marks.clone().map(|mark| mark.0));
        let ys = points().map(|point| point.y).chain(spreads).chain(marks.map(|mark| mark.1));
        Self { x: Ticks::of(plot.x.scale, xs), y: Ticks::of(plot.y.scale, ys), top, bottom }
    }

    fn at(&self, x: f64, y: f64) -> (i32, i32) {
        let right = LEFT + (self.x.share(x) * f64::from(RIGHT - LEFT)).round() as i32;
        (right, self.bottom - (self.y.share(y) * f64::from(self.bottom - self.top)).round() as i32)
    }

    fn draw(&self, area: &Area<'_>, plot: &Plot) -> Result<()> {
        for (value, label) in self.y.labels() {
            let y = self.at(self.x.first(), value).1;
            area.draw(&PathElement::new([(LEFT, y), (RIGHT, y)], GRID)).map_err(failed)?;
            text(area, &label, (LEFT - 8, y), HPos::Right, 12)?;
        }
        let mut free_from = i32::MIN;
        for (value, label) in self.x.labels() {
            let x = self.at(value, self.y.first()).0;
            area.draw(&PathElement::new([(x, self.top), (x, self.bottom)], GRID)).map_err(failed)?;
            let half = (label.chars().count() as f64 * LETTER / 2.0) as i32;
            if x - half >= free_from {
                text(area, &label, (x, self.bottom + 15), HPos::Center, 12)?;
                free_from = x + half + 6;
            }
        }
        let corner = [(LEFT, self.top), (LEFT, self.bottom), (RIGHT, self.bottom)];
        area.draw(&PathElement::new(corner, AXIS)).map_err(failed)?;
        text(area, plot.x.label, ((LEFT + RIGHT) / 2, self.bottom + 36), HPos::Center, 13)?;
        // Beside the title, so that no text is turned.
        text(area, plot.y.label, (RIGHT, TITLE), HPos::Right, 13)
    }

    fn curve(&self, area: &Area<'_>, curve: &Curve, aside: i32) -> Result<()> {
        let hue = colour(curve.hue);
        let beside = |(x, y): (i32, i32)| (x + aside, y);
        let points: Vec<(i32, i32)> = curve.points.iter().map(|point| beside(self.at(point.x, point.y))).collect();
        line(area, &points, hue.stroke_width(2), curve.dashed)?;
        for (point, &(x, y)) in curve.points.iter().zip(&points) {
            if let Some((low, high)) = point.spread {
                let [low, high] = [low, high].map(|end| self.at(point.x, end).1);
                area.draw(&ErrorBar::new_vertical(x, low, y, high, hue.filled(), DOT)).map_err(failed)?;
            } else if curve.dots {
                area.draw(&Circle::new((x, y), DOT / 2, hue.filled())).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// A mark that is not filled.
fn diamond(area: &Area<'_>, (x, y): (i32, i32), half: i32, colour: RGBColor) -> Result<()> {
    let corners = [(x, y - half), (x + half, y), (x, y + half), (x - half, y), (x, y - half)];
    area.draw(&PathElement::new(corners, colour.stroke_width(2))).map_err(failed)
}

fn line(area: &Area<'_>, points: &[(i32, i32)], style: ShapeStyle, dashed: bool) -> Result<()> {
    if dashed {
        area.draw(&DashedPathElement::new(points.iter().copied(), DASH.0, DASH.1, style)).map_err(failed)
    } else {
        area.draw(&PathElement::new(points, style)).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_papers::findings::plot::{Axis, Mark, Point, Scale};

    fn plot() -> Plot {
        let curve = |name: &str, hue, factor: f64| Curve {
            name: name.into(),
            hue,
            dashed: hue == Hue::SparrowTwo,
            points: [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
                .map(|x| Point { spread: Some((factor * 3e4, factor * 3e5 * x)), ..Point::new(x, factor * 9e4 * x) })
                .to_vec(),
            dots: true,
        };
        Plot {
            name: "delay",
            title: "Scheduling delay: median, and where 5 % and 95 % lie".into(),
            x: Axis { label: "utilisation", scale: Scale::Share },
            y: Axis { label: "delay", scale: Scale::LogTime },
            curves: vec![
                curve("Midflight", Hue::Ours, 0.3),
                curve("Bolt, as published", Hue::Published, 1.0),
                curve("Midflight as a server", Hue::OursServer, 2.0),
                curve("Bolt-Server", Hue::PublishedServer, 4.0),
                curve("Sparrow, two schedulers", Hue::SparrowTwo, 24.0),
                curve("Sparrow, one scheduler", Hue::Sparrow, 40.0),
            ],
            marks: vec![Mark { x: 0.95, y: 9e4, hue: Hue::Published }, Mark { x: 0.95, y: 2.2e6, hue: Hue::Sparrow }],
        }
    }

    #[test]
    fn every_curve_is_named_and_the_papers_values_are_explained() {
        let picture = draw(&plot()).unwrap();
        if let Some(path) = std::env::var_os("MIDFLIGHT_CHART_SAMPLE") {
            std::fs::write(path, standalone(&picture)).unwrap();
        }
        for text in ["Bolt, as published", "Sparrow, two schedulers", MARKS, "utilisation", "10 ms", "80 %"] {
            assert!(picture.contains(text), "{text}");
        }
        assert!(standalone(&picture).contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn a_long_legend_takes_a_second_line_and_none_leaves_the_picture() {
        let plot = plot();
        let legend = Legend::of(&plot);
        assert_eq!(legend.lines, 2);
        for (x, _, curve) in legend.entries {
            assert!(x + (curve.name.len() as f64 * LETTER) as i32 <= RIGHT);
        }
    }

    #[test]
    fn a_plot_without_points_is_still_a_picture() {
        let empty = Plot { curves: vec![], marks: vec![], ..plot() };
        assert!(draw(&empty).unwrap().contains("<svg"));
    }
}
