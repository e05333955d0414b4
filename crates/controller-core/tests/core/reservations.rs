//! Receivers that join in two steps (D187, D188).

use crate::cluster::*;
use srdma_api::{
    NewReceiver, ProblemType, Receiver, ReceiverOrder, ReceiverReport, ReceiverState, SourceOrder, SourceReport,
};
use srdma_controller_core::Refusal;
use srdma_group::OnFailure;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

const JOIN_TIMEOUT_MS: u64 = 1000;
const QPN: u32 = 0x1000;

impl Cluster {
    fn reserve(&mut self, address: Ipv6Addr) -> Result<(), Refusal> {
        let receiver = NewReceiver::new(QPN, 4096);
        self.commit(|core| core.reserve(&admin(), 1, address, receiver, None))
    }

    fn report(&mut self, address: Ipv6Addr, ready_at_psn: Option<u32>) -> Result<ReceiverOrder, Refusal> {
        let report = ReceiverReport { qpn: QPN, ready_at_psn, wait_ms: 0 };
        self.commit(|core| core.report_receiver(&admin(), 1, address, report))
    }

    /// The source has sent something and reports, paused at this PSN if it is to pause.
    fn source(&mut self, psn: u32) -> SourceOrder {
        let report = SourceReport { round: Some(0), acknowledged_psn: Some(psn), ..SourceReport::default() };
        let order = self.commit(|core| core.report_source(&admin(), 1, report)).unwrap();
        let SourceOrder::Pause { round } = order else { return order };
        let paused = SourceReport { round: Some(round), pausing: true, paused_at_psn: Some(psn), ..report };
        self.commit(|core| core.report_source(&admin(), 1, paused)).unwrap()
    }

    fn shown(&mut self, address: Ipv6Addr) -> Option<Receiver> {
        self.group().members.into_iter().find(|member| member.address == address)
    }

    /// Time passes in which these receivers report.
    fn pass_with(&mut self, milliseconds: u64, reporting: &[(Ipv6Addr, Option<u32>)]) {
        for _ in 0..milliseconds / 100 {
            for (receiver, ready) in reporting {
                self.report(*receiver, *ready).unwrap();
            }
            self.pass(100);
        }
    }
}

fn running() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Evict);
    assert_eq!(cluster.source(50), SourceOrder::Send { round: 0 });
    cluster
}

/// A source whose process has died is shown as silent, and one that was never heard is not.
#[test]
fn a_source_that_reports_no_more_is_silent() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Evict);
    cluster.pass(30_000);
    assert!(!cluster.group().source_is_silent, "it has not begun");
    cluster.source(50);
    cluster.pass(29_900);
    assert!(!cluster.group().source_is_silent);
    cluster.pass(200);
    assert!(cluster.group().source_is_silent);
    cluster.source(50);
    assert!(!cluster.group().source_is_silent, "it was away");
}

/// The service of a source is shown to those that may change the group; its key is in no text for people.
#[test]
fn the_service_of_a_source_is_shown_with_its_group() {
    let mut cluster = running();
    let service = |port, key: &str| srdma_api::SourceService { port, key: key.to_owned() };
    let known = service(4711, &"ab".repeat(32));
    for wrong in [service(0, &known.key), service(1, "ab"), service(1, &"xy".repeat(32))] {
        let stated = cluster.commit(|core| core.state_service(&admin(), 1, wrong));
        assert_eq!(kind(stated), ProblemType::InvalidRequest);
    }
    cluster.commit(|core| core.state_service(&admin(), 1, known.clone())).unwrap();
    cluster.restart();
    cluster.settle();
    assert_eq!(cluster.group().service, Some(known.clone()));
    assert!(!format!("{known:?}").contains("abab"));
    let reader = srdma_controller_core::Principal { role: srdma_controller_core::Role::Read, ..admin() };
    let (seen, _) = cluster.commit(|core| core.group(&reader, 1)).unwrap();
    assert_eq!(seen.service, None);
}

fn kind<T: std::fmt::Debug>(result: Result<T, Refusal>) -> ProblemType {
    result.unwrap_err().kind
}

/// It is given J when the source is quiet, and no node has it before it has said that it is ready from that J on.
#[test]
fn a_receiver_joins_in_two_steps() {
    let mut cluster = running();
    let late = receiver(2, 1);
    cluster.reserve(late).unwrap();
    cluster.reserve(late).unwrap();
    assert_eq!(cluster.report(late, None).unwrap(), ReceiverOrder::Wait);
    assert_eq!(cluster.source(70), SourceOrder::Wait, "it is quiet for the newcomer");
    assert_eq!(cluster.report(late, None).unwrap(), ReceiverOrder::Reserved { psn: 70 });
    let shown = cluster.shown(late).unwrap();
    assert_eq!(
        (shown.state, shown.joined_psn, shown.reserved_psn, shown.awaits_ready),
        (ReceiverState::Joining, None, Some(70), true)
    );
    cluster.settle();
    assert_eq!(cluster.report(late, Some(71)).unwrap(), ReceiverOrder::Reserved { psn: 70 });
    cluster.settle();
    assert_eq!((cluster.members(), cluster.acknowledged()), ([receiver(1, 1)].into(), [receiver(1, 1)].into()));

    assert_eq!(cluster.report(late, Some(70)).unwrap(), ReceiverOrder::Reserved { psn: 70 });
    assert!(!cluster.shown(late).unwrap().awaits_ready);
    cluster.settle();
    assert_eq!(cluster.report(late, Some(70)).unwrap(), ReceiverOrder::Member { psn: 70 });
    assert_eq!(cluster.acknowledged(), BTreeSet::from([receiver(1, 1), late]));
    let shown = cluster.shown(late).unwrap();
    assert_eq!((shown.joined_psn, shown.reserved_psn, shown.awaits_ready), (Some(70), None, false));
    assert_eq!(cluster.source(70), SourceOrder::Send { round: 1 });
    // A member reports to its edge, not to the controller.
    cluster.pass(5 * JOIN_TIMEOUT_MS);
    assert!(cluster.members().contains(&late));
}

/// D188: a dead one does not begin a pause, and one that dies within a pause costs this one `join_timeout`.
#[test]
fn a_dead_joiner_does_not_hold_the_source() {
    let late = receiver(2, 1);
    let mut cluster = running();
    cluster.reserve(late).unwrap();
    cluster.pass(JOIN_TIMEOUT_MS - 200);
    assert!(cluster.shown(late).is_some());
    cluster.pass(300);
    assert_eq!(cluster.shown(late), None, "it was not heard");
    let failure = cluster.group().failure.unwrap();
    assert_eq!(failure, format!("no report of {late} within 1000 ms that it is ready: it does not join"));
    assert_eq!(kind(cluster.report(late, None)), ProblemType::UnknownReceiver);
    assert!(matches!(cluster.source(60), SourceOrder::Send { .. }));

    cluster.reserve(late).unwrap();
    assert_eq!(cluster.source(80), SourceOrder::Wait);
    assert_eq!(cluster.report(late, None).unwrap(), ReceiverOrder::Reserved { psn: 80 });
    cluster.pass_with(JOIN_TIMEOUT_MS, &[(late, None)]);
    assert_eq!(cluster.source(80), SourceOrder::Wait);
    cluster.pass(100);
    assert!(matches!(cluster.source(80), SourceOrder::Send { .. }), "it reports, but is not ready");
    assert_eq!((cluster.shown(late), cluster.members()), (None, [receiver(1, 1)].into()));
}

/// Those that live join in the pause in which another one dies; one that joins in one step does, too.
#[test]
fn others_join_in_the_same_pause() {
    let (dies, lives, old) = (receiver(2, 1), receiver(2, 2), receiver(3, 1));
    let mut cluster = running();
    // Nothing begins before the source has reported: all three wait for the same pause.
    cluster.disconnect(2);
    cluster.pass(DEAD_AFTER_MS + 200);
    cluster.reserve(dies).unwrap();
    cluster.reserve(lives).unwrap();
    cluster.connect(2);
    cluster.settle();
    cluster.join(old).unwrap();
    assert_eq!(cluster.source(90), SourceOrder::Wait);
    assert_eq!(cluster.report(lives, None).unwrap(), ReceiverOrder::Reserved { psn: 90 });
    cluster.pass_with(JOIN_TIMEOUT_MS + 200, &[(lives, Some(90))]);
    assert_eq!(cluster.shown(dies), None);
    assert!(cluster.members().contains(&lives), "{:?}", cluster.group().members);
    cluster.source(90);
    cluster.source(95);
    cluster.settle();
    assert_eq!(cluster.members(), BTreeSet::from([receiver(1, 1), lives, old]));
    assert_eq!(cluster.acknowledged(), cluster.members());
}

/// A restarted controller gives another J, and does not pause the source for a receiver that it has not heard.
#[test]
fn a_restarted_controller_reserves_again() {
    let late = receiver(2, 1);
    let mut cluster = running();
    cluster.reserve(late).unwrap();
    assert_eq!(cluster.source(70), SourceOrder::Wait);
    assert_eq!(cluster.report(late, None).unwrap(), ReceiverOrder::Reserved { psn: 70 });
    cluster.restart();
    cluster.settle();
    assert!(matches!(cluster.source(75), SourceOrder::Send { .. }), "it was not heard since");
    assert_eq!(cluster.report(late, Some(70)).unwrap(), ReceiverOrder::Wait);
    assert_eq!(cluster.source(88), SourceOrder::Wait);
    assert_eq!(cluster.report(late, Some(70)).unwrap(), ReceiverOrder::Reserved { psn: 88 });
    cluster.settle();
    assert_eq!(cluster.members(), [receiver(1, 1)].into());
    cluster.report(late, Some(88)).unwrap();
    cluster.settle();
    assert_eq!(cluster.report(late, Some(88)).unwrap(), ReceiverOrder::Member { psn: 88 });

    // Without a report the reservation ends after the restart, too.
    let other = receiver(3, 1);
    cluster.reserve(other).unwrap();
    cluster.restart();
    cluster.settle();
    cluster.pass(JOIN_TIMEOUT_MS + 200);
    assert_eq!(cluster.shown(other), None);
}

/// The first commit has those that are ready, also after a restart; the others join after it.
#[test]
fn an_open_group_commits_those_that_are_ready() {
    let (ready, slow) = (receiver(1, 1), receiver(2, 1));
    let mut cluster = Cluster::new();
    let group = srdma_api::NewGroup { initial_psn: 7, ..new_group(OnFailure::Strict) };
    cluster.commit(|core| core.create_group(&admin(), None, group)).unwrap();
    cluster.reserve(ready).unwrap();
    cluster.reserve(slow).unwrap();
    assert_eq!(cluster.report(ready, None).unwrap(), ReceiverOrder::Reserved { psn: 7 });
    let commit = |core: &mut srdma_controller_core::Core| core.commit_group(&admin(), 1, None);
    assert_eq!(kind(cluster.commit(commit)), ProblemType::GroupEmpty);
    cluster.report(ready, Some(7)).unwrap();
    let awaiting = |cluster: &mut Cluster, one| cluster.shown(one).unwrap().awaits_ready;
    assert_eq!((awaiting(&mut cluster, ready), awaiting(&mut cluster, slow)), (false, true));
    cluster.restart();
    cluster.pass(JOIN_TIMEOUT_MS - 200);
    cluster.report(slow, None).unwrap();
    cluster.pass(400);
    cluster.commit(commit).unwrap();
    cluster.settle();
    assert_eq!((cluster.members(), cluster.acknowledged()), ([ready].into(), [ready].into()));
    assert_eq!(cluster.shown(ready).unwrap().joined_psn, None);
    // The source has sent nothing: J is still the first PSN.
    assert_eq!(cluster.report(slow, None).unwrap(), ReceiverOrder::Reserved { psn: 7 });
    cluster.report(slow, Some(7)).unwrap();
    cluster.settle();
    assert_eq!(cluster.members(), BTreeSet::from([ready, slow]));
}

/// One that leaves while it is reserved is not waited for; another queue pair of its address is another receiver.
#[test]
fn a_reserved_receiver_leaves() {
    let late = receiver(2, 1);
    let mut cluster = running();
    cluster.reserve(late).unwrap();
    assert_eq!(cluster.source(70), SourceOrder::Wait);
    let other = NewReceiver::new(0x1001, 4096);
    let joined = cluster.commit(|core| core.reserve(&admin(), 1, late, other.clone(), None));
    assert_eq!(kind(joined), ProblemType::AlreadyJoined);
    let report = ReceiverReport { qpn: 0x1001, ready_at_psn: Some(70), wait_ms: 0 };
    let reported = cluster.commit(|core| core.report_receiver(&admin(), 1, late, report));
    assert_eq!(kind(reported), ProblemType::UnknownReceiver);
    cluster.leave(late).unwrap();
    assert_eq!(cluster.shown(late), None);
    assert!(matches!(cluster.source(70), SourceOrder::Send { .. }));
    cluster.commit(|core| core.reserve(&admin(), 1, late, other, None)).unwrap();
}

/// Of two that fall silent, one has begun to join. The other does not begin when that one expires: the source would wait
/// for a receiver that the group does not have.
#[test]
fn receivers_whose_reservations_expire_do_not_begin_to_join() {
    let (first, second) = (receiver(2, 1), receiver(2, 2));
    let mut cluster = running();
    cluster.reserve(first).unwrap();
    cluster.settle();
    cluster.reserve(second).unwrap();
    cluster.pass_with(300, &[(first, None), (second, None)]);
    cluster.pass(JOIN_TIMEOUT_MS + 200);
    assert_eq!((cluster.shown(first), cluster.shown(second)), (None, None));
    cluster.source(60);
    assert!(matches!(cluster.source(60), SourceOrder::Send { .. }), "nothing is waited for");
    assert_eq!(cluster.group().summary.state, srdma_api::GroupState::Ready);
}

/// What a receiver has said that it is ready for is not said for a queue pair that joins later, though J is the same.
#[test]
fn readiness_ends_with_the_reservation() {
    let late = receiver(2, 1);
    let mut cluster = running();
    cluster.reserve(late).unwrap();
    assert_eq!(cluster.source(70), SourceOrder::Wait);
    cluster.disconnect(2);
    cluster.report(late, Some(70)).unwrap();
    cluster.pass(DEAD_AFTER_MS + JOIN_TIMEOUT_MS + 200);
    assert_eq!(cluster.shown(late), None);
    cluster.connect(2);
    cluster.settle();
    cluster.reserve(late).unwrap();
    cluster.source(70);
    cluster.settle();
    assert_eq!(cluster.report(late, None).unwrap(), ReceiverOrder::Reserved { psn: 70 });
    cluster.settle();
    assert!(!cluster.members().contains(&late));
    cluster.report(late, Some(70)).unwrap();
    cluster.settle();
    assert!(cluster.members().contains(&late));
}

/// A receiver dies while its join is in progress, and that is postponed since its edge is lost: its reservation ends.
#[test]
fn a_receiver_that_dies_within_its_join_is_forgotten() {
    let late = receiver(1, 2);
    let mut cluster = running();
    cluster.reserve(late).unwrap();
    assert_eq!(cluster.source(70), SourceOrder::Wait);
    cluster.disconnect(1);
    cluster.report(late, Some(70)).unwrap();
    for _ in 0..60 {
        cluster.pass(100);
        cluster.source(70);
    }
    assert_eq!(cluster.shown(late), None);
}
