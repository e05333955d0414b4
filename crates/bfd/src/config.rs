//! Configuration of a session.

use std::num::NonZeroU8;

/// The least interval between packets that a session may be given, in microseconds. It is also the least time between
/// two packets out of turn.
pub const LEAST_INTERVAL_US: u32 = 10_000;

/// The least interval between packets of a session that is not Up, in microseconds (RFC 5880 section 6.8.3).
pub const SLOW_INTERVAL_US: u32 = 1_000_000;

/// The intervals of a session: 50 ms, three times, unless given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    desired_min_tx_us: u32,
    required_min_rx_us: u32,
    detect_mult: NonZeroU8,
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The transmission interval is below [`LEAST_INTERVAL_US`].
    #[error("desired minimum TX interval of {0} us: the least is {LEAST_INTERVAL_US} us")]
    DesiredMinTx(u32),
    /// The interval of reception is below [`LEAST_INTERVAL_US`].
    #[error("required minimum RX interval of {0} us: the least is {LEAST_INTERVAL_US} us")]
    RequiredMinRx(u32),
    /// The peer's detection time would be 0.
    #[error("detection multiplier of 0")]
    DetectMult,
}

impl Config {
    /// A session that sends at most one packet in `desired_min_tx_us` and wants at most one in `required_min_rx_us`,
    /// both in microseconds; the peer is to detect a failure after `detect_mult` packets.
    ///
    /// # Errors
    ///
    /// If an interval is below [`LEAST_INTERVAL_US`], or the multiplier 0.
    pub const fn new(desired_min_tx_us: u32, required_min_rx_us: u32, detect_mult: u8) -> Result<Self, ConfigError> {
        if desired_min_tx_us < LEAST_INTERVAL_US {
            return Err(ConfigError::DesiredMinTx(desired_min_tx_us));
        }
        if required_min_rx_us < LEAST_INTERVAL_US {
            return Err(ConfigError::RequiredMinRx(required_min_rx_us));
        }
        match NonZeroU8::new(detect_mult) {
            None => Err(ConfigError::DetectMult),
            Some(detect_mult) => Ok(Config { desired_min_tx_us, required_min_rx_us, detect_mult }),
        }
    }

    /// Desired minimum TX interval, in microseconds.
    pub const fn desired_min_tx_us(&self) -> u32 {
        self.desired_min_tx_us
    }

    /// Required minimum RX interval, in microseconds.
    pub const fn required_min_rx_us(&self) -> u32 {
        self.required_min_rx_us
    }

    /// Number of packets after whose loss the peer detects a failure.
    pub const fn detect_mult(&self) -> NonZeroU8 {
        self.detect_mult
    }
}

impl Default for Config {
    fn default() -> Self {
        let three = NonZeroU8::MIN.saturating_add(2);
        Config { desired_min_tx_us: 50_000, required_min_rx_us: 50_000, detect_mult: three }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_below_the_least_are_refused() {
        let least = LEAST_INTERVAL_US;
        assert!(Config::new(least, least, 1).is_ok());
        assert_eq!(Config::new(least - 1, least, 1), Err(ConfigError::DesiredMinTx(least - 1)));
        assert_eq!(Config::new(least, 0, 1), Err(ConfigError::RequiredMinRx(0)));
        assert_eq!(Config::new(least, least, 0), Err(ConfigError::DetectMult));
        assert_eq!(Config::new(50_000, 50_000, 3), Ok(Config::default()));
    }
}
