//! A plot as an SVG file of its own, for documents that show it as an image.

use super::LinePlot;
use super::frame::{self, HEIGHT, WIDTH};
use crate::html::{Escaped, Out, at};
use crate::page::STYLE;

/// Room of the title.
const TITLE: f64 = 26.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 19.0;

impl LinePlot {
    /// An SVG file: title, plot and legend, in the light colours of a page, for any program that shows SVG.
    pub fn svg(&self) -> String {
        let legend_top = TITLE + HEIGHT;
        let height = legend_top + self.series.len() as f64 * LEGEND_LINE + 6.0;
        let mut out = Out::default();
        out.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\">\n<style>\n{}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text class=\"mid title\" x=\"{}\" y=\"18\">{}</text>\n",
            style(),
            at(WIDTH / 2.0),
            Escaped(&self.title)
        ));
        self.draw(&mut out, &format!(" y=\"{TITLE}\" width=\"{WIDTH}\" height=\"{HEIGHT}\""));
        for (index, series) in self.series.iter().enumerate() {
            let y = legend_top + (index as f64 + 0.5) * LEGEND_LINE;
            out.add(format_args!(
                "<path class=\"line {}\" d=\"M62 {}h26\"/><text x=\"96\" y=\"{}\">{}</text>\n",
                frame::class(series.colour),
                at(y),
                at(y + 4.0),
                Escaped(&series.name)
            ));
        }
        out.add(format_args!("</svg>\n"));
        out.into_text()
    }
}

/// The rules of a page for plots, with values in place of variables, which not every program knows.
fn style() -> String {
    let values = STYLE.split_once('}').map_or("", |(root, _)| root);
    let value = |name: &str| {
        let mut declarations = values.split(['{', ';']).filter_map(|declaration| declaration.split_once(':'));
        declarations.find(|(variable, _)| variable.trim() == name).map_or("#000", |(_, value)| value.trim())
    };
    let is_of_plots = |line: &&str| {
        let is_series =
            line.strip_prefix(".s").is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
        is_series || [".grid", ".line", ".reference", ".cursor", "svg "].iter().any(|start| line.starts_with(start))
    };
    let mut style = String::new();
    for line in STYLE.lines().filter(is_of_plots) {
        let mut parts = line.split("var(");
        style.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (name, rest) = part.split_once(')').unwrap_or((part, ""));
            style.push_str(value(name));
            style.push_str(rest);
        }
        style.push('\n');
    }
    style.push_str(&format!(".title {{ fill: {}; }}\n", value("--text")));
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_its_own_has_no_variables() {
        let style = style();
        assert!(style.contains(".s0 { color: #0072b2; }"), "{style}");
        assert!(!style.contains("var(") && !style.contains("--"), "{style}");
    }
}
