//! Plots as values, and their SVG.

mod bars;
mod frame;
mod lines;
mod standalone;

use crate::unit::Unit;

/// Distribution of values over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps are equally long.
    Linear,
    /// Equal factors are equally long.
    Logarithmic,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity of the axis, without the unit.
    pub name: String,
    /// The unit of the values; the axis is labelled with a prefix that suits.
    pub unit: Unit,
    /// Distribution of values.
    pub scale: Scale,
    /// It reaches down to this value at least; without it a linear axis reaches zero.
    pub least: Option<f64>,
    /// It reaches up to this value at least, so that plots beside each other can be compared.
    pub greatest: Option<f64>,
}

impl Axis {
    /// A linear axis from zero.
    pub fn new(name: impl Into<String>, unit: Unit) -> Self {
        Axis { name: name.into(), unit, scale: Scale::Linear, least: None, greatest: None }
    }
}

/// Lines between the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines.
    Line,
    /// A value holds until the next one.
    Steps,
}

/// A line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name, for the legend.
    pub name: String,
    /// Its colour, counted from 0; the same number is the same colour in every plot of a page.
    pub colour: usize,
    /// Lines between its points.
    pub shape: Shape,
    /// Its points, in the order of x.
    pub points: Vec<(f64, f64)>,
}

/// A value of the vertical axis that is worth a line of its own: a threshold, a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Name of the series.
    pub name: String,
    /// Its position.
    pub value: f64,
}

/// Lines over an axis, mostly over time. A cumulative distribution is one too: see [`cumulative`](crate::cumulative).
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// Its title.
    pub title: String,
    /// One sentence on what to look for.
    pub look_for: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// Lines across.
    pub references: Vec<Reference>,
}

/// Bars that stand together: one for each of the plot's series.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// Name of their common axis.
    pub name: String,
    /// A value for each series; `None` for a gap.
    pub bars: Vec<Option<crate::Spread>>,
}

/// Bars as high as the median, with a line from the least to the greatest value.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPlot {
    /// Its title.
    pub title: String,
    /// One sentence on what to look for.
    pub look_for: String,
    /// The vertical axis.
    pub y: Axis,
    /// The names of the series with their colours.
    pub series: Vec<(String, usize)>,
    /// The groups, from left to right.
    pub groups: Vec<BarGroup>,
    /// Lines across.
    pub references: Vec<Reference>,
}
