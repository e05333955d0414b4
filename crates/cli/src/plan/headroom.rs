//! `srdma plan headroom`: the headroom that a queue needs until a pause takes effect.

use crate::output::{print, print_json};
use crate::units::{grouped, parse_delay, parse_octets, parse_rate, rate, time};
use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use srdma_dataplane::headroom::{AROUND_OCTETS, NS_PER_KM, PausedLink, WanHeadroom, WanNode, octets_in, response_ns};
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  srdma plan headroom --rate 100G --distance 2km                     PFC on a link of 2 km
  srdma plan headroom --rate 100G --distance 5km --overload 4        and END.C of a WAN node 5 km from its ingress PE
  srdma plan headroom --rate 100G --distance 5km --overload 4 --path 100km
                                                                     the same in shares of rate times round trip
  srdma plan headroom --rate 400G --distance 500m --mtu 9000 --response 1us --json

Light takes 5 us for a kilometre of fibre. With --overload, --rate is what leaves the congested queue, and so many times
that comes in; PE and node are --distance apart, gateway and PE --gateway-distance. The queue then needs XON at the
octets to restart, XOFF at XON or above, and the octets to stop beyond XOFF.

Exit codes: 0 it was computed, 2 the arguments make no sense.";

/// Compute the headroom in octets that PFC and END.C need over a distance.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Rate of the link, in bits per second; with --overload, that of the congested queue's egress.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: u64,

    /// Distance that the pause travels: 500m or 5km; a whole number, or a decimal fraction.
    #[arg(long, value_name = "DISTANCE", value_parser = parse_distance)]
    distance: u64,

    /// The largest IPv6 packet, in octets.
    #[arg(long, value_name = "OCTETS", default_value = "9000", value_parser = parse_octets)]
    mtu: u64,

    /// Time until the neighbour stops after a pause; by default the limit of IEEE 802.3 annex 31B at the rate.
    #[arg(long, value_name = "TIME", value_parser = parse_delay)]
    response: Option<u64>,

    /// END.C: incoming rate as a multiple of the congested queue's rate; 1 to 1000.
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio)]
    overload: Option<f64>,

    /// END.C: distance between gateway and PE.
    #[arg(long, value_name = "DISTANCE", default_value = "0m", value_parser = parse_distance, requires = "overload")]
    gateway_distance: u64,

    /// END.C: length of the whole path between the gateways, for shares of the bandwidth-delay product.
    #[arg(long, value_name = "DISTANCE", value_parser = parse_distance, requires = "overload")]
    path: Option<u64>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    rate_bits_per_s: u64,
    propagation_ns: u64,
    frame_octets: u64,
    response_ns: u64,
    pfc: Pfc,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_c: Option<EndC>,
}

/// PFC on a link of this rate and length.
#[derive(Serialize)]
struct Pfc {
    stop_ns: u64,
    headroom_octets: u64,
}

/// END.C of a node that far from its PE.
#[derive(Serialize)]
struct EndC {
    in_bits_per_s: u64,
    loop_ns: u64,
    stop_octets: u64,
    restart_octets: u64,
    total_octets: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<Shares>,
}

/// Relative to rate times round-trip time of the path.
#[derive(Serialize)]
struct Shares {
    path_octets: u64,
    stop: f64,
    restart: f64,
    total: f64,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let answer = answer(arguments)?;
    if arguments.json {
        print_json(&answer)?;
    } else {
        print(&text(&answer))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(arguments: &Arguments) -> Result<Answer> {
    let Arguments { rate, distance, mtu, .. } = *arguments;
    if !(1280..=65_535).contains(&mtu) {
        bail!("--mtu {mtu}: expected 1280 to 65535 octets, as IPv6 has it");
    }
    if arguments.path.is_some_and(|path| path < distance) {
        bail!("--path: the whole path is shorter than --distance, which is part of it");
    }
    let link = |rate_bits_per_s, millimetres| PausedLink {
        rate_bits_per_s,
        propagation_ns: propagation_ns(millimetres),
        frame_octets: mtu + AROUND_OCTETS,
        response_ns: arguments.response.unwrap_or_else(|| response_ns(rate_bits_per_s)),
    };
    let near = link(rate, distance);
    let end_c = arguments.overload.map(|overload| {
        let in_bits_per_s = (rate as f64 * overload).round() as u64;
        let gateway = link(in_bits_per_s, arguments.gateway_distance);
        let propagation_ns = propagation_ns(distance);
        let headroom = WanNode { in_bits_per_s, out_bits_per_s: rate, propagation_ns, gateway }.headroom();
        let WanHeadroom { loop_ns, stop_octets, restart_octets } = headroom;
        let shares = arguments.path.map(|path| shares(&headroom, octets_in(2 * self::propagation_ns(path), rate)));
        let total_octets = headroom.total_octets();
        EndC { in_bits_per_s, loop_ns, stop_octets, restart_octets, total_octets, shares }
    });
    Ok(Answer {
        rate_bits_per_s: rate,
        propagation_ns: near.propagation_ns,
        frame_octets: near.frame_octets,
        response_ns: near.response_ns,
        pfc: Pfc { stop_ns: near.stop_ns(), headroom_octets: near.headroom_octets() },
        end_c,
    })
}

fn shares(headroom: &WanHeadroom, path_octets: u64) -> Shares {
    let share = |octets: u64| octets as f64 / path_octets.max(1) as f64;
    Shares {
        path_octets,
        stop: share(headroom.stop_octets),
        restart: share(headroom.restart_octets),
        total: share(headroom.total_octets()),
    }
}

fn text(answer: &Answer) -> String {
    let Answer { rate_bits_per_s, propagation_ns, frame_octets, response_ns, pfc, end_c } = answer;
    let mut text = format!(
        "link           {}, {} one way, frames of {} octets, response {}\n\
         PFC headroom   {} octets: the traffic of the {} until the neighbour stops\n",
        rate(*rate_bits_per_s),
        time(*propagation_ns),
        grouped(*frame_octets),
        time(*response_ns),
        grouped(pfc.headroom_octets),
        time(pfc.stop_ns)
    );
    let Some(end_c) = end_c else { return text };
    let share = |share: Option<f64>| share.map_or(String::new(), |share| format!("   {share:.3} of rate × round trip"));
    let shares = end_c.shares.as_ref();
    text.push_str(&format!(
        "END.C          {} in, {} out, {} from the notification to what follows from it\n",
        rate(end_c.in_bits_per_s),
        rate(*rate_bits_per_s),
        time(end_c.loop_ns)
    ));
    let rows = [
        ("to stop", end_c.stop_octets, shares.map(|shares| shares.stop), "beyond XOFF"),
        ("to restart", end_c.restart_octets, shares.map(|shares| shares.restart), "XON, or more"),
        ("queue", end_c.total_octets, shares.map(|shares| shares.total), "at least"),
    ];
    for (name, octets, of_all, meaning) in rows {
        text.push_str(&format!("  {name:<13}{:>15} octets, {meaning}{}\n", grouped(octets), share(of_all)));
    }
    text
}

/// Of so many millimetres, in nanoseconds, rounded up.
fn propagation_ns(millimetres: u64) -> u64 {
    (millimetres * NS_PER_KM).div_ceil(1_000_000)
}

/// Millimetres: `500m`, `5km`, `2.5 km`.
fn parse_distance(text: &str) -> Result<u64, String> {
    const MOST_KM: f64 = 40_000.0;
    let expected = || "expected a distance with its unit such as 500m or 2.5km".to_owned();
    let text = text.trim();
    let (number, km) = match (text.strip_suffix("km"), text.strip_suffix('m')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 0.001),
        (None, None) => return Err(expected()),
    };
    let number = number.trim_end();
    if !number.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(expected());
    }
    match number.parse::<f64>() {
        Ok(value) if value * km <= MOST_KM => Ok((value * km * 1e6).round() as u64),
        Ok(_) => Err(format!("must be at most {MOST_KM} km")),
        Err(_) => Err(expected()),
    }
}

/// A ratio from 1 to 1000, also as `4:1`.
fn parse_ratio(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches(":1").parse::<f64>() {
        Ok(ratio) if (1.0..=1000.0).contains(&ratio) => Ok(ratio),
        Ok(_) | Err(_) => Err("expected a ratio from 1 to 1000, such as 4 or 4:1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_and_ratios_are_read_and_refused() {
        let read = |text| parse_distance(text).ok();
        assert_eq!([read("500m"), read("5km"), read("2.5 km")], [Some(500_000), Some(5_000_000), Some(2_500_000)]);
        for text in ["", "5", "km", "-1km", "5 miles", "50000km", "inf km", "1e9km", "NaNkm"] {
            assert!(parse_distance(text).is_err(), "{text}");
        }
        assert_eq!((parse_ratio("4"), parse_ratio("2.5:1")), (Ok(4.0), Ok(2.5)));
        for text in ["", "0.5", "NaN", "1:4", "2000"] {
            assert!(parse_ratio(text).is_err(), "{text}");
        }
        assert_eq!([0, 1, 200, 1_000_000].map(propagation_ns), [0, 1, 1, 5000]);
    }
}
