//! The journal of an observed node: its entries for the rules, and that it does not change the node's behaviour.

use crate::common::Bench;
use crate::common::group::{self, HEADEND as ROOT, PROXY, SOURCE, address};
use crate::common::next_hop;
use srdma_aggregation::Rule;
use srdma_dataplane::{Command, GroupEvent, HoldEnd, RouteAction, TableId};
use srdma_frame::Element;
use srdma_group::*;
use srdma_testkit::checksums;
use srdma_wire::{Prefix, Psn, Qpn};
use std::time::Duration;

const DESIGNATED: u32 = 0xABCD;
const N4: &str = "2001:db8:4::1";
const N5: &str = "2001:db8:5::1";

/// The root's entry of a group with children N4 and N5 at ports 1 and 2; the source is at port 0.
fn entry() -> GroupEntry {
    let source = Source { address: address(SOURCE), qpn: Qpn::new(0x77).unwrap() };
    GroupEntry {
        id: GroupId(7),
        epoch: 3,
        renewed: 0,
        proxy: address(PROXY),
        designated_qpn: Qpn::new(DESIGNATED).unwrap(),
        initial_psn: Psn::new(10),
        role: NodeRole::Transit,
        sid: address("5f00:0:6:e000::"),
        parent: Parent::Source(source),
        branches: [N4, N5].map(|child| Branch::new(address(child))).to_vec(),
        downstream: ["5f00:0:4:e000::", "5f00:0:5:e000::"].map(|sid| Downstream::Sid(address(sid))).to_vec(),
        receivers: Vec::new(),
        region: None,
        headend: Some(HeadendEntry { source, lists: Vec::new(), with_regions: false, link_mtu: 1500 }),
        repair: None,
        policy: Policy::default(),
        more_regions: Vec::new(),
    }
}

fn root() -> Bench {
    let mut bench = Bench::new(ROOT, 3);
    let routes = [(SOURCE, 128, 0), ("2001:db8:4::", 48, 1), ("2001:db8:5::", 48, 2), ("5f00:0:4::", 48, 1)];
    for (prefix, len, port) in routes.into_iter().chain([("5f00:0:5::", 48, 2)]) {
        let prefix = Prefix::new(address(prefix), len).unwrap();
        let action = RouteAction::Via(vec![next_hop(port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    bench.apply(Command::AddGroup(Box::new(entry())));
    bench
}

/// A RoCEv2 packet to the group: BTH, the rest, and a valid ICRC.
fn packet(source: &str, opcode: u8, psn: u32, rest: &[u8]) -> Vec<u8> {
    let udp_len = (8 + 12 + rest.len() + 4) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(udp_len.to_be_bytes());
    packet.extend([17, 64]);
    packet.extend(address(source).octets());
    packet.extend(address(PROXY).octets());
    packet.extend([0xC0, 0x01, 0x12, 0xB7]);
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0, opcode, 0, 0xFF, 0xFF, 0]);
    packet.extend(&DESIGNATED.to_be_bytes()[1..]);
    packet.push(0x80);
    packet.extend(&psn.to_be_bytes()[1..]);
    packet.extend(rest);
    let icrc = checksums::icrc(&packet);
    packet.extend(icrc);
    packet
}

fn data(psn: u32) -> Vec<u8> {
    packet(SOURCE, 0x04, psn, &[1; 64])
}

fn response(child: &str, psn: u32, syndrome: u8) -> Vec<u8> {
    packet(child, 0x11, psn, &[syndrome, 0, 0, 5])
}

const ACK: u8 = 0x1F;
const NAK: u8 = 0x60;

/// Data, an ACK, a held NAK whose hold ends, progress, the source going back, an unknown sender and an inflated ACK.
fn run(bench: &mut Bench) -> Vec<(u16, Vec<u8>)> {
    let mut sent = Vec::new();
    (10..14).for_each(|psn| sent.extend(bench.send(0, &data(psn))));
    sent.extend(bench.send(1, &response(N4, 12, NAK)));
    bench.now += Policy::default().t_hold;
    bench.node.tick(bench.now, &mut bench.pool);
    sent.extend(bench.drain());
    bench.now += Duration::from_micros(5);
    sent.extend(bench.send(2, &response(N5, 13, ACK)));
    sent.extend(bench.send(0, &data(11)));
    sent.extend(bench.send(1, &response("2001:db8:4::9", 13, ACK)));
    sent.extend(bench.send(2, &response(N5, 0x40_0000, ACK)));
    sent
}

fn short(event: &GroupEvent) -> String {
    match event {
        GroupEvent::Began { unknown, epoch } => format!("began, {unknown} unknown, epoch {epoch}"),
        GroupEvent::Committed { epoch } => format!("epoch {epoch}"),
        GroupEvent::Learnt { receivers, unknown } => format!("learnt {receivers}, {unknown} unknown"),
        GroupEvent::Left => "left".to_owned(),
        GroupEvent::Data { psn, backward, .. } => {
            format!("data {}{}", psn.get(), if *backward { ", back" } else { "" })
        }
        GroupEvent::Accepted { branch, response, before, after } => {
            let number = |psn: &Option<Psn>| psn.map_or("?".to_owned(), |psn| psn.get().to_string());
            format!("{branch} {:?} {}: {} -> {}", response.syndrome, response.psn.get(), number(before), number(after))
        }
        GroupEvent::Refused { branch, refusal, .. } => format!("{branch} refused: {refusal}"),
        GroupEvent::Dropped { responder, reason } => format!("{responder} dropped: {}", reason.name()),
        GroupEvent::HoldBegan { branch, psn } => format!("{branch} held at {}", psn.get()),
        GroupEvent::HoldEnded { branch, psn, end, .. } => format!("{branch} no longer held at {}: {end:?}", psn.get()),
        GroupEvent::Upstream { response, caused_by, holder } => {
            let name = |branch: &Option<std::net::Ipv6Addr>| branch.map_or("-".to_owned(), |branch| branch.to_string());
            let (response, rule) = (response.response, response.rule);
            let (caused_by, holder) = (name(caused_by), name(holder));
            format!(
                "sends {:?} {} by {rule}, caused by {caused_by}, {holder} holds the minimum",
                response.syndrome,
                response.psn.get()
            )
        }
        GroupEvent::Cnp { branch, count, counts } => format!("{branch} CNP {count} {counts}"),
        GroupEvent::CnpUp { branch, count } => format!("CNP up {branch:?} {count}"),
        GroupEvent::NakAnswered { branch, psn } => format!("{branch} answered at {}", psn.get()),
        GroupEvent::RequestReceived { branch, psn, count } => format!("{branch} requests {} x {count}", psn.get()),
        GroupEvent::RequestSent { psn, count } => format!("request {} x {count}", psn.get()),
        GroupEvent::SentAgain { branch, psn } => format!("{branch} sent {} again", psn.get()),
        GroupEvent::GapGivenUp { psn } => format!("gap {} given up", psn.get()),
    }
}

/// Each rule that sends, each hold, each refusal, in the order in which it happened (R1-R5).
#[test]
fn events_are_in_the_journal() {
    let mut bench = root();
    bench.node.observe(true);
    run(&mut bench);
    let (entries, lost) = bench.node.take_journal();
    assert_eq!(lost, 0);
    assert!(entries.iter().all(|entry| entry.group == GroupId(7)));
    assert!(entries.is_sorted_by_key(|entry| entry.time));
    let lines: Vec<String> = entries.iter().map(|entry| short(&entry.event)).collect();
    insta::assert_snapshot!(lines.join("\n"));
    let forwarded = entries
        .iter()
        .filter(|entry| matches!(entry.event, GroupEvent::HoldEnded { end: HoldEnd::Forwarded, .. }))
        .count();
    assert_eq!(forwarded, 1);
    let rules = entries.iter().filter_map(|entry| match entry.event {
        GroupEvent::Upstream { response, .. } => Some(response.rule),
        _ => None,
    });
    assert_eq!(rules.collect::<Vec<_>>(), [Rule::R5, Rule::R3, Rule::R3, Rule::R2]);
    assert_eq!(bench.node.take_journal(), (Vec::new(), 0), "each entry is fetched once");
}

/// A node behaves the same whether it is observed or not; one that is not observed writes no entries.
#[test]
fn the_journal_changes_no_result() {
    let (mut observed, mut alone) = (root(), root());
    observed.node.observe(true);
    assert_eq!(run(&mut observed), run(&mut alone));
    assert_eq!(observed.node.group_counters(GroupId(7)), alone.node.group_counters(GroupId(7)));
    assert_eq!(alone.node.take_journal(), (Vec::new(), 0));
    observed.node.observe(false);
    run(&mut observed);
    assert_eq!(observed.node.take_journal(), (Vec::new(), 0));
}

/// The journal has epochs, across which holds continue, and the end of a group (D31).
#[test]
fn membership_is_in_the_journal() {
    let mut bench = root();
    bench.node.observe(true);
    bench.apply(Command::AddGroup(Box::new(GroupEntry { epoch: 4, ..entry() })));
    bench.apply(Command::RemoveGroup(GroupId(7)));
    let lines: Vec<String> = bench.node.take_journal().0.iter().map(|entry| short(&entry.event)).collect();
    assert_eq!(lines, ["began, 0 unknown, epoch 3", "epoch 4", "left"]);
}

/// D152, D153: a NAK of a plain child and a request of a child that repairs are answered, and the source is told
/// nothing.
#[test]
fn repair_of_branches_is_recorded() {
    let mut bench = root();
    let mut entry = GroupEntry { epoch: 4, ..entry() };
    entry.policy.repair.mode = RepairMode::Tree;
    let children = vec![false, true];
    entry.repair = Some(RepairEntry { window_packets: 16, parent_repairs: false, children, levels: 2 });
    bench.apply(Command::RemoveGroup(GroupId(7)));
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench.node.observe(true);
    (10..14).for_each(|psn| assert_eq!(bench.keep(0, &data(psn)), 2));
    bench.node.take_journal();
    assert_eq!(bench.keep(1, &response(N4, 12, NAK)), 2, "12 and 13 again");
    assert_eq!(bench.keep(2, &packet(N5, 0x11, 11, &[0x70, 0, 0, 2])), 2, "11 and 12 again");
    let events: Vec<String> = bench.node.take_journal().0.iter().map(|entry| short(&entry.event)).collect();
    insta::assert_snapshot!(events.join("\n"));
}

/// D153, D158: what an edge lacks is requested from its parent, and given up when nothing comes.
#[test]
fn requests_and_gaps_that_are_given_up_are_recorded() {
    let mut bench = group::edge(false);
    bench.route("2001:db8:6::1", 0);
    let mut entry = group::entry(&[group::receiver(1, 0x101, None)], None);
    entry.policy.repair.mode = RepairMode::Edge;
    entry.repair = Some(RepairEntry { window_packets: 16, parent_repairs: true, children: Vec::new(), levels: 1 });
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench.node.observe(true);
    bench.node.take_journal();
    let data = |psn: u8| {
        let mut data = group::inner(0x04, 0, &[1; 64], false);
        data[40 + 8 + 11] = psn;
        group::encapsulated(&data)
    };
    assert_eq!(bench.keep(0, &data(100)), 1);
    assert_eq!(bench.keep(0, &data(103)), 1, "the request");
    for _ in 0..20 {
        let Some(due) = bench.node.next_deadline() else { break };
        bench.now = due;
        bench.node.tick(due, &mut bench.pool);
        bench.leaving();
    }
    let events: Vec<String> = bench.node.take_journal().0.iter().map(|entry| short(&entry.event)).collect();
    let of_gap = |event: &&String| event.starts_with("request") || event.starts_with("gap");
    let of_gap: Vec<&String> = events.iter().filter(of_gap).collect();
    assert_eq!(of_gap, [&["request 101 x 2"; 4][..], &["gap 101 given up"]].concat());
}
