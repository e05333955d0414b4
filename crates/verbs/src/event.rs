//! Asynchronous events of a device.

use crate::sys::RawEvent;
use crate::sys::layout::{
    IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_COMM_EST, IBV_EVENT_CQ_ERR, IBV_EVENT_DEVICE_FATAL, IBV_EVENT_GID_CHANGE,
    IBV_EVENT_LID_CHANGE, IBV_EVENT_PATH_MIG, IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_PORT_ACTIVE,
    IBV_EVENT_PORT_ERR, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_FATAL, IBV_EVENT_QP_LAST_WQE_REACHED,
    IBV_EVENT_QP_REQ_ERR, IBV_EVENT_SM_CHANGE, IBV_EVENT_SQ_DRAINED,
};
use srdma_wire::Qpn;
use std::fmt;

/// An asynchronous event, with the number of the queue pair or port that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A completion queue has overrun or failed.
    CompletionQueueError,
    /// A queue pair has failed.
    QueuePairFatal(Qpn),
    /// A peer has sent a request that the queue pair does not allow.
    QueuePairRequestError(Qpn),
    /// A peer has accessed memory that it may not access.
    QueuePairAccessError(Qpn),
    /// The first packet has come to a queue pair that cannot send yet.
    CommunicationEstablished(Qpn),
    /// The send queue of a queue pair in state SQD is empty.
    SendQueueDrained(Qpn),
    /// A queue pair uses its alternate path.
    PathMigrated(Qpn),
    /// A queue pair cannot use its alternate path.
    PathMigrationError(Qpn),
    /// The last request of a shared receive queue was taken.
    LastRequestReached(Qpn),
    /// The device has failed: all its handles are useless.
    DeviceFatal,
    /// A port can send and receive.
    PortActive(u8),
    /// A port is down.
    PortError(u8),
    /// A port's GID table has changed: the GID index of an address may be another now.
    GidChange(u8),
    /// A port's LID has changed.
    LidChange(u8),
    /// A port's table of partition keys has changed.
    PkeyChange(u8),
    /// A port's subnet manager is another.
    SubnetManagerChange(u8),
    /// A port's subnet manager requests that subscriptions are renewed.
    ClientReregister(u8),
    /// An event that this crate does not know, by its number in `enum ibv_event_type`.
    Other(u32),
}

/// What an event has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All that uses the device.
    Device,
    /// A queue pair.
    QueuePair,
}

impl Event {
    /// What cannot be used any more after it. A port may come back before retries are used up, and a queue pair keeps
    /// its address when the table of addresses changes.
    pub fn ended(&self) -> Option<Ended> {
        match self {
            Event::DeviceFatal | Event::CompletionQueueError => Some(Ended::Device),
            Event::QueuePairFatal(_) | Event::QueuePairRequestError(_) | Event::QueuePairAccessError(_) => {
                Some(Ended::QueuePair)
            }
            Event::CommunicationEstablished(_)
            | Event::SendQueueDrained(_)
            | Event::PathMigrated(_)
            | Event::PathMigrationError(_)
            | Event::LastRequestReached(_)
            | Event::PortActive(_)
            | Event::PortError(_)
            | Event::GidChange(_)
            | Event::LidChange(_)
            | Event::PkeyChange(_)
            | Event::SubnetManagerChange(_)
            | Event::ClientReregister(_)
            | Event::Other(_) => None,
        }
    }

    pub(crate) fn of(event: RawEvent) -> Self {
        let RawEvent { event_type, number } = event;
        let pair = |name: fn(Qpn) -> Event| Qpn::new(number).map_or(Event::Other(event_type), name);
        let port = |name: fn(u8) -> Event| u8::try_from(number).map_or(Event::Other(event_type), name);
        match event_type {
            IBV_EVENT_CQ_ERR => Event::CompletionQueueError,
            IBV_EVENT_QP_FATAL => pair(Event::QueuePairFatal),
            IBV_EVENT_QP_REQ_ERR => pair(Event::QueuePairRequestError),
            IBV_EVENT_QP_ACCESS_ERR => pair(Event::QueuePairAccessError),
            IBV_EVENT_COMM_EST => pair(Event::CommunicationEstablished),
            IBV_EVENT_SQ_DRAINED => pair(Event::SendQueueDrained),
            IBV_EVENT_PATH_MIG => pair(Event::PathMigrated),
            IBV_EVENT_PATH_MIG_ERR => pair(Event::PathMigrationError),
            IBV_EVENT_QP_LAST_WQE_REACHED => pair(Event::LastRequestReached),
            IBV_EVENT_DEVICE_FATAL => Event::DeviceFatal,
            IBV_EVENT_PORT_ACTIVE => port(Event::PortActive),
            IBV_EVENT_PORT_ERR => port(Event::PortError),
            IBV_EVENT_GID_CHANGE => port(Event::GidChange),
            IBV_EVENT_LID_CHANGE => port(Event::LidChange),
            IBV_EVENT_PKEY_CHANGE => port(Event::PkeyChange),
            IBV_EVENT_SM_CHANGE => port(Event::SubnetManagerChange),
            IBV_EVENT_CLIENT_REREGISTER => port(Event::ClientReregister),
            other => Event::Other(other),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = |f: &mut fmt::Formatter<'_>, qpn: &Qpn, text| write!(f, "queue pair {:#08x}: {text}", qpn.get());
        let port = |f: &mut fmt::Formatter<'_>, port: &u8, text| write!(f, "port {port}: {text}");
        match self {
            Event::CompletionQueueError => write!(f, "a completion queue has overrun or failed"),
            Event::QueuePairFatal(qpn) => pair(f, qpn, "failed"),
            Event::QueuePairRequestError(qpn) => pair(f, qpn, "invalid request of the peer"),
            Event::QueuePairAccessError(qpn) => pair(f, qpn, "access violation of the peer"),
            Event::CommunicationEstablished(qpn) => pair(f, qpn, "communication established"),
            Event::SendQueueDrained(qpn) => pair(f, qpn, "send queue drained"),
            Event::PathMigrated(qpn) => pair(f, qpn, "uses its alternate path"),
            Event::PathMigrationError(qpn) => pair(f, qpn, "cannot use its alternate path"),
            Event::LastRequestReached(qpn) => pair(f, qpn, "last request of the shared receive queue"),
            Event::DeviceFatal => write!(f, "the device has failed"),
            Event::PortActive(number) => port(f, number, "active"),
            Event::PortError(number) => port(f, number, "down"),
            Event::GidChange(number) => port(f, number, "GID table changed"),
            Event::LidChange(number) => port(f, number, "LID changed"),
            Event::PkeyChange(number) => port(f, number, "partition keys changed"),
            Event::SubnetManagerChange(number) => port(f, number, "subnet manager changed"),
            Event::ClientReregister(number) => port(f, number, "subscriptions are to be renewed"),
            Event::Other(number) => write!(f, "event {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_name_their_queue_pair_or_port() {
        let event = |event_type, number| Event::of(RawEvent { event_type, number });
        assert_eq!(event(3, 0x11).to_string(), "queue pair 0x000011: access violation of the peer");
        assert_eq!(event(10, 1), Event::PortError(1));
        assert_eq!(event(18, 2).to_string(), "port 2: GID table changed");
        assert_eq!(event(8, 0xdead_beef), Event::DeviceFatal);
        assert_eq!(event(15, 0).to_string(), "event 15");
        // A queue pair number has 24 bits, a port number 8.
        assert_eq!((event(3, 1 << 24), event(10, 256)), (Event::Other(3), Event::Other(10)));
    }
}
