//! Nodes that register, execute orders, and can be killed.

use crate::running::Running;
use srdma_agent::{AllowedSids, GroupTable};
use srdma_api::{
    Client, Event, EventKind, EvictionRequest, GroupStatus, HeldGroup, Link, NodeAnswer, NodeOrder, NodeStatus,
    PROTOCOL, Registration, Session, Sync, SyncAnswer,
};
use srdma_group::GroupEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A node in a thread of its own.
pub(crate) struct Agent {
    pub(crate) state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) table: GroupTable,
    /// The orders, in order of arrival.
    pub(crate) log: Vec<String>,
    pub(crate) eviction_requests: Vec<EvictionRequest>,
    pub(crate) refuses: bool,
    /// Neighbours that BFD has found down.
    pub(crate) unreachable: Vec<Ipv6Addr>,
}

pub(crate) fn loopback(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1)
}

/// Figure 1: N6 above N4 and N5, N4 above N1 and N2, N5 above N3; and N4–N3, N5–N2 as other paths.
const LINKS: [(u16, u16); 7] = [(6, 4), (6, 5), (4, 1), (4, 2), (5, 3), (4, 3), (5, 2)];

pub(crate) fn registration(number: u16) -> Registration {
    let ends = LINKS.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).filter(|(from, _)| *from == number);
    let hosts = match number {
        6 => vec!["2001:db8:aa::/64".parse().unwrap()],
        // R1 and R2, R3, R4 and R5.
        1 => vec!["2001:db8:bb::1/128".parse().unwrap(), "2001:db8:bb::2/128".parse().unwrap()],
        2 => vec!["2001:db8:bb::3/128".parse().unwrap(), "2001:db8:bb::6/128".parse().unwrap()],
        3 => vec!["2001:db8:bb::4/128".parse().unwrap(), "2001:db8:bb::5/128".parse().unwrap()],
        _ => Vec::new(),
    };
    Registration {
        protocol: PROTOCOL,
        name: format!("N{number}"),
        loopback: loopback(number),
        end_mt: (number <= 3).then(|| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 0xe)),
        replication: (number >= 4).then(|| format!("2001:db8:ff:{number}:f::/80").parse().unwrap()),
        links: ends.map(|(_, to)| Link { to: loopback(to), mtu: 9000, cost: 1 }).collect(),
        hosts,
        groups: Vec::new(),
        repairs: true,
    }
}

impl Agent {
    pub(crate) fn start(running: &Running, number: u16) -> Self {
        Self::with(running.client(), registration(number), Arc::default())
    }

    /// A node with the state of an earlier one.
    pub(crate) fn with(client: Client, registration: Registration, state: Arc<Mutex<State>>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (own, ends) = (Arc::clone(&state), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                serve(&client, &registration, &own, &ends);
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        Agent { state, stop, thread: Some(thread) }
    }

    pub(crate) fn group_entry(&self, group: u32) -> Option<GroupEntry> {
        self.state.lock().unwrap().table.entry(group).cloned()
    }

    pub(crate) fn log(&self) -> String {
        std::mem::take(&mut self.state.lock().unwrap().log).join(", ")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// The six nodes, registered.
pub(crate) fn figure_1(running: &Running) -> BTreeMap<u16, Agent> {
    let agents = (1..=6).map(|number| (number, Agent::start(running, number))).collect();
    until_registered(running, 6);
    agents
}

/// Reads the event stream from its beginning until `count` nodes have registered.
pub(crate) fn until_registered(running: &Running, count: usize) {
    let stream = running.client().events(Some("0")).unwrap();
    let mut registered = BTreeSet::new();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    for event in lines.filter_map(|line| Some(serde_json::from_str::<Event>(line.strip_prefix("data: ")?).unwrap())) {
        if let EventKind::NodeUp { node } = event.kind {
            registered.insert(node);
        }
        if registered.len() == count {
            return;
        }
    }
    panic!("the stream has ended; registered: {registered:?}");
}

/// Registers and executes orders until the session or the connection ends.
fn serve(client: &Client, registration: &Registration, state: &Mutex<State>, ends: &AtomicBool) {
    let mut registration = registration.clone();
    {
        let mut state = state.lock().unwrap();
        if state.table.is_empty() {
            let (end_mt, replication) = (registration.end_mt, registration.replication);
            state.table = GroupTable::new(AllowedSids { end_mt, replication });
        }
        registration.groups = state.table.held();
    }
    let Ok(session) = client.post::<Session>("/v1/nodes", &registration, None) else { return };
    let session = session.value;
    let path = format!("/v1/nodes/{}/sync", registration.name);
    let mut answers = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let eviction_requests = std::mem::take(&mut state.lock().unwrap().eviction_requests);
        let status = status(&state.lock().unwrap());
        let sync = Sync {
            session: session.session,
            answers: std::mem::take(&mut answers),
            eviction_requests,
            status: Some(status),
            wait_ms: 50,
        };
        let Ok(reply) = client.post::<SyncAnswer>(&path, &sync, None) else { return };
        for order in reply.value.orders {
            answers.extend(execute(&mut state.lock().unwrap(), order));
        }
    }
}

/// The status of a node that has forwarded no data.
fn status(state: &State) -> NodeStatus {
    let idle = |held: HeldGroup| GroupStatus {
        group: held.group,
        highest_psn: None,
        awaits_first_psn: false,
        repair: None,
        branches: Vec::new(),
    };
    let (groups, unreachable) = (state.table.held().into_iter().map(idle).collect(), state.unreachable.clone());
    NodeStatus { groups, unreachable, ..NodeStatus::default() }
}

fn execute(state: &mut State, order: NodeOrder) -> Option<NodeAnswer> {
    let (verb, group, epoch) = match &order {
        NodeOrder::Prepare { entry, .. } => ("prepare", entry.id.0, entry.epoch),
        NodeOrder::Restore { entry, .. } => ("restore", entry.id.0, entry.epoch),
        NodeOrder::Commit { group, name, .. } => ("commit", *group, name.epoch),
        NodeOrder::Abort { group, name, .. } => ("abort", *group, name.epoch),
        NodeOrder::Remove { group, epoch, .. } => ("remove", *group, *epoch),
    };
    state.log.push(format!("{verb} {group} {epoch}"));
    if let (NodeOrder::Prepare { name, .. }, true) = (&order, state.refuses) {
        return Some(NodeAnswer::Refused { group, name: *name, reason: "no room".to_owned() });
    }
    state.table.execute(order)
}
