//! The controller: the real pipeline and core over a store whose writes are durable at once.
//!
//! A crash between a transaction and its durable write needs no event of its own: nothing has left the controller then,
//! so that it equals a crash before the request arrived. The writes of one transaction are durable together.

use super::canonical::fingerprint;
use super::network::{self, GROUP_TENANT, Place};
use srdma_api::{
    Group, GroupState, NewReceiver, NodeOrder, NodeStatus, ReceiverOrder, ReceiverReport, Registration, Session,
    SourceOrder, SourceReport, Sync,
};
use srdma_controller_core::{AUDIT_PREFIX, Core, Pipeline, Refusal, Row, RowError, Settings, Tenant, Time, Write};
use srdma_group::Safeguard;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::rc::Rc;
use std::time::Duration;

/// Timeout of silent nodes.
const DEAD_AFTER: Duration = Duration::from_secs(3);
/// Time after which reservations expire (D188).
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Queue pair of each receiver.
const QPN: u32 = 0x1000;
/// Before and after the time in which a restarted controller expects its nodes.
const EARLY: Duration = Duration::from_secs(10);
const LATE: Duration = Duration::from_secs(1000);

#[derive(Clone, Debug)]
pub(super) struct Controller {
    pipeline: Pipeline,
    rows: BTreeMap<String, Value>,
    /// Whether nodes have been found dead since the start: the time in which they are expected is over.
    is_late: bool,
    /// Disabled.
    without: Option<Safeguard>,
}

/// A row, and its fingerprint.
#[derive(Clone, Debug)]
struct Value {
    octets: Rc<[u8]>,
    fingerprint: u64,
}

fn settings(without: Option<Safeguard>) -> Settings {
    Settings {
        without,
        tenants: BTreeMap::from([(GROUP_TENANT.to_owned(), Tenant::default())]),
        node_dead_after: DEAD_AFTER,
        join_timeout: JOIN_TIMEOUT,
        // Sources are never silent for so long.
        source_silent_after: Duration::from_secs(1_000_000),
        ..Settings::default()
    }
}

impl Controller {
    /// Starts with an empty store of this identity. `rebuilds`: a lost store, whose groups are restored from its nodes.
    pub(super) fn new(identity: u64, rebuilds: Option<u64>, without: Option<Safeguard>) -> Result<Self, RowError> {
        Controller::start(BTreeMap::new(), identity, rebuilds, without)
    }

    /// Starts again with the rows of the store.
    pub(super) fn restarted(&self) -> Result<Self, RowError> {
        Controller::start(self.rows.clone(), 0, None, self.without)
    }

    fn start(
        rows: BTreeMap<String, Value>,
        identity: u64,
        rebuilds: Option<u64>,
        without: Option<Safeguard>,
    ) -> Result<Self, RowError> {
        let state: Vec<Row> = rows.iter().map(|(key, value)| (key.clone(), value.octets.to_vec())).collect();
        let time = Time { monotonic: EARLY, unix_ms: 0 };
        let core = Core::restore(settings(without), None, &state, identity, rebuilds, time)?;
        let mut controller = Controller { pipeline: Pipeline::new(core), rows, is_late: false, without };
        controller.transact(|_| ());
        Ok(controller)
    }

    fn transact<T>(&mut self, act: impl FnOnce(&mut Core) -> T) -> Option<T> {
        self.transact_at(if self.is_late { LATE } else { EARLY }, act)
    }

    /// Runs a transaction, which is durable at once; `None` if its answer waits for other writes, which do not exist.
    fn transact_at<T>(&mut self, monotonic: Duration, act: impl FnOnce(&mut Core) -> T) -> Option<T> {
        let transaction = self.pipeline.transact(Time { monotonic, unix_ms: 0 }, act);
        for write in transaction.writes {
            match write {
                Write::Put { key, .. } if key.starts_with(AUDIT_PREFIX) => {}
                Write::Put { key, value } => {
                    let fingerprint = fingerprint(&String::from_utf8_lossy(&value));
                    self.rows.insert(key, Value { octets: value.into(), fingerprint });
                }
                Write::Delete { key } => drop(self.rows.remove(&key)),
            }
        }
        let _ = self.pipeline.durable(transaction.number);
        transaction.answer.release(self.pipeline.durable_number()).ok()
    }

    fn core(&self) -> &Core {
        self.pipeline.core()
    }

    /// Of the core, the orders that wait, and the store.
    pub(super) fn fingerprint(&self, places: &[Place]) -> u64 {
        let orders: Vec<Vec<&NodeOrder>> = places.iter().map(|place| self.orders(place.loopback())).collect();
        let rows: Vec<(&String, u64)> = self.rows.iter().map(|(key, value)| (key, value.fingerprint)).collect();
        fingerprint(&(self.core(), orders, rows, self.is_late))
    }

    pub(super) fn orders(&self, node: Ipv6Addr) -> Vec<&NodeOrder> {
        self.pipeline.waiting_orders(node).collect()
    }

    /// Takes the orders of a node without sending them.
    pub(super) fn drop_orders(&mut self, place: Place) {
        self.pipeline.take_orders(place.loopback());
    }

    pub(super) fn register(&mut self, registration: Registration) -> Option<Session> {
        self.transact(|core| core.register(&network::admin(), registration))?.ok()
    }

    /// A report of a node; returns the orders for it, or `None` if its session has ended.
    pub(super) fn sync(&mut self, place: Place, sync: Sync) -> Option<Vec<NodeOrder>> {
        let node = self.transact(|core| core.sync(&network::admin(), &place.name(), sync))?.ok()?;
        Some(self.pipeline.take_orders(node))
    }

    /// Whether this session of a node has not ended.
    pub(super) fn is_current(&self, place: Place, session: u64) -> bool {
        self.core().check_session(place.loopback(), session, &place.name()).is_ok()
    }

    /// Detects the death of a node, which has been silent for long. Other nodes that have registered have not.
    pub(super) fn expire(&mut self, place: Place, places: &[Place]) {
        let others: Vec<Ipv6Addr> =
            places.iter().filter(|other| **other != place).map(|other| other.loopback()).collect();
        let keep = |core: &mut Core| others.iter().for_each(|other| core.keep_session(*other));
        let begin = if self.is_late { LATE } else { EARLY };
        self.is_late = true;
        // Time passes in steps in which the controller listens.
        for step in 1..=3 {
            self.transact_at(begin + DEAD_AFTER * step / 2, |core| {
                keep(core);
                core.expire_nodes();
            });
        }
        self.transact(|core| {
            keep(core);
            core.expire_nodes();
        });
    }

    /// A reservation of a receiver that is not heard expires. Nodes are heard meanwhile.
    pub(super) fn lapse(&mut self, places: &[Place]) {
        let begin = if self.is_late { LATE } else { EARLY };
        // In steps in which the controller listens.
        for step in 1..=4 {
            self.transact_at(begin + JOIN_TIMEOUT * step * 2 / 5, |core| {
                places.iter().for_each(|place| core.keep_session(place.loopback()));
                core.expire_nodes();
            });
        }
    }

    /// Retransmits orders without an answer.
    pub(super) fn retransmit(&mut self) {
        self.transact(Core::retransmit);
    }

    /// Creates the group with these receivers and commits it, as far as that has not been done.
    /// `proxy`: the number of its Proxy Address.
    pub(super) fn create(&mut self, receivers: &[Ipv6Addr], proxy: u16) -> Option<()> {
        let id = match self.groups().first() {
            Some(group) => group.summary.id,
            None => {
                self.transact(|core| core.create_group(&network::admin(), None, network::new_group(proxy)))?.ok()?
            }
        };
        for receiver in receivers {
            let _ = self.join(id, *receiver);
        }
        self.transact(|core| core.commit_group(&network::admin(), id, None))?.ok()
    }

    pub(super) fn join(&mut self, id: u32, receiver: Ipv6Addr) -> Result<(), Refusal> {
        let new = NewReceiver::new(QPN, 4096);
        self.transact(|core| core.join(&network::admin(), id, receiver, new, None)).unwrap_or(Ok(()))
    }

    pub(super) fn reserve(&mut self, id: u32, receiver: Ipv6Addr) -> Result<(), Refusal> {
        let new = NewReceiver::new(QPN, 4096);
        self.transact(|core| core.reserve(&network::admin(), id, receiver, new, None)).unwrap_or(Ok(()))
    }

    /// A receiver that has a reservation reports; `None` if it has none.
    pub(super) fn report_receiver(&mut self, id: u32, receiver: Ipv6Addr, ready: Option<u32>) -> Option<ReceiverOrder> {
        let report = ReceiverReport { qpn: QPN, ready_at_psn: ready, wait_ms: 0 };
        self.transact(|core| core.report_receiver(&network::admin(), id, receiver, report))?.ok()
    }

    pub(super) fn leave(&mut self, id: u32, receiver: Ipv6Addr) -> Result<(), Refusal> {
        self.transact(|core| core.leave(&network::admin(), id, receiver, None)).unwrap_or(Ok(()))
    }

    pub(super) fn report_source(&mut self, id: u32, report: SourceReport) -> Option<SourceOrder> {
        self.transact(|core| core.report_source(&network::admin(), id, report))?.ok()
    }

    /// The groups as the API shows them.
    pub(super) fn groups(&self) -> Vec<Group> {
        let page = self.core().groups(&network::admin(), None, None, None);
        let ids = page.iter().flat_map(|page| &page.groups).map(|group| group.id);
        ids.filter_map(|id| Some(self.core().group(&network::admin(), id).ok()?.0)).collect()
    }

    /// The last status of a node.
    pub(super) fn status(&self, place: Place) -> Option<NodeStatus> {
        self.core().node(&network::admin(), &place.name()).ok()?.status
    }

    /// The foreign groups that the API shows: store, group, and names of the nodes that have it.
    pub(super) fn foreign(&self) -> Vec<srdma_api::ForeignGroup> {
        self.core().foreign_groups(&network::admin()).map(|foreign| foreign.groups).unwrap_or_default()
    }

    /// The record that the store has of a group.
    pub(super) fn stored_record(&self, id: u32) -> Option<srdma_group::Record> {
        let row = self.rows.get(&format!("record/{id:010}"))?;
        let document: serde_json::Value = serde_json::from_slice(&row.octets).ok()?;
        serde_json::from_value(document.get("record")?.clone()).ok()
    }
}

/// Whether a group needs no further step of a node.
pub(super) fn is_at_rest(group: &Group) -> bool {
    match group.summary.state {
        GroupState::Ready | GroupState::Open | GroupState::Stopped | GroupState::Closed => true,
        GroupState::Creating | GroupState::Changing | GroupState::Closing | GroupState::Verifying => false,
    }
}
