//! Placements change: flows come and go, links are drained and released, and few flows move.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{Encoding, HostId, LeafSpine, LinkId, NodeId, Path, Program, SidPlan, Speeds, Topology};
use srdma_placement::{Flow, FlowId, Loads, Placement, directions};

const RATE: u64 = 100_000_000_000;

fn figure1() -> Topology {
    Topology::from_toml(include_str!("../../../../fabrics/figure1.toml")).unwrap()
}

fn leaf_spine(leaves: u16, spines: u16, hosts_per_leaf: u16) -> Topology {
    LeafSpine { leaves, spines, hosts_per_leaf, speeds: Speeds::DEFAULT }.topology().unwrap()
}

fn flow(from: u32, to: u32, rate_bits_per_s: u64) -> Flow {
    Flow { from: HostId(from), to: HostId(to), rate_bits_per_s }
}

fn links_of(topology: &Topology, name: &str) -> Vec<LinkId> {
    topology.ports(topology.node(name).unwrap()).iter().map(|port| port.link).collect()
}

/// Recomputes all loads along the paths, and compares.
fn check(topology: &Topology, placement: &Placement<'_>, drained: &[LinkId]) {
    let mut loads = Loads::none(topology);
    for (id, flow) in placement.flows() {
        let path = placement.path(id).unwrap();
        let checked = Path::new(topology, flow.from, path.links.clone()).unwrap();
        assert_eq!(checked.to, flow.to);
        assert!(path.links.iter().all(|link| !drained.contains(link)));
        loads.add(topology, &directions(topology, &path), flow.rate_bits_per_s);
    }
    assert_eq!(&loads, placement.loads());
}

/// PP-5.2-1: GPU1 and GPU2 send to GPU3, and the paths are the draft's.
#[test]
fn the_drafts_flows_take_the_drafts_paths() {
    let topology = figure1();
    let plan = SidPlan::new(&topology, SidPlan::BLOCK).unwrap();
    let placement = Placement::new(&topology, &[flow(0, 2, RATE), flow(1, 2, RATE)]).unwrap();
    let destinations = [0, 1].map(|id| {
        let path = placement.path(FlowId(id)).unwrap();
        Program::encode(&plan, &topology, &path, Encoding::Nodes, None).unwrap().destination.to_string()
    });
    assert_eq!(destinations, ["5f00:0:100:500:300::", "5f00:0:200:600:400::"]);
    assert_eq!(placement.most_loaded().1, 1.0);
    assert!((placement.bound() - 1.0).abs() < 0.05, "{}", placement.bound());
}

/// The way around that the NIC has ready (section 5.3): it shares no switch with the path, where hosts are at two.
#[test]
fn a_backup_shares_as_few_links_as_possible() {
    let topology = figure1();
    let placement = Placement::new(&topology, &[flow(0, 2, RATE), flow(1, 2, RATE)]).unwrap();
    for id in [FlowId(0), FlowId(1)] {
        let (path, backup) = (placement.path(id).unwrap(), placement.backup(id).unwrap());
        assert_eq!((backup.from, backup.to), (path.from, path.to));
        let switches = |path: &Path| path.hops(&topology).map(|(switch, _)| switch).collect::<Vec<_>>();
        assert!(switches(&backup).iter().all(|switch| !switches(&path).contains(switch)));
    }
    let single = leaf_spine(2, 2, 2);
    let placement = Placement::new(&single, &[flow(0, 3, RATE), flow(0, 1, RATE)]).unwrap();
    let (path, backup) = (placement.path(FlowId(0)).unwrap(), placement.backup(FlowId(0)).unwrap());
    let shared = backup.links.iter().filter(|link| path.links.contains(link)).count();
    assert_eq!(shared, 2, "each host's only link");
    assert_eq!(placement.backup(FlowId(1)), None, "both hosts are at one leaf");
}

#[test]
fn drained_links_are_not_used_and_few_other_flows_move() {
    let topology = leaf_spine(8, 8, 8);
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut to: Vec<u32> = (0..64).collect();
    to.shuffle(&mut random);
    let pairs = (0..).zip(to).filter(|(from, to)| from != to);
    let flows: Vec<Flow> = pairs.map(|(from, to)| flow(from, to, RATE / 2)).collect();
    let mut placement = Placement::new(&topology, &flows).unwrap();
    assert_eq!(placement.most_loaded().1, 0.5);
    let spine = links_of(&topology, "spine3");
    let users: usize =
        spine.iter().map(|link| both(*link).map(|way| placement.users(way).len()).iter().sum::<usize>()).sum();
    let moved = placement.drain(&spine).unwrap();
    check(&topology, &placement, &spine);
    assert_eq!(placement.most_loaded().1, 1.0, "two flows on some links now");
    assert_eq!(moved.len(), users / 2, "each uses one link up and one down");
    placement.release(&spine);
    check(&topology, &placement, &[]);
    assert_eq!(placement.most_loaded().1, 0.5);
}

fn both(link: LinkId) -> [srdma_placement::Direction; 2] {
    [false, true].map(|is_backward| srdma_placement::Direction { link, is_backward })
}

/// Random changes on a Clos and on a fabric that is not one; no flow is lost, and loads equal the sums along the paths.
#[test]
fn loads_are_consistent_after_any_order_of_changes() {
    for topology in [leaf_spine(4, 3, 3), figure1()] {
        let mut random = Pcg64Mcg::seed_from_u64(2);
        let mut placement = Placement::new(&topology, &[]).unwrap();
        let mut drained: Vec<LinkId> = Vec::new();
        let mut live = Vec::new();
        let hosts = topology.hosts().len() as u32;
        for round in 0..400 {
            match random.random_range(0..4) {
                0 | 1 => {
                    let from = random.random_range(0..hosts);
                    let to = (from + random.random_range(1..hosts)) % hosts;
                    live.push(placement.add(flow(from, to, random.random_range(1..RATE))).unwrap().0);
                }
                2 if !live.is_empty() => {
                    let id = live.swap_remove(random.random_range(0..live.len()));
                    assert!(placement.remove(id) && !placement.remove(id));
                }
                _ => {
                    let link = LinkId(random.random_range(0..topology.links().len() as u32));
                    if drained.contains(&link) {
                        drained.retain(|other| *other != link);
                        placement.release(&[link]);
                    } else if placement.drain(&[link]).is_ok() {
                        drained.push(link);
                    }
                }
            }
            check(&topology, &placement, &drained);
            assert_eq!(placement.flows().count(), live.len());
            if round % 40 == 0 {
                assert!(placement.most_loaded().1 >= placement.bound() - 1e-6, "the bound is one");
            }
        }
    }
}

#[test]
fn refusals_name_the_host_and_change_nothing() {
    let topology = leaf_spine(2, 2, 2);
    let mut placement = Placement::new(&topology, &[flow(0, 3, RATE)]).unwrap();
    let before = placement.path(FlowId(0));
    let host = links_of(&topology, "h2.1");
    let error = placement.drain(&host).unwrap_err().to_string();
    assert_eq!(error, "h2.1 would be cut off: release a link first, or drain fewer");
    let spines = [links_of(&topology, "spine1"), links_of(&topology, "spine2")].concat();
    assert!(placement.drain(&spines).unwrap_err().to_string().contains("would be cut off"));
    assert_eq!(placement.path(FlowId(0)), before);
    check(&topology, &placement, &[]);
    let refused = |flow| Placement::new(&topology, &[flow]).unwrap_err().to_string();
    assert_eq!(refused(flow(1, 1, RATE)), "a flow goes from h1.2 to itself");
    assert_eq!(refused(flow(1, 9, RATE)), "a flow ends at host 9, but there are 4");
    assert_eq!(refused(flow(1, 2, 0)), "a flow of h1.2 has rate 0: expected 1 to 10000000000000");
    assert_eq!(
        refused(flow(1, 2, u64::MAX)),
        format!("a flow of h1.2 has rate {}: expected 1 to 10000000000000", u64::MAX)
    );
    let first = topology.node("h1.1").unwrap();
    assert_eq!(first, NodeId::Host(HostId(0)));
}
