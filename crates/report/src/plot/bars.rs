//! Bars with their spread.

use super::BarPlot;
use super::frame::{self, BOTTOM, LEFT, RIGHT, TOP};
use crate::axis::Ruler;
use crate::html::{Escaped, Out, at};
use crate::spread::Spread;

/// The share of a group's width that its bars take.
const FILLED: f64 = 0.78;

impl BarPlot {
    pub(crate) fn render(&self, out: &mut Out) {
        let spreads = self.groups.iter().flat_map(|group| &group.bars).flatten();
        let references = self.references.iter().map(|reference| reference.value);
        let values = spreads.flat_map(|spread| [spread.least, spread.median, spread.greatest]).chain(references);
        let y = Ruler::new(&self.y, values, BOTTOM, TOP);
        frame::begin_figure(out, &self.title, &self.look_for);
        frame::begin_svg(out, &self.title, &self.description(), "");
        frame::vertical_axis(out, &self.y, &y);
        let width = (RIGHT - LEFT) / self.groups.len().max(1) as f64;
        for (index, group) in self.groups.iter().enumerate() {
            let middle = LEFT + (index as f64 + 0.5) * width;
            let x = at(middle);
            out.add(format_args!(
                "<g class=\"axis\"><text class=\"mid\" x=\"{x}\" y=\"{}\">{}</text></g>\n",
                at(BOTTOM + 17.0),
                Escaped(&group.name)
            ));
            let bar_width = width * FILLED / self.series.len().max(1) as f64;
            let first = middle - width * FILLED / 2.0;
            for (position, (series, bar)) in self.series.iter().zip(&group.bars).enumerate() {
                if let Some(spread) = bar {
                    let left = first + position as f64 * bar_width;
                    self.bar(out, &y, (left, bar_width), &format!("{}, {}", group.name, series.0), series.1, *spread);
                }
            }
        }
        frame::references(out, &self.references, &y);
        out.add(format_args!("</svg>\n"));
        frame::legend(out, frame::Key::Patch, self.series.iter().map(|(name, colour)| (name.as_str(), *colour)));
        out.add(format_args!("</figure>\n"));
    }

    fn bar(&self, out: &mut Out, y: &Ruler, place: (f64, f64), name: &str, colour: usize, spread: Spread) {
        let (left, width) = place;
        let (top, middle) = (y.at(spread.median), left + width / 2.0);
        out.add(format_args!(
            "<g><title>{}: {}</title><rect class=\"bar {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            Escaped(name),
            Escaped(&description(self, spread)),
            frame::class(colour),
            at(left + width * 0.06),
            at(top),
            at(width * 0.88),
            at(BOTTOM - top)
        ));
        if spread.least < spread.greatest {
            let (low, high) = (at(y.at(spread.least)), at(y.at(spread.greatest)));
            let (x, from, to) = (at(middle), at(middle - width * 0.2), at(middle + width * 0.2));
            out.add(format_args!(
                "<path class=\"whisker\" d=\"M{from} {low}H{to}M{x} {low}V{high}M{from} {high}H{to}\"/>"
            ));
        }
        out.add(format_args!("</g>\n"));
    }

    fn description(&self) -> String {
        let description = self.groups.iter().map(|group| {
            let bars = self.series.iter().zip(&group.bars).map(|((name, _), bar)| match bar {
                Some(spread) => format!("{name} {}", description(self, *spread)),
                None => format!("{name} no values"),
            });
            format!("{}: {}.", group.name, bars.collect::<Vec<_>>().join("; "))
        });
        format!("{}. {}", self.y.name, description.collect::<Vec<_>>().join(" "))
    }
}

fn description(plot: &BarPlot, spread: Spread) -> String {
    let unit = plot.y.unit;
    if spread.least < spread.greatest {
        let (least, greatest) = (unit.format(spread.least), unit.format(spread.greatest));
        format!("{} ({least} to {greatest})", unit.format(spread.median))
    } else {
        unit.format(spread.median)
    }
}
