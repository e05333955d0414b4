//! Options of `srdma send` and `srdma recv` for congestion, and their reports of it.

use crate::units;
use anyhow::{Context, Result, bail};
use clap::{ValueEnum, value_parser};
use serde::Serialize;
use srdma_host::{Congestion, CongestionStats, TransferMemory};
use srdma_rc::rate::{DcqcnParameters, HpccParameters};
use srdma_rc::{Endpoint, FastCnpConfig, RateAlgorithm, TraceRequest};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Reaction of a sender to congestion.
#[derive(clap::Args)]
pub(crate) struct SenderArguments {
    /// Rate control: how CNPs and Fast CNPs reduce the rate.
    #[arg(long, value_enum, default_value_t = RateControl::None)]
    rate_control: RateControl,
    /// Bits per second on the link: without rate control the rate of the data; with it the initial rate and its
    /// maximum.
    #[arg(long, value_name = "BITS", value_parser = units::parse_rate)]
    rate: Option<u64>,
    /// Parameters of DCQCN, as docs/endpoints.md lists them.
    #[arg(long, value_enum, default_value_t = DcqcnPreset::Connectx)]
    dcqcn_preset: DcqcnPreset,
    /// With hpcc: the longest round trip of the network with empty queues.
    #[arg(long, value_name = "TIME", value_parser = parse_time_ns)]
    base_rtt: Option<u64>,
    /// Accept Fast CNPs from these addresses: those of switches, and with hpcc the receiver's, or a group's Proxy
    /// Address. May be repeated. By default none is accepted. Needs --raw.
    #[arg(long, value_name = "PREFIX", value_parser = parse_prefix)]
    fast_cnp: Vec<Prefix>,
    /// Let data packets carry an IOAM trace with room for so many nodes [default: none; with hpcc 9]. Needs --raw.
    #[arg(long, value_name = "NODES", value_parser = value_parser!(u8).range(1..=10))]
    trace_hops: Option<u8>,
    /// IOAM namespace of the trace.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    trace_namespace: u16,
    /// On notifications of congestion, change the UDP source port and flow label, at most once in this time, such as
    /// 100us: switches that choose paths by hash may choose another. Needs --raw.
    #[arg(long, value_name = "TIME", value_parser = parse_time_ns)]
    detour: Option<u64>,
    /// DSCP of data packets.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = value_parser!(u8).range(..=63))]
    dscp: u8,
}

/// Reaction of a receiver to congestion.
#[derive(clap::Args)]
pub(crate) struct ReceiverArguments {
    /// Answer packets marked CE with CNPs, at most one in this time; 0 means never.
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = units::parse_delay)]
    cnp_interval: u64,
    /// Return the IOAM traces of data packets by Fast CNPs, at most one in this time. Needs --raw.
    #[arg(long, value_name = "TIME", value_parser = parse_time_ns)]
    return_traces: Option<u64>,
    /// Answer packets whose payload a switch has trimmed with a NAK at once. Without it they count as damaged.
    #[arg(long)]
    answer_trimmed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RateControl {
    /// No rate control.
    None,
    /// DCQCN, by CNPs and Fast CNPs.
    Dcqcn,
    /// HPCC++, by the IOAM traces in Fast CNPs. Needs --raw.
    Hpcc,
}

#[derive(Clone, Copy, ValueEnum)]
enum DcqcnPreset {
    #[value(name = "sigcomm-2015")]
    Sigcomm2015,
    Connectx,
    HpccVendor,
    HpccPaper,
}

/// Hops whose trace fits into a Fast CNP.
const HPCC_HOPS: u8 = 9;

impl SenderArguments {
    /// The configuration of the endpoint.
    ///
    /// # Errors
    ///
    /// If options contradict each other, or the kernel would answer Fast CNPs.
    pub(crate) fn congestion(&self, is_raw: bool) -> Result<Congestion> {
        let needs_raw = [
            (!self.fast_cnp.is_empty(), "--fast-cnp", "the kernel discards a Fast CNP before a UDP socket sees it"),
            (self.rate_control == RateControl::Hpcc, "--rate-control hpcc", "a UDP socket does not send IOAM traces"),
            (self.trace_hops.is_some(), "--trace-hops", "a UDP socket does not send IOAM traces"),
            (self.detour.is_some(), "--detour", "a UDP socket keeps its port"),
        ];
        check_raw(is_raw, &needs_raw)?;
        if !self.fast_cnp.is_empty() {
            check_kernel_is_silent()?;
        }
        let hpcc_hops = (self.rate_control == RateControl::Hpcc).then_some(HPCC_HOPS);
        let hops = self.trace_hops.or(hpcc_hops);
        Ok(Congestion {
            rate: self.rate()?,
            fast_cnp: (!self.fast_cnp.is_empty()).then(|| FastCnpConfig::new(self.fast_cnp.clone())),
            trace: hops.map(|hops| TraceRequest::hpcc(self.trace_namespace, hops)),
            dscp: self.dscp,
            detour_interval_ns: self.detour,
            ..Congestion::default()
        })
    }

    fn rate(&self) -> Result<Option<RateAlgorithm>> {
        let line_rate = || self.rate.context("--rate-control needs --rate, the rate of the port, such as 10G");
        Ok(match self.rate_control {
            RateControl::None => self.rate.map(|bits_per_s| RateAlgorithm::Fixed { bits_per_s }),
            RateControl::Dcqcn => {
                let parameters = match self.dcqcn_preset {
                    DcqcnPreset::Sigcomm2015 => DcqcnParameters::sigcomm_2015,
                    DcqcnPreset::Connectx => DcqcnParameters::connectx,
                    DcqcnPreset::HpccVendor => DcqcnParameters::hpcc_vendor,
                    DcqcnPreset::HpccPaper => DcqcnParameters::hpcc_paper,
                };
                Some(RateAlgorithm::Dcqcn(parameters(line_rate()?)))
            }
            RateControl::Hpcc => {
                let base_rtt_ns = self.base_rtt.context("--rate-control hpcc needs --base-rtt, such as 200us")?;
                if self.fast_cnp.is_empty() {
                    bail!(
                        "--rate-control hpcc needs --fast-cnp with the receiver's address: it brings the traces back"
                    );
                }
                Some(RateAlgorithm::Hpcc(HpccParameters::published(line_rate()?, base_rtt_ns, self.trace_namespace)))
            }
        })
    }

    /// Congestion during the transfer, for the result.
    pub(crate) fn report(&self, stats: &CongestionStats, endpoint: &Endpoint<TransferMemory>) -> CongestionReport {
        let taken = endpoint.fast_cnp_counters();
        CongestionReport {
            fast_cnps: (!self.fast_cnp.is_empty()).then(|| FastCnpReport {
                from_switches: taken.from_switches,
                from_receivers: taken.from_receivers,
                with_trace: taken.with_trace,
                by_switch: stats.switches.clone(),
                of_other_switches: stats.of_other_switches,
            }),
            rate: self.rate.filter(|_| self.rate_control != RateControl::None).map(|rate| RateReport {
                control: match self.rate_control {
                    RateControl::Dcqcn => "dcqcn",
                    RateControl::Hpcc | RateControl::None => "hpcc",
                },
                least_bits_per_s: stats.least_bits_per_s.unwrap_or(rate),
                last_bits_per_s: stats.last_bits_per_s.unwrap_or(rate),
                least_window_octets: stats.least_window_octets,
                last_window_octets: stats.last_window_octets,
            }),
        }
    }
}

impl ReceiverArguments {
    /// The configuration of the endpoint.
    ///
    /// # Errors
    ///
    /// If options contradict each other.
    pub(crate) fn congestion(&self, is_raw: bool) -> Result<Congestion> {
        let reason = "a UDP socket neither shows traces nor sends Fast CNPs";
        check_raw(is_raw, &[(self.return_traces.is_some(), "--return-traces", reason)])?;
        Ok(Congestion {
            cnp_interval_ns: Some(self.cnp_interval).filter(|interval_ns| *interval_ns > 0),
            trace_return_interval_ns: self.return_traces,
            answers_trimmed: self.answer_trimmed,
            ..Congestion::default()
        })
    }
}

fn check_raw(is_raw: bool, options: &[(bool, &str, &str)]) -> Result<()> {
    match options.iter().find(|(is_given, ..)| *is_given && !is_raw) {
        Some((_, option, reason)) => bail!("{option} needs --raw INTERFACE and --next-hop-mac MAC: {reason}"),
        None => Ok(()),
    }
}

/// The kernel sees the same packets as a packet socket. It answers an unknown option with an ICMPv6 Parameter Problem,
/// from which a switch learns that this host does not support it (D47), unless a sysctl forbids such options.
fn check_kernel_is_silent() -> Result<()> {
    const SETTING: &str = "/proc/sys/net/ipv6/max_dst_opts_number";
    let most = fs::read_to_string(SETTING).ok().and_then(|text| text.trim().parse::<i64>().ok());
    match most {
        Some(1..) => bail!(
            "--fast-cnp: this kernel would answer every Fast CNP with an ICMPv6 error, upon which switches \
             stop sending them; let it discard unknown destination options in silence: \
             sysctl -w net.ipv6.max_dst_opts_number=-8"
        ),
        Some(_) | None => Ok(()),
    }
}

/// Congestion that a sender met, for `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct CongestionReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    fast_cnps: Option<FastCnpReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RateReport>,
}

/// Fast CNPs that were accepted; rejected ones are among `refused`.
#[derive(Debug, Serialize)]
struct FastCnpReport {
    from_switches: u64,
    from_receivers: u64,
    with_trace: u64,
    by_switch: BTreeMap<Ipv6Addr, u64>,
    /// Those of switches beyond the number that are counted one by one.
    of_other_switches: u64,
}

#[derive(Debug, Serialize)]
struct RateReport {
    control: &'static str,
    least_bits_per_s: u64,
    last_bits_per_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    least_window_octets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_window_octets: Option<u64>,
}

impl CongestionReport {
    /// As text; empty without congestion.
    pub(crate) fn in_words(&self) -> String {
        let mut text = String::new();
        if let Some(fast_cnps) = &self.fast_cnps {
            text += &format!("; {} from switches", units::count(fast_cnps.from_switches, "Fast CNP"));
            let by_switch = fast_cnps.by_switch.iter().map(|(switch, count)| format!("{switch}: {count}"));
            let by_switch: Vec<String> = by_switch.collect();
            if !by_switch.is_empty() {
                text += &format!(" ({})", by_switch.join(", "));
            }
            text += &format!(", {} from receivers, ", units::grouped(fast_cnps.from_receivers));
            text += &format!("{} with a trace", units::grouped(fast_cnps.with_trace));
        }
        if let Some(rate) = &self.rate {
            let (least, last) = (units::rate(rate.least_bits_per_s), units::rate(rate.last_bits_per_s));
            text += &format!("; {}: at least {least}, in the end {last}", rate.control);
        }
        text
    }
}

fn parse_time_ns(text: &str) -> Result<u64, String> {
    let time = srdma_node::parse_duration(text).map(|time: Duration| time.as_nanos());
    let time_ns = time.and_then(|time_ns| u64::try_from(time_ns).ok()).filter(|time_ns| *time_ns > 0);
    time_ns.ok_or_else(|| "expected a number and one of ns, us, ms, s, such as 200us".to_owned())
}

/// An address, or a prefix such as 2001:db8:ff::/48.
fn parse_prefix(text: &str) -> Result<Prefix, String> {
    let (address, length) = text.split_once('/').unwrap_or((text, "128"));
    let address = address.parse::<Ipv6Addr>().ok();
    let length = length.parse::<u8>().ok().filter(|_| length.bytes().all(|digit| digit.is_ascii_digit()));
    let prefix = address.zip(length).and_then(|(address, length)| Prefix::new(address, length));
    prefix.ok_or_else(|| "expected an IPv6 address or prefix, such as 2001:db8:ff::/48".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Sender {
        #[command(flatten)]
        arguments: SenderArguments,
    }

    fn refused(options: &[&str], is_raw: bool) -> String {
        let sender = Sender::try_parse_from(["send"].iter().chain(options)).map_err(|error| error.to_string());
        sender.map_or_else(|error| error, |sender| sender.arguments.congestion(is_raw).unwrap_err().to_string())
    }

    fn accepted(options: &[&str]) -> Congestion {
        let sender = Sender::try_parse_from(["send"].iter().chain(options)).unwrap();
        sender.arguments.congestion(true).unwrap()
    }

    #[test]
    fn impossible_options_are_refused_with_a_reason() {
        let assert_refused = |options: &[&str], is_raw, expected: &str| {
            let found = refused(options, is_raw);
            assert!(found.contains(expected), "expected {expected:?}, found {found:?}");
        };
        assert_refused(
            &["--fast-cnp", "2001:db8::/32"],
            false,
            "--fast-cnp needs --raw INTERFACE and --next-hop-mac MAC: the ke",
        );
        assert_refused(&["--rate-control", "hpcc"], false, "--rate-control hpcc needs --raw");
        assert_refused(&["--trace-hops", "3"], false, "--trace-hops needs --raw");
        assert_refused(
            &["--detour", "100us"],
            false,
            "--detour needs --raw INTERFACE and --next-hop-mac MAC: a UDP socket keeps",
        );
        assert_refused(
            &["--rate-control", "dcqcn"],
            true,
            "--rate-control needs --rate, the rate of the port, such as 10G",
        );
        assert_refused(&["--rate-control", "hpcc", "--rate", "1G"], true, "needs --base-rtt, such as 200us");
        assert_refused(
            &["--rate-control", "hpcc", "--rate", "1G", "--base-rtt", "1ms"],
            true,
            "needs --fast-cnp with the rec",
        );
        for wrong in ["2001:db8::/129", "10.0.0.0/8", "::/", "::/+1", "switch"] {
            assert_refused(&["--fast-cnp", wrong], true, "expected an IPv6 address or prefix");
        }
        assert_refused(&["--dscp", "64"], true, "64 is not in 0..=63");
        assert_refused(
            &["--rate-control", "hpcc", "--base-rtt", "0s"],
            true,
            "expected a number and one of ns, us, ms, s",
        );
    }

    #[test]
    fn options_become_settings() {
        assert_eq!(accepted(&[]), Congestion::default());
        let fixed = accepted(&["--rate", "400M", "--dscp", "26"]);
        assert_eq!((fixed.rate, fixed.dscp), (Some(RateAlgorithm::Fixed { bits_per_s: 400_000_000 }), 26));
        let dcqcn = accepted(&["--rate-control", "dcqcn", "--rate", "10G", "--dcqcn-preset", "sigcomm-2015"]);
        assert_eq!(dcqcn.rate, Some(RateAlgorithm::Dcqcn(DcqcnParameters::sigcomm_2015(10_000_000_000))));
        let traced = accepted(&["--trace-hops", "3", "--trace-namespace", "7"]);
        assert_eq!(traced.trace, Some(TraceRequest::hpcc(7, 3)));
        assert_eq!(accepted(&["--detour", "100us"]).detour_interval_ns, Some(100_000));
    }
}
