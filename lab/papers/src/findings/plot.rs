//! What is drawn of a figure, as data; who draws it knows nothing of schedulers.

/// One picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Stable, part of the file's name.
    pub name: &'static str,
    /// Above the picture.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// In the order of the legend.
    pub curves: Vec<Curve>,
    /// What the paper says, where it gives a number.
    pub marks: Vec<Mark>,
}

/// An axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows.
    pub label: &'static str,
    /// How its numbers are written.
    pub scale: Scale,
}

/// How an axis runs, and in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nanoseconds, by decades.
    LogTime,
    /// Numbers, by decades.
    LogNumber,
    /// Seconds, from zero.
    Seconds,
    /// Nanoseconds, from zero.
    Time,
    /// Numbers, from zero.
    Number,
    /// Whole numbers, each with a line, from the least to the most.
    Whole,
    /// Shares of one, from 0 to 100 %.
    Share,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// Who it is of: decides the colour, the same in all figures.
    pub hue: Hue,
    /// Drawn with gaps: a second of its colour.
    pub dashed: bool,
    /// From left to right.
    pub points: Vec<Point>,
    /// Whether the points themselves are seen: where few were measured, and between them is only a line.
    pub dots: bool,
}

impl Curve {
    /// Through points that were measured; those without a value are left out.
    pub fn measured(name: impl Into<String>, hue: Hue, points: impl Iterator<Item = Point>) -> Self {
        let points = points.filter(|point| point.y.is_finite()).collect();
        Self { name: name.into(), hue, dashed: false, points, dots: true }
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// On the axis to the right.
    pub x: f64,
    /// On the axis upwards.
    pub y: f64,
    /// From where to where values lie, drawn as a whisker.
    pub spread: Option<(f64, f64)>,
}

/// A hollow mark: the paper's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// On the axis to the right.
    pub x: f64,
    /// On the axis upwards.
    pub y: f64,
    /// As of the curve it belongs to.
    pub hue: Hue,
}

/// Who a curve is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// Midflight in the switch.
    Ours,
    /// Midflight in the kernel of a Linux machine.
    OursKernel,
    /// Midflight as a server.
    OursServer,
    /// Midflight at a pipeline with the program whose pointers never err.
    AsicSafe,
    /// The same with the papers' program.
    AsicPublished,
    /// The published protocol in the switch.
    Published,
    /// The published protocol on a server.
    PublishedServer,
    /// The scheme that probes.
    Sparrow,
    /// The same with two schedulers.
    SparrowTwo,
    /// The same with four.
    SparrowFour,
    /// What is quoted, and the rest.
    Other,
    /// One of several of a kind: levels, groups, steps.
    Nth(u8),
}

impl Point {
    /// Without a whisker.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, spread: None }
    }
}
