//! Configuration of backpressure: notifications that a node sends, and limits on those that a PE accepts.

use crate::egress::CLASSES;
use srdma_frame::PortId;
use std::time::Duration;

/// Configuration of notifications at a node. Without it, the node sends and accepts none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackpressureConfig {
    /// Duration of a pause that this node requests, unless refreshed.
    pub hold: Duration,
    /// Refresh interval of a request while the queue stays above XON.
    pub refresh: Duration,
    /// At a PE: the ports and priorities to pause, by class (D61).
    pub priorities: Vec<PriorityMapping>,
    /// At a PE: longer hold times are taken for this.
    pub greatest_hold: Duration,
    /// At a PE: a priority of a port is paused for no longer than this without a break (D62).
    pub watchdog: Duration,
    /// At a PE: notifications a second that each congested node may send (D66).
    pub per_second: u32,
    /// Notifications that it may send at once.
    pub at_once: u32,
    /// At a PE: packets to END.E a second that each congested node may send (D66).
    pub end_e_per_second: u32,
    /// Packets to END.E that it may send at once.
    pub end_e_at_once: u32,
    /// At a PE: congested nodes that are known at a time, for END.C and for END.E.
    pub origins: u16,
}

/// Ports and priority that a PE pauses for a traffic class of the WAN (D61).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityMapping {
    /// The class, by its number in the SR domain.
    pub traffic_class: u8,
    /// The ports toward the gateways that fill it.
    pub ports: Vec<PortId>,
    /// The PFC priority there.
    pub priority: u8,
}

impl BackpressureConfig {
    /// Pauses of 10 ms, refreshed every 5 ms; none longer than 100 ms is accepted, and no priority is paused for more
    /// than a second without a break. 256 congested nodes may send 10,000 notifications a second each, 64 at once, and
    /// as many Fast CNPs by END.E as a node sends by default. No class is mapped.
    pub fn new() -> Self {
        BackpressureConfig {
            hold: Duration::from_millis(10),
            refresh: Duration::from_millis(5),
            priorities: Vec::new(),
            greatest_hold: Duration::from_millis(100),
            watchdog: Duration::from_secs(1),
            per_second: 10_000,
            at_once: 64,
            end_e_per_second: 1_000_000,
            end_e_at_once: 256,
            origins: 256,
        }
    }

    /// Why it cannot be so.
    pub(crate) fn check(&self) -> Result<(), BackpressureConfigError> {
        let times = [
            ("hold", self.hold),
            ("refresh", self.refresh),
            ("greatest_hold", self.greatest_hold),
            ("watchdog", self.watchdog),
        ];
        if let Some((name, _)) = times.iter().find(|(_, time)| time.as_micros() == 0) {
            return Err(BackpressureConfigError::TooShort(name));
        }
        if self.hold.as_micros() > u128::from(u32::MAX) {
            return Err(BackpressureConfigError::HoldTooLong(self.hold));
        }
        if self.refresh >= self.hold {
            return Err(BackpressureConfigError::Refresh { refresh: self.refresh, hold: self.hold });
        }
        let counts = [
            ("per_second", self.per_second),
            ("at_once", self.at_once),
            ("end_e_per_second", self.end_e_per_second),
            ("end_e_at_once", self.end_e_at_once),
            ("origins", self.origins.into()),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(BackpressureConfigError::Zero(name));
        }
        for (index, mapping) in self.priorities.iter().enumerate() {
            let PriorityMapping { traffic_class, ref ports, priority } = *mapping;
            if usize::from(priority) >= CLASSES {
                return Err(BackpressureConfigError::Priority { traffic_class, priority });
            }
            if ports.is_empty() {
                return Err(BackpressureConfigError::NoPort(traffic_class));
            }
            if self.priorities.iter().take(index).any(|other| other.traffic_class == traffic_class) {
                return Err(BackpressureConfigError::Twice(traffic_class));
            }
        }
        Ok(())
    }
}

impl Default for BackpressureConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a configuration of notifications is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BackpressureConfigError {
    /// A time that no notification could carry.
    #[error("{0} is shorter than 1 us")]
    TooShort(&'static str),
    /// A hold time beyond 32 bits of microseconds.
    #[error("a hold time of {0:?} exceeds the 4294 s of a notification")]
    HoldTooLong(Duration),
    /// A pause would end before its refresh.
    #[error("pauses of {hold:?} with a refresh interval of {refresh:?} have gaps")]
    Refresh {
        /// How often.
        refresh: Duration,
        /// How long.
        hold: Duration,
    },
    /// A limit that lets nothing through.
    #[error("{0} is 0, nothing would be accepted")]
    Zero(&'static str),
    /// A PFC priority above 7.
    #[error("traffic class {traffic_class}: there is no PFC priority {priority}, they end with 7")]
    Priority { traffic_class: u8, priority: u8 },
    /// A class without a port to be paused.
    #[error("traffic class {0} has no port to be paused")]
    NoPort(u8),
    /// Two mappings of one class.
    #[error("traffic class {0} has two mappings")]
    Twice(u8),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_refused_by_name() {
        let good = BackpressureConfig {
            priorities: vec![PriorityMapping { traffic_class: 3, ports: vec![PortId(0)], priority: 3 }],
            ..BackpressureConfig::new()
        };
        assert_eq!(good.check(), Ok(()));
        let with = |change: &dyn Fn(&mut BackpressureConfig)| {
            let mut config = good.clone();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        let refused = [
            with(&|config| config.refresh = Duration::ZERO),
            with(&|config| config.hold = Duration::from_secs(4295)),
            with(&|config| config.refresh = config.hold),
            with(&|config| config.origins = 0),
            with(&|config| config.priorities[0].priority = 8),
            with(&|config| config.priorities[0].ports.clear()),
            with(&|config| config.priorities.push(config.priorities[0].clone())),
        ];
        insta::assert_snapshot!(refused.join("\n"), @r"
        refresh is shorter than 1 us
        a hold time of 4295s exceeds the 4294 s of a notification
        pauses of 10ms with a refresh interval of 10ms have gaps
        origins is 0, nothing would be accepted
        traffic class 3: there is no PFC priority 8, they end with 7
        traffic class 3 has no port to be paused
        traffic class 3 has two mappings
        ");
    }
}
