//! The network of Figure 1 of draft rocev2-fcn: two data centres, and a WAN between them (CN-3-1).
//!
//! ```text
//!   h1.1.1 … h1.16.4                                                        h2.1.1 … h2.16.4
//!      dc1.leaf1 … 16                 PE1 ─┬─ R1 ─┬─ R3 ─┬─ PE2                dc2.leaf1 … 16
//!        dc1.spine1, 2 ── dc1.gateway ─┘   │   ╲ R5 ╱    │  └─ dc2.gateway ── dc2.spine1, 2
//!                                          └─ R2 ─┴─ R4 ─┘
//! ```
//!
//! The tunnel uses R1 and R3; the other routers do not carry it. Up to the congested node links
//! have the rate of the gateways', after it they are slower.

use srdma_dataplane::headroom::NS_PER_KM;
use srdma_fabric::{End, Host, HostId, Link, NodeId, Plan, Switch, SwitchId, Topology, TopologyError};

/// Leaves of each data centre, hosts of each leaf, spines of each data centre.
pub(crate) const LEAVES: u16 = 16;
pub(crate) const HOSTS_PER_LEAF: u16 = 4;
pub(crate) const SPINES: u16 = 2;

/// Position of the first switch of each kind: leaves and spines of both data centres, gateways, PEs, routers.
const FIRST_SPINE: u16 = 2 * LEAVES;
const FIRST_GATEWAY: u16 = FIRST_SPINE + 2 * SPINES;
const FIRST_PE: u16 = FIRST_GATEWAY + 2;
const FIRST_ROUTER: u16 = FIRST_PE + 2;

/// Rates, in bits per second: of hosts' links, between leaf and spine, and from there to the PEs.
pub(crate) const HOST_RATE: u64 = 25_000_000_000;
const LEAF_RATE: u64 = 100_000_000_000;
pub(crate) const GATEWAY_RATE: u64 = 400_000_000_000;

/// Output rate of the congested node, in bits per second.
pub(crate) const BOTTLENECK_RATE: u64 = 100_000_000_000;

/// Delay of links within a data centre, and between gateway and PE, in nanoseconds.
pub(crate) const NEAR_NS: u64 = 500;

/// The router whose ingress links have 400 Gbit/s and whose egress link has 100 Gbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Congested {
    /// The first router after the PE.
    R1,
    /// The second router.
    R3,
}

/// The kilometres of a path through the WAN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distances {
    /// PE1–R1, R1–R3 and R3–PE2.
    pub hops_km: [f64; 3],
}

/// Valid lengths of a hop, in kilometres.
const KM: std::ops::RangeInclusive<f64> = 0.1..=40_000.0;

impl Distances {
    /// A first hop of this length; the other two share the rest of the path.
    pub(crate) fn with_first_hop(total_km: f64, first_km: f64) -> Self {
        Distances { hops_km: [first_km, (total_km - first_km) / 2.0, (total_km - first_km) / 2.0] }
    }

    /// Checks the lengths.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.hops_km.iter().all(|km| KM.contains(km)) {
            return Ok(());
        }
        let total_km: f64 = self.hops_km.iter().sum();
        Err(format!("total_km {total_km}: expected hops of {} to {} km", KM.start(), KM.end()))
    }

    /// The whole path, in nanoseconds one way: gateway to gateway.
    pub(crate) fn path_ns(&self) -> u64 {
        self.hops_km.iter().map(|km| delay_ns(*km)).sum::<u64>() + 2 * NEAR_NS
    }

    /// From PE1 to the congested node, in nanoseconds one way.
    pub(crate) fn node_ns(&self, congested: Congested) -> u64 {
        let hops = match congested {
            Congested::R1 => 1,
            Congested::R3 => 2,
        };
        self.hops_km[..hops].iter().map(|km| delay_ns(*km)).sum()
    }

    /// f: the share of the path's length between the gateway and the congested node.
    pub(crate) fn share(&self, congested: Congested) -> f64 {
        (self.node_ns(congested) + NEAR_NS) as f64 / self.path_ns() as f64
    }
}

/// At least a nanosecond: the engine requires a delay.
fn delay_ns(km: f64) -> u64 {
    ((km * NS_PER_KM as f64).round() as u64).max(1)
}

/// A switch by its position.
const fn switch(position: u16) -> SwitchId {
    SwitchId(position as u32)
}

/// A data centre's gateway: 0 or 1.
pub(crate) const fn gateway(site: u16) -> SwitchId {
    switch(FIRST_GATEWAY + site)
}

/// A data centre's PE: 0 or 1.
pub(crate) const fn pe(site: u16) -> SwitchId {
    switch(FIRST_PE + site)
}

/// A data centre's spine, 0 or 1.
pub(crate) const fn spine(site: u16, number: u16) -> SwitchId {
    switch(FIRST_SPINE + site * SPINES + number)
}

/// A data centre's switches: leaves, spines, gateway.
pub(crate) fn switches_of(site: u16) -> impl Iterator<Item = SwitchId> {
    let leaves = (0..LEAVES).map(move |leaf| switch(site * LEAVES + leaf));
    leaves.chain((0..SPINES).map(move |number| spine(site, number))).chain([gateway(site)])
}

/// R1 to R5.
pub(crate) const fn router(number: u16) -> SwitchId {
    switch(FIRST_ROUTER + number - 1)
}

/// The hosts of a data centre's leaf, 0 to 15, by number, 0 to 3.
pub(crate) const fn host(site: u16, leaf: u16, number: u16) -> HostId {
    HostId(((site * LEAVES + leaf) * HOSTS_PER_LEAF + number) as u32)
}

/// The switches that the tunnel takes, from PE1 to PE2.
pub(crate) const TUNNEL: [SwitchId; 4] = [pe(0), router(1), router(3), pe(1)];

impl Congested {
    pub(crate) fn switch(self) -> SwitchId {
        match self {
            Congested::R1 => router(1),
            Congested::R3 => router(3),
        }
    }

    /// The next switch of the tunnel.
    pub(crate) fn next(self) -> SwitchId {
        match self {
            Congested::R1 => router(3),
            Congested::R3 => pe(1),
        }
    }
}

/// The topology.
///
/// # Errors
///
/// Those of [`Topology::new`], which only a defect can cause.
pub(crate) fn topology(distances: &Distances, congested: Congested) -> Result<Topology, TopologyError> {
    let mut figure = Figure { plan: Plan::default(), ports: vec![0; usize::from(FIRST_ROUTER) + 5] };
    figure.switches();
    for (site, leaf) in pairs(2, LEAVES) {
        for number in 0..HOSTS_PER_LEAF {
            figure.host(site, leaf, number);
        }
    }
    for (site, leaf) in pairs(2, LEAVES) {
        for spine in 0..SPINES {
            figure.link(switch(site * LEAVES + leaf), self::spine(site, spine), LEAF_RATE, NEAR_NS);
        }
    }
    for (site, spine) in pairs(2, SPINES) {
        figure.link(self::spine(site, spine), gateway(site), GATEWAY_RATE, NEAR_NS);
    }
    for site in 0..2 {
        figure.link(gateway(site), pe(site), GATEWAY_RATE, NEAR_NS);
    }
    let [first, second, third] = distances.hops_km.map(delay_ns);
    let second_rate = match congested {
        Congested::R1 => BOTTLENECK_RATE,
        Congested::R3 => GATEWAY_RATE,
    };
    for upper in [1, 2] {
        figure.link(pe(0), router(upper), GATEWAY_RATE, first);
        figure.link(router(upper), router(upper + 2), second_rate, second);
        figure.link(router(upper + 2), pe(1), BOTTLENECK_RATE, third);
    }
    for number in 1..=4 {
        figure.link(router(number), router(5), BOTTLENECK_RATE, second);
    }
    Topology::new(figure.plan)
}

fn pairs(outer: u16, inner: u16) -> impl Iterator<Item = (u16, u16)> {
    (0..outer).flat_map(move |one| (0..inner).map(move |other| (one, other)))
}

/// Builder of the topology.
struct Figure {
    plan: Plan,
    /// The next port of each switch.
    ports: Vec<u16>,
}

impl Figure {
    fn switches(&mut self) {
        let mut add = |name: String, tier: u8, number: u16| {
            self.plan.switches.push(Switch { name, tier, number, usid: Some(u16::from(tier) << 12 | number) });
        };
        for (tier, kind, count) in [(1, "leaf", LEAVES), (2, "spine", SPINES)] {
            for (site, index) in pairs(2, count) {
                add(format!("dc{}.{kind}{}", site + 1, index + 1), tier, (site + 1) << 8 | (index + 1));
            }
        }
        for site in 1..=2 {
            add(format!("dc{site}.gateway"), 3, site);
        }
        for site in 1..=2 {
            add(format!("PE{site}"), 4, site);
        }
        for number in 1..=5 {
            add(format!("R{number}"), 5, number);
        }
    }

    fn host(&mut self, site: u16, leaf: u16, number: u16) {
        let name = format!("h{}.{}.{}", site + 1, leaf + 1, number + 1);
        let id = u32::from(site + 1) << 24 | u32::from(leaf + 1) << 16 | u32::from(number + 1);
        let node = NodeId::Host(HostId(self.plan.hosts.len() as u32));
        self.plan.hosts.push(Host { name, number: id });
        let above = self.end(switch(site * LEAVES + leaf));
        let ends = [End { node, port: 0 }, above];
        self.plan.links.push(Link { ends, rate_bits_per_s: HOST_RATE, delay_ns: NEAR_NS });
    }

    fn link(&mut self, one: SwitchId, other: SwitchId, rate_bits_per_s: u64, delay_ns: u64) {
        let ends = [self.end(one), self.end(other)];
        self.plan.links.push(Link { ends, rate_bits_per_s, delay_ns });
    }

    fn end(&mut self, switch: SwitchId) -> End {
        let next = &mut self.ports[switch.index()];
        *next += 1;
        End { node: NodeId::Switch(switch), port: *next - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Distances = Distances { hops_km: [5.0, 47.5, 47.5] };

    /// CN-3-1: what the figure shows, and nothing else.
    #[test]
    fn the_network_is_that_of_figure_1() {
        let topology = topology(&NEAR, Congested::R1).unwrap();
        assert_eq!((topology.hosts().len(), topology.switches().len()), (128, 2 * (16 + 2 + 1) + 2 + 5));
        assert_eq!(topology.links().len(), 128 + 2 * (32 + 2 + 1) + 6 + 4);
        let names = [gateway(0), pe(0), router(1), router(3), router(5), pe(1), gateway(1)];
        let names = names.map(|switch| topology.name(NodeId::Switch(switch)).to_owned());
        assert_eq!(names, ["dc1.gateway", "PE1", "R1", "R3", "R5", "PE2", "dc2.gateway"]);
        assert_eq!(topology.name(NodeId::Host(host(1, 15, 3))), "h2.16.4");
        assert_eq!(topology.attached_to(host(1, 15, 3)).next(), Some(SwitchId(31)));
    }

    /// Up to the congested node 400 Gbit/s, from it on 100; light takes 5 µs for a kilometre.
    #[test]
    fn the_bottleneck_is_where_it_is_configured() {
        let between = |congested, name: &str| {
            let topology = topology(&NEAR, congested).unwrap();
            let link = topology.links_named(name).unwrap()[0];
            let link = &topology.links()[link.index()];
            (link.rate_bits_per_s / 1_000_000_000, link.delay_ns)
        };
        assert_eq!(between(Congested::R1, "PE1-R1"), (400, 25_000));
        assert_eq!(between(Congested::R1, "R1-R3"), (100, 237_500));
        assert_eq!(between(Congested::R3, "R1-R3"), (400, 237_500));
        assert_eq!(between(Congested::R3, "R3-PE2"), (100, 237_500));
        assert_eq!(NEAR.path_ns(), 501_000);
        assert!((NEAR.share(Congested::R1) - 0.0509).abs() < 0.0001);
        assert!((NEAR.share(Congested::R3) - 0.525).abs() < 0.001);
    }
}
