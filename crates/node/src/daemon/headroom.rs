//! Headroom of routers that request pauses from a PE (D67).

use crate::Configuration;
use srdma_dataplane::headroom::{AROUND_OCTETS, NS_PER_KM, PausedLink, WanNode, octets_in, response_ns};
use srdma_dataplane::{NodeConfig, PriorityMapping};
use srdma_frame::PortId;
use srdma_node_spec::NodeSpec;
use std::collections::BTreeMap;

/// Headroom for a traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headroom {
    pub(super) traffic_class: u8,
    /// Octets beyond XOFF for a router that is next to the PE and sends nothing on.
    pub(super) octets: u64,
    /// Octets more for each kilometre between them.
    pub(super) octets_per_km: u64,
}

/// One for each class that is mapped to ports, of those with a rate.
pub(super) fn of(configuration: &Configuration) -> Vec<Headroom> {
    let NodeSpec { node, entries } = &configuration.spec;
    let rates = entries.egress.iter().map(|(port, egress)| (*port, egress.rate_bits_per_s)).collect();
    let priorities = entries.backpressure.iter().flat_map(|config| &config.priorities);
    priorities.filter_map(|mapping| headroom(node, mapping, &rates)).collect()
}

/// Everything comes that the gateways can send, and nothing leaves: a router that sends on needs less.
fn headroom(node: &NodeConfig, mapping: &PriorityMapping, rates: &BTreeMap<PortId, u64>) -> Option<Headroom> {
    let in_bits_per_s = mapping.ports.iter().filter_map(|port| rates.get(port)).sum();
    let slowest = mapping.ports.iter().filter_map(|port| rates.get(port)).min()?;
    let mtu = mapping.ports.iter().filter_map(|port| node.ports.get(port.index())).map(|port| port.link_mtu).max()?;
    let gateway = PausedLink {
        rate_bits_per_s: *slowest,
        propagation_ns: 0,
        frame_octets: u64::from(mtu) + AROUND_OCTETS,
        response_ns: response_ns(*slowest),
    };
    let router = WanNode { in_bits_per_s, out_bits_per_s: 0, propagation_ns: 0, gateway };
    Some(Headroom {
        traffic_class: mapping.traffic_class,
        octets: router.headroom().stop_octets,
        octets_per_km: octets_in(2 * NS_PER_KM, in_bits_per_s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// By hand, at 100 Gbit/s, 12.5 octets a nanosecond: a kilometre and back are 10 µs, 125,000 octets. Two frames of
    /// 1,538 octets and a PAUSE of 84 take 252.8 ns, so 253; 394 quanta 2,017.28, so 2,018; that is 28,387.5 octets, and
    /// two frames more.
    #[test]
    fn a_pe_reports_the_headroom_of_its_gateways() {
        let text = "[node]\nloopback = \"2001:db8::1\"\n[[port]]\nname = \"gw\"\nmac = \"02:00:00:00:00:01\"\n\
                    [[traffic_class]]\nclass = 3\ndscps = [26]\n[[egress]]\nport = \"gw\"\nrate_bits_per_s = 100_000_000_000\n[[egress.class]]\nclass = 3\n\
                    pfc = { xoff_octets = 90, xon_octets = 30, headroom_octets = 50 }\n\
                    [backpressure]\n[[backpressure.priority]]\ntraffic_class = 5\nports = [\"gw\"]\npriority = 3\n";
        let configuration = Configuration::parse(Path::new("pe.toml"), text).unwrap();
        let octets = 28_388 + 2 * 1_538;
        assert_eq!(of(&configuration), [Headroom { traffic_class: 5, octets, octets_per_km: 125_000 }]);
    }

    #[test]
    fn others_log_no_headroom() {
        let text = "[node]\nloopback = \"2001:db8::1\"\n[backpressure]\n";
        assert_eq!(of(&Configuration::parse(Path::new("router.toml"), text).unwrap()), []);
    }
}
