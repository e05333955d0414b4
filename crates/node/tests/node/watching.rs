//! Output of a running node: snapshot, metrics, status.

mod dashboard;
mod metrics;
mod snapshot;
mod status;

use srdma_io::{DriverKind, DriverStatistics};
use srdma_node::Configuration;
use srdma_node::daemon::{
    ConfigurationSnapshot, DaemonState, IsisCircuitSnapshot, IsisSnapshot, IsisState, OspfCircuitSnapshot,
    OspfSnapshot, PortState, Reload, Snapshot,
};
use std::collections::BTreeMap;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../docs/configuration.md");

/// The snapshot of a node that has the example of `docs/configuration.md` and has done nothing yet.
fn example() -> Snapshot {
    let (_, text) = DOCUMENT.split_once("```toml\n").expect("the document has an example");
    let text = text.split("```").next().expect("the example ends");
    let configuration = Configuration::parse(Path::new("n6.toml"), text).expect("the example is right");
    let ports = configuration.interfaces.iter().map(|interface| PortState {
        interface: interface.name.clone(),
        driver: (interface.name != "core").then_some(DriverKind::XdpNative),
        note: (interface.name == "core").then(|| "there is no interface core".to_owned()),
        is_up: interface.name != "core",
        statistics: DriverStatistics { received: 7, too_long: 1, ..DriverStatistics::default() },
    });
    let daemon = DaemonState {
        name: configuration.daemon.name.clone(),
        started_unix_s: 1_800_000_000,
        uptime_ns: 90_000_000_000,
        ports: ports.collect(),
        controller: None,
        configuration: ConfigurationSnapshot {
            generation: 2,
            last_reload: Some(Reload { unix_s: 1_800_000_060, error: Some("n6.toml:3: unknown key".to_owned()) }),
        },
        dropped_log_lines: 5,
    };
    let node = configuration.node().expect("the example is right");
    Snapshot { isis: Some(isis()), ospf: Some(ospf()), ..Snapshot::of(&node, &daemon) }
}

/// OSPFv3 with a neighbour.
fn ospf() -> OspfSnapshot {
    let circuit = OspfCircuitSnapshot {
        port: "core".to_owned(),
        metric: 10,
        is_open: true,
        state: "full".to_owned(),
        neighbour: Some("10.0.0.7".to_owned()),
        hostname: Some("n7".to_owned()),
        address: Some("fe80::7".parse().unwrap()),
        dead_s: Some(39),
        unacknowledged: 0,
    };
    OspfSnapshot {
        router: "10.0.0.6".to_owned(),
        hostname: "n6".to_owned(),
        circuits: vec![circuit],
        counters: BTreeMap::from([("received".to_owned(), 3)]),
        drops: BTreeMap::from([("checksum".to_owned(), 2)]),
        ..OspfSnapshot::default()
    }
}

/// IS-IS with a neighbour and a node that handles notifications.
fn isis() -> IsisSnapshot {
    let circuit = IsisCircuitSnapshot {
        kind: "point-to-point".to_owned(),
        level: 2,
        designated: None,
        is_in_topology: true,
        port: "core".to_owned(),
        metric: 10,
        is_open: true,
        state: IsisState::Up,
        neighbour: Some("0000.0000.0007".to_owned()),
        hostname: Some("n7".to_owned()),
        addresses: vec!["fe80::7".parse().unwrap()],
        holds_s: Some(29),
    };
    IsisSnapshot {
        system: "0000.0000.0006".to_owned(),
        hostname: "n6".to_owned(),
        area: "49.0001".to_owned(),
        levels: vec![2],
        authentication: "hmac-sha256".to_owned(),
        overload: Some("starting".to_owned()),
        circuits: vec![circuit],
        counters: BTreeMap::from([("received".to_owned(), 3)]),
        drops: BTreeMap::from([("not_authentic".to_owned(), 2)]),
        ..IsisSnapshot::default()
    }
}
