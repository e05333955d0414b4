//! SIDs: how uSID programs name a fabric's switches and links (RFC 9800, F3216; PP-5.1-1, D81, D82).
//!
//! ```text
//! | block, 32 bits | id, 16 bits | id | id | …        5f00:0:100:500:300::
//! ```
//!
//! | ids | of what | made of |
//! |---|---|---|
//! | 0x0001–0x47FF | uN of a switch of tier 1 | its number |
//! | 0x4800–0x8FFF | uN of a switch of tier 2 | its number |
//! | 0x9000–0xCFFF | uN of a switch of tier 3 | its number |
//! | 0xD000–0xDFFF | uN of a switch of tier 4 | its number |
//! | 0xE000–0xE3FF | uA of a port | the port's number; the same at every switch |
//! | 0xF000–0xFFFF | End.DT6 of a tenant | the tenant's number; the same at every switch |
//!
//! Ids of uN are global (GIB), the others local to a switch (LIB). An id depends on the switch alone, never on what
//! else there is: a fabric that grows keeps those that it had. A topology may name ids of its own, for switches that
//! have them already.

use crate::error::{Place, TopologyError};
use crate::topology::{SwitchId, Topology};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

/// Ids that mean the same everywhere: the global identifiers block (RFC 9800 section 4).
pub const GIB: RangeInclusive<u16> = 0x0001..=0xDFFF;

/// Ids that mean something at one switch: the local identifiers block.
pub const LIB: RangeInclusive<u16> = 0xE000..=0xFFFF;

/// Of the local ids those of ports, up to [`MAX_PORT`](crate::MAX_PORT).
pub const PORT_IDS: RangeInclusive<u16> = 0xE000..=0xE3FF;

/// Of the local ids those of tenants.
pub const TENANT_IDS: RangeInclusive<u16> = 0xF000..=0xFFFF;

/// The ids that switches of each tier get, from tier 1.
const TIERS: [RangeInclusive<u16>; 4] = [0x0000..=0x47FF, 0x4800..=0x8FFF, 0x9000..=0xCFFF, 0xD000..=0xDFFF];

/// The SIDs of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidPlan {
    block: [u16; 2],
    ids: Vec<u16>,
    switches: BTreeMap<u16, SwitchId>,
}

impl SidPlan {
    /// The block of the path placement draft, 5f00::/32 (RFC 9602 section 2 sets 5f00::/16 aside for SIDs).
    pub const BLOCK: Ipv6Addr = Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0);

    /// The SIDs of a topology's switches below a block of 32 bits.
    ///
    /// # Errors
    ///
    /// A switch whose number does not fit the ids of its tier, or whose own id is invalid; two switches with the same
    /// id.
    pub fn new(topology: &Topology, block: Ipv6Addr) -> Result<Self, TopologyError> {
        let [first, second, ..] = block.segments();
        let mut plan = SidPlan { block: [first, second], ids: Vec::new(), switches: BTreeMap::new() };
        for id in topology.switch_ids() {
            let (switch, place) = (&topology.switches()[id.index()], Place::Switch(id.index()));
            let own = match switch.usid {
                Some(own) if GIB.contains(&own) => own,
                Some(own) => {
                    let problem = format!("switch {} has the uSID {own:#06x}: expected 0x0001 to 0xdfff", switch.name);
                    return Err(TopologyError::new(place, problem));
                }
                None => made_id(switch.tier, switch.number).ok_or_else(|| {
                    let (name, tier, number) = (&switch.name, switch.tier, switch.number);
                    let room = TIERS.get(usize::from(tier.saturating_sub(1))).map_or(0, |ids| ids.end() - ids.start());
                    let most = format!("numbers up to {room} of tier {tier} have an id of 16 bits");
                    TopologyError::new(
                        place,
                        format!("switch {name} has number {number}, but only {most}: give it one"),
                    )
                })?,
            };
            if let Some(other) = plan.switches.insert(own, id) {
                let other = &topology.switches()[other.index()].name;
                let problem = format!("switch {} has the uSID {own:#06x}, which is {other}'s", switch.name);
                return Err(TopologyError::new(place, problem));
            }
            plan.ids.push(own);
        }
        Ok(plan)
    }

    /// The block, with zeros behind its 32 bits.
    pub fn block(&self) -> Ipv6Addr {
        self.address([])
    }

    /// The id of a switch's uN.
    pub fn id(&self, switch: SwitchId) -> u16 {
        self.ids[switch.index()]
    }

    /// The switch whose uN has this id.
    pub fn switch(&self, id: u16) -> Option<SwitchId> {
        self.switches.get(&id).copied()
    }

    /// A switch's uN: a SID of 48 bits (End with NEXT-CSID, PSP and USD).
    pub fn node_sid(&self, switch: SwitchId) -> Ipv6Addr {
        self.address([self.id(switch)])
    }

    /// The uA of a port, a SID of 48 bits that is known to the port's switch alone (End.X with NEXT-CSID, PSP and USD).
    pub fn port_sid(&self, port: u16) -> Ipv6Addr {
        self.address([port_id(port)])
    }

    /// The uA of a port behind the uN of its switch, a SID of 64 bits that every switch has.
    pub fn global_port_sid(&self, switch: SwitchId, port: u16) -> Ipv6Addr {
        self.address([self.id(switch), port_id(port)])
    }

    /// End.DT6 of a tenant behind the uN of a switch, a SID of 64 bits; `None` from tenant 4,096 on.
    pub fn tenant_sid(&self, switch: SwitchId, tenant: u16) -> Option<Ipv6Addr> {
        Some(self.address([self.id(switch), tenant_id(tenant)?]))
    }

    /// The block with ids behind it, six at most, and zeros.
    pub fn address(&self, ids: impl IntoIterator<Item = u16>) -> Ipv6Addr {
        let mut segments = [0; 8];
        let all = self.block.into_iter().chain(ids);
        segments.iter_mut().zip(all).for_each(|(place, id)| *place = id);
        segments.into()
    }
}

/// The id of a port's uA.
pub fn port_id(port: u16) -> u16 {
    PORT_IDS.start() + port
}

/// The id of a tenant's End.DT6; `None` from tenant 4,096 on.
pub fn tenant_id(tenant: u16) -> Option<u16> {
    TENANT_IDS.start().checked_add(tenant)
}

fn made_id(tier: u8, number: u16) -> Option<u16> {
    let ids = TIERS.get(usize::from(tier).checked_sub(1)?)?;
    let id = ids.start().checked_add(number)?;
    (ids.contains(&id) && GIB.contains(&id)).then_some(id)
}
