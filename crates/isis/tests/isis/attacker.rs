//! An attacker on the links of a network whose PDUs are signed. It has no key; it replays, ages, purges and forges LSPs and
//! SNPs, before and after the originals. No system's routes change (D93).

use crate::network::net::{Net, Tap, config, locator};
use srdma_isis::tlv::{AdjacencyState, LspEntry};
use srdma_isis::{CircuitId, Config, Key, Level, Lsp, LspFlags, LspId, NodeId, Pdu, PduKind, frame};
use srdma_wire::MacAddress;
use std::collections::BTreeMap;

const COUNT: usize = 6;

fn key(number: u64) -> Key {
    let secret = b"the key of the network".to_vec().into();
    if number.is_multiple_of(2) { Key::Md5 { secret } } else { Key::Sha256 { key_id: 7, secret } }
}

/// Random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A ring with chords and a LAN, so that there are other paths for attacks to lead to.
fn network(key: Option<&Key>, chance: &mut Chance) -> Net {
    let mut net = Net::default();
    for number in 0..COUNT {
        net.add(Config { key: key.cloned(), ..config(number) });
    }
    for one in 0..COUNT {
        net.join(one, (one + 1) % COUNT, 1 + chance.below(30) as u32);
    }
    net.join(0, COUNT / 2, 1 + chance.below(30) as u32);
    let members: Vec<(usize, u8)> = (0..COUNT).step_by(2).map(|at| (at, chance.below(128) as u8)).collect();
    net.join_lan(&members, 1 + chance.below(30) as u32);
    net
}

/// Distances of all locators, from every system.
fn routes(net: &Net) -> Vec<BTreeMap<String, u64>> {
    let of = |at: usize| {
        let paths = net.speakers[at].shortest_paths(net.now);
        paths.prefixes.iter().map(|(prefix, reached)| (prefix.to_string(), reached.distance)).collect()
    };
    (0..COUNT).map(of).collect()
}

/// Offsets in a frame with an LSP.
const LIFETIME_AT: usize = frame::FRAME_HEADER_LEN + 10;
const SEQUENCE_AT: usize = frame::FRAME_HEADER_LEN + 20;

fn lsp_of(octets: &[u8]) -> Option<Lsp> {
    let pdu = Pdu::parse(frame::unwrap(octets)?).ok()?;
    let PduKind::Lsp(level) = pdu.kind else { return None };
    Lsp::parse(&pdu, level).ok()
}

/// The same LSP with other fields and TLVs. Its digest, which the attacker cannot make, is the recorded one.
fn forged(lsp: &Lsp, entry: LspEntry, tlvs: &[u8]) -> Vec<u8> {
    let octets = Lsp::new(lsp.level, entry, lsp.flags, tlvs).octets().to_vec();
    frame::wrap(MacAddress([2, 0, 0, 0, 9, 9]), &octets).unwrap()
}

/// The octets of the TLVs up to the kind, and of those behind it.
fn authentication_of(lsp: &Lsp) -> Vec<u8> {
    let tlv = lsp.tlvs().map(Result::unwrap).find(|tlv| tlv.kind == srdma_isis::tlv::kind::AUTHENTICATION);
    tlv.map_or_else(Vec::new, |tlv| [&[tlv.kind, tlv.value.len() as u8], tlv.value].concat())
}

/// What the attacker makes of a recorded frame.
fn attack(recorded: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut octets = recorded.to_vec();
    let Some(lsp) = lsp_of(recorded) else {
        // An SNP: as it is, or with an octet changed.
        if chance.below(2) == 0 {
            let at = frame::FRAME_HEADER_LEN + chance.below(octets.len() - frame::FRAME_HEADER_LEN);
            octets[at] ^= 1 << chance.below(8);
        }
        return octets;
    };
    match chance.below(9) {
        // Replayed.
        0 => {}
        // A purge by its lifetime.
        1 => octets[LIFETIME_AT..LIFETIME_AT + 2].fill(0),
        // Aged, or made to stay.
        2 => octets[LIFETIME_AT..LIFETIME_AT + 2].copy_from_slice(&[0, 1 + chance.below(3) as u8]),
        3 => octets[LIFETIME_AT..LIFETIME_AT + 2].copy_from_slice(&[0xFF, 0xFF]),
        // A purge as the RFCs have it, with the digest of the LSP, and without any.
        4 => octets = forged(&lsp, LspEntry { lifetime_s: 0, ..lsp.entry }, &authentication_of(&lsp)),
        5 => octets = forged(&lsp, LspEntry { lifetime_s: 0, ..lsp.entry }, &[]),
        // A later version, with the digest of this one: of zero lifetime, or without neighbours.
        6 => {
            octets[LIFETIME_AT..LIFETIME_AT + 2].fill(0);
            octets[SEQUENCE_AT] ^= 0x40;
        }
        7 => {
            let entry = LspEntry { sequence: lsp.entry.sequence + 1 + chance.below(9) as u32, ..lsp.entry };
            octets = forged(&lsp, entry, &authentication_of(&lsp));
        }
        // Damaged.
        _ => {
            let at = frame::FRAME_HEADER_LEN + chance.below(octets.len() - frame::FRAME_HEADER_LEN);
            octets[at] ^= 1 << chance.below(8);
        }
    }
    octets
}

#[test]
fn without_the_key_no_route_changes() {
    for seed in 1..=6_u64 {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut net = network(Some(&key(seed)), &mut chance);
        // The LAN has its designated system after two hellos.
        net.run_ms(20_000);
        let expected = routes(&net);
        assert!(expected.iter().all(|prefixes| prefixes.len() == COUNT - 1), "seed {seed}");
        // From here on the attacker has each new LSP on each link before its receiver, aged or as a purge.
        net.tap = Some(Tap::default());
        net.overtake = Some(|octets| {
            let is_lsp = lsp_of(octets).is_some_and(|lsp| lsp.entry.lifetime_s > 0);
            let with = |lifetime: [u8; 2]| {
                let mut aged = octets.to_vec();
                aged[LIFETIME_AT..LIFETIME_AT + 2].copy_from_slice(&lifetime);
                aged
            };
            if is_lsp { vec![with([0, 1]), with([0, 0])] } else { Vec::new() }
        });
        for step in 0..400 {
            // Refreshes, CSNPs and ends of lifetimes lie in between.
            net.run_ms([1, 20, 700, 2_000, 15_000][chance.below(5)]);
            assert_eq!(routes(&net), expected, "seed {seed}, step {step}");
            let recorded = net.recorded();
            if recorded.is_empty() {
                continue;
            }
            for _ in 0..1 + chance.below(4) {
                let octets = attack(&recorded[chance.below(recorded.len())], &mut chance);
                let ends = net.ends();
                net.inject(ends[chance.below(ends.len())], octets);
            }
        }
        let drops = |name| {
            let of = |at: usize| {
                let drops = net.speakers[at].drops().iter().filter(|(reason, _)| reason.name() == name);
                drops.map(|(_, count)| count).sum::<u64>()
            };
            (0..COUNT).map(of).sum::<u64>()
        };
        assert!(drops("purge_tlvs") > 100 && drops("not_authentic") > 100, "seed {seed}");
        assert_eq!(net.speakers.iter().map(|speaker| speaker.counters().confusions).sum::<u64>(), 0, "seed {seed}");
        assert!((0..COUNT).all(|at| net.is_adjacent(at)));
    }
}

/// The same attacks change routes where there is no key: the test above would notice.
#[test]
fn without_a_key_routes_change() {
    let mut chance = Chance(7);
    let mut net = network(None, &mut chance);
    net.run_ms(20_000);
    let expected = routes(&net);
    let own = LspId { node: NodeId::of(srdma_isis::SystemId([0, 0, 0, 0, 0, 3])), fragment: 0 };
    let sequence = net.speakers[0].database(Level::Two).get(own).unwrap().lsp().entry.sequence;
    let entry = LspEntry { lifetime_s: 0, id: own, sequence, checksum: 0 };
    let purge = Lsp::new(Level::Two, entry, LspFlags::default(), &[]);
    let victim = (0, CircuitId(0));
    net.inject(victim, frame::wrap(MacAddress([2, 0, 0, 0, 9, 9]), purge.octets()).unwrap());
    net.run_ms(1);
    let without = &routes(&net)[0];
    assert!(!without.contains_key(&locator(3).to_string()));
    net.run_ms(1_000);
    assert_eq!(routes(&net), expected, "its system has originated it again");
    assert_eq!(net.speakers[0].adjacency(Level::Two, CircuitId(0)).unwrap().state, AdjacencyState::Up);
}
