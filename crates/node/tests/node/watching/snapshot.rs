//! A snapshot has the state of the node.

use super::example;
use srdma_node::daemon::{GroupSnapshot, Role, Snapshot, StallWatch};

#[test]
fn it_has_ports_with_their_interfaces() {
    let snapshot = example();
    let ports: Vec<_> = snapshot.ports.iter().map(|port| (port.name.as_str(), port.driver.as_deref())).collect();
    let native = Some("AF_XDP native");
    let expected =
        [("s1", native), ("n4", native), ("n5", native), ("core", None), ("circuit", native), ("storage", native)];
    assert_eq!(ports, expected);
    let vlan = snapshot.ports[5].vlan.as_ref().expect("a VLAN");
    assert_eq!((vlan.parent.as_str(), vlan.id), ("core", 100));
    let core = &snapshot.ports[3];
    assert_eq!((core.is_up, core.note.as_deref()), (false, Some("there is no interface core")));
    assert_eq!((core.mac.as_str(), core.link_mtu, core.statistics.received), ("02:00:00:06:00:04", 1500, 7));
}

#[test]
fn it_names_behaviours_as_the_configuration_does() {
    let snapshot = example();
    // In the order of their prefixes.
    let behaviors: Vec<&str> = snapshot.sids.iter().map(|sid| sid.behavior.as_str()).collect();
    let expected = [
        "End.X",
        "END.C",
        "END.E",
        "End",
        "End.B6.Encaps",
        "End.DX2",
        "End.DT4",
        "End.DT6",
        "End.DX6",
        "End.DX4",
        "End.MT",
        "End.Replicate",
        "End.DT46",
        "uN",
        "uA",
    ];
    assert_eq!(behaviors, expected);
}

#[test]
fn it_has_groups_with_role_parent_and_expected_psns() {
    let snapshot = example();
    let group = |group: &GroupSnapshot| (group.id, group.role, group.parent.to_string(), group.is_root);
    let groups: Vec<_> = snapshot.groups.iter().map(group).collect();
    let expected = [
        (1, Role::Headend, "2001:db8:aa::1".to_owned(), true),
        (2, Role::Edge, "2001:db8:ff:5::1".to_owned(), false),
        (3, Role::Transit, "2001:db8:ff:9::1".to_owned(), false),
    ];
    assert_eq!(groups, expected);
    let branch = snapshot.groups[0].branches[2];
    assert_eq!((branch.address.to_string(), branch.expected_psn), ("2001:db8:ff:7::1".to_owned(), Some(0x1000)));
    assert_eq!(branch.lag, None);
    assert_eq!((snapshot.neighbours, snapshot.configuration.generation), (5, 2));
}

#[test]
fn it_survives_json() {
    let snapshot = example();
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
}

#[test]
fn stalls_are_counted_per_branch_and_forgotten_with_it() {
    let mut watch = StallWatch::default();
    let mut observe = |at_ns: u64, lags: bool, keep: usize| {
        let mut snapshot = example();
        snapshot.uptime_ns = at_ns;
        snapshot.groups.truncate(keep);
        for group in &mut snapshot.groups {
            group.branches[0].lag = lags.then_some(3);
        }
        watch.observe(&mut snapshot);
        snapshot.groups.iter().map(|group| group.branches[0].stalls).collect::<Vec<_>>()
    };
    assert_eq!(observe(0, true, 3), [0, 0, 0]);
    assert_eq!(observe(1_000_000_000, true, 3), [1, 1, 1]);
    assert_eq!(observe(1_500_000_000, false, 1), [1]);
    assert_eq!(observe(2_000_000_000, true, 3), [1, 0, 0]);
}

/// D84: the paths to each destination, with their presumed states.
#[test]
fn it_has_the_paths_of_destinations() {
    let steering = example().steering.expect("the example has paths");
    let [destination, by_template] = steering.destinations.as_slice() else { panic!("{:?}", steering.destinations) };
    assert_eq!(destination.prefixes, ["2001:db8:ee::/48"]);
    let paths: Vec<_> = destination.paths.iter().map(|path| (path.rank, path.state.as_str(), path.is_probed)).collect();
    assert_eq!(paths, [(0, "unknown", true), (1, "unknown", true), (2, "denied", false)]);
    assert_eq!(destination.paths[0].destination, "5f00:0:100:500:300::");
    let values: Vec<_> = destination.paths.iter().map(|path| path.entropy).collect();
    assert_eq!(values, [None, None, Some(2)]);
    let values: Vec<_> = by_template.paths.iter().map(|path| (path.entropy, path.state.as_str())).collect();
    assert_eq!(values, [(Some(0), "unknown"), (Some(1), "unknown"), (Some(2), "denied"), (Some(3), "unknown")]);
    assert_eq!((steering.flows.len(), steering.moves["return"], steering.signals["fast_cnp"]), (0, 0, 0));
}
