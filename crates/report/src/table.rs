//! Tables, plain or with a baseline column to compare with.

use crate::html::{Escaped, Out};
use crate::spread::Spread;
use crate::unit::{Unit, number};

/// A table of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its title.
    pub caption: String,
    /// Heading of each column.
    pub columns: Vec<String>,
    /// The rows, the first cell of each names it.
    pub rows: Vec<Vec<String>>,
}

/// The better one of two values.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
    Neither,
}

/// A measure in a comparison.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    pub measure: String,
    /// An explanation in a sentence; may be empty.
    pub meaning: String,
    pub unit: Unit,
    /// The better values.
    pub better: Better,
    /// A value for each column; `None` for an empty cell.
    pub values: Vec<Option<Spread>>,
}

/// Measures as rows, the compared variants as columns; all columns are compared with one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Its title.
    pub caption: String,
    /// Names of the columns, with their colours in plots.
    pub columns: Vec<(String, usize)>,
    /// The column that the others are compared with.
    pub baseline: usize,
    /// The measures.
    pub rows: Vec<ComparisonRow>,
}

impl Table {
    /// As a table with these attributes, each behind a space.
    pub(crate) fn render(&self, out: &mut Out, attributes: &str) {
        begin(out, &self.caption, attributes);
        out.add(format_args!("<thead><tr>"));
        for column in &self.columns {
            out.add(format_args!("<th scope=\"col\">{}</th>", Escaped(column)));
        }
        out.add(format_args!("</tr></thead>\n<tbody>\n"));
        for row in &self.rows {
            out.add(format_args!("<tr>"));
            for (index, cell) in row.iter().enumerate() {
                match index {
                    0 => out.add(format_args!("<th scope=\"row\">{}</th>", Escaped(cell))),
                    _ => out.add(format_args!("<td>{}</td>", Escaped(cell))),
                }
            }
            out.add(format_args!("</tr>\n"));
        }
        out.add(format_args!("</tbody></table></div>\n"));
    }
}

impl Comparison {
    pub(crate) fn render(&self, out: &mut Out) {
        begin(out, &self.caption, "");
        out.add(format_args!("<thead><tr><th scope=\"col\">Measure</th>"));
        for (index, (column, colour)) in self.columns.iter().enumerate() {
            let note = if index == self.baseline { "<br><small>baseline</small>" } else { "" };
            let swatch = format!("<i class=\"swatch s{}\"></i>", colour % 6);
            out.add(format_args!("<th scope=\"col\">{swatch}{}{note}</th>", Escaped(column)));
        }
        out.add(format_args!("</tr></thead>\n<tbody>\n"));
        for row in &self.rows {
            self.row(out, row);
        }
        out.add(format_args!("</tbody></table></div>\n"));
    }

    fn row(&self, out: &mut Out, row: &ComparisonRow) {
        out.add(format_args!("<tr><th scope=\"row\">{}", Escaped(&row.measure)));
        if !row.meaning.is_empty() {
            out.add(format_args!("<br><small>{}</small>", Escaped(&row.meaning)));
        }
        out.add(format_args!("</th>"));
        let baseline = row.values.get(self.baseline).copied().flatten();
        for (index, value) in row.values.iter().enumerate() {
            let Some(spread) = value else {
                out.add(format_args!("<td>–</td>"));
                continue;
            };
            out.add(format_args!("<td>{}", Escaped(&row.unit.format(spread.median))));
            if let Some(baseline) = baseline.filter(|_| index != self.baseline) {
                difference(out, row, spread.median, baseline.median);
            }
            if spread.least < spread.greatest {
                let (least, greatest) = (row.unit.format(spread.least), row.unit.format(spread.greatest));
                out.add(format_args!("<br><small>{} to {}</small>", Escaped(&least), Escaped(&greatest)));
            }
            out.add(format_args!("</td>"));
        }
        out.add(format_args!("</tr>\n"));
    }
}

/// By how much a value differs from the baseline's. A sign shows it too, not the colour alone.
fn difference(out: &mut Out, row: &ComparisonRow, value: f64, baseline: f64) {
    if value == baseline {
        out.add(format_args!(" <span class=\"same\">=</span>"));
        return;
    }
    let text = match (value, baseline) {
        (_, 0.0) => "from 0".to_owned(),
        _ if value.abs() >= 10.0 * baseline.abs() => format!("× {}", number(value / baseline)),
        _ => {
            let percent = (value / baseline - 1.0) * 100.0;
            let rounded = if percent.abs() < 9.95 { (percent * 10.0).round() / 10.0 } else { percent.round() };
            if rounded == 0.0 {
                // Too little to be called better or worse.
                out.add(format_args!(" <span class=\"same\">≈</span>"));
                return;
            }
            format!("{}{}\u{a0}%", if rounded > 0.0 { "+" } else { "" }, number(rounded))
        }
    };
    let (class, sign) = match (row.better, value < baseline) {
        (Better::Neither, _) => ("same", ""),
        (Better::Lower, true) | (Better::Higher, false) => ("better", "✓ "),
        (Better::Lower, false) | (Better::Higher, true) => ("worse", "✗ "),
    };
    out.add(format_args!(" <span class=\"{class}\">{sign}{}</span>", Escaped(&text)));
}

/// Begins a table, with attributes if any, which can be scrolled where it is wider than the page.
pub(crate) fn begin(out: &mut Out, caption: &str, attributes: &str) {
    out.add(format_args!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\
         <table{attributes}><caption>{}</caption>\n",
        Escaped(caption),
        Escaped(caption)
    ));
}
