//! RC queue pairs: their states, and the requests in their queues.

use crate::completion::CompletionQueue;
use crate::device::{Device, LocalAddress, path_mtu_number};
use crate::error::{Result, VerbsError, number};
use crate::region::{Access, ScatterGatherElement};
use crate::sys::layout::{
    IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_DEST_QPN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC,
    IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY,
    IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR,
    IBV_QPS_RTS, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, ibv_ah_attr,
    ibv_gid, ibv_global_route, ibv_qp_attr, ibv_qp_cap, ibv_sge,
};
use crate::sys::{self, Domain, Pair, SendWork};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

/// The most elements of a request that are posted without allocating.
const ELEMENTS: usize = 16;

/// Capacity of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairOptions {
    /// Requests in its send queue.
    pub send_requests: u32,
    /// Requests in its receive queue.
    pub receive_requests: u32,
    /// Elements of a request, at most 16.
    pub elements: u32,
}

impl Default for QueuePairOptions {
    fn default() -> Self {
        QueuePairOptions { send_requests: 64, receive_requests: 64, elements: 1 }
    }
}

/// Time until a packet without acknowledgement is sent again: 4.096 µs · 2^exponent. The device may wait up to four
/// times as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AckTimeout(u8);

impl AckTimeout {
    /// 67 ms, for hardware. Emulated machines need 17, half a second.
    pub const DEFAULT: AckTimeout = AckTimeout(14);

    /// `None` above 31. 0 means that there is no timeout.
    pub const fn new(exponent: u8) -> Option<Self> {
        if exponent <= 31 { Some(AckTimeout(exponent)) } else { None }
    }

    /// The exponent.
    pub const fn exponent(self) -> u8 {
        self.0
    }

    /// The time; `None` for no timeout.
    pub const fn duration(self) -> Option<Duration> {
        if self.0 == 0 { None } else { Some(Duration::from_nanos(4096 << self.0)) }
    }
}

/// Attributes of a queue pair that can receive: state RTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyToReceive {
    /// Its own address, port and GID index.
    pub local: LocalAddress,
    /// Destination of its packets: the peer, or a group's Proxy Address.
    pub destination: Ipv6Addr,
    /// The peer's queue pair number, or a group's Designated QPN.
    pub destination_qpn: Qpn,
    /// PSN of the first request that it receives.
    pub expected_psn: Psn,
    /// Path MTU, the same at all members of a group.
    pub path_mtu: PathMtu,
    /// Hop limit of its packets. For RoCE v2 Linux replaces it by that of the route to the destination.
    pub hop_limit: u8,
    /// Traffic class of its packets.
    pub traffic_class: u8,
    /// Time that a peer waits after an RNR NAK, as a code of the IBTA specification, section 9.7.5.2.8: 12 is 0.64 ms.
    pub min_rnr_timer: u8,
}

impl ReadyToReceive {
    /// With hop limit 64, traffic class 0 and an RNR timer of 0.64 ms.
    pub fn new(
        local: LocalAddress,
        destination: Ipv6Addr,
        destination_qpn: Qpn,
        expected_psn: Psn,
        path_mtu: PathMtu,
    ) -> Self {
        let (hop_limit, traffic_class, min_rnr_timer) = (64, 0, 12);
        ReadyToReceive {
            local,
            destination,
            destination_qpn,
            expected_psn,
            path_mtu,
            hop_limit,
            traffic_class,
            min_rnr_timer,
        }
    }

    /// Attributes, and the mask of those that are set (ibv_modify_qp(3)).
    fn attributes(&self) -> (ibv_qp_attr, u32) {
        let LocalAddress { port, gid_index, .. } = self.local;
        let route = ibv_global_route {
            dgid: ibv_gid { raw: self.destination.octets() },
            flow_label: 0,
            sgid_index: gid_index,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
        };
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            path_mtu: path_mtu_number(self.path_mtu),
            dest_qp_num: self.destination_qpn.get(),
            rq_psn: self.expected_psn.get(),
            max_dest_rd_atomic: 1,
            min_rnr_timer: self.min_rnr_timer,
            ah_attr: ibv_ah_attr { grh: route, is_global: 1, port_num: port, ..ibv_ah_attr::default() },
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE
            | IBV_QP_AV
            | IBV_QP_PATH_MTU
            | IBV_QP_DEST_QPN
            | IBV_QP_RQ_PSN
            | IBV_QP_MAX_DEST_RD_ATOMIC
            | IBV_QP_MIN_RNR_TIMER;
        (attributes, mask)
    }
}

/// Attributes of a queue pair that can also send: state RTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyToSend {
    /// PSN of the first packet that it sends.
    pub first_psn: Psn,
    /// Time until a packet without acknowledgement is sent again.
    pub ack_timeout: AckTimeout,
    /// Retransmissions without progress after which a request fails, at most 7.
    pub retry_count: u8,
    /// RNR NAKs after which a request fails; 7 means that it never does.
    pub rnr_retry_count: u8,
}

impl ReadyToSend {
    /// The greatest retry count.
    pub const MOST_RETRIES: u8 = 7;

    /// With an ACK timeout of 67 ms, seven retries, and RNR NAKs without limit.
    pub fn new(first_psn: Psn) -> Self {
        ReadyToSend { first_psn, ack_timeout: AckTimeout::DEFAULT, retry_count: Self::MOST_RETRIES, rnr_retry_count: 7 }
    }

    /// Attributes, and the mask of those that are set (ibv_modify_qp(3)).
    fn attributes(&self) -> (ibv_qp_attr, u32) {
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            sq_psn: self.first_psn.get(),
            timeout: self.ack_timeout.exponent(),
            retry_cnt: self.retry_count,
            rnr_retry: self.rnr_retry_count,
            max_rd_atomic: 1,
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE
            | IBV_QP_SQ_PSN
            | IBV_QP_TIMEOUT
            | IBV_QP_RETRY_CNT
            | IBV_QP_RNR_RETRY
            | IBV_QP_MAX_QP_RD_ATOMIC;
        (attributes, mask)
    }
}

/// Memory of a peer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RemoteMemory {
    /// Address of the first octet, as the peer has registered it.
    pub virtual_address: u64,
    /// The peer's key.
    pub rkey: u32,
}

/// Without the key.
impl fmt::Debug for RemoteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteMemory({:#x})", self.virtual_address)
    }
}

/// An operation of the send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A message into a buffer that the peer has posted.
    Send,
    /// The same, with 32 bits for the peer's completion.
    SendWithImmediate(u32),
    /// A message into the peer's memory.
    Write(RemoteMemory),
    /// The same, with a completion at the peer, which needs a posted receive.
    WriteWithImmediate(RemoteMemory, u32),
}

/// A request of the send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRequest {
    /// Identifier of its completion.
    pub id: u64,
    /// The operation.
    pub operation: Operation,
    /// True if it has a completion also when it ends well. Requests without occupy the queue until a later one with a
    /// completion has ended.
    pub is_signalled: bool,
}

/// An RC queue pair.
#[derive(Debug)]
pub struct QueuePair {
    device: Device,
    pair: Pair,
    qpn: Qpn,
    elements: usize,
}

impl QueuePair {
    pub(crate) fn new(
        device: &Device,
        domain: &Arc<Domain>,
        options: &QueuePairOptions,
        send_completions: &CompletionQueue,
        receive_completions: &CompletionQueue,
    ) -> Result<Self> {
        let QueuePairOptions { send_requests, receive_requests, elements } = *options;
        at_most("the number of elements of a request", elements, ELEMENTS as u32)?;
        let mut capacity = ibv_qp_cap {
            max_send_wr: send_requests,
            max_recv_wr: receive_requests,
            max_send_sge: elements,
            max_recv_sge: elements,
            max_inline_data: 0,
        };
        let (send, receive) = (send_completions.completions(), receive_completions.completions());
        let pair = Pair::new(domain, send, receive, &mut capacity).map_err(|error| {
            let capacity = format!("{send_requests} send and {receive_requests} receive requests");
            device.error(format!("create a queue pair for {capacity} of {elements} elements"), error)
        })?;
        let [_, octets @ ..] = pair.number().to_be_bytes();
        Ok(QueuePair { device: device.clone(), pair, qpn: Qpn::from_octets(octets), elements: elements as usize })
    }

    /// Its number.
    pub fn qpn(&self) -> Qpn {
        self.qpn
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// From RESET to INIT: from then on receives can be posted. `access` is what the peer may do:
    /// [`Access::LocalRead`] for a source.
    ///
    /// # Errors
    ///
    /// If the queue pair is in another state.
    pub fn to_init(&self, local: &LocalAddress, access: Access) -> Result<()> {
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            pkey_index: 0,
            port_num: local.port,
            qp_access_flags: access.flags(),
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        self.modify("INIT", &attributes, mask)
    }

    /// From INIT to RTR: it receives. The kernel resolves the destination's MAC address, or that of the next hop; when
    /// there is no answer, it does so four times, which takes four seconds or more.
    ///
    /// # Errors
    ///
    /// If there is no route or no answer, the port's MTU is too small, or the queue pair is in another state.
    pub fn to_rtr(&self, ready: &ReadyToReceive) -> Result<()> {
        at_most("the RNR timer", ready.min_rnr_timer.into(), 31)?;
        let port = ready.local.port;
        if let Some(active) = self.device.port(port)?.active_mtu
            && ready.path_mtu.octets() > active.octets()
        {
            return Err(VerbsError::PathMtu {
                device: self.device.name().to_owned(),
                port,
                path_mtu_octets: ready.path_mtu.octets(),
                active_mtu_octets: active.octets(),
            });
        }
        let (attributes, mask) = ready.attributes();
        with_attempts(|| self.pair.modify(&attributes, mask))
            .map_err(|error| self.connect_error(ready.destination, error))
    }

    /// From RTR to RTS: it also sends.
    ///
    /// # Errors
    ///
    /// If a count is above 7, or the queue pair is in another state.
    pub fn to_rts(&self, ready: &ReadyToSend) -> Result<()> {
        at_most("the retry count", ready.retry_count.into(), ReadyToSend::MOST_RETRIES.into())?;
        at_most("the RNR retry count", ready.rnr_retry_count.into(), 7)?;
        let (attributes, mask) = ready.attributes();
        self.modify("RTS", &attributes, mask)
    }

    /// To ERR, from any state: it neither sends nor receives, and its requests end by
    /// [`WorkStatus::Flushed`](crate::WorkStatus::Flushed).
    ///
    /// # Errors
    ///
    /// If the device has failed.
    pub fn to_error(&self) -> Result<()> {
        let attributes = ibv_qp_attr { qp_state: IBV_QPS_ERR, ..ibv_qp_attr::default() };
        self.modify("ERR", &attributes, IBV_QP_STATE)
    }

    /// To RESET, from any state, to be connected again. Requests in its queues vanish without completion.
    ///
    /// # Errors
    ///
    /// If the device has failed.
    pub fn to_reset(&self) -> Result<()> {
        let attributes = ibv_qp_attr { qp_state: IBV_QPS_RESET, ..ibv_qp_attr::default() };
        self.modify("RESET", &attributes, IBV_QP_STATE)
    }

    /// Posts a request to the send queue: one message of the elements' octets, in their order. The regions must not be
    /// deregistered, and their octets must not change, before it has ended.
    ///
    /// # Errors
    ///
    /// If the queue is full, there are too many elements, or the queue pair cannot send.
    pub fn post_send(&self, request: &SendRequest, elements: &[ScatterGatherElement]) -> Result<()> {
        let (opcode, remote, immediate) = match request.operation {
            Operation::Send => (IBV_WR_SEND, None, 0),
            Operation::SendWithImmediate(immediate) => (IBV_WR_SEND_WITH_IMM, None, immediate),
            Operation::Write(remote) => (IBV_WR_RDMA_WRITE, Some(remote), 0),
            Operation::WriteWithImmediate(remote, immediate) => (IBV_WR_RDMA_WRITE_WITH_IMM, Some(remote), immediate),
        };
        let work = SendWork {
            id: request.id,
            opcode,
            immediate,
            remote_address: remote.map_or(0, |remote| remote.virtual_address),
            rkey: remote.map_or(0, |remote| remote.rkey),
            is_signalled: request.is_signalled,
        };
        self.with_list(elements, |list| self.pair.post_send(&work, list)).map_err(|error| match error {
            PostError::TooMany(error) => error,
            PostError::Post(error) => self.post_error("send", error),
        })
    }

    /// Posts a receive for one message of at most the elements' octets. It also takes a WRITE with immediate, which
    /// leaves the elements as they are; for those alone `elements` may be empty.
    ///
    /// # Errors
    ///
    /// If the queue is full, there are too many elements, or the queue pair is in state RESET.
    pub fn post_receive(&self, id: u64, elements: &[ScatterGatherElement]) -> Result<()> {
        self.with_list(elements, |list| self.pair.post_receive(id, list)).map_err(|error| match error {
            PostError::TooMany(error) => error,
            PostError::Post(error) => self.post_error("receive", error),
        })
    }

    fn with_list(
        &self,
        elements: &[ScatterGatherElement],
        post: impl FnOnce(&[ibv_sge]) -> std::result::Result<(), sys::Error>,
    ) -> std::result::Result<(), PostError> {
        let count = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        at_most("the number of elements", count, self.elements as u32).map_err(PostError::TooMany)?;
        let mut list = [ibv_sge { addr: 0, length: 0, lkey: 0 }; ELEMENTS];
        for (to, element) in list.iter_mut().zip(elements) {
            *to = element.sge();
        }
        post(&list[..elements.len()]).map_err(PostError::Post)
    }

    fn modify(&self, state: &str, attributes: &ibv_qp_attr, mask: u32) -> Result<()> {
        let action = || format!("set queue pair {:#08x} to {state}", self.qpn.get());
        self.pair.modify(attributes, mask).map_err(|error| self.device.error(action(), error))
    }

    fn connect_error(&self, destination: Ipv6Addr, error: sys::Error) -> VerbsError {
        let device = self.device.name().to_owned();
        match number(&error) {
            Some(libc::ETIMEDOUT) => VerbsError::DestinationUnresolved { device, destination },
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => VerbsError::DestinationUnreachable { device, destination },
            _ => {
                let action = format!("connect queue pair {:#08x} to {destination}", self.qpn.get());
                self.device.error(action, error)
            }
        }
    }

    fn post_error(&self, queue: &'static str, error: sys::Error) -> VerbsError {
        match number(&error) {
            Some(libc::ENOMEM) => {
                VerbsError::QueueFull { device: self.device.name().to_owned(), qpn: self.qpn.get(), queue }
            }
            _ => {
                let action = format!("post a request to the {queue} queue of queue pair {:#08x}", self.qpn.get());
                self.device.error(action, error)
            }
        }
    }
}

enum PostError {
    TooMany(VerbsError),
    Post(sys::Error),
}

/// Calls of the kernel that resolve a destination, at most. Each waits for a second, in which one neighbour
/// solicitation or ARP request is sent: without more of them, one lost frame would refuse a connection.
const RESOLUTION_ATTEMPTS: u32 = 4;

/// Calls again after a resolution without answer. A refused transition leaves the queue pair's state as it was.
fn with_attempts(
    mut modify: impl FnMut() -> std::result::Result<(), sys::Error>,
) -> std::result::Result<(), sys::Error> {
    for _ in 1..RESOLUTION_ATTEMPTS {
        match modify() {
            Err(error) if number(&error) == Some(libc::ETIMEDOUT) => {}
            result => return result,
        }
    }
    modify()
}

fn at_most(what: &'static str, value: u32, most: u32) -> Result<()> {
    if value <= most { Ok(()) } else { Err(VerbsError::TooLarge { what, value, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a transition returns whose calls fail with these error numbers, one after the other; and calls that remain.
    fn after(errors: &[i32]) -> (Option<i32>, usize) {
        let mut errors = errors.iter();
        let result = with_attempts(|| match errors.next() {
            Some(&error) => Err(sys::Error::System(std::io::Error::from_raw_os_error(error))),
            None => Ok(()),
        });
        (result.err().and_then(|error| number(&error)), errors.len())
    }

    #[test]
    fn a_resolution_without_answer_is_tried_four_times() {
        const NONE: i32 = libc::ETIMEDOUT;
        assert_eq!(after(&[]), (None, 0));
        assert_eq!(after(&[NONE, NONE, NONE]), (None, 0));
        assert_eq!(after(&[NONE; 5]), (Some(NONE), 1));
        assert_eq!(after(&[NONE, libc::EHOSTUNREACH, NONE]), (Some(libc::EHOSTUNREACH), 1));
    }

    #[test]
    fn a_timeout_is_a_power_of_two() {
        assert_eq!(AckTimeout::DEFAULT.duration(), Some(Duration::from_nanos(67_108_864)));
        assert_eq!(AckTimeout::new(17).and_then(AckTimeout::duration), Some(Duration::from_nanos(536_870_912)));
        assert_eq!(AckTimeout::new(0).expect("no timeout").duration(), None);
        assert_eq!(AckTimeout::new(31).and_then(AckTimeout::duration), Some(Duration::from_nanos(8_796_093_022_208)));
        assert_eq!(AckTimeout::new(32), None);
    }

    #[test]
    fn attributes_of_rtr_are_those_of_the_manual() {
        let local = LocalAddress { port: 2, gid_index: 5, address: "2001:db8::1".parse().unwrap(), interface_index: 3 };
        let destination: Ipv6Addr = "2001:db8::2".parse().unwrap();
        let path_mtu = PathMtu::from_octets(1024).unwrap();
        let mut ready = ReadyToReceive::new(local, destination, Qpn::new(0x12_3456).unwrap(), Psn::new(7), path_mtu);
        ready.traffic_class = 0x68;
        let (attributes, mask) = ready.attributes();
        // STATE, AV, PATH_MTU, DEST_QPN, RQ_PSN, MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER.
        assert_eq!(mask, 0x1 | 0x80 | 0x100 | 0x10_0000 | 0x1000 | 0x2_0000 | 0x8000);
        assert_eq!((attributes.qp_state, attributes.path_mtu, attributes.dest_qp_num), (2, 3, 0x12_3456));
        assert_eq!((attributes.rq_psn, attributes.max_dest_rd_atomic, attributes.min_rnr_timer), (7, 1, 12));
        let ah = &attributes.ah_attr;
        assert_eq!((ah.is_global, ah.port_num), (1, 2));
        assert_eq!((ah.grh.sgid_index, ah.grh.hop_limit, ah.grh.traffic_class), (5, 64, 0x68));
        assert_eq!(ah.grh.dgid.raw, destination.octets());
    }

    #[test]
    fn attributes_of_rts_are_those_of_the_manual() {
        let (attributes, mask) = ReadyToSend::new(Psn::new(0xff_fffe)).attributes();
        // STATE, SQ_PSN, TIMEOUT, RETRY_CNT, RNR_RETRY, MAX_QP_RD_ATOMIC.
        assert_eq!(mask, 0x1 | 0x1_0000 | 0x200 | 0x400 | 0x800 | 0x2000);
        assert_eq!((attributes.qp_state, attributes.sq_psn, attributes.timeout), (3, 0xff_fffe, 14));
        assert_eq!((attributes.retry_cnt, attributes.rnr_retry, attributes.max_rd_atomic), (7, 7, 1));
    }

    #[test]
    fn keys_are_not_shown() {
        let remote = RemoteMemory { virtual_address: 0x1000, rkey: 0xdead };
        let text = format!("{:?}", Operation::Write(remote));
        assert_eq!(text, "Write(RemoteMemory(0x1000))");
    }
}
