//! Congestion at a queue: ECN marks by probability, notifications by a threshold.

use super::config::{ClassConfig, Marking};

/// Effects of congestion on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Congestion {
    /// Mark the packet CE, by depth and chance.
    pub(crate) mark: bool,
    /// The queue is at its notification threshold: the sender may be notified (FC-4-1).
    pub(crate) notify: bool,
    /// The queue is above its backpressure threshold: a pause may be requested from the ingress PE (CN-4.1-2).
    pub(crate) xoff: bool,
}

/// Random numbers from a seed (splitmix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// Draws one number: `true` with this probability.
    fn draw(&mut self, probability: f64) -> bool {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let drawn = (z ^ z >> 31) >> 11;
        (drawn as f64) < probability * (1_u64 << 53) as f64
    }
}

/// The depth up to which nothing is marked: the only check for nearly every frame.
pub(super) fn quiet_octets(config: &ClassConfig) -> usize {
    let marking = config.marking.map_or(usize::MAX, |marking| marking.k_min_octets);
    let backpressure = config.backpressure.map_or(usize::MAX, |backpressure| backpressure.xoff_octets);
    marking.min(backpressure).min(config.notify_octets.map_or(usize::MAX, |octets| octets.saturating_sub(1)))
}

/// Congestion at a queue of this depth.
#[inline(never)]
pub(super) fn congestion_at(config: &ClassConfig, depth_octets: usize, chance: &mut Chance) -> Option<Congestion> {
    let mark = config.marking.is_some_and(|marking| is_marked(marking, depth_octets, chance));
    let notify = config.notify_octets.is_some_and(|octets| depth_octets >= octets);
    let xoff = config.backpressure.is_some_and(|backpressure| depth_octets > backpressure.xoff_octets);
    (mark || notify || xoff).then_some(Congestion { mark, notify, xoff })
}

fn is_marked(marking: Marking, depth_octets: usize, chance: &mut Chance) -> bool {
    let Marking { k_min_octets, k_max_octets, p_max } = marking;
    if depth_octets <= k_min_octets || depth_octets >= k_max_octets {
        return depth_octets > k_min_octets;
    }
    let share = (depth_octets - k_min_octets) as f64 / (k_max_octets - k_min_octets) as f64;
    chance.draw(p_max * share)
}

#[cfg(test)]
mod tests {
    use super::super::config::BackpressureThresholds;
    use super::*;

    fn class(k_min_octets: usize, k_max_octets: usize, p_max: f64) -> ClassConfig {
        let marking = Some(Marking { k_min_octets, k_max_octets, p_max });
        ClassConfig { marking, ..ClassConfig::new(usize::MAX) }
    }

    fn share_of_marks(config: &ClassConfig, depth_octets: usize) -> f64 {
        let mut chance = Chance::new(1);
        let marks = (0..100_000).filter(|_| congestion_at(config, depth_octets, &mut chance).is_some()).count();
        marks as f64 / 100_000.0
    }

    /// The probability rises in a line from 0 at Kmin to Pmax at Kmax, and is 1 from there on.
    #[test]
    fn marks_follow_the_line() {
        let config = class(100_000, 400_000, 0.2);
        assert_eq!(share_of_marks(&config, 100_000), 0.0);
        for (depth, expected) in [(100_001, 0.0), (175_000, 0.05), (250_000, 0.1), (399_999, 0.2)] {
            let found = share_of_marks(&config, depth);
            assert!((found - expected).abs() < 0.005, "at {depth} octets {found}, not {expected}");
        }
        assert_eq!(share_of_marks(&config, 400_000), 1.0);
    }

    #[test]
    fn a_step_is_a_line_too() {
        let config = class(1000, 1000, 0.0);
        assert_eq!([999, 1000, 1001].map(|depth| share_of_marks(&config, depth)), [0.0, 0.0, 1.0]);
        assert_eq!(share_of_marks(&class(0, 0, 1.0), 0), 0.0, "an empty queue is not congested");
    }

    #[test]
    fn no_packet_is_marked_below_the_lower_threshold() {
        let notifying = ClassConfig { notify_octets: Some(500), ..class(1000, 2000, 1.0) };
        assert_eq!(quiet_octets(&notifying), 499);
        assert_eq!(quiet_octets(&class(1000, 2000, 1.0)), 1000);
        assert_eq!(quiet_octets(&class(1000, 1000, 1.0)), 1000);
        assert_eq!(quiet_octets(&ClassConfig::new(10)), usize::MAX);
        let mut chance = Chance::new(1);
        assert_eq!(congestion_at(&notifying, 499, &mut chance), None);
        let congestion = |mark, notify, xoff| Some(Congestion { mark, notify, xoff });
        assert_eq!(congestion_at(&notifying, 500, &mut chance), congestion(false, true, false));
        assert_eq!(congestion_at(&notifying, 2000, &mut chance), congestion(true, true, false));
        let backpressure = Some(BackpressureThresholds { xoff_octets: 300, xon_octets: 100 });
        let with_backpressure = ClassConfig { backpressure, ..notifying };
        assert_eq!(
            (quiet_octets(&with_backpressure), congestion_at(&with_backpressure, 300, &mut chance)),
            (300, None)
        );
        assert_eq!(congestion_at(&with_backpressure, 301, &mut chance), congestion(false, false, true));
    }
}
