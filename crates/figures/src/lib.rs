//! Figures of benchmarks: least, median, 99th percentile and most of what was measured.
//!
//! Benchmarks, examples and tests print them. If [`FILE`] names a file, each is appended to it as a line of JSON: so
//! `cargo xtask evidence` collects them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The environment variable that names the file of the figures.
pub const FILE: &str = "SRDMA_FIGURES";

/// Measured values of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// Its unit; empty for a ratio or a count.
    pub unit: String,
    /// The least value.
    pub least: f64,
    /// The median: of an even number, the greater of the two in the middle.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The greatest value.
    pub most: f64,
    /// The number of values.
    pub count: usize,
}

impl Figure {
    /// The figure of some values.
    ///
    /// # Panics
    /// When there is none, or one is no number: nothing was measured.
    pub fn of(what: impl Into<String>, unit: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let what = what.into();
        let count = values.len();
        assert!(count > 0 && values.iter().all(|value| value.is_finite()), "{what}: {values:?}");
        let [least, median, p99, most] = [0, count / 2, count * 99 / 100, count - 1].map(|at| values[at]);
        Figure { what, unit: unit.to_owned(), least, median, p99, most, count }
    }

    fn append_to(&self, file: &Path) -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(file)?;
        file.write_all(format!("{}\n", serde_json::to_string(self)?).as_bytes())
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { what, unit, count, .. } = self;
        let [least, median, p99, most] = [self.least, self.median, self.p99, self.most].map(shown);
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match count {
            1 => write!(f, "{what}: {median}{unit}"),
            _ => write!(f, "{what}: least {least}, median {median}, p99 {p99}, most {most}{unit}, of {count}"),
        }
    }
}

/// Prints a figure, and appends it to the file of figures.
///
/// # Panics
/// When nothing was measured, or the file cannot be written.
pub fn report(what: impl Into<String>, unit: &str, values: impl IntoIterator<Item = f64>) -> Figure {
    let figure = Figure::of(what, unit, values);
    println!("{figure}");
    if let Some(file) = std::env::var_os(FILE) {
        figure.append_to(Path::new(&file)).unwrap_or_else(|error| panic!("{}: {error}", Path::new(&file).display()));
    }
    figure
}

/// A number with three digits or more, its thousands apart.
pub fn shown(number: f64) -> String {
    match number.abs() {
        0.0 | 100.0.. => grouped(number),
        10.0.. => format!("{number:.1}"),
        1.0.. => format!("{number:.2}"),
        0.1.. => format!("{number:.3}"),
        _ => format!("{number:.4}"),
    }
}

/// A whole number with its thousands apart.
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_sorted_values() {
        let figure = Figure::of("joins", "ms", (0..200).rev().map(f64::from));
        let [least, median, p99, most] = [0.0, 100.0, 198.0, 199.0];
        let unit = "ms".to_owned();
        assert_eq!(figure, Figure { what: "joins".to_owned(), unit, least, median, p99, most, count: 200 });
        assert_eq!(figure.to_string(), "joins: least 0, median 100, p99 198, most 199 ms, of 200");
        assert_eq!(Figure::of("load", "", [1.0]).to_string(), "load: 1.00");
    }

    #[test]
    #[should_panic = "joins: []"]
    fn nothing_is_no_figure() {
        Figure::of("joins", "ms", []);
    }

    #[test]
    #[should_panic = "joins: [1.0, NaN]"]
    fn what_is_no_number_is_no_figure() {
        Figure::of("joins", "ms", [1.0, f64::NAN]);
    }

    #[test]
    fn figures_are_lines_of_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures");
        let figures = [Figure::of("one", "s", [0.1 + 0.2]), Figure::of("two", "", [1.0, 2.0])];
        figures.iter().for_each(|figure| figure.append_to(&file).unwrap());
        let text = std::fs::read_to_string(&file).unwrap();
        let read: Vec<Figure> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read[1], figures[1]);
        assert_eq!((read.len(), read[0].what.as_str(), read[0].count), (2, "one", 1));
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.0123, 0.5, 1.234, 12.34, 123.4, 25_736.0, -7.0].map(shown);
        assert_eq!(shown, ["0", "0.0123", "0.500", "1.23", "12.3", "123", "25,736", "-7.00"]);
        assert_eq!([0.0, 999.0, 1_000.0, 1_234_567.0].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
