//! Responses in the direction of the source: aggregation for the parent.

use super::{CNP_WINDOW_MS, EndMt, Group};
use crate::Case;
use crate::octets::SEND_ONLY;
use crate::octets::with_octets;
use crate::profile::multicast::{ACK, RNR_NAK, SEQUENCE_NAK, notifies, responds, response};
use crate::profile::{left, sent};
use srdma_testkit::packets::{cnp, rocev2};

pub(super) fn all(edge: &EndMt) -> Vec<Case> {
    let responses = Responses(edge);
    [responses.acks(), responses.naks(), responses.cnps(), responses.refusals()].concat()
}

struct Responses<'e>(&'e EndMt);

/// PSNs of a group that begins with the usual one.
const FIRST: u32 = 0x100;

impl Responses<'_> {
    /// A receiver sends a response.
    fn says(&self, case: Case, group: Group, receiver: u16, psn: u32, syndrome: u8) -> Case {
        case.send(sent(self.0.down(), &self.0.receiver_says(group, receiver, psn, syndrome)))
    }

    /// The parent must receive a response.
    fn sent_to_source(&self, case: Case, group: Group, psn: u32, syndrome: u8) -> Case {
        case.expect(responds(self.0.up(), &self.0.upstream(group, psn, syndrome)))
    }

    /// The parent may receive a response that a following NAK includes.
    fn may_reach_source(&self, case: Case, group: Group, psn: u32) -> Case {
        case.expect(responds(self.0.up(), &self.0.upstream(group, psn, ACK)).or_nothing())
    }

    fn acks(&self) -> Vec<Case> {
        let minimum = Case::new(
            "ack-minimum",
            "The forwarded ACK is the minimum of the receivers' latest.",
            &["MT-5.3-1", "MT-5.3.1-1", "MT-5.3.1-2", "MT-5.3.1-3"],
        );
        let case = self.0.sends(minimum, Group::Acks, &[FIRST, FIRST + 1]).then();
        let case = self.says(case, Group::Acks, 0, FIRST + 1, ACK).then();
        let case = self.says(case, Group::Acks, 1, FIRST, ACK);
        let case = self.sent_to_source(case, Group::Acks, FIRST, ACK).then();
        let case = self.says(case, Group::Acks, 1, FIRST + 1, ACK);
        let minimum = self.sent_to_source(case, Group::Acks, FIRST + 1, ACK);

        let wrap = Case::new(
            "ack-minimum-at-the-wrap",
            "PSNs are compared as serial numbers: 0xffffff is before 0.",
            &["MT-5.3.1-1", "MT-5.3.1-3"],
        );
        let case = self.0.sends(wrap, Group::Wrap, &[0xFF_FFFF, 0]).then();
        let case = self.says(case, Group::Wrap, 0, 0, ACK).then();
        let case = self.says(case, Group::Wrap, 1, 0xFF_FFFF, ACK);
        let case = self.sent_to_source(case, Group::Wrap, 0xFF_FFFF, ACK).then();
        let case = self.says(case, Group::Wrap, 1, 0, ACK);
        vec![minimum, self.sent_to_source(case, Group::Wrap, 0, ACK)]
    }

    fn naks(&self) -> Vec<Case> {
        let group = Group::Naks;
        let case = Case::new(
            "nak-at-the-minimum",
            "A NAK of the receiver with the minimum PSN is forwarded with its PSN.",
            &["MT-5.3.2-1", "MT-5.3.2-2", "MT-5.3.2-4"],
        );
        let case = self.0.sends(case, group, &[FIRST, FIRST + 1, FIRST + 2]).then();
        let case = self.says(case, group, 0, FIRST + 2, ACK).then();
        let case = self.says(case, group, 1, FIRST + 1, SEQUENCE_NAK);
        let case = self.may_reach_source(case, group, FIRST);
        let at_the_minimum = self.sent_to_source(case, group, FIRST + 1, SEQUENCE_NAK);

        let group = Group::NakAbove;
        let case = Case::new(
            "nak-above-the-minimum",
            "A receiver that sent only ACKs expects the next PSN: a NAK is forwarded with the minimum of both.",
            &["MT-5.3.2-1", "MT-5.3.2-3", "MT-5.3.2-4"],
        );
        let case = self.0.sends(case, group, &[FIRST, FIRST + 1, FIRST + 2, FIRST + 3]).then();
        let case = self.says(case, group, 0, FIRST, ACK).then();
        let case = self.says(case, group, 1, FIRST + 2, SEQUENCE_NAK);
        let case = self.may_reach_source(case, group, FIRST);
        let above = self.sent_to_source(case, group, FIRST + 1, SEQUENCE_NAK);

        let group = Group::Rnr;
        let case = Case::new(
            "receiver-not-ready",
            "An RNR NAK of the receiver with the minimum PSN is forwarded with its time.",
            &["MT-5.3.2-1", "MT-5.3.2-4"],
        );
        let case = self.0.sends(case, group, &[FIRST, FIRST + 1]).then();
        let case = self.says(case, group, 0, FIRST + 1, ACK).then();
        let case = self.says(case, group, 1, FIRST + 1, RNR_NAK);
        let case = self.may_reach_source(case, group, FIRST);
        vec![at_the_minimum, above, self.sent_to_source(case, group, FIRST + 1, RNR_NAK)]
    }

    fn cnps(&self) -> Vec<Case> {
        let (edge, group) = (self.0, Group::Cnps);
        let (proxy, qpn) = (edge.proxy(group), edge.designated_qpn);
        let from = |number| sent(edge.down(), &cnp(edge.address(number), proxy, qpn));
        let case = Case::new(
            "one-cnp-a-window",
            "Of any number of CNPs within a window one is forwarded; then none, until there are more.",
            &["MT-5.3-1", "MT-5.3.3-1", "MT-5.3.3-2"],
        );
        let case = self.0.sends(case, group, &[FIRST]).then();
        let case = case.send(from(0)).send(from(0)).send(from(1)).takes_ms(2 * CNP_WINDOW_MS);
        let case = case.expect(notifies(edge.up(), &cnp(edge.device, proxy, qpn))).then();
        let case = case.send(from(1)).takes_ms(2 * CNP_WINDOW_MS);
        vec![case.expect(notifies(edge.up(), &cnp(edge.device, proxy, qpn)))]
    }

    fn refusals(&self) -> Vec<Case> {
        let edge = self.0;
        let (proxy, qpn) = (edge.proxy(Group::Stranger), edge.designated_qpn);
        let case = Case::new(
            "responses-of-strangers",
            "A response counts only if a receiver sent it.",
            &["MT-9-2", "MT-5.3.1-1"],
        );
        let case = edge.sends(case, Group::Stranger, &[FIRST]).then();
        let case = self.says(case, Group::Stranger, 0, FIRST, ACK);
        let case = case.send(sent(edge.down(), &response(edge.stranger, proxy, qpn, FIRST, ACK))).then();
        let case = self.says(case, Group::Stranger, 1, FIRST, ACK);
        let strangers = self.sent_to_source(case, Group::Stranger, FIRST, ACK);

        let case = Case::new(
            "damaged-response",
            "A response with a wrong ICRC is dropped: its PSN may be damaged.",
            &["MT-5.3.1-1"],
        );
        let case = edge.sends(case, Group::Damaged, &[FIRST, FIRST + 1]).then();
        let case = self.says(case, Group::Damaged, 0, FIRST + 1, ACK);
        let psn_at = 40 + 8 + 11;
        let damaged = with_octets(edge.receiver_says(Group::Damaged, 1, FIRST, ACK), psn_at, &[1]);
        let case = case.send(sent(edge.down(), &damaged)).then();
        let case = self.says(case, Group::Damaged, 1, FIRST, ACK);
        let damaged = self.sent_to_source(case, Group::Damaged, FIRST, ACK);

        let case = Case::new(
            "ack-ahead",
            "An ACK for data that were never sent does not reach the source.",
            &["MT-5.3.1-1", "MT-9-2"],
        );
        let case = edge.sends(case, Group::Ahead, &[FIRST]).then();
        let case = self.says(case, Group::Ahead, 0, FIRST + 100, ACK);
        let case = self.says(case, Group::Ahead, 1, FIRST + 100, ACK);
        let ahead = self.may_reach_source(case, Group::Ahead, FIRST);

        let proxy = edge.proxy(Group::Requests);
        let request = rocev2(edge.address(0), proxy, SEND_ONLY, qpn, FIRST, b"data");
        let case = Case::new(
            "requests-of-receivers",
            "Packets of a receiver to the Proxy Address other than responses are dropped.",
            &["MT-5.3-1"],
        );
        let case = case.send(sent(edge.down(), &request)).then();
        let inner = edge.data(Group::Requests, FIRST);
        let case = case.send(sent(edge.up(), &edge.tunnel(Group::Requests, &[], &inner)));
        let requests =
            case.expect_all(edge.copies(Group::Requests, &inner, 2).iter().map(|copy| left(edge.down(), copy)));
        vec![strangers, damaged, ahead, requests]
    }
}
