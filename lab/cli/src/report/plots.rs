//! What all plots share: size, colours, frame, grid.

use anyhow::{Result, anyhow};
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ticks::Ticks;

pub(super) const WIDTH: u32 = 960;
pub(super) const INK: RGBColor = RGBColor(71, 85, 105);
const GRID: RGBColor = RGBColor(226, 232, 240);
const AXIS: RGBColor = RGBColor(148, 163, 184);

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
