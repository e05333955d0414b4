//! Tables that fit a width by leaving columns out.

use ratatui::style::Style;
use ratatui::text::Line;

pub(super) struct Column {
    heading: &'static str,
    is_text: bool,
    /// Columns with lower numbers are left out first; `None`: never.
    leaves: Option<u8>,
}

impl Column {
    /// Text, aligned to the left.
    pub(super) fn text(heading: &'static str) -> Self {
        Column { heading, is_text: true, leaves: None }
    }

    /// Numbers, aligned to the right.
    pub(super) fn number(heading: &'static str) -> Self {
        Column { heading, is_text: false, leaves: None }
    }

    /// A column that can be missed; those of lower rank are missed first.
    pub(super) fn leaves(self, rank: u8) -> Self {
        Column { leaves: Some(rank), ..self }
    }
}

/// The lines of a table, the heading first. Each row has a cell for each column.
pub(super) fn table(columns: &[Column], rows: Vec<(Vec<String>, Style)>, width: usize) -> Vec<Line<'static>> {
    let cell_width = |(index, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|(cells, _)| cells.get(index)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(column.heading.chars().count())
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(cell_width).collect();
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let total = |shown: &[usize]| shown.iter().map(|index| widths[*index] + GAP.len()).sum::<usize>();
    while total(&shown) > width {
        let leaving = shown.iter().filter(|index| columns[**index].leaves.is_some());
        let Some(leaving) = leaving.min_by_key(|index| columns[**index].leaves).copied() else { break };
        shown.retain(|index| *index != leaving);
    }
    let line = |cells: &[String], style: Style| {
        let mut text = String::new();
        for index in &shown {
            let (cell, width) = (cells.get(*index).map_or("", String::as_str), widths[*index]);
            text.push_str(GAP);
            text += &if columns[*index].is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        Line::styled(text.trim_end().to_owned(), style)
    };
    let headings: Vec<String> = columns.iter().map(|column| column.heading.to_owned()).collect();
    let heading = line(&headings, Style::new().dim());
    [heading].into_iter().chain(rows.iter().map(|(cells, style)| line(cells, *style))).collect()
}

/// In front of each column.
const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_in_the_order_of_their_rank() {
        let columns = [Column::text("port"), Column::number("frames").leaves(2), Column::number("octets").leaves(1)];
        let at = |width| {
            let rows = vec![(["n4", "12", "1,200"].map(str::to_owned).to_vec(), Style::new())];
            table(&columns, rows, width).iter().map(Line::to_string).collect::<Vec<_>>()
        };
        assert_eq!(at(22), ["  port  frames  octets", "  n4        12   1,200"]);
        assert_eq!(at(21), ["  port  frames", "  n4        12"]);
        assert_eq!(at(10), ["  port", "  n4"]);
        assert_eq!(at(0), ["  port", "  n4"]);
    }
}
