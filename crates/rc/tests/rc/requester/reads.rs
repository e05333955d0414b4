//! READ requests.

use super::{ACK, REMOTE, post, post_write, rig, statuses};
use crate::support::{Given, pattern};
use srdma_rc::{DropReason, Operation, Status};
use srdma_wire::{Aeth, Opcode, Syndrome};

fn read_response(psn: u32, opcode: Opcode, payload: &[u8]) -> Given {
    Given { aeth: Some(Aeth { syndrome: Syndrome::ACK, msn: 1 }), ..Given::new(opcode, psn, payload.to_vec()) }
}

#[test]
fn a_read_requests_missing_data_again() {
    let (mut rig, key) = rig(|_| {});
    let data = pattern(600, 77);
    post(&mut rig, key, 1, Operation::Read { remote: REMOTE }, 600);
    post_write(&mut rig, key, 2, 1);
    assert_eq!(rig.psns(), [100, 103], "a READ uses up a PSN for each response");
    rig.give(&read_response(100, Opcode::READ_RESPONSE_FIRST, &data[..256])).expect("taken");
    let last = read_response(102, Opcode::READ_RESPONSE_LAST, &data[512..]);
    assert_eq!(rig.give(&last), Err(DropReason::MissingReadResponse));
    let again = rig.sent();
    assert_eq!(again.iter().map(|packet| packet.psn).collect::<Vec<_>>(), [101, 103]);
    let reth = again[0].reth.expect("a READ request");
    assert_eq!((reth.virtual_address, reth.dma_length), (0x9000 + 256, 344));
    rig.give(&read_response(101, Opcode::READ_RESPONSE_FIRST, &data[256..512])).expect("taken");
    rig.give(&last).expect("taken");
    assert_eq!(statuses(&mut rig), [(1, Status::Success)]);
    assert_eq!(rig.endpoint.memory(key).expect("region")[..600], data);
}

#[test]
fn an_ack_after_an_unanswered_read_shows_that_responses_were_lost() {
    let (mut rig, key) = rig(|_| {});
    post_write(&mut rig, key, 1, 1);
    post(&mut rig, key, 2, Operation::Read { remote: REMOTE }, 300);
    post_write(&mut rig, key, 3, 1);
    assert_eq!(rig.psns(), [100, 101, 103]);
    rig.give(&Given::response(103, ACK)).expect("taken");
    assert_eq!(statuses(&mut rig), [(1, Status::Success)], "nothing from the READ on is done");
    assert_eq!(rig.psns(), [101, 103]);
}

#[test]
fn read_responses_of_the_wrong_kind_or_length_change_nothing() {
    let (mut rig, key) = rig(|_| {});
    post(&mut rig, key, 1, Operation::Read { remote: REMOTE }, 300);
    post_write(&mut rig, key, 2, 1);
    rig.sent();
    let before = rig.endpoint.memory(key).expect("region").clone();
    let cases = [
        (read_response(100, Opcode::READ_RESPONSE_FIRST, &[1; 252]), DropReason::UnexpectedResponse),
        (read_response(100, Opcode::READ_RESPONSE_ONLY, &[1; 256]), DropReason::UnexpectedResponse),
        (read_response(102, Opcode::READ_RESPONSE_ONLY, &[1; 256]), DropReason::UnexpectedResponse),
        (read_response(103, Opcode::READ_RESPONSE_ONLY, &[1; 44]), DropReason::AcknowledgesUnsent),
        (read_response(99, Opcode::READ_RESPONSE_ONLY, &[1; 44]), DropReason::StaleResponse),
    ];
    for (packet, reason) in cases {
        assert_eq!(rig.give(&packet), Err(reason));
    }
    assert_eq!(rig.endpoint.memory(key), Some(&before));
    assert_eq!(statuses(&mut rig), []);
}

#[test]
fn outstanding_reads_are_bounded() {
    let (mut rig, key) = rig(|config| config.max_outstanding_reads = 2);
    for wr_id in 0..3 {
        post(&mut rig, key, wr_id, Operation::Read { remote: REMOTE }, 4);
    }
    assert_eq!(rig.psns(), [100, 101]);
    rig.give(&read_response(100, Opcode::READ_RESPONSE_ONLY, &[1; 4])).expect("taken");
    assert_eq!(rig.psns(), [102]);
}
