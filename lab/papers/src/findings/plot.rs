//! A figure's plots as data; rendering is elsewhere.

/// One plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Stable name, part of the file's name.
    pub name: &'static str,
    /// Title above the plot.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Curves in the order of the legend.
    pub curves: Vec<Curve>,
    /// Values from the paper, if it gives numbers.
    pub marks: Vec<Mark>,
}

/// An axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows.
    pub label: &'static str,
    /// Scale and unit.
    pub scale: Scale,
}

/// Scale and unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nanoseconds, logarithmic.
    LogTime,
    /// Numbers, logarithmic.
    LogNumber,
    /// Seconds, from zero.
    Seconds,
    /// Nanoseconds, from zero.
    Time,
    /// Numbers, from zero.
    Number,
    /// Whole numbers, each with a grid line, from minimum to maximum.
    Whole,
    /// Shares of one, from 0 to 100 %.
    Share,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Identifies its scheme; one colour in all figures.
    pub hue: Hue,
    /// Dashed, to use a colour twice.
    pub dashed: bool,
    /// Points from left to right.
    pub points: Vec<Point>,
    /// Whether to draw the points, for few measurements joined by lines.
    pub dots: bool,
}

impl Curve {
    /// Creates a curve of measured points; omits points without a value.
    pub fn measured(name: impl Into<String>, hue: Hue, points: impl Iterator<Item = Point>) -> Self {
        let points = points.filter(|point| point.y.is_finite()).collect();
        Self { name: name.into(), hue, dashed: false, points, dots: true }
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Position on the vertical axis.
    pub y: f64,
    /// Range of values, drawn as a whisker.
    pub spread: Option<(f64, f64)>,
}

/// A hollow mark: the paper's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Position on the vertical axis.
    pub y: f64,
    /// Hue of its curve.
    pub hue: Hue,
}

/// The scheme of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// Midflight in the switch.
    Ours,
    /// Midflight in the kernel of a Linux machine.
    OursKernel,
    /// Midflight as a server.
    OursServer,
    /// Midflight on a pipeline, with the program whose pointers never err.
    AsicSafe,
    /// Midflight on a pipeline, with the papers' program.
    AsicPublished,
    /// The published protocol in the switch.
    Published,
    /// The published protocol on a server.
    PublishedServer,
    /// Sparrow, the scheme that probes.
    Sparrow,
    /// Sparrow with two schedulers.
    SparrowTwo,
    /// Sparrow with four schedulers.
    SparrowFour,
    /// Quoted values, and the rest.
    Other,
    /// One of several of a kind: levels, groups, steps.
    Nth(u8),
}

impl Point {
    /// A point without a whisker.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, spread: None }
    }
}
