//! What `srdma send` and `srdma recv` share: their options' notations, the address of this host, progress, counters.

use crate::units;
use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Serialize, Serializer};
use srdma_host::{Connection, Landing, RawWire, RawWireConfig, UdpWire, UdpWireConfig, Wire};
use srdma_io::udp::Segmentation;
use srdma_rc::{Endpoint, PathMtu};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::{MacAddress, Psn, Qpn};
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

/// A queue pair number as options take it.
pub(crate) fn parse_qpn(text: &str) -> Result<Qpn, String> {
    let qpn = parse_integer(text).and_then(Qpn::new).filter(|qpn| qpn.is_connected());
    qpn.ok_or_else(|| "expected a queue pair number from 2 to 0xffffff".to_owned())
}

/// A packet sequence number as options take it.
pub(crate) fn parse_psn(text: &str) -> Result<Psn, String> {
    let psn = parse_integer(text).filter(|psn| *psn < 1 << 24).map(Psn::new);
    psn.ok_or_else(|| "expected a packet sequence number from 0 to 0xffffff".to_owned())
}

/// A path MTU as options take it.
pub(crate) fn parse_path_mtu(text: &str) -> Result<PathMtu, String> {
    let path_mtu = parse_integer(text).and_then(PathMtu::from_octets);
    path_mtu.ok_or_else(|| "expected 256, 512, 1024, 2048 or 4096".to_owned())
}

/// A time as options take it.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let time = srdma_node::parse_duration(text);
    time.ok_or_else(|| "expected a number and one of ns, us, ms, s, such as 30s".to_owned())
}

fn parse_integer(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The address that this host reaches a peer from.
pub(crate) fn address_toward(peer: Ipv6Addr) -> Result<Ipv6Addr> {
    let route = || {
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
        socket.connect((peer, ROCEV2_PORT))?;
        socket.local_addr()
    };
    match route().with_context(|| format!("no way to {peer}"))?.ip() {
        IpAddr::V6(address) => Ok(address),
        IpAddr::V4(address) => bail!("{peer} is reached from {address}, which is no IPv6 address"),
    }
}

/// Packets that a packet driver buffers, whatever their length.
const RAW_WINDOW: u32 = 128;

/// What a wire is to be like.
pub(crate) struct Opening<'a> {
    pub(crate) raw: &'a RawArguments,
    pub(crate) connection: &'a Connection,
    pub(crate) segmentation: Segmentation,
    pub(crate) buffer_octets: u32,
    /// Octets of the longest packet, headers of its path and all.
    pub(crate) max_packet_octets: usize,
    /// Where probes of paths come back to.
    pub(crate) probe_address: Option<Ipv6Addr>,
}

impl Opening<'_> {
    /// Opens the wire, and says how many packets it can buffer.
    pub(crate) fn open(self) -> Result<(Box<dyn Wire>, u32)> {
        let Opening { raw, connection, max_packet_octets, .. } = self;
        let address = connection.address;
        let wire = match (&raw.raw, raw.next_hop_mac) {
            (Some(interface), Some(next_hop)) => {
                let config = RawWireConfig {
                    interface: interface.clone(),
                    address,
                    mac: mac_of(interface)?,
                    next_hop,
                    max_packet_octets,
                    probe_address: self.probe_address,
                };
                check_mtu(interface, connection.path_mtu, max_packet_octets)?;
                RawWire::new(&config).map(|wire| (Box::new(wire) as Box<dyn Wire>, RAW_WINDOW))
            }
            (_, None) | (None, _) => UdpWire::new(&UdpWireConfig {
                address,
                peer: connection.peer_address,
                port: ROCEV2_PORT,
                peer_port: ROCEV2_PORT,
                segmentation: self.segmentation,
                buffer_octets: self.buffer_octets,
                max_packet_octets,
            })
            .map(|wire| {
                let window = wire.receive_window(connection.path_mtu.octets());
                (Box::new(wire) as Box<dyn Wire>, window)
            }),
        };
        wire.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                anyhow!("another RoCEv2 endpoint uses UDP port {ROCEV2_PORT} on {address}")
            }
            io::ErrorKind::AddrNotAvailable => {
                anyhow!("{address} is not an address of this host, or is still tentative: see `ip -6 address`")
            }
            io::ErrorKind::Other => anyhow!(error),
            _ => anyhow!("cannot open UDP port {ROCEV2_PORT} on {address}: {error}"),
        })
    }
}

/// How to use a packet driver.
#[derive(clap::Args)]
pub(crate) struct RawArguments {
    /// Use a packet socket at this interface instead of a UDP socket, so that packets with extension headers are seen,
    /// and counted. Needs root, or CAP_NET_RAW.
    #[arg(long, value_name = "INTERFACE", requires = "next_hop_mac")]
    raw: Option<String>,
    /// With --raw: MAC address of the next hop toward the peer, as `ip -6 neighbour` shows it.
    #[arg(long, value_name = "MAC", requires = "raw", value_parser = parse_mac)]
    next_hop_mac: Option<MacAddress>,
}

impl RawArguments {
    /// Whether a packet socket is to be used.
    pub(crate) fn is_given(&self) -> bool {
        self.raw.is_some()
    }
}

fn mac_of(interface: &str) -> Result<MacAddress> {
    let text = std::fs::read_to_string(Path::new("/sys/class/net").join(interface).join("address"))
        .with_context(|| format!("--raw: interface {interface} is not there; `ip link` lists those that are"))?;
    parse_mac(text.trim()).map_err(|error| anyhow!("--raw: interface {interface}: {error}"))
}

/// A packet socket loses what is too long.
fn check_mtu(interface: &str, path_mtu: PathMtu, max_packet_octets: usize) -> Result<()> {
    let text = std::fs::read_to_string(Path::new("/sys/class/net").join(interface).join("mtu"));
    match text.ok().and_then(|text| text.trim().parse::<usize>().ok()) {
        Some(mtu) if mtu < max_packet_octets => bail!(
            "--raw: packets of path MTU {} take up to {max_packet_octets} octets, interface {interface} takes {mtu}: \
             raise its MTU, or choose a smaller --path-mtu",
            path_mtu.octets(),
        ),
        Some(_) | None => Ok(()),
    }
}

fn parse_mac(text: &str) -> Result<MacAddress, String> {
    let octets = text.split(':').map(|digits| {
        let is_octet = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| is_octet)
    });
    let octets = octets.collect::<Option<Vec<u8>>>().and_then(|octets| <[u8; 6]>::try_from(octets).ok());
    let mac = octets.map(MacAddress).filter(|mac| !mac.is_group());
    mac.ok_or_else(|| "expected a unicast MAC address such as 02:00:00:00:00:01".to_owned())
}

/// What has gone wrong with the wire.
pub(crate) fn wire_failure(error: io::Error, peer: Ipv6Addr, path_mtu: PathMtu) -> anyhow::Error {
    const MESSAGE_TOO_LONG: i32 = 90;
    match error.raw_os_error() {
        Some(MESSAGE_TOO_LONG) => anyhow!(
            "packets of path MTU {} do not fit the link toward {peer}: raise the link's MTU to {} or more, or choose a \
             smaller --path-mtu",
            path_mtu.octets(),
            path_mtu.octets() + 104,
        ),
        _ => anyhow!("the socket failed: {error}"),
    }
}

/// How far a transfer has come, on the error output if that is a terminal.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    next: Instant,
}

impl Progress {
    /// Progress of so many octets, or of nobody knows how many.
    pub(crate) fn new(total_octets: Option<u64>) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let (bar, template) = match total_octets {
                Some(total) => {
                    let template = "{bar:40} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}";
                    (ProgressBar::new(total), template)
                }
                None => (ProgressBar::no_length(), "{spinner} {binary_bytes}, {binary_bytes_per_sec}"),
            };
            // The template is a constant; a bar in the default style is as good as none.
            if let Ok(style) = ProgressStyle::with_template(template) { bar.with_style(style) } else { bar }
        });
        Progress { bar, next: Instant::now() }
    }

    /// So many octets are done.
    pub(crate) fn report(&mut self, octets: u64) {
        const INTERVAL: Duration = Duration::from_millis(100);
        if let Some(bar) = &self.bar
            && self.next <= Instant::now()
        {
            bar.set_position(octets);
            self.next = Instant::now() + INTERVAL;
        }
    }

    /// The transfer is over.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What was counted at one end of a transfer.
#[derive(Debug, Serialize)]
pub(crate) struct Counters {
    /// Request packets sent, retransmissions included.
    packets_sent: u64,
    /// Request packets sent again.
    retransmissions: u64,
    /// Times that the ACK timer ran out.
    timeouts: u64,
    acks_received: u64,
    naks_received: u64,
    rnr_naks_received: u64,
    cnps_received: u64,
    acks_sent: u64,
    naks_sent: u64,
    rnr_naks_sent: u64,
    cnps_sent: u64,
    /// Fast CNPs sent that return a trace.
    traces_returned: u64,
    /// Data packets received whose trace could not be returned.
    traces_not_returned: u64,
    /// Requests received whose payload a switch had trimmed.
    trimmed_received: u64,
    /// Changes of UDP source port and flow label.
    detours: u64,
    /// Requests received that had been received before.
    duplicates: u64,
    /// Packets that the endpoint refused, by reason.
    #[serde(serialize_with = "by_name")]
    refused: Vec<(&'static str, u64)>,
    /// Packets that found the socket's buffer full.
    receive_overruns: u64,
    /// Packets that the kernel refused to send.
    send_errors: u64,
}

fn by_name<S: Serializer>(refused: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(refused.iter().copied())
}

impl Counters {
    pub(crate) fn of(endpoint: &Endpoint<Landing>, qpn: Qpn, wire: &dyn Wire) -> Self {
        let counters = endpoint.counters(qpn).copied().unwrap_or_default();
        let refused = endpoint.drops().iter().filter(|(_, count)| *count > 0);
        let statistics = wire.statistics();
        Counters {
            packets_sent: counters.packets_sent,
            retransmissions: counters.packets_retransmitted,
            timeouts: counters.timeouts,
            acks_received: counters.acks_received,
            naks_received: counters.naks_received,
            rnr_naks_received: counters.rnr_naks_received,
            cnps_received: counters.cnps_received,
            acks_sent: counters.acks_sent,
            naks_sent: counters.naks_sent,
            rnr_naks_sent: counters.rnr_naks_sent,
            cnps_sent: counters.cnps_sent,
            traces_returned: counters.traces_returned,
            traces_not_returned: counters.traces_not_returned,
            trimmed_received: counters.trimmed_received,
            detours: counters.detours,
            duplicates: counters.duplicates_received,
            refused: refused.map(|(reason, count)| (reason.name(), count)).collect(),
            receive_overruns: statistics.receive_overruns,
            send_errors: statistics.send_errors,
        }
    }

    /// What went wrong on the way, for people; empty when nothing did.
    pub(crate) fn troubles(&self) -> String {
        let counts = [
            (self.retransmissions, "retransmissions"),
            (self.timeouts, "timeouts"),
            (self.naks_received, "NAKs received"),
            (self.rnr_naks_received, "RNR NAKs received"),
            (self.cnps_received, "CNPs received"),
            (self.naks_sent, "NAKs sent"),
            (self.rnr_naks_sent, "RNR NAKs sent"),
            (self.cnps_sent, "CNPs sent"),
            (self.traces_returned, "traces returned"),
            (self.traces_not_returned, "traces not returned"),
            (self.trimmed_received, "trimmed packets received"),
            (self.detours, "detours"),
            (self.duplicates, "duplicates"),
            (self.receive_overruns, "packets lost at the socket"),
            (self.send_errors, "packets not sent"),
        ];
        let counts = counts.into_iter().map(|(count, what)| (count, what.to_owned()));
        let refused = self.refused.iter().map(|(reason, count)| (*count, format!("refused: {reason}")));
        let texts = counts.chain(refused).filter(|(count, _)| *count > 0);
        let texts: Vec<String> = texts.map(|(count, what)| format!("{} {what}", units::grouped(count))).collect();
        texts.join(", ")
    }
}

/// Octets and rate of a transfer that took so long.
pub(crate) fn in_words(octets: u64, duration: Duration) -> String {
    let rate = units::rate(bits_per_second(octets, duration));
    format!("{} in {:.3} s, {rate}", units::octets(octets), duration.as_secs_f64())
}

/// The rate of a transfer.
pub(crate) fn bits_per_second(octets: u64, duration: Duration) -> u64 {
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 { (octets as f64 * 8.0 / seconds) as u64 } else { 0 }
}

/// Octets in hexadecimal.
pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
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
        assert_eq!(parse_mac("02:00:00:00:0a:01"), Ok(MacAddress([2, 0, 0, 0, 10, 1])));
        for wrong in ["", "02:00:00:00:00", "33:33:00:00:00:01", "2:0:0:0:0:1", "02:00:00:00:00:+1"] {
            assert!(parse_mac(wrong).is_err(), "{wrong}");
        }
    }
}
