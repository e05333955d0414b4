//! Programs of jobs' flows, and the SIDs and routes of switches for them, which do not depend on flows (PP-4-2,
//! PP-4-5).

use super::build::ADDRESSES;
use super::nic::{Outer, headend_path};
use super::run::RunError;
use super::scenario::{FabricScenario, Paths, Variant};
use super::tasks::Channel;
use srdma_dataplane::{Command, Encaps, EncapsMode, Flavors, NextHop, RouteAction, SidBehavior, TableId};
use srdma_fabric::sid::tenant_id;
use srdma_fabric::{Encoding, HostId, NextHops, NodeId, Path, Program, SidPlan, SwitchId, Topology};
use srdma_frame::PortId;
use srdma_placement::{Choosing, Deadline, Direction, Flow, FlowId, GroupFlow, Placement, choose_with_groups, ecmp};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Bits of a uN or uA: the block and an id.
const SID_BITS: u8 = 48;

/// Outer hop limit.
const HOP_LIMIT: u8 = 64;

/// Number of random paths drawn to find one through a given switch.
const ATTEMPTS: u64 = 100_000;

/// Outer headers of a channel's data and acknowledgements (D86).
pub(super) struct Headers {
    pub(super) forth: Outer,
    pub(super) back: Outer,
}

/// The SIDs of a fabric in variants whose hosts choose paths; `None` in others.
///
/// # Errors
///
/// A fabric with more switches than ids.
pub(super) fn sid_plan(scenario: &FabricScenario, variant: &Variant) -> Result<Option<SidPlan>, RunError> {
    let is_needed = variant.paths != Paths::Ecmp || scenario.workloads.stream.iter().any(|stream| stream.via.is_some());
    Ok(is_needed.then(|| SidPlan::new(&scenario.topology, SidPlan::BLOCK)).transpose()?)
}

/// How a channel goes.
pub(super) enum ChannelRoute {
    /// Its paths in order of preference. With steering there is an alternative that shares as few links as possible
    /// with the first.
    Paths(Vec<Path>),
    /// The tree of its group.
    Tree(Vec<Direction>),
}

/// The paths of each channel in order of preference, at packet level, where none has a group; empty if switches choose.
///
/// # Errors
///
/// Those of the placement.
pub(super) fn paths(
    scenario: &FabricScenario,
    variant: &Variant,
    next_hops: &NextHops,
    seed: u64,
    channels: &[Channel],
) -> Result<Vec<Vec<Path>>, RunError> {
    let paths = |route| match route {
        ChannelRoute::Paths(paths) => Some(paths),
        ChannelRoute::Tree(_) => None,
    };
    Ok(routes(scenario, variant, next_hops, seed, channels)?.into_iter().filter_map(paths).collect())
}

/// How each channel goes; empty if switches choose.
///
/// # Errors
///
/// Those of the placement.
pub(super) fn routes(
    scenario: &FabricScenario,
    variant: &Variant,
    next_hops: &NextHops,
    seed: u64,
    channels: &[Channel],
) -> Result<Vec<ChannelRoute>, RunError> {
    let topology = &scenario.topology;
    let flow = |channel: &Channel| {
        let Channel { from, to, rate_bits_per_s, .. } = *channel;
        Flow { from, to, rate_bits_per_s }
    };
    let flows: Vec<Flow> = channels.iter().filter(|channel| channel.group.is_none()).map(flow).collect();
    let groups: Vec<GroupFlow> = channels.iter().filter_map(|channel| channel.group.clone()).collect();
    let in_order = |paths: Vec<Vec<Path>>, trees: Vec<Vec<Direction>>| {
        let (mut paths, mut trees) = (paths.into_iter(), trees.into_iter());
        let route = |channel: &Channel| match channel.group {
            Some(_) => trees.next().map(ChannelRoute::Tree),
            None => paths.next().map(ChannelRoute::Paths),
        };
        channels.iter().filter_map(route).collect()
    };
    let how = match variant.paths {
        Paths::Ecmp => return Ok(Vec::new()),
        Paths::Random => Choosing::Random(seed),
        Paths::Greedy => Choosing::Greedy,
        Paths::Placed if variant.steering => {
            let placement = Placement::with_groups_within(topology, &flows, &groups, Deadline::NONE)?;
            let ids = (0..flows.len() as u32).map(FlowId);
            let paths = ids.map(|id| placement.path(id).into_iter().chain(placement.backup(id)).collect()).collect();
            let trees = placement.groups().map(|(id, _)| placement.tree(id).to_vec()).collect();
            return Ok(in_order(paths, trees));
        }
        Paths::Placed => Choosing::Placed,
    };
    let (paths, trees) = choose_with_groups(topology, next_hops, &flows, &groups, how)?;
    Ok(in_order(paths.into_iter().map(|path| vec![path]).collect(), trees))
}

/// The outer headers of a channel with these paths (PP-4-3).
///
/// # Errors
///
/// A program that exceeds the headroom of a packet.
pub(super) fn headers(
    topology: &Topology,
    plan: &SidPlan,
    paths: &[Path],
    tenant: Option<u16>,
    steering: bool,
) -> Result<Headers, RunError> {
    let back: Vec<Path> = paths.iter().map(Path::reversed).collect();
    let outer = |paths: &[Path]| outer(topology, plan, paths, tenant, steering);
    Ok(Headers { forth: outer(paths)?, back: outer(&back)? })
}

fn outer(
    topology: &Topology,
    plan: &SidPlan,
    paths: &[Path],
    tenant: Option<u16>,
    steering: bool,
) -> Result<Outer, RunError> {
    let segments = |path: &Path| {
        let program = Program::encode(plan, topology, path, Encoding::Nodes, tenant)?;
        Ok::<Vec<Ipv6Addr>, RunError>([program.destination].into_iter().chain(program.segments).collect())
    };
    let Some(first) = paths.first().filter(|_| !steering) else {
        let path = |(rank, path): (u16, &Path)| Ok(headend_path(topology, path, segments(path)?, rank));
        return Ok(Outer::Steered((0..).zip(paths).map(path).collect::<Result<_, RunError>>()?));
    };
    let source = ADDRESSES.host(topology, first.from);
    Ok(Outer::Fixed(Encaps::new(source, &segments(first)?, EncapsMode::Reduced, HOP_LIMIT)?))
}

/// The program of a stream through a switch on one of its shortest paths.
///
/// # Errors
///
/// As for [`headers`].
pub(super) fn stream_header(
    scenario: &FabricScenario,
    plan: &SidPlan,
    next_hops: &NextHops,
    [from, via, to]: [NodeId; 3],
) -> Result<Option<Outer>, RunError> {
    let topology = &scenario.topology;
    let (NodeId::Host(from), NodeId::Host(to)) = (from, to) else { return Ok(None) };
    // Any seed will do: there are far fewer shortest paths than tries.
    let any = (0..ATTEMPTS).map(|seed| ecmp(topology, next_hops, [from, to], 0, seed));
    let links = any.map(|along| along.into_iter().map(|direction| direction.link).collect());
    let mut paths = links.map(|links| Path { from, to, links });
    let passes = |path: &Path| path.hops(topology).any(|(switch, _)| NodeId::Switch(switch) == via);
    paths.find(passes).map(|path| outer(topology, plan, &[path], None, false)).transpose()
}

/// SIDs of a switch at setup: its own uN and uA, and the uN of its neighbours. That is sufficient, because a program
/// names every switch on its path.
pub(super) fn commands(scenario: &FabricScenario, plan: &SidPlan, switch: SwitchId) -> Vec<Command> {
    let topology = &scenario.topology;
    let node = NodeId::Switch(switch);
    let sid =
        |address: Ipv6Addr, behavior| Prefix::new(address, SID_BITS).map(|prefix| Command::AddSid { prefix, behavior });
    let mut commands: Vec<Command> = sid(plan.node_sid(switch), SidBehavior::End(Flavors::MICRO)).into_iter().collect();
    let mut neighbours: BTreeMap<SwitchId, Vec<NextHop>> = BTreeMap::new();
    for port in topology.ports(node) {
        let address = match port.peer.node {
            NodeId::Host(host) => ADDRESSES.host(topology, host),
            NodeId::Switch(peer) => ADDRESSES.loopback(topology, peer),
        };
        let next_hop = NextHop { port: PortId(port.port), address };
        commands.extend(sid(plan.port_sid(port.port), SidBehavior::EndX(Flavors::MICRO, next_hop)));
        if let NodeId::Switch(peer) = port.peer.node {
            neighbours.entry(peer).or_default().push(next_hop);
        }
    }
    for (peer, next_hops) in neighbours {
        let action = RouteAction::Via(next_hops);
        let prefix = Prefix::new(plan.node_sid(peer), SID_BITS);
        commands.extend(prefix.map(|prefix| Command::AddRoute { table: TableId(0), prefix, action }));
    }
    commands.extend(tenants(scenario, plan, switch));
    commands
}

/// End.DT6 of the tenants with hosts at a switch, each with a table of these hosts (PP-7-2).
fn tenants(scenario: &FabricScenario, plan: &SidPlan, switch: SwitchId) -> Vec<Command> {
    let topology = &scenario.topology;
    let mut hosts: BTreeMap<u16, BTreeSet<HostId>> = BTreeMap::new();
    for (job, _) in &scenario.jobs {
        let here = job.nics.iter().filter(|nic| topology.attached_to(**nic).any(|at| at == switch));
        here.for_each(|nic| _ = job.tenant.map(|tenant| hosts.entry(tenant).or_default().insert(*nic)));
    }
    let mut commands = Vec::new();
    for (tenant, hosts) in hosts {
        let [first, second, ..] = plan.block().segments();
        let table = TableId(tenant + 1);
        let sid = tenant_id(tenant).map(|id| Ipv6Addr::new(first, second, id, 0, 0, 0, 0, 0));
        let prefix = sid.and_then(|sid| Prefix::new(sid, SID_BITS));
        commands.extend(prefix.map(|prefix| Command::AddSid { prefix, behavior: SidBehavior::EndDt6(table) }));
        for host in hosts {
            let ports = topology.ports(NodeId::Switch(switch)).iter();
            let ports = ports.filter(|port| port.peer.node == NodeId::Host(host));
            let address = ADDRESSES.host(topology, host);
            let action = RouteAction::Via(ports.map(|port| NextHop { port: PortId(port.port), address }).collect());
            commands.push(Command::AddRoute { table, prefix: Prefix::host(address), action });
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use crate::FabricScenario;
    use crate::run::Run;
    use std::path::Path;

    /// A job whose all-to-all has 240 flows, or one with four flows.
    fn scenario(kind: &str) -> FabricScenario {
        let text = format!(
            "kind = \"fabric\"\ntitle = \"tables\"\n\
             [topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n\
             [[workload.job]]\nname = \"train\"\nnics = [\"h1.*\", \"h2.*\", \"h3.*\", \"h4.*\"]\ntensor = 8\n\
             [[workload.job.collective]]\nkind = \"{kind}\"\noctets = 65_536\n[measure]\nduration_us = 1\n\
             [[variant]]\nname = \"placed\"\nsignal = \"none\"\ncontrol = \"none\"\npaths = \"placed\"\n"
        );
        FabricScenario::parse(Path::new("file.toml"), &text).unwrap()
    }

    /// State of each switch: prefixes, neighbours, SIDs with behaviours.
    fn tables(run: &Run<'_>) -> Vec<String> {
        let switches = run.scenario.topology.switch_ids().filter_map(|switch| run.fabric.switch(switch));
        let table = |node: &srdma_dataplane::Node| {
            let sids: Vec<_> = node.sids().map(|(prefix, behavior, _)| (prefix, behavior)).collect();
            format!("{} {} {sids:?}", node.prefix_count(), node.neighbour_count())
        };
        switches.map(table).collect()
    }

    /// PP-4-5: the state of switches is the same before, during and after flows, and for 240 flows as for 15. By hand,
    /// a leaf: its uN and 8 uA, the uN of 4 spines, 4 hosts, the default route; itself and 8 neighbours.
    #[test]
    fn switches_have_no_state_per_flow() {
        let mut found = Vec::new();
        for kind in ["all-to-all", "broadcast"] {
            let scenario = scenario(kind);
            let mut run = Run::new(&scenario, &scenario.variants[0], 1, 1).unwrap();
            let before = tables(&run);
            run.proceed(10_000_000, &mut |_| {}, None).unwrap();
            assert!(run.jobs.are_done());
            assert_eq!(before, tables(&run));
            found.push(before);
        }
        assert_eq!(found[0], found[1]);
        assert!(found[0][0].starts_with(&format!("{} 8 ", 9 + 4 + 4 + 1 + 9)), "{}", found[0][0]);
    }
}
