//! Values of requests: usual ones, and those at and beyond their limits.

use super::site::{NODES, loopback, name_of, registration};
use crate::choices::Choices;
use srdma_api::{
    BranchStatus, EvictionRequest, GroupRepairStatus, GroupStatus, HeldGroup, Link, MemoryRegion, NewGroup,
    NewReceiver, NodeAnswer, NodeIdentity, NodeStatus, PortStatus, ReceiverReport, Registration, SourceAddress,
    SourceRegion, SourceReport, SourceService, SourceTransport, UnreachableReport,
};
use srdma_controller_core::{Principal, Role};
use srdma_group::{EntryName, ListMode, OnFailure, Policy, RepairMode};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;
use std::time::Duration;

/// The prefixes of hosts, each with a node that has it. One is at two nodes.
pub(super) const AS_HOSTS: [(u16, &str); 7] = [
    (6, "2001:db8:aa::/64"),
    (1, "2001:db8:b1::/64"),
    (2, "2001:db8:b2::/64"),
    (3, "2001:db8:b3::/64"),
    (1, "2001:db8:d0::/64"),
    (2, "2001:db8:d0::/64"),
    (3, "::ffff:10.0.3.0/120"),
];

const fn host(prefix: u16, number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, prefix, 0, 0, 0, 0, number)
}

const ADDRESSES: [Ipv6Addr; 16] = [
    host(0xaa, 1),
    host(0xb1, 1),
    host(0xb2, 1),
    host(0xb3, 1),
    host(0xb1, 2),
    host(0xd0, 1),
    host(0xd0, 2),
    host(0xaa, 2),
    host(0xcc, 1),
    host(0xcc, 2),
    Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, 0x0301),
    host(0xee, 1),
    loopback(1),
    Ipv6Addr::UNSPECIFIED,
    Ipv6Addr::LOCALHOST,
    Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1),
];

const NUMBERS: [u32; 10] = [0x1000, 0x1001, 2, 0, 1, 0xff_ffff, 0x100_0000, 0x7f_ffff, 0x80_0000, u32::MAX];
const MTUS: [u16; 6] = [4096, 1024, 256, 4000, 0, u16::MAX];
const LENGTHS: [u64; 6] = [1 << 20, 4096, 1, 0, u64::MAX, 1 << 63];
const NAMES: [&str; 8] = ["g", "N1", "N6", "new", "", "a b", "\u{7}", "../N1"];

pub(super) fn admin() -> Principal {
    Principal { name: "operator".to_owned(), role: Role::Admin, tenant: None, node: None }
}

impl Choices<'_> {
    /// Usually an administrator.
    pub(super) fn principal(&mut self) -> Principal {
        let (role, tenant, node) = match self.below(16) {
            0..12 => (Role::Admin, None, None),
            12 => (Role::Tenant, Some("small".to_owned()), None),
            13 => (Role::Node, None, Some("N1".to_owned())),
            14 => (Role::Node, None, None),
            _ => (Role::Read, None, None),
        };
        Principal { name: "token".to_owned(), role, tenant, node }
    }

    pub(super) fn tenant(&mut self) -> Option<&'static str> {
        self.of(&[None, Some("default"), Some("small"), Some("unknown"), Some("")])
    }

    /// Rarely any, so that changes of an input reach all.
    pub(super) fn host(&mut self) -> Ipv6Addr {
        match self.below(ADDRESSES.len() + 1) {
            16 => self.address(),
            position => ADDRESSES[position],
        }
    }

    pub(super) fn number(&mut self) -> u32 {
        match self.below(NUMBERS.len() + 1) {
            10 => self.u32(),
            position => NUMBERS[position],
        }
    }

    pub(super) fn group(&mut self) -> u32 {
        self.of(&[1, 2, 3, 4, 0, u32::MAX])
    }

    pub(super) fn node(&mut self) -> u16 {
        1 + self.below(usize::from(NODES)) as u16
    }

    pub(super) fn node_name(&mut self) -> String {
        if self.rarely(4) { self.text() } else { name_of(self.node()) }
    }

    pub(super) fn text(&mut self) -> String {
        match self.below(NAMES.len() + 1) {
            8 => "n".repeat(usize::from(self.octet()) * 4),
            position => NAMES[position].to_owned(),
        }
    }

    pub(super) fn version(&mut self) -> Option<u64> {
        self.of(&[None, None, None, Some(1), Some(2), Some(u64::MAX)])
    }

    fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.rarely(3).then(|| draw(self))
    }

    /// At most `most`, usually none.
    fn some<T>(&mut self, most: usize, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let number = if self.rarely(3) { self.below(most + 1) } else { 0 };
        (0..number).map(|_| draw(self)).collect()
    }

    fn prefix(&mut self) -> Prefix {
        let (address, len) = (self.host(), self.of(&[128, 64, 56, 0, 120]));
        Prefix::new(address, len).expect("a length of at most 128")
    }

    pub(super) fn new_group(&mut self) -> NewGroup {
        let source = SourceAddress { address: self.host(), qpn: self.number() };
        let usual = NewGroup::new(source, self.number());
        if !self.rarely(2) {
            return usual;
        }
        NewGroup {
            name: self.maybe(Self::text),
            proxy: self.maybe(Self::host),
            initial_psn: self.number(),
            path_mtu: self.of(&MTUS),
            region: self.maybe(Self::source_region),
            more_regions: self.some(18, Self::source_region),
            policy: self.policy(),
            transport: self.maybe(|choices| SourceTransport {
                ack_timeout: choices.of(&[14, 0, 31, 255]),
                retries: choices.of(&[7, 0, 255]),
            }),
            repair: self.of(&[None, Some(RepairMode::Off), Some(RepairMode::Edge), Some(RepairMode::Tree)]),
            window_octets: self.maybe(Self::number),
            resumes: self.maybe(Self::group),
            ..usual
        }
    }

    fn source_region(&mut self) -> SourceRegion {
        SourceRegion { base: self.of(&LENGTHS), length: self.of(&LENGTHS), rkey: self.number() }
    }

    fn policy(&mut self) -> Policy {
        let mut policy = Policy {
            on_failure: self.of(&[OnFailure::Evict, OnFailure::Strict]),
            min_receivers: self.of(&[1, 0, 2, u32::MAX]),
            ..Policy::default()
        };
        if self.rarely(2) {
            policy.lists = self.of(&[ListMode::Auto, ListMode::Tlv, ListMode::Provisioned]);
            let time = Duration::from_nanos(self.of(&[1_000, 0, 1, u64::MAX, 1_000_000_000]));
            match self.below(6) {
                0 => policy.t_hold = time,
                1 => policy.cnp_window = time,
                2 => policy.cnp_window_most = time,
                3 => policy.t_stall = time,
                4 => policy.t_not_ready = Some(time),
                _ => policy.repair.ack_timeout = time,
            }
            policy.cnp_limit = self.of(&[64, 0, u16::MAX]);
            policy.stall_sends = self.of(&[7, 0, u8::MAX]);
            policy.hmac_key_id = self.maybe(Self::number);
            policy.repair.mode = self.of(&[RepairMode::Off, RepairMode::Edge, RepairMode::Tree]);
            policy.repair.window_octets = self.number();
        }
        policy
    }

    pub(super) fn new_receiver(&mut self) -> NewReceiver {
        let usual = NewReceiver::new(self.number(), 4096);
        if !self.rarely(2) {
            return usual;
        }
        let region =
            |choices: &mut Self| MemoryRegion { virtual_address: choices.of(&LENGTHS), rkey: choices.number() };
        NewReceiver {
            path_mtu: self.of(&MTUS),
            region: self.maybe(region),
            more_regions: self.some(18, region),
            host: self.maybe(Self::u64),
            psn_offset: self.number(),
            ..usual
        }
    }

    pub(super) fn source_report(&mut self) -> SourceReport {
        let form = self.octet();
        SourceReport {
            round: self.maybe(|choices| choices.of(&[0, 1, 2, 3, 1 << 16, (1 << 16) + 1, u32::MAX])),
            pausing: form & 1 != 0,
            paused_at_psn: self.maybe(Self::number),
            completed_messages: self.number(),
            acknowledged_psn: self.maybe(Self::number),
            ended: form & 2 != 0,
            wait_ms: 0,
        }
    }

    pub(super) fn receiver_report(&mut self) -> ReceiverReport {
        ReceiverReport { qpn: self.number(), ready_at_psn: self.maybe(Self::number), wait_ms: 0 }
    }

    pub(super) fn service(&mut self) -> SourceService {
        SourceService { port: self.u16(), key: self.text() }
    }

    /// The registration of a node, with a few values of its own.
    pub(super) fn registration(&mut self, held: Vec<HeldGroup>) -> Registration {
        let mut registration = Registration { groups: held, ..registration(self.node()) };
        for _ in 0..self.below(4) {
            match self.below(9) {
                0 => registration.name = self.text(),
                1 => registration.loopback = self.host(),
                2 => registration.end_mt = self.maybe(Self::host),
                3 => registration.replication = self.maybe(Self::prefix),
                4 => registration.hosts = self.some(4, Self::prefix),
                5 => registration.protocol = self.of(&[0, 1, 2, u32::MAX]),
                6 => registration.links = self.some(4, Self::link),
                7 => registration.groups.extend(self.held_group()),
                _ => registration.repairs = self.rarely(2),
            }
        }
        registration
    }

    fn link(&mut self) -> Link {
        let to = if self.rarely(3) { self.host() } else { loopback(self.node()) };
        Link { to, mtu: self.of(&[9000, 1280, 0, 1279, u16::MAX]), cost: self.of(&[1, 0, 2, u32::MAX]) }
    }

    /// A group of another store, or of this one as no node has it.
    fn held_group(&mut self) -> Option<HeldGroup> {
        let name = entry_name(self.of(&[1, 2, 0, u32::MAX]));
        let entries = srdma_group::Held { committed: Some(name), prepared: self.maybe(|_| name) };
        let snapshots = self.some(2, |choices| String::from_utf8_lossy(choices.octets(64)).into_owned());
        Some(HeldGroup {
            store: self.of(&[1, 2, 0, u64::MAX]),
            group: self.group(),
            proxy: self.host(),
            designated_qpn: self.number(),
            entries,
            recovery_snapshots: snapshots,
        })
    }

    pub(super) fn identity(&mut self) -> NodeIdentity {
        let identity = registration(self.node()).identity();
        match self.below(4) {
            0 => NodeIdentity { hosts: self.some(3, Self::prefix), ..identity },
            1 => NodeIdentity { end_mt: self.maybe(Self::host), ..identity },
            2 => NodeIdentity { loopback: self.host(), ..identity },
            _ => identity,
        }
    }

    pub(super) fn unreachable(&mut self) -> UnreachableReport {
        let neighbour = |choices: &mut Self| if choices.rarely(4) { choices.host() } else { loopback(choices.node()) };
        UnreachableReport { unreachable: self.some(3, neighbour), lost_hosts: self.some(2, Self::prefix) }
    }

    pub(super) fn node_answer(&mut self, held: &[HeldGroup]) -> NodeAnswer {
        let group = self.group();
        let of_group = held.iter().find(|held| held.group == group).and_then(|held| held.entries.committed);
        let name = of_group.filter(|_| !self.rarely(3)).unwrap_or_else(|| entry_name(self.of(&[1, 2, 0, u32::MAX])));
        match self.below(4) {
            0 => NodeAnswer::Prepared { group, name },
            1 => NodeAnswer::Refused { group, name, reason: self.text() },
            2 => NodeAnswer::Committed { group, name },
            _ => NodeAnswer::Removed { store: self.of(&[1, 2, 0]), group, epoch: name.epoch },
        }
    }

    pub(super) fn eviction_request(&mut self) -> EvictionRequest {
        EvictionRequest { group: self.group(), receiver: self.host(), cause: self.text() }
    }

    pub(super) fn node_status(&mut self) -> NodeStatus {
        let UnreachableReport { unreachable, lost_hosts } = self.unreachable();
        let psn = |choices: &mut Self| choices.maybe(Self::number);
        NodeStatus {
            ports: self.some(2, |choices| PortStatus {
                name: choices.text(),
                to: choices.maybe(|choices| loopback(choices.node())),
                is_up: choices.rarely(2),
                received_octets: choices.of(&LENGTHS),
                sent_octets: choices.of(&LENGTHS),
            }),
            groups: self.some(3, |choices| GroupStatus {
                group: choices.group(),
                highest_psn: psn(choices),
                awaits_first_psn: choices.rarely(2),
                repair: choices.maybe(|_| GroupRepairStatus { lacks_memory: true, ..GroupRepairStatus::default() }),
                branches: choices.some(3, |choices| BranchStatus {
                    address: if choices.rarely(2) { choices.host() } else { loopback(choices.node()) },
                    expected_psn: psn(choices),
                    lag: psn(choices),
                    cnps: choices.of(&LENGTHS),
                    packets_resent: choices.maybe(Self::u64),
                    is_repairing: choices.rarely(2),
                }),
            }),
            drops: self.some(2, |choices| (choices.text(), 1)).into_iter().collect(),
            programs: self.some(2, Self::text),
            unreachable,
            lost_hosts,
        }
    }
}

/// The name of an entry that no node has.
fn entry_name(epoch: u32) -> EntryName {
    let text = format!(r#"{{"epoch":{epoch},"record":"{0}","entry":"{0}"}}"#, "0".repeat(32));
    serde_json::from_str(&text).expect("the name of an entry")
}
