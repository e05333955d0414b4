//! The tables of `docs/sizing.md` are what the code computes.

use serde_json::Value;
use srdma_group::{EdgeList, NodeIndex, Overhead, Receiver, ReceiverRegion, srh_len_octets};
use srdma_wire::Qpn;
use std::net::Ipv6Addr;
use std::process::Command;

const DOCUMENT: &str = include_str!("../../../../docs/sizing.md");

/// The cells of the table whose heading begins like this, below the heading.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let table = DOCUMENT.lines().skip_while(|line| !line.starts_with(heading)).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = table.skip(2).map(|row| row.split('|').map(str::trim).collect()).collect();
    assert!(rows.len() >= 5, "no table {heading}");
    rows.into_iter().map(|row| row[1..row.len() - 1].to_vec()).collect()
}

fn number(cell: &str) -> Option<u64> {
    (cell != "–").then(|| cell.replace(',', "").parse().unwrap())
}

fn lists(receivers: u64, of_edge: u64, is_write: bool) -> Vec<EdgeList> {
    let receiver = Receiver {
        region: is_write.then_some(ReceiverRegion { base: 0, rkey: 0 }),
        ..Receiver::new(Ipv6Addr::LOCALHOST, Qpn::new(2).unwrap(), NodeIndex(0))
    };
    let edges = (0..receivers).step_by(of_edge as usize);
    let list = |first| EdgeList {
        edge: Ipv6Addr::LOCALHOST,
        receivers: vec![receiver.clone(); of_edge.min(receivers - first) as usize],
    };
    edges.map(list).collect()
}

#[test]
fn packets_have_the_documented_overhead() {
    let octets = |lists: &[EdgeList], is_write| {
        let srh_octets = srh_len_octets(lists, is_write, false)?;
        Some(Overhead { ipv6_octets: 40, srh_octets }.octets() as u64)
    };
    for row in rows("| receivers") {
        let receivers = number(row[0]).unwrap();
        let columns = [(1, false), (8, false), (1, true), (8, true)];
        let expected = columns.map(|(of_edge, is_write)| octets(&lists(receivers, of_edge, is_write), is_write));
        assert_eq!(row[1..].iter().map(|cell| number(cell)).collect::<Vec<_>>(), expected, "{receivers} receivers");
    }
    assert_eq!(octets(&[], false), Some(64));
}

fn headroom(arguments: &str) -> Value {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    srdma.args(["plan", "headroom", "--json", "--mtu", "4608"]).args(arguments.split(' '));
    serde_json::from_slice(&srdma.output().unwrap().stdout).unwrap()
}

#[test]
fn links_need_the_documented_headroom() {
    for row in rows("| rate") {
        for (distance, cell) in ["3m", "100m", "300m", "2km", "10km"].iter().zip(&row[1..]) {
            let answer = headroom(&format!("--rate {} --distance {distance}", row[0]));
            let documented = number(cell).expect("every cell has a number");
            assert_eq!(answer["pfc"]["headroom_octets"], documented, "{} {distance}", row[0]);
        }
    }
}

#[test]
fn wan_nodes_need_the_documented_buffers() {
    for row in rows("| distance") {
        let answer = headroom(&format!("--rate 100G --distance {} --overload 4", row[0]));
        let found = ["stop_octets", "restart_octets", "total_octets"].map(|key| answer["end_c"][key].as_u64());
        assert_eq!(found.to_vec(), row[1..].iter().map(|cell| number(cell)).collect::<Vec<_>>(), "{}", row[0]);
    }
}
