//! Lines over an axis.

use super::frame::{self, BOTTOM, LEFT, RIGHT, TOP};
use super::{LinePlot, Series, Shape};
use crate::axis::Ruler;
use crate::html::{Escaped, Out, at};

/// Points of a line, at most: about one for each half of a unit of the picture.
const MAX_POINTS: usize = 600;

impl LinePlot {
    /// The horizontal and the vertical axis.
    fn rulers(&self) -> (Ruler, Ruler) {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let references = self.references.iter().map(|reference| reference.value);
        let x = Ruler::new(&self.x, points().map(|point| point.0), LEFT, RIGHT);
        (x, Ruler::new(&self.y, points().map(|point| point.1).chain(references), BOTTOM, TOP))
    }

    /// The picture; `attributes` go into its element.
    pub(super) fn draw(&self, out: &mut Out, attributes: &str) {
        let (x, y) = self.rulers();
        frame::begin_svg(out, &self.title, &self.description(), attributes);
        frame::horizontal_axis(out, &self.x, &x);
        frame::vertical_axis(out, &self.y, &y);
        for series in &self.series {
            out.add(format_args!(
                "<path class=\"line {}\" data-name=\"{}\" d=\"{}\"/>\n",
                frame::class(series.colour),
                Escaped(&series.name),
                path(series, &x, &y)
            ));
        }
        frame::references(out, &self.references, &y);
        out.add(format_args!("<path class=\"cursor\" d=\"\"/></svg>\n"));
    }

    pub(crate) fn render(&self, out: &mut Out) {
        let (x, y) = self.rulers();
        frame::begin_figure(out, &self.title, &self.look_for);
        let attributes = format!(
            " tabindex=\"0\" data-x=\"{}\" data-y=\"{}\" data-xname=\"{}\"",
            x.description(),
            y.description(),
            Escaped(&self.x.name)
        );
        self.draw(out, &attributes);
        if self.series.len() > 1 || self.series.iter().any(|series| series.name != self.title) {
            frame::legend(
                out,
                frame::Key::Line,
                self.series.iter().map(|series| (series.name.as_str(), series.colour)),
            );
        }
        out.add(format_args!("<p class=\"readout\" aria-live=\"polite\"></p>\n</figure>\n"));
    }

    /// The description for screen readers: end and maximum of each line.
    fn description(&self) -> String {
        let description = self.series.iter().map(|series| {
            let greatest = series.points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
            match series.points.last() {
                Some((_, last)) => format!(
                    "{}: at most {}, {} at the end.",
                    series.name,
                    self.y.unit.format(greatest),
                    self.y.unit.format(*last)
                ),
                None => format!("{}: no values.", series.name),
            }
        });
        let description: Vec<String> = description.collect();
        format!("{} over {}. {}", self.y.name, self.x.name, description.join(" "))
    }
}

/// The line as SVG draws it. Points that would not be seen are left out.
fn path(series: &Series, x: &Ruler, y: &Ruler) -> String {
    let mut path = String::new();
    let mut last_y = String::new();
    for (index, (x_value, y_value)) in thinned(&series.points).into_iter().enumerate() {
        let (x, y) = (at(x.at(x_value)), at(y.at(y_value)));
        if index == 0 {
            path.push_str(&format!("M{x} {y}"));
        } else if series.shape == Shape::Steps && y != last_y {
            path.push_str(&format!("L{x} {last_y}L{x} {y}"));
        } else {
            path.push_str(&format!("L{x} {y}"));
        }
        last_y = y;
    }
    path
}

/// At most [`MAX_POINTS`] points: of each run of neighbours the lowest and the highest, and both ends of all.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let (Some(first), Some(last)) = (finite.first(), finite.last()) else { return Vec::new() };
    if finite.len() <= MAX_POINTS {
        return finite;
    }
    let run_length = finite.len().div_ceil(MAX_POINTS / 2 - 1);
    let mut kept = vec![*first];
    for run in finite.chunks(run_length) {
        let ordered = || run.iter().enumerate();
        let lowest = ordered().min_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(index, _)| index);
        let highest = ordered().max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(index, _)| index);
        let mut both = [lowest.unwrap_or(0), highest.unwrap_or(0)];
        both.sort_unstable();
        kept.extend(both.map(|index| run[index]));
    }
    kept.push(*last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_survive_thinning() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|index| (f64::from(index), 1.0)).collect();
        points[77_777].1 = 50.0;
        points[12_345].1 = -3.0;
        let thinned = thinned(&points);
        assert!(thinned.len() <= MAX_POINTS + 2, "{}", thinned.len());
        assert!(thinned.contains(&(77_777.0, 50.0)) && thinned.contains(&(12_345.0, -3.0)));
        assert!(thinned.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!((thinned[0].0, thinned.last().unwrap().0), (0.0, 99_999.0));
    }

    #[test]
    fn steps_hold_their_value() {
        let axis = |greatest| crate::Axis { greatest: Some(greatest), ..crate::Axis::new("n", crate::Unit::Count) };
        let series =
            Series { name: String::new(), colour: 0, shape: Shape::Steps, points: vec![(0.0, 0.0), (5.0, 10.0)] };
        let (x, y) =
            (Ruler::new(&axis(10.0), [].into_iter(), 0.0, 10.0), Ruler::new(&axis(10.0), [].into_iter(), 10.0, 0.0));
        assert_eq!(path(&series, &x, &y), "M0 10L5 10L5 0");
    }
}
