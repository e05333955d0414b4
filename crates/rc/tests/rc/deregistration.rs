//! Memory that returns to the host: nothing of the endpoint reads or writes it afterwards.

use crate::support::{Given, Rig, pattern, qpn};
use srdma_rc::{
    Access, DeregisterError, DropReason, LocalRange, MemoryKey, Operation, PostError, QueuePairState, Receive, Status,
    WorkRequest,
};
use srdma_wire::{Opcode, PathMtu};

const ACK: u8 = 0x1F;
const REMOTE_ACCESS_ERROR: u8 = 0x62;

fn rig() -> Rig {
    Rig::new(|config| config.path_mtu = PathMtu::Octets256)
}

fn send(key: MemoryKey) -> WorkRequest {
    let local = LocalRange { key, offset: 0, length_octets: 600 };
    WorkRequest { wr_id: 1, operation: Operation::Send { immediate: None }, local, signalled: true }
}

#[test]
fn memory_that_posted_work_uses_stays_until_the_work_is_completed() {
    let mut rig = rig();
    let data = pattern(600, 3);
    let key = rig.endpoint.register_memory(data.clone(), 0, Access::LOCAL, 9);
    rig.endpoint.post_send(rig.qpn, send(key)).expect("posted");
    let in_use = Err(DeregisterError::InUse { key, qpn: rig.qpn });
    assert_eq!(rig.endpoint.deregister_memory(key), in_use);
    assert_eq!(rig.psns(), [0, 1, 2]);
    rig.give(&Given::response(1, ACK)).expect("taken");
    assert_eq!(rig.endpoint.deregister_memory(key), in_use, "the last packet may be sent again");
    rig.give(&Given::response(2, ACK)).expect("taken");
    assert_eq!(rig.endpoint.deregister_memory(key), Ok(data));
    assert_eq!(rig.endpoint.deregister_memory(key), Err(DeregisterError::Unknown(key)));
    let local = send(key).local;
    let outside = Err(PostError::OutsideRegion { qpn: rig.qpn, local });
    assert_eq!(rig.endpoint.post_send(rig.qpn, send(key)), outside);
}

#[test]
fn a_posted_receive_and_one_that_is_being_filled_use_their_memory() {
    let mut rig = rig();
    let key = rig.region(600, Access::LOCAL);
    let local = LocalRange { key, offset: 0, length_octets: 600 };
    rig.endpoint.post_receive(rig.qpn, Receive { wr_id: 4, local }).expect("posted");
    let in_use = Err(DeregisterError::InUse { key, qpn: rig.qpn });
    assert_eq!(rig.endpoint.deregister_memory(key), in_use);
    rig.give(&Given::new(Opcode::SEND_FIRST, 0, pattern(256, 1))).expect("taken");
    assert_eq!(rig.endpoint.deregister_memory(key), in_use);
    rig.give(&Given::new(Opcode::SEND_LAST, 1, pattern(10, 1))).expect("taken");
    assert!(rig.endpoint.deregister_memory(key).is_ok());
    assert_eq!(rig.completions().len(), 1);
}

/// A queue pair in error has flushed its work, and one that was removed has none: the memory is the host's again.
#[test]
fn memory_returns_when_its_queue_pair_has_failed_or_is_removed() {
    let mut rig = rig();
    let key = rig.endpoint.register_memory(pattern(600, 3), 0, Access::LOCAL, 9);
    rig.endpoint.post_send(rig.qpn, send(key)).expect("posted");
    assert_eq!(rig.psns(), [0, 1, 2]);
    rig.give(&Given::response(1, 0x61)).expect("taken");
    assert_eq!(rig.endpoint.state(rig.qpn), Some(QueuePairState::Error));
    assert!(rig.endpoint.deregister_memory(key).is_ok());

    let mut rig = self::rig();
    let key = rig.endpoint.register_memory(pattern(600, 3), 0, Access::LOCAL, 9);
    rig.endpoint.post_send(rig.qpn, send(key)).expect("posted");
    assert!(rig.endpoint.deregister_memory(key).is_err());
    rig.endpoint.remove_queue_pair(qpn(0x11)).expect("there");
    assert!(rig.endpoint.deregister_memory(key).is_ok());
    assert_eq!(rig.psns(), [0; 0], "nothing of it is sent");
}

/// Without the check the packets that follow would be acknowledged and lost.
#[test]
fn the_rest_of_a_write_to_deregistered_memory_is_refused() {
    let mut rig = rig();
    let key = rig.region(600, Access::REMOTE_WRITE);
    rig.give(&Given::new(Opcode::WRITE_FIRST, 0, pattern(256, 1)).reth(0x1000, key, 600)).expect("taken");
    let memory = rig.endpoint.deregister_memory(key).expect("a peer's WRITE does not hold it");
    assert_eq!(memory[..256], pattern(256, 1));
    let refused = rig.give(&Given::new(Opcode::WRITE_MIDDLE, 1, pattern(256, 2)).ack_request());
    assert_eq!(refused, Err(DropReason::RemoteAccess));
    assert_eq!(rig.acknowledges(), [(1, REMOTE_ACCESS_ERROR, 0)]);
    assert_eq!(rig.endpoint.state(rig.qpn), Some(QueuePairState::Error));
}

/// A region that takes the index of the former one is not written to either, though the WRITE has begun.
#[test]
fn the_rest_of_a_write_does_not_reach_the_next_region() {
    let mut rig = rig();
    let key = rig.region(600, Access::REMOTE_WRITE);
    rig.give(&Given::new(Opcode::WRITE_FIRST, 0, pattern(256, 1)).reth(0x1000, key, 600)).expect("taken");
    rig.endpoint.deregister_memory(key).expect("there");
    let next = rig.endpoint.register_memory(vec![0; 600], 0x1000, Access::REMOTE_WRITE, 0x43);
    assert_eq!(next.0 >> 8, key.0 >> 8, "the same index");
    let refused = rig.give(&Given::new(Opcode::WRITE_MIDDLE, 1, pattern(256, 2)));
    assert_eq!(refused, Err(DropReason::RemoteAccess));
    assert_eq!(rig.endpoint.memory(next), Some(&vec![0; 600]));
}

/// What was answered before stays; the READ gets a NAK at the packet that is missing, and no octets of other memory.
#[test]
fn a_read_of_deregistered_memory_ends_with_a_nak() {
    let mut rig = rig();
    let key = rig.region(600, Access::REMOTE_READ);
    let receives = rig.endpoint.register_memory(vec![0; 8], 0, Access::LOCAL, 0);
    let local = LocalRange { key: receives, offset: 0, length_octets: 8 };
    rig.endpoint.post_receive(rig.qpn, Receive { wr_id: 5, local }).expect("posted");
    rig.give(&Given::new(Opcode::READ_REQUEST, 0, Vec::new()).reth(0x1000, key, 600)).expect("taken");
    let mut buffer = vec![0; rig.endpoint.max_packet_octets()];
    assert!(rig.endpoint.poll_transmit(rig.now, &mut buffer).is_some(), "its first packet");
    rig.endpoint.deregister_memory(key).expect("a peer's READ does not hold it");
    assert_eq!(rig.acknowledges(), [(1, REMOTE_ACCESS_ERROR, 1)]);
    assert_eq!(rig.endpoint.state(rig.qpn), Some(QueuePairState::Error));
    assert_eq!(rig.completions().iter().map(|it| (it.wr_id, it.status)).collect::<Vec<_>>(), [(5, Status::Flushed)]);
}
