//! Groups as text.

use srdma_api::{
    BranchView, Group, GroupState, GroupSummary, Receiver, ReceiverState, SourceState, TreeNodeView, TreeView,
};
use std::fmt::Write;
use std::net::Ipv6Addr;

/// Whether the source may send, or is paused for a change.
pub(super) fn may_send(group: &GroupSummary) -> bool {
    matches!(group.state, GroupState::Ready | GroupState::Changing)
}

pub(super) fn state(state: GroupState) -> &'static str {
    match state {
        GroupState::Open => "open",
        GroupState::Creating => "creating",
        GroupState::Ready => "ready",
        GroupState::Changing => "changing",
        GroupState::Verifying => "verifying",
        GroupState::Stopped => "stopped",
        GroupState::Closing => "closing",
        GroupState::Closed => "closed",
    }
}

/// A group in a line.
pub(super) fn summary(group: &GroupSummary) -> String {
    let GroupSummary { id, name, tenant, proxy, receivers, epoch, .. } = group;
    let proxy = proxy.to_canonical();
    let name = if name.is_empty() { String::new() } else { format!(" {name}") };
    let state = state(group.state);
    let plural = if *receivers == 1 { "" } else { "s" };
    format!("group {id}{name} of {tenant}: {state}, epoch {epoch}, {receivers} receiver{plural}, Proxy Address {proxy}")
}

/// A receiver in a line.
pub(super) fn receiver(receiver: &Receiver) -> String {
    let state = match receiver.state {
        ReceiverState::Joining => "joining",
        ReceiverState::Unverified => "unverified",
        ReceiverState::Member => "a member",
        ReceiverState::Leaving => "leaving",
    };
    let joined = receiver.joined_psn.map(|psn| format!(", from PSN {psn} on")).unwrap_or_default();
    format!("receiver {}, queue pair {:#x}, is {state}{joined}", receiver.address.to_canonical(), receiver.qpn)
}

/// A group with its tree.
pub(super) fn group(group: &Group) -> String {
    let mut lines = vec![summary(&group.summary)];
    let psn = group.initial_psn;
    lines.push(format!("Designated QPN {:#x}, first PSN {psn}, path MTU {}", group.designated_qpn, group.path_mtu));
    let source_state = match group.source_state {
        SourceState::Idle => "has never reported",
        SourceState::Sending => "may send",
        SourceState::Ended => "has ended",
    };
    let source = group.source.address.to_canonical();
    lines.push(format!("source {source}, queue pair {:#x}, {source_state}", group.source.qpn));
    let not_in_tree = |member: &&Receiver| group.tree.is_none() || member.state != ReceiverState::Member;
    lines.extend(group.members.iter().filter(not_in_tree).map(receiver));
    if let Some(tree) = &group.tree {
        lines.push(String::new());
        lines.extend(drawn(tree, &group.members));
        lines.push(String::new());
        let overhead = &tree.overhead;
        let how = if overhead.lists_in_packets { "lists in TLVs" } else { "provisioned lists" };
        lines.push(format!(
            "{} links carry a copy of each packet, {} would by unicast; {how}, {} octets more on each packet, the \
             longest {} of {}",
            tree.links, tree.links_of_unicast, overhead.octets, overhead.longest_packet_octets, overhead.link_mtu
        ));
        lines.extend(tree.explanation.iter().cloned());
    }
    lines.extend(group.resumes.map(|former| format!("resumes group {former}")));
    if !group.awaited.is_empty() {
        lines.push(format!("waits for {}", group.awaited.join(", ")));
    }
    lines.extend(group.failure.iter().map(|failure| format!("the last change was aborted: {failure}")));
    lines.extend(group.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.join("\n") + "\n"
}

/// The tree as lines, the headend first.
fn drawn(tree: &TreeView, members: &[Receiver]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(root) = tree.nodes.iter().find(|node| node.parent.is_none()) {
        lines.push(format!("{} {}, headend", root.name, root.loopback));
        below(tree, members, root, "", &mut lines);
    }
    lines
}

/// The branches below a node, indented by one more; a tree with a cycle ends with its nodes.
fn below(tree: &TreeView, members: &[Receiver], node: &TreeNodeView, indent: &str, lines: &mut Vec<String>) {
    let children: Vec<&TreeNodeView> =
        tree.nodes.iter().filter(|child| child.parent.as_ref() == Some(&node.name)).collect();
    let receivers: Vec<&BranchView> =
        node.branches.iter().filter(|branch| !children.iter().any(|child| child.loopback == branch.address)).collect();
    let count = children.len() + receivers.len();
    if indent.len() > tree.nodes.len() * "│  ".len() {
        return;
    }
    let mark = |index: usize| if index + 1 == count { "└─ " } else { "├─ " };
    let more = |index: usize| if index + 1 == count { "   " } else { "│  " };
    for (index, child) in children.iter().enumerate() {
        let branch = node.branches.iter().find(|branch| branch.address == child.loopback);
        let state = branch.map(branch_state).unwrap_or_default();
        lines.push(format!("{indent}{}{} {}, {}{state}", mark(index), child.name, child.loopback, child.role));
        below(tree, members, child, &format!("{indent}{}", more(index)), lines);
    }
    for (index, branch) in receivers.iter().enumerate() {
        let index = children.len() + index;
        let joined = joined(members, branch.address);
        let address = branch.address.to_canonical();
        lines.push(format!("{indent}{}receiver {address}{joined}{}", mark(index), branch_state(branch)));
    }
}

fn joined(members: &[Receiver], address: Ipv6Addr) -> String {
    let psn = members.iter().find(|member| member.address == address).and_then(|member| member.joined_psn);
    psn.map(|psn| format!(", from PSN {psn} on")).unwrap_or_default()
}

/// The state of a branch, as its node reports it.
fn branch_state(branch: &BranchView) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if let Some(psn) = branch.expected_psn {
        let _ = write!(text, ", expects PSN {psn}");
    }
    if let Some(lag) = branch.lag {
        let _ = write!(text, ", lag {lag}");
    }
    if branch.cnps > 0 {
        let _ = write!(text, ", {} CNPs", branch.cnps);
    }
    if let Some(resent) = branch.packets_resent.filter(|resent| *resent > 0) {
        let now = if branch.is_repairing { ", repairing" } else { "" };
        let _ = write!(text, ", {resent} packets sent again{now}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_api::{OverheadView, SourceAddress};

    fn node(name: &str, number: u16, parent: Option<&str>, role: &str, branches: &[(&str, u32)]) -> TreeNodeView {
        TreeNodeView {
            name: name.to_owned(),
            loopback: format!("2001:db8:ff:{number}::1").parse().unwrap(),
            sid: Ipv6Addr::UNSPECIFIED,
            role: role.to_owned(),
            parent: parent.map(str::to_owned),
            branches: branches
                .iter()
                .map(|(address, lag)| BranchView {
                    address: address.parse().unwrap(),
                    expected_psn: Some(100 - lag),
                    lag: Some(*lag),
                    cnps: u64::from(*lag),
                    packets_resent: (*lag > 5).then_some(12),
                    is_repairing: *lag > 6,
                })
                .collect(),
        }
    }

    #[test]
    fn a_group_is_drawn_as_its_tree() {
        let receiver = |number: u32, state, joined_psn| Receiver {
            address: format!("2001:db8:bb::{number}").parse().unwrap(),
            qpn: 0x1000 + number,
            region: None,
            host: None,
            state,
            joined_psn,
            reserved_psn: None,
            awaits_ready: false,
            psn_offset: 0,
            more_regions: Vec::new(),
        };
        let found = Group {
            summary: GroupSummary {
                id: 7,
                name: "weights".to_owned(),
                tenant: "default".to_owned(),
                state: GroupState::Changing,
                proxy: "2001:db8:cc::1".parse().unwrap(),
                receivers: 3,
                epoch: 4,
                version: 9,
            },
            source: SourceAddress { address: "2001:db8:aa::1".parse().unwrap(), qpn: 0x100 },
            source_state: SourceState::Sending,
            source_is_silent: false,
            service: None,
            designated_qpn: 0xd0_0000,
            initial_psn: 0,
            path_mtu: 4096,
            region: None,
            policy: srdma_group::Policy::default(),
            members: vec![
                receiver(1, ReceiverState::Member, None),
                receiver(2, ReceiverState::Member, Some(40)),
                receiver(3, ReceiverState::Joining, None),
            ],
            tree: Some(TreeView {
                nodes: vec![
                    node("N6", 6, None, "headend", &[("2001:db8:ff:4::1", 3)]),
                    node("N4", 4, Some("N6"), "transit", &[("2001:db8:ff:1::1", 3), ("2001:db8:ff:2::1", 0)]),
                    node("N1", 1, Some("N4"), "edge", &[("2001:db8:bb::1", 3)]),
                    node("N2", 2, Some("N4"), "edge", &[("2001:db8:bb::2", 0)]),
                ],
                links: 3,
                links_of_unicast: 4,
                explanation: vec!["by shortest paths".to_owned()],
                overhead: OverheadView {
                    lists_in_packets: false,
                    octets: 40,
                    octets_with_lists: None,
                    octets_provisioned: 40,
                    longest_packet_octets: 4224,
                    link_mtu: 9000,
                },
            }),
            awaited: vec!["N2".to_owned()],
            failure: None,
            resumes: None,
            warnings: Vec::new(),
            more_regions: Vec::new(),
        };
        let expected = "\
group 7 weights of default: changing, epoch 4, 3 receivers, Proxy Address 2001:db8:cc::1
Designated QPN 0xd00000, first PSN 0, path MTU 4096
source 2001:db8:aa::1, queue pair 0x100, may send
receiver 2001:db8:bb::3, queue pair 0x1003, is joining

N6 2001:db8:ff:6::1, headend
└─ N4 2001:db8:ff:4::1, transit, expects PSN 97, lag 3, 3 CNPs
   ├─ N1 2001:db8:ff:1::1, edge, expects PSN 97, lag 3, 3 CNPs
   │  └─ receiver 2001:db8:bb::1, expects PSN 97, lag 3, 3 CNPs
   └─ N2 2001:db8:ff:2::1, edge, expects PSN 100, lag 0
      └─ receiver 2001:db8:bb::2, from PSN 40 on, expects PSN 100, lag 0

3 links carry a copy of each packet, 4 would by unicast; provisioned lists, 40 octets more on each packet, the longest \
4224 of 9000
by shortest paths
waits for N2
";
        assert_eq!(group(&found), expected);
    }
}
