//! Flows come back with the paths that they had, and a placement explains itself.

use srdma_fabric::{HostId, LinkId, NodeId, Path, Topology};
use srdma_placement::{Flow, FlowId, Placement};

const RATE: u64 = 100_000_000_000;

fn topologies() -> Vec<Topology> {
    let files = [
        include_str!("../../../../fabrics/figure1.toml"),
        include_str!("../../../../fabrics/dual-plane.toml"),
        include_str!("../../../../fabrics/data-centres.toml"),
        "kind = \"fat-tree\"\nk = 4\n",
    ];
    files.iter().map(|text| Topology::from_toml(text).unwrap()).collect()
}

fn flows(topology: &Topology, several: u32) -> Vec<Flow> {
    let hosts = topology.hosts().len() as u32;
    let pairs = (1..=several).flat_map(|step| (0..hosts).map(move |from| (from, (from + step) % hosts)));
    let pairs = pairs.filter(|(from, to)| from != to);
    pairs.map(|(from, to)| Flow { from: HostId(from), to: HostId(to), rate_bits_per_s: RATE / 10 }).collect()
}

fn paths(placement: &Placement<'_>) -> Vec<(Flow, Path)> {
    placement.flows().map(|(id, flow)| (*flow, placement.path(id).unwrap())).collect()
}

#[test]
fn restored_paths_are_equal_and_change_alike() {
    for topology in topologies() {
        let placed = Placement::new(&topology, &flows(&topology, 3)).unwrap();
        let kept = paths(&placed);
        let (mut again, moved) = Placement::with_paths(&topology, &kept, &[]).unwrap();
        assert!(moved.is_empty());
        assert_eq!((paths(&again), again.loads()), (kept, placed.loads()));
        // The same change moves the same flows: choices were found again as well.
        let mut first = placed.clone();
        let last = topology.switches().len() - 1;
        let links = topology.links_named(&topology.switches()[last].name).unwrap();
        let outcome = first.drain(&links).map_err(|error| error.to_string());
        assert_eq!(outcome, again.drain(&links).map_err(|error| error.to_string()));
        assert_eq!(paths(&first), paths(&again));
        if outcome.is_ok() {
            let (third, _) = Placement::with_paths(&topology, &paths(&again), &links).unwrap();
            assert!(links.iter().all(|link| third.is_drained(*link)));
            let (quick, sharp) = (third.bound_within(0), third.bound_within(usize::MAX));
            // Sums in another order differ in their last digits.
            let most_loaded = third.most_loaded().1 + 1e-9;
            assert!(0.0 < quick && quick <= sharp && sharp <= most_loaded, "{quick}, {sharp}, {most_loaded}");
        }
    }
}

#[test]
fn impossible_paths_are_refused() {
    let topology = &topologies()[0];
    let placed = Placement::new(topology, &flows(topology, 1)).unwrap();
    let kept = paths(&placed);
    let refused = |kept: &[(Flow, Path)], drained: &[LinkId]| {
        Placement::with_paths(topology, kept, drained).unwrap_err().to_string()
    };
    let used = kept[0].1.links[1];
    let name = topology.link_name(used);
    assert_eq!(refused(&kept, &[used]), format!("the flow from nic1 to nic2 goes over {name}, which is drained"));
    let mut torn = kept.clone();
    torn[0].1.links.remove(1);
    assert!(refused(&torn, &[]).starts_with("the flow from nic1 to nic2 has no path:"), "{}", refused(&torn, &[]));
    let mut elsewhere = kept.clone();
    elsewhere[0].1 = kept[1].1.clone();
    assert!(refused(&elsewhere, &[]).contains("does not begin at nic1"));
}

#[test]
fn flows_on_links_that_have_failed_since_then_move() {
    let topology = Topology::from_toml("kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n").unwrap();
    let placed = Placement::new(&topology, &flows(&topology, 2)).unwrap();
    let kept = paths(&placed);
    let spine = topology.links_named("spine1").unwrap();
    let users = kept.iter().filter(|(_, path)| path.links.iter().any(|link| spine.contains(link))).count();
    let failed = topology.clone().without(&spine).unwrap();
    let (after, moved) = Placement::with_paths(&failed, &kept, &[]).unwrap();
    assert_eq!(moved.len(), users);
    assert!(paths(&after).iter().all(|(_, path)| path.links.iter().all(|link| !spine.contains(link))));
}

/// Two flows of the draft's figure: each alternative is another path, with the load that it would have.
#[test]
fn alternatives_have_the_load_that_they_would_get() {
    let topology = &topologies()[0];
    let flow = |from: u32| Flow { from: HostId(from), to: HostId(2), rate_bits_per_s: RATE };
    let placement = Placement::new(topology, &[flow(0), flow(1)]).unwrap();
    let alternatives = placement.alternatives(FlowId(0));
    // Two leaves at either end and two spines: four ways whose leaves have the same place, one of which it has.
    let expected: [(&[&str], f64); 3] = [
        (&["leaf1", "spine6", "leaf3"], 1.0),
        (&["leaf2", "spine5", "leaf4"], 2.0),
        (&["leaf2", "spine6", "leaf4"], 2.0),
    ];
    let found: Vec<(Vec<&str>, f64)> = alternatives
        .iter()
        .map(|own| {
            let hops = own.path.hops(topology).map(|(switch, _)| topology.name(NodeId::Switch(switch)));
            (hops.collect(), own.load)
        })
        .collect();
    assert_eq!(found.iter().map(|(hops, load)| (&hops[..], *load)).collect::<Vec<_>>(), expected);
    let binding = placement.binding().unwrap();
    assert_eq!((topology.name(binding.around), binding.is_outgoing), ("nic1", true));
    assert!(placement.alternatives(FlowId(7)).is_empty());
}
