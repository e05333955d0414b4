//! Heat maps: a table whose cells are coloured by their values.

use crate::html::{Escaped, Out};
use crate::table;
use crate::unit::Unit;

/// A table of values.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Its title.
    pub caption: String,
    /// Heading of the first column.
    pub corner: String,
    /// Heading of the others.
    pub columns: Vec<String>,
    /// The rows: a name, and a value for each column; `None` for an empty cell.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// Unit of the values.
    pub unit: Unit,
    /// The value of the strongest colour.
    pub greatest: f64,
    /// Values above this one are in bold type, so that the colour is not the only mark.
    pub limit: Option<f64>,
}

impl HeatMap {
    pub(crate) fn render(&self, out: &mut Out) {
        table::begin(out, &self.caption, " class=\"heat\"");
        out.add(format_args!("<thead><tr><th scope=\"col\">{}</th>", Escaped(&self.corner)));
        for column in &self.columns {
            out.add(format_args!("<th scope=\"col\">{}</th>", Escaped(column)));
        }
        out.add(format_args!("</tr></thead>\n<tbody>\n"));
        for (name, values) in &self.rows {
            out.add(format_args!("<tr><th scope=\"row\">{}</th>", Escaped(name)));
            values.iter().for_each(|value| self.cell(out, *value));
            out.add(format_args!("</tr>\n"));
        }
        out.add(format_args!("</tbody></table></div>\n"));
    }

    fn cell(&self, out: &mut Out, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            out.add(format_args!("<td>–</td>"));
            return;
        };
        let share = if self.greatest > 0.0 { (value / self.greatest).clamp(0.0, 1.0) } else { 0.0 };
        let text = self.unit.format(value);
        let percent = (share * 100.0).round();
        match self.limit.is_some_and(|limit| value > limit * (1.0 + 1e-9)) {
            true => out.add(format_args!("<td style=\"--heat:{percent}%\"><b>{}</b></td>", Escaped(&text))),
            false => out.add(format_args!("<td style=\"--heat:{percent}%\">{}</td>", Escaped(&text))),
        }
    }
}
