//! Messages between the processes of a host that share a receiver (D199).

/// Any octets as messages to an owner, and to a rank: what is accepted means the same when it is emitted and read
/// again, and is not longer than what was read.
pub fn ranks(input: &[u8]) {
    let [to_owner, to_rank] = srdma::rank_messages(input);
    assert!(to_owner.len() <= input.len() && to_rank.len() <= input.len());
    assert_eq!(srdma::rank_messages(&to_owner)[0], to_owner);
    assert_eq!(srdma::rank_messages(&to_rank)[1], to_rank);
}
