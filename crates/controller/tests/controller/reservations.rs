//! Receivers that join in two steps, over HTTP (D187, D188).

use crate::fleet::figure_1;
use crate::life::ready;
use crate::running::*;
use srdma_api::{ProblemType, ReceiverOrder, ReceiverReport, SourceOrder, SourceReport};
use srdma_controller::Config;

/// The poll of a receiver ends when it is reserved, and when it is a member; the source waits for that, and goes on.
#[test]
fn a_receiver_polls_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(Config { join_timeout_ms: 60_000, ..config() }, &folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let source = running.client();
    let send = source.report_source(group, &SourceReport::default()).unwrap();
    let SourceOrder::Send { round } = send else { panic!("expected permission to send: {send:?}") };

    let (address, new) = (receiver_address(6), new_receiver(6));
    client.reserve(group, address, &new).unwrap();
    let joiner = std::thread::spawn(move || {
        let mut report = ReceiverReport { qpn: new.qpn, ready_at_psn: None, wait_ms: 500 };
        let mut orders = Vec::new();
        loop {
            let order = client.report_receiver(group, address, &report).unwrap();
            if orders.last() != Some(&order) {
                orders.push(order);
            }
            match order {
                ReceiverOrder::Wait => {}
                ReceiverOrder::Reserved { psn } => report.ready_at_psn = Some(psn),
                ReceiverOrder::Member { .. } | ReceiverOrder::End => return (orders, client),
            }
        }
    });
    let running_report = SourceReport { round: Some(round), wait_ms: 5000, ..SourceReport::default() };
    let pause = source.report_source(group, &running_report).unwrap();
    let SourceOrder::Pause { round } = pause else { panic!("expected a pause: {pause:?}") };
    let paused =
        SourceReport { round: Some(round), pausing: true, paused_at_psn: Some(0x123), wait_ms: 5000, ..running_report };
    while source.report_source(group, &paused).unwrap() != (SourceOrder::Send { round }) {}
    let (orders, client) = joiner.join().unwrap();
    let orders = orders.strip_prefix(&[ReceiverOrder::Wait]).unwrap_or(&orders);
    assert_eq!(orders, [ReceiverOrder::Reserved { psn: 0x123 }, ReceiverOrder::Member { psn: 0x123 }]);
    assert_eq!(agents[&2].group_entry(group).unwrap().receivers.len(), 2);
    assert_eq!(until_ready(&client, group).members.len(), 6);
}

/// A joiner that dies after its reservation is deleted, and the source goes on.
#[test]
fn a_reservation_expires() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(Config { join_timeout_ms: 300, ..config() }, &folder.path().join("store"));
    let _agents = figure_1(&running);
    let (group, client) = ready(&running);
    let (address, new) = (receiver_address(6), new_receiver(6));
    let report = || client.report_receiver(group, address, &ReceiverReport::default());
    assert!(report().unwrap_err().is(ProblemType::UnknownReceiver));
    assert!(client.reserve(group, address, &new).unwrap().awaits_ready);
    let is_gone = |error: srdma_api::ClientError| error.is(ProblemType::UnknownReceiver).then_some(());
    until("the reservation expires", || client.receiver(group, address).err().and_then(is_gone));
    let failure = until_ready(&client, group).failure.unwrap();
    assert_eq!(failure, format!("no report of {address} within 300 ms that it is ready: it does not join"));
}
