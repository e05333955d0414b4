//! Self-contained HTML reports: text, tables beside a baseline, plots, heat maps and topology pictures in one file.
//!
//! A [`Page`] is a value; [`Page::html`] turns it into a document that needs nothing from elsewhere: no script, style,
//! font or picture is loaded. It follows the reader's choice of light or dark, can be read on a phone, printed, and
//! used by keyboard and screen reader; colours differ for colour-blind readers, and lines by their dashes too. Every
//! text is escaped. The same page gives the same octets.
//!
//! This crate is independent of the contents of a report.

mod axis;
mod heat;
mod html;
mod page;
mod picture;
mod plot;
mod spread;
mod table;
mod unit;
pub mod units;

pub use heat::HeatMap;
pub use page::{Block, Page, Section};
pub use picture::{Picture, PictureLink, PictureNode};
pub use plot::{Axis, BarGroup, BarPlot, LinePlot, Reference, Scale, Series, Shape};
pub use spread::{Spread, cumulative, quantile};
pub use table::{Better, Comparison, ComparisonRow, Table};
pub use unit::Unit;
