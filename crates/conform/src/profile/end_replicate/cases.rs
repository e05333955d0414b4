//! The cases.

use super::{CNP_WINDOW_MS, EndReplicate, FIRST, Group};
use crate::Case;
use crate::octets::{tunnelled, with_hop_limit};
use crate::profile::multicast::{ACK, SEQUENCE_NAK, notifies, responds, response, says};
use crate::profile::sent;
use srdma_testkit::packets::cnp;

pub(super) fn all(node: &EndReplicate) -> Vec<Case> {
    let cases = Cases(node);
    [cases.data(), cases.acks(), cases.naks(), cases.cnps(), cases.strangers()].concat()
}

struct Cases<'n>(&'n EndReplicate);

impl Cases<'_> {
    fn data(&self) -> Vec<Case> {
        let node = self.0;
        let inner = node.data(Group::Replicate, FIRST);
        let packet = tunnelled(node.parent, node.sid(Group::Replicate), &node.lists(Group::Replicate), &inner);
        let headend = Case::new(
            "headend",
            "The source's packet leaves for each branch in an outer header with an SRH that holds the lists.",
            &["MT-4-1", "MT-5.1-4", "MT-5.2-1", "MT-5.2-2", "MT-7.2-1", "MT-7.2-2", "MT-7.2-3"],
        );
        let replicate = Case::new(
            "replicate",
            "One copy for each branch: its SID as destination, one hop less, nothing else.",
            &["MT-3-2", "MT-5.2-2", "RFC 9524 2.2"],
        );
        let hopless = Case::new(
            "replicate-hop-limit",
            "A packet whose hop limit is used up is not replicated, and no ICMPv6 error is sent.",
            &["RFC 9524 2.2"],
        );
        vec![
            node.sends(headend, Group::Headend, &[FIRST]),
            node.sends(replicate, Group::Replicate, &[FIRST]),
            hopless.send(sent(node.up(), &with_hop_limit(packet, 1))),
        ]
    }

    /// The ACKs of two branches, at a root or below it.
    fn acked(&self, case: Case, group: Group) -> Case {
        let node = self.0;
        let up = |psn| responds(node.up(), &node.upstream(group, psn, ACK));
        let case = node.sends(case, group, &[FIRST, FIRST + 1]).then();
        let case = case.send(node.branch_says(group, 0, FIRST + 1, ACK)).then();
        let case = case.send(node.branch_says(group, 1, FIRST, ACK)).expect(up(FIRST)).then();
        case.send(node.branch_says(group, 1, FIRST + 1, ACK)).expect(up(FIRST + 1))
    }

    fn acks(&self) -> Vec<Case> {
        let root = Case::new(
            "root-ack-minimum",
            "The source gets the least of the branches' latest, as from the Proxy Address to its own queue pair.",
            &["MT-5.3-1", "MT-5.3.1-1", "MT-5.3.1-2", "MT-5.3.1-3", "MT-5.3.1-4"],
        );
        let transit = Case::new(
            "ack-minimum",
            "The ACK for the parent is the minimum of the branches' latest.",
            &["MT-5.3-1", "MT-5.3.1-1", "MT-5.3.1-2", "MT-5.3.1-3"],
        );
        vec![self.acked(root, Group::RootAcks), self.acked(transit, Group::Acks)]
    }

    fn naks(&self) -> Vec<Case> {
        let (node, group) = (self.0, Group::RootNaks);
        let case = Case::new(
            "root-nak-minimum",
            "A NAK for the source has the minimum expected PSN of all branches; one that sent ACKs expects the next.",
            &["MT-5.3.2-1", "MT-5.3.2-2", "MT-5.3.2-3", "MT-5.3.2-4"],
        );
        let case = node.sends(case, group, &[FIRST, FIRST + 1, FIRST + 2]).then();
        let case = case.send(node.branch_says(group, 0, FIRST, ACK)).then();
        let case = case.send(node.branch_says(group, 1, FIRST + 2, SEQUENCE_NAK));
        let case = case.expect(responds(node.up(), &node.upstream(group, FIRST, ACK)).or_nothing());
        vec![case.expect(responds(node.up(), &node.upstream(group, FIRST + 1, SEQUENCE_NAK)))]
    }

    fn cnps(&self) -> Vec<Case> {
        let node = self.0;
        let from = |group, branch: usize| {
            let (port, loopback, _) = node.branches()[branch];
            sent(port, &cnp(loopback, node.proxy(group), node.designated_qpn))
        };
        let notified = |case: Case, group| {
            let case = node.sends(case, group, &[FIRST]).then();
            case.send(from(group, 0)).send(from(group, 1)).takes_ms(2 * CNP_WINDOW_MS)
        };
        let root = Case::new(
            "root-cnp",
            "One CNP per window is sent to the source, as a standard CNP.",
            &["MT-5.3.3-1", "MT-5.3.3-2", "MT-5.3.3-4"],
        );
        let root = notified(root, Group::RootCnps);
        let to_source = cnp(node.proxy(Group::RootCnps), node.source, node.source_qpn(Group::RootCnps));
        let transit = Case::new("cnp", "One CNP per window is sent to the parent.", &["MT-5.3.3-1", "MT-5.3.3-2"]);
        let transit = notified(transit, Group::Cnps);
        let to_parent = cnp(node.device, node.proxy(Group::Cnps), node.designated_qpn);
        vec![root.expect(says(node.up(), &to_source)), transit.expect(notifies(node.up(), &to_parent))]
    }

    fn strangers(&self) -> Vec<Case> {
        let (node, group) = (self.0, Group::Strangers);
        let stranger = response(node.stranger, node.proxy(group), node.designated_qpn, FIRST, ACK);
        let case = Case::new(
            "responses-of-strangers",
            "A response counts only if a branch sent it.",
            &["MT-9-2", "MT-5.3.1-1"],
        );
        let case = node.sends(case, group, &[FIRST]).then();
        let case = case.send(node.branch_says(group, 1, FIRST, ACK)).send(sent(node.left(), &stranger)).then();
        let case = case.send(node.branch_says(group, 0, FIRST, ACK));
        vec![case.expect(responds(node.up(), &node.upstream(group, FIRST, ACK)))]
    }
}
