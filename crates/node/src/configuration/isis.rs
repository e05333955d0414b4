//! `[isis]`: the node's announcements, and its circuits (`docs/isis.md`).

use super::Draft;
use super::ports::port_named;
use srdma_dataplane::{Flavors, NextHop, NodeConfig, SidBehavior};
use srdma_frame::PortId;
use srdma_isis::tlv::{
    CapabilityFlags, EndSid, EndXSid, Leak, Locator, Reachability, RouterCapability, SidStructure, TopologyId,
};
use srdma_isis::{Behaviors, CircuitType, Config, Key, Levels, Secret, SystemId, Timers};
use srdma_node_spec::file::{
    Algorithm, CircuitKind, CircuitSection, Integer, IsisLevels, IsisSection, KeySection, Located, LocatorSection, Net,
    NodeFile,
};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use srdma_wire::codepoints::behavior;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// Announcements of a node by IS-IS, and their circuits.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsisSettings {
    pub system: Config,
    pub circuits: Vec<IsisCircuit>,
    /// Names of END.C and END.E.
    pub behaviors: Behaviors,
    /// Whether backups are installed for the neighbours (D266).
    pub ti_lfa: bool,
    /// Whether they avoid the neighbour itself where they can, and not only the links to it (D287).
    pub node_protection: bool,
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsisCircuit {
    /// The port whose interface it is.
    pub port: PortId,
    /// Its type.
    pub kind: CircuitType,
    /// Metric of the link.
    pub metric: u32,
    /// Whether its neighbours get BFD sessions (D110).
    pub bfd: bool,
    /// The SIDs of its adjacencies, with the neighbours' addresses.
    pub end_x: Vec<(Ipv6Addr, EndXSid)>,
}

/// Settings of IS-IS. Read after the SIDs, which are announced.
pub(super) fn settings(
    path: &Path,
    file: &NodeFile,
    name: &str,
    node: &NodeConfig,
    draft: &Draft,
) -> Result<Option<IsisSettings>, Problem> {
    let Some(section) = &file.isis else { return Ok(None) };
    let section = section.get_ref();
    let Net { area, system } = &section.net.value;
    let hostname = section.hostname.as_ref().map_or(name, |hostname| &hostname.value.0);
    let mut config = Config::new(SystemId(*system), vec![area.clone()], hostname);
    config.levels = levels(section)?;
    config.leak_down = section.leak_down.iter().map(|prefix| prefix.value).collect();
    config.topology = topology(section);
    config.is_overloaded = section.overload;
    config.key = section.key.as_ref().map(|section| key(path, section)).transpose()?;
    config.timers = timers(section)?;
    if let Some(limit) = &section.max_lsps {
        config.limit_lsps = limit.value.get() as usize;
    }
    let behaviors = behaviors(&section.end_c_behavior, &section.end_e_behavior);
    let sids = Sids { sids: &draft.entries.sids, behaviors };
    config.locators =
        section.locator.iter().map(|section| locator(section, config.topology, &sids)).collect::<Result<_, _>>()?;
    config.prefixes = prefixes(section, node, &config.locators);
    if !config.locators.is_empty() {
        let c_flag =
            if section.congestion_notification { CapabilityFlags::CONGESTION_NOTIFICATION } else { Default::default() };
        config.capability = RouterCapability { srv6: Some(c_flag), algorithms: vec![0], ..RouterCapability::default() };
    } else if section.congestion_notification {
        let text = "congestion_notification without an [[isis.locator]]: there is no SID to send notifications to";
        return Err(Problem::new(section.net.at, text));
    }
    let circuits = circuits(section, node, &sids, &config.locators)?;
    Ok(Some(IsisSettings {
        system: config,
        circuits,
        behaviors,
        ti_lfa: section.ti_lfa,
        node_protection: node_protection(section)?,
    }))
}

/// The code points of the behaviours that have none by IANA (CN-7-1).
pub(super) fn behaviors(
    end_c: &Option<Located<Integer<1, 0xFFFE>>>,
    end_e: &Option<Located<Integer<1, 0xFFFE>>>,
) -> Behaviors {
    let code_point = |given: &Option<Located<Integer<1, 0xFFFE>>>, default| {
        given.as_ref().map_or(default, |given| given.value.get() as u16)
    };
    Behaviors { end_c: code_point(end_c, behavior::END_C), end_e: code_point(end_e, behavior::END_E) }
}

/// Whether backups avoid neighbours: yes, unless the file says otherwise.
fn node_protection(section: &IsisSection) -> Result<bool, Problem> {
    match &section.node_protection {
        Some(given) if !section.ti_lfa => {
            Err(Problem::new(given.span().start, "node_protection without ti_lfa = true: there are no backups"))
        }
        given => Ok(given.as_ref().is_none_or(|given| *given.get_ref())),
    }
}

fn levels(section: &IsisSection) -> Result<Levels, Problem> {
    let levels = match section.level.as_ref().map(|level| level.value) {
        Some(IsisLevels::One) => Levels::One,
        None | Some(IsisLevels::Two) => Levels::Two,
        Some(IsisLevels::Both) => Levels::Both,
    };
    match section.leak_down.first() {
        Some(first) if levels != Levels::Both => {
            let text = "leak_down without level = \"1-2\": routes of level 2 leak by a node at both levels";
            Err(Problem::new(first.at, text))
        }
        _ => Ok(levels),
    }
}

/// The topology of all that the node announces (D247).
fn topology(section: &IsisSection) -> TopologyId {
    if section.multi_topology { TopologyId::IPV6_UNICAST } else { TopologyId::STANDARD }
}

/// The file that holds the key: the configuration itself, or `secret_file`.
pub(super) fn secret_file(path: &Path, file: &NodeFile) -> Option<PathBuf> {
    let key = file.isis.as_ref()?.get_ref().key.as_ref()?.get_ref();
    Some(key.secret_file.as_ref().map_or(path.to_owned(), |file| beside(path, file.get_ref())))
}

/// A file whose name may be relative to the configuration.
fn beside(path: &Path, file: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(file)
}

fn key(path: &Path, section: &Spanned<KeySection>) -> Result<Key, Problem> {
    let (at, section) = (section.span().start, section.get_ref());
    let secret: Secret = match (&section.secret, &section.secret_file) {
        (Some(secret), None) => secret.value.0.clone().into(),
        (None, Some(file)) => secret_of(path, file)?.into(),
        _ => return Err(Problem::new(at, "expected exactly one of secret and secret_file")),
    };
    match (section.algorithm, &section.id) {
        (Algorithm::Md5, None) => Ok(Key::Md5 { secret }),
        (Algorithm::Md5, Some(id)) => Err(Problem::new(id.at, "algorithm hmac-md5 has no key id (RFC 5304)")),
        (Algorithm::Sha256, id) => {
            let key_id = id.as_ref().map_or(1, |id| id.value.get() as u16);
            Ok(Key::Sha256 { key_id, secret })
        }
    }
}

/// The content of a file, without blanks and ends of lines behind it. Its name may be relative to the configuration.
fn secret_of(path: &Path, file: &Spanned<PathBuf>) -> Result<Vec<u8>, Problem> {
    let wrong = |text: String| Problem::new(file.span().start, text);
    let found = beside(path, file.get_ref());
    let octets = std::fs::read(&found).map_err(|error| wrong(format!("{}: {error}", found.display())))?;
    let secret = octets.trim_ascii_end().to_vec();
    if secret.is_empty() { Err(wrong(format!("{}: there is no secret", found.display()))) } else { Ok(secret) }
}

fn timers(section: &IsisSection) -> Result<Timers, Problem> {
    let default = Timers::default();
    let seconds = |given: &Option<Located<Duration>>, least: u64, default: u64| match given {
        None => Ok(default),
        Some(given) if given.value.subsec_nanos() == 0 && (least..=65_535).contains(&given.value.as_secs()) => {
            Ok(given.value.as_secs())
        }
        Some(given) => Err(Problem::new(given.at, format!("expected whole seconds from {least}s to 65535s"))),
    };
    let hello_ms = match &section.hello {
        None => default.hello_ms,
        Some(hello) if (Duration::from_millis(10)..=Duration::from_secs(600)).contains(&hello.value) => {
            hello.value.as_millis() as u64
        }
        Some(hello) => return Err(Problem::new(hello.at, "expected a time from 10ms to 600s")),
    };
    let lifetime_s = seconds(&section.lifetime, 60, default.lifetime_s.into())? as u16;
    let refresh_s = seconds(&section.refresh, 30, u64::from(default.refresh_s.min(lifetime_s / 4 * 3)))? as u16;
    if let Some(refresh) = section.refresh.as_ref().filter(|_| refresh_s >= lifetime_s) {
        let text = format!("refresh must be less than lifetime, which is {lifetime_s}s: LSPs would end before");
        return Err(Problem::new(refresh.at, text));
    }
    Ok(Timers {
        hello_ms,
        hold_multiplier: section
            .hold_multiplier
            .as_ref()
            .map_or(default.hold_multiplier, |multiplier| multiplier.value.get() as u16),
        lifetime_s,
        refresh_s,
        complete_s: seconds(&section.complete, 1, default.complete_s)?,
        generation_ms: default.generation_ms,
        startup_s: seconds(&section.overload_on_start, 0, default.startup_s)?,
        jitter_percent: default.jitter_percent,
    })
}

/// The node's loopback, the prefixes of the file, and locators: systems without SRv6 learn these by no other TLV (RFC
/// 9352 section 5).
fn prefixes(section: &IsisSection, node: &NodeConfig, locators: &[Locator]) -> Vec<Reachability> {
    let reachable = |prefix, metric| Reachability { metric, leak: Leak::None, is_external: false, prefix };
    let mut known = BTreeSet::new();
    let own = std::iter::once(Prefix::host(node.loopback)).chain(section.prefixes.iter().map(|prefix| prefix.value));
    let own = own.map(|prefix| reachable(prefix, 0));
    let all = own.chain(locators.iter().map(|locator| reachable(locator.prefix, locator.metric)));
    all.filter(|reachable| known.insert(reachable.prefix)).collect()
}

pub(super) fn locator(section: &LocatorSection, topology: TopologyId, sids: &Sids<'_>) -> Result<Locator, Problem> {
    let prefix = section.prefix.value;
    let block_bits = match &section.block_bits {
        None => prefix.prefix_len().min(32),
        Some(bits) if bits.value.get() <= u64::from(prefix.prefix_len()) => bits.value.get() as u8,
        Some(bits) => return Err(Problem::new(bits.at, format!("block_bits is longer than the locator {prefix}"))),
    };
    let metric = section.metric.as_ref().map_or(0, |metric| metric.value.get() as u32);
    let inside = sids.of_node().filter(|(sid, _)| prefix.contains(sid.address()));
    let sids = inside.map(|(sid, behavior)| {
        let structure = Some(structure(prefix, block_bits, sid, behavior));
        EndSid { behavior, sid: sid.address(), structure }
    });
    Ok(Locator { topology, metric, leak: Leak::None, algorithm: 0, prefix, sids: sids.collect() })
}

fn circuits(
    section: &IsisSection,
    node: &NodeConfig,
    sids: &Sids<'_>,
    locators: &[Locator],
) -> Result<Vec<IsisCircuit>, Problem> {
    let mut circuits: Vec<IsisCircuit> = Vec::new();
    for section in &section.circuit {
        let port = port_named(node, &section.port)?;
        if circuits.iter().any(|circuit| circuit.port == port) {
            let text = format!("port {} is a circuit already", section.port.value.0);
            return Err(Problem::new(section.port.at, text));
        }
        let kind = circuit_type(section)?;
        if kind != CircuitType::PointToPoint && circuits.len() >= GREATEST_LANS {
            let text = format!("a LAN beyond the {GREATEST_LANS}th circuit: its pseudonode has no number");
            return Err(Problem::new(section.port.at, text));
        }
        let metric = section.metric.as_ref().map_or(10, |metric| metric.value.get() as u32);
        let end_x = end_x(sids, port, locators.iter().map(|locator| locator.prefix));
        circuits.push(IsisCircuit { port, kind, metric, bfd: section.bfd, end_x });
    }
    Ok(circuits)
}

/// The SIDs of adjacencies at a port, with the neighbours' addresses. Routers ignore a SID outside all locators (RFC
/// 9352 section 8, RFC 9513 section 9).
pub(super) fn end_x(
    sids: &Sids<'_>,
    port: PortId,
    locators: impl Iterator<Item = Prefix> + Clone,
) -> Vec<(Ipv6Addr, EndXSid)> {
    let found = sids.of_port(port).filter_map(|(sid, behavior, address)| {
        let locator = locators.clone().find(|locator| locator.contains(sid.address()))?;
        let structure = Some(structure(locator, locator.prefix_len().min(32), sid, behavior));
        let (neighbour, sid) = (None, sid.address());
        Some((address, EndXSid { neighbour, flags: 0, algorithm: 0, weight: 0, behavior, sid, structure }))
    });
    found.collect()
}

/// Priority of a system in the elections of LANs, if it has none.
const PRIORITY: u8 = 64;

/// Circuits that can be LANs: a pseudonode has the number of its circuit, in one octet, from 1.
const GREATEST_LANS: usize = 255;

fn circuit_type(section: &CircuitSection) -> Result<CircuitType, Problem> {
    match (section.kind, &section.priority) {
        (CircuitKind::PointToPoint, None) => Ok(CircuitType::PointToPoint),
        (CircuitKind::PointToPoint, Some(priority)) => {
            let text = "priority without type = \"broadcast\": a point-to-point circuit has no election";
            Err(Problem::new(priority.at, text))
        }
        (CircuitKind::Broadcast, priority) => {
            let priority = priority.as_ref().map_or(PRIORITY, |priority| priority.value.get() as u8);
            Ok(CircuitType::Broadcast { priority })
        }
    }
}

/// Structure of a SID. Compressed SIDs have their argument behind them; the function of others is taken to be whole
/// groups of 16 bits.
fn structure(locator: Prefix, block_bits: u8, sid: Prefix, code_point: u16) -> SidStructure {
    let len = locator.prefix_len();
    let (block, node) = (block_bits, len - block_bits);
    if code_point == behavior::UN || code_point == behavior::UA {
        let function = sid.prefix_len().saturating_sub(len);
        return SidStructure { block, node, function, argument: 128 - len - function };
    }
    let used = 128 - u128::from_be_bytes(sid.address().octets()).trailing_zeros().min(128) as u8;
    let function = used.saturating_sub(len).div_ceil(16).max(1).saturating_mul(16).min(128 - len);
    SidStructure { block, node, function, argument: 0 }
}

/// The node's SIDs in the order of their prefixes (D68), with the code points of their behaviours.
pub(super) struct Sids<'c> {
    pub(super) sids: &'c BTreeMap<Prefix, SidBehavior>,
    pub(super) behaviors: Behaviors,
}

impl<'c> Sids<'c> {
    /// Each with its code point, and the neighbour of its adjacency, if it has one.
    fn all(&self) -> impl Iterator<Item = (Prefix, u16, Option<NextHop>)> + 'c {
        let behaviors = self.behaviors;
        self.sids.iter().filter_map(move |(prefix, behavior)| {
            Some((*prefix, code_point(*behavior, behaviors)?, next_hop_of(*behavior)))
        })
    }

    /// Those of the node itself.
    fn of_node(&self) -> impl Iterator<Item = (Prefix, u16)> + 'c {
        self.all().filter(|(.., of)| of.is_none()).map(|(sid, code_point, _)| (sid, code_point))
    }

    /// Those of adjacencies at a port, with the neighbours' addresses.
    fn of_port(&self, port: PortId) -> impl Iterator<Item = (Prefix, u16, Ipv6Addr)> + 'c {
        let of_port = move |of: Option<NextHop>| of.filter(|next_hop| next_hop.port == port);
        self.all().filter_map(move |(sid, code_point, of)| Some((sid, code_point, of_port(of)?.address)))
    }
}

fn next_hop_of(behavior: SidBehavior) -> Option<NextHop> {
    match behavior {
        SidBehavior::EndX(_, next_hop)
        | SidBehavior::EndDx4 { next_hop, .. }
        | SidBehavior::EndDx6 { next_hop, .. } => Some(next_hop),
        _ => None,
    }
}

/// The code point of a behaviour (IANA, SRv6 Endpoint Behaviors); `None` for flavors together that have none, and for
/// behaviours that IS-IS does not announce (RFC 9352 section 10).
fn code_point(what: SidBehavior, behaviors: Behaviors) -> Option<u16> {
    Some(match what {
        SidBehavior::End(flavors) => behavior::END + flavored(flavors, [0, 27, 42])?,
        SidBehavior::EndX(flavors, _) => behavior::END_X + flavored(flavors, [0, 27, 47])?,
        SidBehavior::EndDt6(_) => behavior::END_DT6,
        SidBehavior::EndDt4(_) => behavior::END_DT4,
        SidBehavior::EndDt46(_) => behavior::END_DT46,
        SidBehavior::EndDx4 { .. } => behavior::END_DX4,
        SidBehavior::EndDx6 { .. } => behavior::END_DX6,
        SidBehavior::EndDx2(_) | SidBehavior::EndB6Encaps { .. } => return None,
        SidBehavior::EndC => behaviors.end_c,
        SidBehavior::EndE(_) => behaviors.end_e,
        SidBehavior::EndReplicate(_) => behavior::END_REPLICATE,
        SidBehavior::EndMt { .. } => behavior::END_MT,
    })
}

/// Offset of the behaviour's code point with flavors from that without: RFC 8986 section 10.2 with four of PSP and USP,
/// and four more with USD; RFC 9800 section 13.1 with all eight for NEXT-CSID.
fn flavored(flavors: Flavors, [plain, with_usd, with_next_csid]: [u16; 3]) -> Option<u16> {
    let Flavors { psp, usp, usd, next_csid } = flavors;
    let popping = u16::from(psp) + 2 * u16::from(usp);
    Some(match (next_csid.is_some(), usd) {
        (false, false) => plain + popping,
        (false, true) => with_usd + popping,
        (true, usd) => with_next_csid + popping + 4 * u16::from(usd),
    })
}
