//! Axes: from values to coordinates of a picture.

use crate::plot::{Axis, Scale};
use crate::unit::number;

/// An axis with its range, laid out between two coordinates.
pub(crate) struct Ruler {
    scale: Scale,
    least: f64,
    greatest: f64,
    from: f64,
    to: f64,
    factor: f64,
    /// Suffix of the axis's name.
    pub(crate) symbol: &'static str,
}

/// Space that a linear axis leaves above its greatest value, as a share of its length.
const HEADROOM: f64 = 0.04;

/// A mark on an axis.
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl Ruler {
    /// An axis for these values, from one coordinate to another. A linear one begins at zero or below; values that a
    /// logarithmic one cannot show are placed at its beginning.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        let counts = |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
        for value in values.chain(axis.least).chain(axis.greatest).filter(counts) {
            (least, greatest) = (least.min(value), greatest.max(value));
        }
        if least > greatest {
            (least, greatest) = (1.0, 1.0);
        }
        match axis.scale {
            Scale::Linear => {
                if axis.least.is_none() {
                    least = least.min(0.0);
                }
                if greatest <= least {
                    greatest = least + 1.0;
                }
                if axis.greatest.is_none() {
                    greatest += (greatest - least) * HEADROOM;
                }
            }
            Scale::Logarithmic => {
                if greatest < least * 1.5 {
                    (least, greatest) = (least / 1.5, greatest * 1.5);
                }
            }
        }
        let (factor, symbol) = axis.unit.scale(greatest);
        Ruler { scale: axis.scale, least, greatest, from, to, factor, symbol }
    }

    /// Coordinate of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.least) / (self.greatest - self.least),
            Scale::Logarithmic => (value.max(self.least) / self.least).ln() / (self.greatest / self.least).ln(),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Parameters for a script that turns places into values: scale, both values as they are written, both places, the
    /// unit.
    pub(crate) fn description(&self) -> String {
        let scale = match self.scale {
            Scale::Linear => "linear",
            Scale::Logarithmic => "log",
        };
        let (least, greatest) = (self.least / self.factor, self.greatest / self.factor);
        format!("{scale} {least} {greatest} {} {} {}", self.from, self.to, self.symbol)
    }

    /// About as many ticks as requested, at round numbers.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        let (least, greatest) = (self.least / self.factor, self.greatest / self.factor);
        let values = match self.scale {
            Scale::Linear => round_numbers(least, greatest, wanted),
            Scale::Logarithmic => powers(least, greatest),
        };
        values.into_iter().map(|value| Tick { at: self.at(value * self.factor), label: number(value) }).collect()
    }
}

fn round_numbers(least: f64, greatest: f64, wanted: usize) -> Vec<f64> {
    let rough = (greatest - least) / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| rough <= factor * power * (1.0 + 1e-9));
    let step = factor.unwrap_or(10.0) * power;
    let (first, last) = ((least / step - 1e-9).ceil() as i64, (greatest / step + 1e-9).floor() as i64);
    (first..=last).map(|index| index as f64 * step).collect()
}

/// Powers of ten, and between them 2 and 5 where they are few.
fn powers(least: f64, greatest: f64) -> Vec<f64> {
    let (first, last) = (least.log10().floor() as i32, greatest.log10().ceil() as i32);
    let within = |value: &f64| (least * 0.999..=greatest * 1.001).contains(value);
    let steps: &[f64] = match last - first {
        ..=1 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        2 => &[1.0, 2.0, 5.0],
        3 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    all.filter(within).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    fn labels(axis: &Axis, values: &[f64], wanted: usize) -> Vec<String> {
        let ruler = Ruler::new(axis, values.iter().copied(), 0.0, 100.0);
        ruler.ticks(wanted).into_iter().map(|tick| format!("{} at {:.0}", tick.label, tick.at)).collect()
    }

    #[test]
    fn marks_are_at_round_numbers() {
        let rate = Axis { greatest: Some(100e9), ..Axis::new("rate", Unit::BitsPerSecond) };
        assert_eq!(
            labels(&rate, &[20e9, 90e9], 5),
            ["0 at 0", "20 at 20", "40 at 40", "60 at 60", "80 at 80", "100 at 100"]
        );
        let slowdown = Axis { scale: Scale::Logarithmic, ..Axis::new("slowdown", Unit::Times) };
        assert_eq!(
            labels(&slowdown, &[1.0, 100.0], 5),
            ["1 at 0", "2 at 15", "5 at 35", "10 at 50", "20 at 65", "50 at 85", "100 at 100"]
        );
    }

    #[test]
    fn no_values_are_no_error() {
        let axis = Axis::new("time", Unit::Nanoseconds);
        assert!(!labels(&axis, &[], 4).is_empty());
        assert!(!labels(&axis, &[0.0, f64::NAN, f64::INFINITY], 4).is_empty());
        let log = Axis { scale: Scale::Logarithmic, ..axis };
        assert!(!labels(&log, &[0.0, -3.0], 4).is_empty());
        assert!(!labels(&log, &[7.0], 4).is_empty());
    }
}
