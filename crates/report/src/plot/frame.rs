//! Common parts of all plots: the box with its axes, references and legend.

use super::{Axis, Reference};
use crate::axis::Ruler;
use crate::html::{Escaped, Out, at};

pub(super) const WIDTH: f64 = 440.0;
pub(super) const HEIGHT: f64 = 260.0;
pub(super) const LEFT: f64 = 62.0;
pub(super) const RIGHT: f64 = WIDTH - 18.0;
pub(super) const TOP: f64 = 14.0;
pub(super) const BOTTOM: f64 = HEIGHT - 46.0;

/// Colours of the style sheet.
const COLOURS: usize = 8;

/// Sample of a colour in a legend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Line,
    Patch,
}

/// The class that gives a series its colour and its dashes.
pub(super) fn class(colour: usize) -> String {
    format!("s{}", colour % COLOURS)
}

/// Begins a figure: its title, with a capital, and what to look for.
pub(super) fn begin_figure(out: &mut Out, title: &str, look_for: &str) {
    let mut letters = title.chars();
    let title: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    out.add(format_args!("<figure class=\"plot\">\n<figcaption><b>{}</b>", Escaped(&title)));
    if !look_for.is_empty() {
        out.add(format_args!(" <span>{}</span>", Escaped(look_for)));
    }
    out.add(format_args!("</figcaption>\n"));
}

/// Begins the picture, named by `title`; `attributes` go into its element.
pub(super) fn begin_svg(out: &mut Out, title: &str, description: &str, attributes: &str) {
    let (title_id, description_id) = (out.identifier(), out.identifier());
    out.add(format_args!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-labelledby=\"{title_id} {description_id}\"{attributes}>\n\
         <title id=\"{title_id}\">{}</title>\n<desc id=\"{description_id}\">{}</desc>\n",
        Escaped(title),
        Escaped(description),
    ));
}

/// Grid lines, numbers and name of the vertical axis.
pub(super) fn vertical_axis(out: &mut Out, axis: &Axis, ruler: &Ruler) {
    out.add(format_args!("<g class=\"axis\">"));
    for tick in ruler.ticks(5) {
        let y = at(tick.at);
        out.add(format_args!(
            "<path class=\"grid\" d=\"M{LEFT} {y}H{RIGHT}\"/><text class=\"end\" x=\"{}\" y=\"{}\">{}</text>",
            at(LEFT - 6.0),
            at(tick.at + 4.0),
            tick.label
        ));
    }
    let middle = at((TOP + BOTTOM) / 2.0);
    out.add(format_args!(
        "<text class=\"mid\" transform=\"translate(14 {middle}) rotate(-90)\">{}</text></g>\n",
        Escaped(&name(axis, ruler))
    ));
}

/// Grid lines, numbers and name of the horizontal axis.
pub(super) fn horizontal_axis(out: &mut Out, axis: &Axis, ruler: &Ruler) {
    out.add(format_args!("<g class=\"axis\">"));
    for tick in ruler.ticks(6) {
        let x = at(tick.at);
        let y = at(BOTTOM + 17.0);
        out.add(format_args!(
            "<path class=\"grid\" d=\"M{x} {TOP}V{BOTTOM}\"/><text class=\"mid\" x=\"{x}\" y=\"{y}\">{}</text>",
            tick.label
        ));
    }
    let (x, y) = (at((LEFT + RIGHT) / 2.0), at(HEIGHT - 10.0));
    let name = name(axis, ruler);
    out.add(format_args!("<text class=\"mid\" x=\"{x}\" y=\"{y}\">{}</text></g>\n", Escaped(&name)));
}

fn name(axis: &Axis, ruler: &Ruler) -> String {
    if ruler.symbol.is_empty() { axis.name.clone() } else { format!("{}, {}", axis.name, ruler.symbol) }
}

/// Lines across, each with its name.
pub(super) fn references(out: &mut Out, references: &[Reference], ruler: &Ruler) {
    for reference in references {
        let y = ruler.at(reference.value);
        out.add(format_args!(
            "<path class=\"reference\" d=\"M{LEFT} {y}H{RIGHT}\"/>\
             <text class=\"end note\" x=\"{}\" y=\"{}\">{}</text>\n",
            at(RIGHT - 3.0),
            at(if y < TOP + 16.0 { y + 13.0 } else { y - 4.0 }),
            Escaped(&reference.name),
            y = at(y),
        ));
    }
}

/// The legend: a short line, or a patch, of each colour with its name.
pub(super) fn legend<'a>(out: &mut Out, kind: Key, series: impl Iterator<Item = (&'a str, usize)>) {
    out.add(format_args!("<ul class=\"legend\">"));
    for (name, colour) in series {
        let class = class(colour);
        if kind == Key::Patch {
            out.add(format_args!("<li><i class=\"swatch {class}\"></i>{}</li>", Escaped(name)));
            continue;
        }
        out.add(format_args!(
            "<li><svg class=\"key\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"line {class}\" \
             d=\"M1 5H25\"/></svg>{}</li>",
            Escaped(name)
        ));
    }
    out.add(format_args!("</ul>\n"));
}
