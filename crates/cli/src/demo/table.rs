//! Tables with aligned columns.

use std::fmt;

/// Rows of cells under a heading; the first column is aligned to the left, the others to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns from this one on are aligned to the left again.
    text_from: usize,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Table { rows: vec![heading.iter().map(|cell| (*cell).to_owned()).collect()], text_from: heading.len() }
    }

    /// A table without heading, whose second column is text.
    pub(crate) fn of_lines() -> Self {
        Table { rows: Vec::new(), text_from: 1 }
    }

    /// Aligns the last column to the left.
    pub(crate) fn with_text_last(mut self) -> Self {
        self.text_from -= 1;
        self
    }

    /// Aligns the columns from this one on to the left.
    pub(crate) fn with_text_from(mut self, column: usize) -> Self {
        self.text_from = column;
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "   " };
                if column == 0 || column >= self.text_from {
                    line.push_str(&format!("{gap}{cell:<width$}"));
                } else {
                    line.push_str(&format!("{gap}{cell:>width$}"));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "octets", "note"]).with_text_last();
        table.row(["a", "1", "first"].map(str::to_owned));
        table.row(["longer", "1,000", "é"].map(str::to_owned));
        assert_eq!(table.to_string(), "name     octets   note\na             1   first\nlonger    1,000   é\n");
    }
}
