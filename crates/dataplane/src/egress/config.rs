//! Configuration of a port's queues: traffic classes, limits, ECN marks, PFC pauses.

use srdma_wire::pfc;

/// Traffic classes of a port.
pub const CLASSES: usize = pfc::CLASSES;

/// Octets that a weighted class may at least send in its turn.
const LEAST_QUANTUM_OCTETS: u32 = 256;

/// The classes of a port, and what its link does.
#[derive(Clone, Debug, PartialEq)]
pub struct EgressConfig {
    /// Rate of the link in bits a second: the base of pause quanta, and a field of traces.
    pub rate_bits_per_s: u64,
    /// The classes by their number; where they are strict, the highest goes first.
    pub classes: [ClassConfig; CLASSES],
    /// Reaction to a neighbour that pauses for too long; `None`: no reaction.
    pub watchdog: Option<Watchdog>,
    /// Data packets that find no room in their class are cut behind their headers, and wait with this DSCP in the class
    /// that it belongs to (D88); `None`: they are dropped.
    pub trim_dscp: Option<u8>,
}

impl EgressConfig {
    /// Classes that are all alike: so much may wait in each, nothing is marked, nothing paused, and the highest goes
    /// first.
    pub fn new(rate_bits_per_s: u64, limit_octets: usize) -> Self {
        let classes = [ClassConfig::new(limit_octets); CLASSES];
        EgressConfig { rate_bits_per_s, classes, watchdog: None, trim_dscp: None }
    }

    /// Why a port cannot be so.
    pub(crate) fn check(&self) -> Result<(), EgressError> {
        if self.rate_bits_per_s == 0 {
            return Err(EgressError::NoRate);
        }
        if self.watchdog.is_some_and(|watchdog| watchdog.bound_ns == 0 || watchdog.quiet_ns == 0) {
            return Err(EgressError::Watchdog);
        }
        if let Some(dscp) = self.trim_dscp.filter(|dscp| *dscp > 63) {
            return Err(EgressError::Dscp(dscp));
        }
        (0..).zip(&self.classes).try_for_each(|(class, config)| config.check(class))
    }
}

/// A traffic class of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassConfig {
    /// Bound on the queue. Frames received by a link with PFC in this class are bounded by that link's XOFF and
    /// headroom instead.
    pub limit_octets: usize,
    /// When its frames go.
    pub scheduling: Scheduling,
    /// When its frames are marked.
    pub marking: Option<Marking>,
    /// Queue depth in octets from which the sender is notified, if the node sends notifications (FC-4-1).
    pub notify_octets: Option<usize>,
    /// Pauses in both directions.
    pub pfc: Option<PfcConfig>,
    /// Thresholds of pause requests to ingress PEs, if the node notifies them (CN-4.1-2).
    pub backpressure: Option<BackpressureThresholds>,
}

impl ClassConfig {
    /// A strict class in which so much may wait; nothing is marked, nothing paused.
    pub fn new(limit_octets: usize) -> Self {
        ClassConfig {
            limit_octets,
            scheduling: Scheduling::Strict,
            marking: None,
            notify_octets: None,
            pfc: None,
            backpressure: None,
        }
    }

    fn check(&self, class: u8) -> Result<(), EgressError> {
        if let Scheduling::Weighted { quantum_octets } = self.scheduling
            && quantum_octets < LEAST_QUANTUM_OCTETS
        {
            return Err(EgressError::Quantum { class, quantum_octets });
        }
        if let Some(marking) = self.marking
            && !(marking.k_min_octets <= marking.k_max_octets && (0.0..=1.0).contains(&marking.p_max))
        {
            return Err(EgressError::Marking { class });
        }
        if self.backpressure.is_some_and(|backpressure| backpressure.xon_octets == backpressure.xoff_octets) {
            return Err(EgressError::Backpressure { class });
        }
        match self.pfc {
            Some(pfc) if pfc.quanta == 0 || pfc.xon_octets > pfc.xoff_octets => Err(EgressError::Pfc { class }),
            _ => Ok(()),
        }
    }
}

/// When the frames of a class go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Before all weighted classes, and before lower strict ones.
    Strict,
    /// In turn with the other weighted classes (deficit round robin).
    Weighted {
        /// Octets that the class may send in its turn: its weight.
        quantum_octets: u32,
    },
}

/// ECN marking by the octets that wait before a frame: never up to Kmin, beyond it always from Kmax on, and with
/// linearly rising probability between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marking {
    /// Kmin.
    pub k_min_octets: usize,
    /// Kmax.
    pub k_max_octets: usize,
    /// Pmax: the probability right below Kmax, 0 to 1.
    pub p_max: f64,
}

/// Priority flow control of one class of a link (IEEE 802.1Q clause 36): its neighbour is paused when too much of what
/// came from there waits in this node, and may pause this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcConfig {
    /// When more octets than these, received here in this class, wait at ports, the neighbour is paused.
    pub xoff_octets: usize,
    /// XON: with at most so many octets in the queue the neighbour may resume.
    pub xon_octets: usize,
    /// Headroom beyond XOFF: octets that the neighbour sends until it stops.
    pub headroom_octets: usize,
    /// Length of a pause, in quanta of 512 bit times. It is refreshed at half of it.
    pub quanta: u16,
}

/// Thresholds of pause requests to the ingress PEs of the packets in a class (D67).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackpressureThresholds {
    /// A packet that finds more octets than these waiting is a reason to ask its ingress PE for a pause.
    pub xoff_octets: usize,
    /// Depth at which they are resumed. Above XOFF it is an early resume: they resume when the queue, once above, is
    /// down to it, and are paused again when the queue has been down at XOFF, or rises above XON.
    pub xon_octets: usize,
}

/// When a neighbour's pauses are no longer honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// A class paused for so long without a break is caught in a storm.
    pub bound_ns: u64,
    /// The storm is over when no pause has come for so long.
    pub quiet_ns: u64,
    /// Handling of the class's frames during a storm.
    pub action: StormAction,
}

/// Handling of the frames of a class in a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormAction {
    /// They are sent, as if no pause had come.
    Forward,
    /// They are dropped.
    Drop,
}

/// The traffic class of each DSCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMap([u8; 64]);

impl Default for ClassMap {
    fn default() -> Self {
        ClassMap([0; 64])
    }
}

impl ClassMap {
    /// Each DSCP's three high bits, its precedence (RFC 2474 section 4.2.2).
    pub fn by_precedence() -> Self {
        ClassMap(std::array::from_fn(|dscp| (dscp >> 3) as u8))
    }

    /// Gives a DSCP a class; `None` when there is no such DSCP or class.
    pub fn set(&mut self, dscp: u8, class: u8) -> Option<()> {
        let place = self.0.get_mut(usize::from(dscp)).filter(|_| usize::from(class) < CLASSES)?;
        *place = class;
        Some(())
    }

    /// The class of a packet with this traffic class field, whose high six bits are the DSCP.
    #[inline]
    pub fn class_of(&self, traffic_class: u8) -> usize {
        usize::from(self.0[usize::from(traffic_class >> 2)])
    }
}

/// Why a configuration of a port's classes is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum EgressError {
    /// A link without a rate.
    #[error("the rate of the link is 0; give it in bits a second")]
    NoRate,
    /// A DSCP above 63.
    #[error("there is no DSCP {0}: they end with 63")]
    Dscp(u8),
    /// A watchdog that would bark at every pause.
    #[error("the bound and the quiet time of the watchdog must be longer than 0 ns")]
    Watchdog,
    /// A weight that is too low.
    #[error("class {class}: a quantum of {quantum_octets} octets is less than {LEAST_QUANTUM_OCTETS}")]
    Quantum { class: u8, quantum_octets: u32 },
    /// Thresholds out of order, or an invalid probability.
    #[error("class {class}: marking needs k_min <= k_max and p_max between 0 and 1")]
    Marking { class: u8 },
    /// Thresholds between which there is nothing.
    #[error("class {class}: backpressure needs xon < xoff, or above it for an early resume")]
    Backpressure { class: u8 },
    /// Thresholds that cross, or pauses of no length.
    #[error("class {class}: PFC needs xon <= xoff and pauses of at least 1 quantum")]
    Pfc { class: u8 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_refused_by_name() {
        let good = EgressConfig::new(100_000_000_000, 1 << 20);
        assert_eq!(good.check(), Ok(()));
        let with = |change: &dyn Fn(&mut EgressConfig)| {
            let mut config = good.clone();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        let pfc = PfcConfig { xoff_octets: 10, xon_octets: 10, headroom_octets: 0, quanta: 1 };
        let marking = Marking { k_min_octets: 5, k_max_octets: 5, p_max: 1.0 };
        let refused = [
            with(&|config| config.rate_bits_per_s = 0),
            with(&|config| config.trim_dscp = Some(64)),
            with(&|config| {
                config.watchdog = Some(Watchdog { bound_ns: 0, quiet_ns: 1, action: StormAction::Drop });
            }),
            with(&|config| config.classes[2].scheduling = Scheduling::Weighted { quantum_octets: 255 }),
            with(&|config| config.classes[3].marking = Some(Marking { k_min_octets: 6, ..marking })),
            with(&|config| config.classes[4].marking = Some(Marking { p_max: f64::NAN, ..marking })),
            with(&|config| config.classes[5].pfc = Some(PfcConfig { xon_octets: 11, ..pfc })),
            with(&|config| config.classes[6].pfc = Some(PfcConfig { quanta: 0, ..pfc })),
            with(&|config| {
                config.classes[7].backpressure = Some(BackpressureThresholds { xoff_octets: 9, xon_octets: 9 });
            }),
        ];
        insta::assert_snapshot!(refused.join("\n"), @r"
        the rate of the link is 0; give it in bits a second
        there is no DSCP 64: they end with 63
        the bound and the quiet time of the watchdog must be longer than 0 ns
        class 2: a quantum of 255 octets is less than 256
        class 3: marking needs k_min <= k_max and p_max between 0 and 1
        class 4: marking needs k_min <= k_max and p_max between 0 and 1
        class 5: PFC needs xon <= xoff and pauses of at least 1 quantum
        class 6: PFC needs xon <= xoff and pauses of at least 1 quantum
        class 7: backpressure needs xon < xoff, or above it for an early resume
        ");
    }

    #[test]
    fn classes_of_dscps() {
        let mut map = ClassMap::default();
        assert_eq!(map.set(26, 3), Some(()));
        assert_eq!([map.set(64, 0), map.set(0, 8)], [None, None]);
        assert_eq!([map.class_of(26 << 2 | 3), map.class_of(25 << 2)], [3, 0]);
        assert_eq!(ClassMap::by_precedence().class_of(48 << 2), 6);
    }
}
