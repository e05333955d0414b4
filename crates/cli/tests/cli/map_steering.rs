//! A mapper and the headend of a NIC together, in virtual time: flows leave the paths that the mapper denies, and new
//! ones return to them (D255, D256). Spines are read from the octets of destination addresses.

use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendPath};
use srdma_fabric::{Encoding, HostId, LeafSpine, LinkId, SidPlan, Speeds, Template, Topology};
use srdma_frame::{Frame, Pool};
use srdma_mapper::{Config, Mapper, Paths};
use srdma_steering::{Path, SetId};
use srdma_testkit::{checksums, packets};
use srdma_wire::{Entropy, Instant, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

const MS: u64 = 1_000_000;
const NIC: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 1, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 1, 0, 0, 0, 1);
const SPINES: u16 = 4;

struct Nic<'t> {
    topology: &'t Topology,
    mapper: Mapper,
    paths: Paths,
    headend: Headend,
    set: SetId,
    /// The values to the peer with the address of each.
    values: BTreeMap<Entropy, Ipv6Addr>,
    pool: Pool,
    now: Instant,
    /// Probes on their way back, by time.
    returning: Vec<(Instant, Vec<u8>)>,
    dead: Option<LinkId>,
}

fn paths(values: &BTreeMap<Entropy, Ipv6Addr>, excluded: &[Entropy]) -> Vec<HeadendPath> {
    let path = |(entropy, address): (&Entropy, &Ipv6Addr)| HeadendPath {
        path: Path { segments: vec![*address], is_denied: excluded.contains(entropy), ..Path::default() },
        entropy: Some(*entropy),
        ..HeadendPath::default()
    };
    values.iter().map(path).collect()
}

impl<'t> Nic<'t> {
    fn new(topology: &'t Topology) -> Self {
        let sids = SidPlan::new(topology, SidPlan::BLOCK).unwrap();
        let (nic, peer) = (HostId(0), HostId(1));
        let mapped = Paths::new(topology, &sids, nic, Encoding::Nodes).unwrap();
        let config = Config { interval_ns: 10 * MS, timeout_ns: MS, gap_ns: 10_000, ..Config::new(NIC) };
        let mapper = Mapper::new(Instant::ZERO, config, &mapped).unwrap();
        // What the NIC has: the template of addresses, not the fabric.
        let template = Template::new(topology).unwrap();
        let listed = template.listed(&sids, [nic, peer], Encoding::Nodes, None).unwrap();
        let addresses = template.addresses(&listed).unwrap();
        let values = addresses.values().map(|value| (value, addresses.expand(value).unwrap())).collect();
        let mut headend = Headend::new(HeadendConfig { probes: None, ..HeadendConfig::new(NIC) });
        let set = headend.set_paths(Instant::ZERO, None, &paths(&values, &[])).unwrap();
        headend.lead(Prefix::host(PEER), set);
        let (pool, now) = (Pool::new(64), Instant::ZERO);
        Nic { topology, mapper, paths: mapped, headend, set, values, pool, now, returning: Vec::new(), dead: None }
    }

    /// Lets a tenth of a millisecond pass.
    fn pass(&mut self) {
        self.now = self.now.after_ns(MS / 10);
        let mut changes = self.mapper.tick(self.now);
        while let Some((path, packet)) = self.mapper.poll(self.now) {
            let is_dead = self.dead.is_some_and(|link| self.paths.path(path).links.contains(&link));
            if !is_dead {
                self.returning.push((self.now.after_ns(5_000), packet[40..].to_vec()));
            }
        }
        for (at, packet) in std::mem::take(&mut self.returning) {
            match at <= self.now {
                true => changes.extend(self.mapper.receive(self.now, &packet)),
                false => self.returning.push((at, packet)),
            }
        }
        if changes.is_empty() {
            return;
        }
        let values = self.paths.excluded(HostId(1), |path| self.mapper.is_denied(path)).unwrap();
        let excluded: Vec<Entropy> = values.into_iter().filter(|(_, is)| *is).map(|(value, _)| value).collect();
        let paths = paths(&self.values, &excluded);
        assert_eq!(self.headend.set_paths(self.now, Some(self.set), &paths), Ok(self.set));
    }

    /// Sends a packet of a flow; the spine by which it goes, from 0 on.
    fn send(&mut self, qpn: u32, psn: u32) -> u16 {
        let packet = packets::rocev2(NIC, PEER, 0x04, qpn, psn, &[1; 64]);
        let mut frame = Frame::from_octets(&[&[0; 14][..], &packet].concat(), &mut self.pool).unwrap();
        assert_eq!(self.headend.outgoing(self.now, &mut frame, &mut self.pool), Ok(Some(40)));
        let sent = frame.to_vec(&self.pool)[14..].to_vec();
        frame.release(&mut self.pool);
        // Leaf 1, one of the spines 0x4801 to 0x4804, leaf 2.
        let ids: Vec<u16> = sent[28..36].chunks(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
        assert_eq!((ids[0], ids[2], ids[3]), (1, 2, 0));
        let spine = ids[1] - 0x4801;
        let inner = &sent[40..];
        let label = u32::from_be_bytes([0, inner[1] & 0xF, inner[2], inner[3]]);
        let value = Entropy::of_fields(u16::from_be_bytes([inner[40], inner[41]]), label);
        assert_eq!(value, Ok(Entropy(spine.into())), "the packet tells its path");
        assert_eq!(checksums::icrc(&inner[..inner.len() - 4]), inner[inner.len() - 4..]);
        spine
    }

    fn link(&self, name: &str) -> LinkId {
        self.topology.links_named(name).unwrap()[0]
    }
}

#[test]
fn flows_leave_denied_paths_and_no_other() {
    let topology = LeafSpine { leaves: 2, spines: SPINES, hosts_per_leaf: 1, speeds: Speeds::DEFAULT };
    let topology = topology.topology().unwrap();
    for (link, spine) in [("leaf1-spine2", 1), ("leaf2-spine4", 3)] {
        let mut nic = Nic::new(&topology);
        let flows: Vec<u32> = (0x100..0x140).collect();
        let mut psn = 0;
        let mut send = |nic: &mut Nic<'_>| -> Vec<u16> {
            psn += 1;
            flows.iter().map(|qpn| nic.send(*qpn, psn)).collect()
        };
        let before = send(&mut nic);
        assert_eq!(before.iter().collect::<BTreeSet<_>>().len(), usize::from(SPINES), "flows take all spines");
        (0..500).for_each(|_| nic.pass());
        assert_eq!(send(&mut nic), before, "without failures flows stay");
        nic.dead = Some(nic.link(link));
        // An interval of 10 ms with its random part, and three timeouts of 1 ms.
        (0..150).for_each(|_| nic.pass());
        let after = send(&mut nic);
        for (before, after) in before.iter().zip(&after) {
            assert_ne!(*after, spine, "{link}");
            assert!(before == after || *before == spine, "only flows of the dead path move");
        }
        nic.dead = None;
        (0..30_000).for_each(|_| nic.pass());
        let new: BTreeSet<u16> = (0x200..0x240).map(|qpn| nic.send(qpn, 1)).collect();
        assert!(new.contains(&spine), "new flows take the path again");
    }
}

/// With its own link dead the NIC has no path; the list excludes none, and packets leave as before.
#[test]
fn a_nic_without_a_path_sends_as_before() {
    let topology = LeafSpine { leaves: 2, spines: SPINES, hosts_per_leaf: 1, speeds: Speeds::DEFAULT };
    let topology = topology.topology().unwrap();
    let mut nic = Nic::new(&topology);
    nic.dead = Some(nic.link("h1.1-leaf1"));
    (0..500).for_each(|_| nic.pass());
    assert!((0..nic.paths.len()).all(|path| nic.mapper.is_denied(path)));
    let taken: BTreeSet<u16> = (0x100..0x140).map(|qpn| nic.send(qpn, 1)).collect();
    assert_eq!(taken.len(), usize::from(SPINES));
}
