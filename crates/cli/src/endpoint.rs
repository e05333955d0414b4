//! Common parts of `srdma send` and `srdma recv`: the syntax of options, progress, and text of results.

use crate::units;
use indicatif::{ProgressBar, ProgressStyle};
use srdma_host::{RawInterface, TransferCounters};
use srdma_random::Stream;
use srdma_rc::MAX_MESSAGE_OCTETS;
use srdma_wire::{MacAddress, PathMtu, Psn, Qpn, host_address};
use std::io::{self, IsTerminal};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Parses a queue pair number.
pub(crate) fn parse_qpn(text: &str) -> Result<Qpn, String> {
    let qpn = parse_integer(text).and_then(Qpn::new).filter(|qpn| qpn.is_connected());
    qpn.ok_or_else(|| "expected a queue pair number from 2 to 0xffffff".to_owned())
}

/// Parses the address of a host; one of IPv4 becomes IPv4-mapped.
pub(crate) fn parse_address(text: &str) -> Result<Ipv6Addr, String> {
    host_address(text).ok_or_else(|| "expected an IPv6 or IPv4 address".to_owned())
}

/// Parses a packet sequence number.
pub(crate) fn parse_psn(text: &str) -> Result<Psn, String> {
    let psn = parse_integer(text).filter(|psn: &u32| *psn < 1 << 24).map(Psn::new);
    psn.ok_or_else(|| "expected a packet sequence number from 0 to 0xffffff".to_owned())
}

pub(crate) fn parse_path_mtu(text: &str) -> Result<PathMtu, String> {
    let path_mtu = parse_integer(text).and_then(PathMtu::from_octets);
    path_mtu.ok_or_else(|| "expected 256, 512, 1024, 2048 or 4096".to_owned())
}

pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let time = srdma_node::parse_duration(text);
    time.ok_or_else(|| "expected a number and one of ns, us, ms, s, such as 30s".to_owned())
}

/// Parses the length of a message.
pub(crate) fn parse_message(text: &str) -> Result<u32, String> {
    let octets = u32::try_from(units::parse_octets(text)?).ok().filter(|octets| *octets <= MAX_MESSAGE_OCTETS);
    octets.ok_or_else(|| format!("must be at most {MAX_MESSAGE_OCTETS} octets"))
}

/// A number, in decimal or after 0x in hexadecimal.
pub(crate) fn parse_integer<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.and_then(|number| T::try_from(number).ok())
}

/// A queue pair number, none of the reserved ones.
pub(crate) fn any_qpn(chance: &mut Stream) -> u32 {
    0x100 + chance.below(0xF0_0000) as u32
}

/// Numbers that differ from one process to the next.
pub(crate) fn chance(purpose: &str) -> Stream {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    Stream::new(now ^ u64::from(std::process::id()) << 40, purpose)
}

/// Options of a packet driver.
#[derive(clap::Args)]
pub(crate) struct RawArguments {
    /// Use a packet socket at this interface instead of a UDP socket, which also receives packets
    /// with extension headers. Needs root, or CAP_NET_RAW.
    #[arg(long, value_name = "INTERFACE", requires = "next_hop_mac")]
    raw: Option<String>,
    /// With --raw: MAC address of the next hop toward the peer, as `ip -6 neighbour` shows it.
    #[arg(long, value_name = "MAC", requires = "raw", value_parser = parse_mac)]
    next_hop_mac: Option<MacAddress>,
}

impl RawArguments {
    pub(crate) fn is_given(&self) -> bool {
        self.raw.is_some()
    }

    /// The interface and next hop, if both are given.
    pub(crate) fn interface(&self) -> Option<RawInterface<'_>> {
        let (name, next_hop) = self.raw.as_deref().zip(self.next_hop_mac)?;
        Some(RawInterface { name, next_hop })
    }
}

fn parse_mac(text: &str) -> Result<MacAddress, String> {
    let mac = srdma_host::parse_mac(text);
    mac.ok_or_else(|| "expected a unicast MAC address such as 02:00:00:00:00:01".to_owned())
}

/// Progress of a transfer, on the error output if that is a terminal.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    next: Instant,
}

impl Progress {
    /// Progress toward `total_octets`, or toward an unknown total.
    pub(crate) fn new(total_octets: Option<u64>) -> Self {
        let template = match total_octets {
            Some(_) => "{bar:40} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}",
            None => "{spinner} {binary_bytes}, {binary_bytes_per_sec}",
        };
        let bar = bar(total_octets, template);
        Progress { bar, next: Instant::now() }
    }

    pub(crate) fn report(&mut self, octets: u64) {
        const INTERVAL: Duration = Duration::from_millis(100);
        if let Some(bar) = &self.bar
            && self.next <= Instant::now()
        {
            bar.set_position(octets);
            self.next = Instant::now() + INTERVAL;
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar on a terminal; the template is a constant.
pub(crate) fn bar(total: Option<u64>, template: &str) -> Option<ProgressBar> {
    io::stderr().is_terminal().then(|| {
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        // A bar in the default style is as good as none.
        if let Ok(style) = ProgressStyle::with_template(template) { bar.with_style(style) } else { bar }
    })
}

/// Counters of anomalies that are not zero, as text; empty when all are zero.
pub(crate) fn anomalies(counters: &TransferCounters) -> String {
    let counts = [
        (counters.retransmissions, "retransmissions"),
        (counters.timeouts, "timeouts"),
        (counters.naks_received, "NAKs received"),
        (counters.rnr_naks_received, "RNR NAKs received"),
        (counters.cnps_received, "CNPs received"),
        (counters.naks_sent, "NAKs sent"),
        (counters.rnr_naks_sent, "RNR NAKs sent"),
        (counters.cnps_sent, "CNPs sent"),
        (counters.traces_returned, "traces returned"),
        (counters.traces_not_returned, "traces not returned"),
        (counters.trimmed_received, "trimmed packets received"),
        (counters.detours, "detours"),
        (counters.duplicates, "duplicates"),
        (counters.receive_overruns, "packets lost at the socket"),
        (counters.send_errors, "packets not sent"),
    ];
    let counts = counts.into_iter().map(|(count, what)| (count, what.to_owned()));
    let refused = counters.refused.iter().map(|(reason, count)| (*count, format!("refused: {reason}")));
    let texts = counts.chain(refused).filter(|(count, _)| *count > 0);
    let texts: Vec<String> = texts.map(|(count, what)| format!("{} {what}", units::grouped(count))).collect();
    texts.join(", ")
}

/// Octets and rate of a transfer that took so long.
pub(crate) fn in_words(octets: u64, duration: Duration) -> String {
    let rate = units::rate(bits_per_second(octets, duration));
    format!("{} in {:.3} s, {rate}", units::octets(octets), duration.as_secs_f64())
}

pub(crate) fn bits_per_second(octets: u64, duration: Duration) -> u64 {
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 { (octets as f64 * 8.0 / seconds) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal_and_in_range() {
        assert_eq!(parse_qpn("0x100").map(Qpn::get), Ok(256));
        assert_eq!(parse_psn("16777215").map(Psn::get), Ok(0xFF_FFFF));
        for wrong in ["", "1", "0x1000000", "0X100", "-3", "ten"] {
            assert!(parse_qpn(wrong).is_err(), "{wrong}");
        }
        assert!(parse_psn("0x1000000").is_err());
        assert!(parse_path_mtu("1500").is_err());
    }
}
