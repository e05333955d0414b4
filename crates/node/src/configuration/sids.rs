//! `[[sid]]`: endpoint behaviours by the names of their RFCs.

use super::Draft;
use super::claims::{Claims, Leads};
use super::ports::port_named;
use super::routes::known_neighbour;
use super::sr_policies;
use srdma_dataplane::{EncapsMode, Flavors, NextCsid, NextHop, NodeConfig, SidBehavior, TableId};
use srdma_group::GroupId;
use srdma_node_spec::Entries;
use srdma_node_spec::file::{BehaviorName, FlavorName, NodeFile, SidSection};
use srdma_toml_error::Problem;

pub(super) fn add(
    file: &NodeFile,
    config: &NodeConfig,
    claims: &mut Claims<'_>,
    draft: &mut Draft,
) -> Result<(), Problem> {
    for section in &file.sid {
        check_keys(section)?;
        let behavior = behavior(file, section, config, claims)?;
        let (at, prefix) = (section.sid.at, section.sid.value);
        claims.claim(at, prefix, format!("a SID of behavior {}", name_of(section)), Leads::Elsewhere)?;
        draft.add(at, Entries { sids: [(prefix, behavior)].into(), ..Entries::default() })?;
    }
    Ok(())
}

fn name_of(section: &SidSection) -> &'static str {
    match section.behavior.get_ref() {
        BehaviorName::End => "End",
        BehaviorName::EndX => "End.X",
        BehaviorName::MicroN => "uN",
        BehaviorName::MicroA => "uA",
        BehaviorName::EndDt6 => "End.DT6",
        BehaviorName::EndDt4 => "End.DT4",
        BehaviorName::EndDt46 => "End.DT46",
        BehaviorName::EndDx4 => "End.DX4",
        BehaviorName::EndDx6 => "End.DX6",
        BehaviorName::EndDx2 => "End.DX2",
        BehaviorName::EndB6Encaps => "End.B6.Encaps",
        BehaviorName::EndB6EncapsRed => "End.B6.Encaps.Red",
        BehaviorName::EndReplicate => "End.Replicate",
        BehaviorName::EndMt => "End.MT",
        BehaviorName::EndC => "END.C",
        BehaviorName::EndE => "END.E",
    }
}

/// The keys that a behaviour has beside `sid` and `behavior`.
fn keys_of(behavior: BehaviorName) -> &'static [&'static str] {
    match behavior {
        BehaviorName::End => &["flavors", "block_bits", "csid_bits"],
        BehaviorName::EndX => &["flavors", "block_bits", "csid_bits", "next_hop"],
        BehaviorName::MicroN => &["block_bits", "csid_bits"],
        BehaviorName::MicroA => &["block_bits", "csid_bits", "next_hop"],
        BehaviorName::EndDt4 | BehaviorName::EndDt6 | BehaviorName::EndDt46 | BehaviorName::EndE => &["table"],
        BehaviorName::EndDx4 | BehaviorName::EndDx6 => &["next_hop", "table"],
        BehaviorName::EndDx2 => &["port"],
        BehaviorName::EndB6Encaps | BehaviorName::EndB6EncapsRed => &["policy"],
        BehaviorName::EndReplicate => &["group"],
        BehaviorName::EndMt => &["require_hmac"],
        BehaviorName::EndC => &[],
    }
}

/// That a section has no key of another behaviour.
fn check_keys(section: &SidSection) -> Result<(), Problem> {
    let given = [
        ("flavors", section.flavors.as_ref().map(|flavors| flavors.span().start)),
        ("block_bits", section.block_bits.as_ref().map(|bits| bits.at)),
        ("csid_bits", section.csid_bits.as_ref().map(|bits| bits.at)),
        ("next_hop", section.next_hop.as_ref().map(|next_hop| next_hop.at)),
        ("table", section.table.as_ref().map(|table| table.at)),
        ("port", section.port.as_ref().map(|port| port.at)),
        ("policy", section.policy.as_ref().map(|policy| policy.at)),
        ("group", section.group.as_ref().map(|group| group.at)),
        ("require_hmac", section.require_hmac.as_ref().map(|require| require.span().start)),
    ];
    let expected = keys_of(*section.behavior.get_ref());
    for (key, at) in given {
        if let Some(at) = at.filter(|_| !expected.contains(&key)) {
            let others = match expected {
                [] => "it has none".to_owned(),
                keys => format!("its keys are {}", keys.join(", ")),
            };
            let text = format!("behavior {} has no key {key}, {others}", name_of(section));
            return Err(Problem::new(at, text));
        }
    }
    Ok(())
}

fn behavior(
    file: &NodeFile,
    section: &SidSection,
    config: &NodeConfig,
    claims: &Claims<'_>,
) -> Result<SidBehavior, Problem> {
    Ok(match section.behavior.get_ref() {
        BehaviorName::End => SidBehavior::End(flavors(section)?),
        BehaviorName::EndX => SidBehavior::EndX(flavors(section)?, adjacency(file, section, config, claims)?),
        BehaviorName::MicroN => SidBehavior::End(micro(section)?),
        BehaviorName::MicroA => SidBehavior::EndX(micro(section)?, adjacency(file, section, config, claims)?),
        BehaviorName::EndDt6 => SidBehavior::EndDt6(table(section)),
        BehaviorName::EndDt4 => SidBehavior::EndDt4(table(section)),
        BehaviorName::EndDt46 => SidBehavior::EndDt46(table(section)),
        BehaviorName::EndDx4 => {
            SidBehavior::EndDx4 { next_hop: adjacency(file, section, config, claims)?, table: table(section) }
        }
        BehaviorName::EndDx6 => {
            SidBehavior::EndDx6 { next_hop: adjacency(file, section, config, claims)?, table: table(section) }
        }
        BehaviorName::EndDx2 => {
            let port = section.port.as_ref().ok_or_else(|| missing(section, "port"))?;
            let id = port_named(config, port)?;
            if config.ports[id.index()].vlan.is_some() {
                let text = format!("port {} has a VLAN, expected a port that sends frames as they are", port.value.0);
                return Err(Problem::new(port.at, text));
            }
            SidBehavior::EndDx2(id)
        }
        BehaviorName::EndB6Encaps => applied(file, section, EncapsMode::Encaps)?,
        BehaviorName::EndB6EncapsRed => applied(file, section, EncapsMode::Reduced)?,
        BehaviorName::EndE => SidBehavior::EndE(table(section)),
        BehaviorName::EndC => SidBehavior::EndC,
        BehaviorName::EndReplicate => SidBehavior::EndReplicate(replicated_group(file, section)?),
        BehaviorName::EndMt => {
            SidBehavior::EndMt { require_hmac: section.require_hmac.as_ref().is_some_and(|require| *require.get_ref()) }
        }
    })
}

fn table(section: &SidSection) -> TableId {
    TableId(section.table.as_ref().map_or(0, |table| table.value.get() as u16))
}

fn flavors(section: &SidSection) -> Result<Flavors, Problem> {
    let given = section.flavors.as_ref().map_or(&[][..], |flavors| flavors.get_ref().as_slice());
    let has = |flavor| given.contains(&flavor);
    let bits = section.block_bits.as_ref().or(section.csid_bits.as_ref());
    let next_csid = match bits {
        _ if has(FlavorName::NextCsid) => Some(next_csid(section)?),
        Some(bits) => {
            return Err(Problem::new(
                bits.at,
                "block_bits and csid_bits belong to flavor NEXT-CSID, which is not given",
            ));
        }
        None => None,
    };
    Ok(Flavors { psp: has(FlavorName::Psp), usp: has(FlavorName::Usp), usd: has(FlavorName::Usd), next_csid })
}

/// uN and uA (PP-5.1-1).
fn micro(section: &SidSection) -> Result<Flavors, Problem> {
    Ok(Flavors { next_csid: Some(next_csid(section)?), ..Flavors::MICRO })
}

/// Structure of the SID. The octets behind block and compressed SID are its argument, so that the prefix ends there.
fn next_csid(section: &SidSection) -> Result<NextCsid, Problem> {
    let default = NextCsid::F3216;
    let block_bits = section.block_bits.as_ref().map_or(default.block_bits, |bits| bits.value.get() as u8);
    let csid_bits = section.csid_bits.as_ref().map_or(default.csid_bits, |bits| bits.value.get() as u8);
    let len = section.sid.value.prefix_len();
    if u16::from(block_bits) + u16::from(csid_bits) != u16::from(len) {
        let text = format!(
            "{} has a length of {len}, expected that of block and compressed SID, {block_bits} + {csid_bits} bits",
            section.sid.value
        );
        return Err(Problem::new(section.sid.at, text));
    }
    Ok(NextCsid { block_bits, csid_bits })
}

fn adjacency(
    file: &NodeFile,
    section: &SidSection,
    config: &NodeConfig,
    claims: &Claims<'_>,
) -> Result<NextHop, Problem> {
    let next_hop = section.next_hop.as_ref().ok_or_else(|| missing(section, "next_hop"))?;
    known_neighbour(file, next_hop, config, claims)
}

/// End.B6.Encaps with the SR policy of a section.
fn applied(file: &NodeFile, section: &SidSection, mode: EncapsMode) -> Result<SidBehavior, Problem> {
    let policy = section.policy.as_ref().ok_or_else(|| missing(section, "policy"))?;
    Ok(SidBehavior::EndB6Encaps { policy: sr_policies::used(file, policy)?, mode })
}

fn replicated_group(file: &NodeFile, section: &SidSection) -> Result<GroupId, Problem> {
    let group = section.group.as_ref().ok_or_else(|| missing(section, "group"))?;
    let id = group.value.get();
    match file.group.iter().find(|other| other.get_ref().id.value.get() == id) {
        None => Err(Problem::new(group.at, format!("there is no [[group]] {id}"))),
        Some(other) if !other.get_ref().role.replicates() => Err(Problem::new(
            group.at,
            format!("group {id} is replicated by nodes of role transit or bud, this one is an edge"),
        )),
        Some(_) => Ok(GroupId(id as u32)),
    }
}

fn missing(section: &SidSection, key: &str) -> Problem {
    Problem::new(section.behavior.span().start, format!("behavior {} needs the key {key}", name_of(section)))
}
