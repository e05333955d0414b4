//! Statistics over several runs.

/// Least, median and greatest of what several seeds gave.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub greatest: f64,
}

impl Spread {
    /// Of these values; `None` without values. NaN is ignored.
    pub fn of(values: &[f64]) -> Option<Self> {
        let least = quantile(values, 0.0)?;
        Some(Spread { least, median: quantile(values, 0.5)?, greatest: quantile(values, 1.0)? })
    }
}

/// The value below which this share of the values lies, 0 to 1, interpolated between neighbours; `None` without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(if below == above { below } else { below + (above - below) * position.fract() })
}

/// The cumulative distribution of values as points: the value, and how many per cent are not above it. It begins at the
/// least value with 0 per cent.
pub fn cumulative(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let total = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = sorted.first().map(|least| (*least, 0.0)).into_iter().collect();
    for (index, value) in sorted.into_iter().enumerate() {
        let share = (index + 1) as f64 * 100.0 / total;
        match points.last_mut() {
            Some(last) if last.0 == value && last.1 > 0.0 => last.1 = share,
            Some(_) | None => points.push((value, share)),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        let values = [7.0, 1.0, 3.0, 10.0, f64::NAN];
        // numpy.quantile([7, 1, 3, 10], [0, .25, .5, .99, 1])
        let expected = [1.0, 2.5, 5.0, 9.91, 10.0];
        for (share, expected) in [0.0, 0.25, 0.5, 0.99, 1.0].into_iter().zip(expected) {
            assert!((quantile(&values, share).unwrap() - expected).abs() < 1e-9, "{share}");
        }
        assert_eq!((quantile(&[], 0.5), Spread::of(&[])), (None, None));
        assert_eq!(Spread::of(&values), Some(Spread { least: 1.0, median: 5.0, greatest: 10.0 }));
    }

    #[test]
    fn a_distribution_ends_at_all() {
        assert_eq!(cumulative(&[3.0, 1.0, 3.0, 2.0]), [(1.0, 0.0), (1.0, 25.0), (2.0, 50.0), (3.0, 100.0)]);
        assert_eq!(cumulative(&[]), []);
    }
}
