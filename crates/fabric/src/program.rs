//! uSID programs: a path written into the outer destination address, and read back (RFC 9800; PP-4-2 to PP-4-4, D81).
//!
//! ```text
//! 5f00:0:100:500:300::      leaf1, spine5, leaf3, and out of the tunnel there
//!   │    │   │   │  └ zero: the program is at its end
//!   │    └───┴───┴─── ids, six at most, the one that is active first
//!   └──────────────── block
//! ```
//!
//! More than six ids continue in the segments of an SRH, each a container of the same form (H.Encaps.Red, RFC 8986
//! section 5.2).

use crate::path::{Path, ends_from};
use crate::sid::{LIB, PORT_IDS, SidPlan, TENANT_IDS, port_id, tenant_id};
use crate::topology::{HostId, LinkId, NodeId, SwitchId, Topology};
use std::net::Ipv6Addr;

/// Ids that a container of 128 bits holds behind a block of 32 (D81).
pub const IDS_PER_CONTAINER: usize = 6;

/// Encoding of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// By uN: the switches in their order, with a uA where several links join two of them (PP-5.2-1).
    Nodes,
    /// By uA: the ports in their order (PP-5.2-3).
    Links,
}

/// A path as the NIC writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The outer destination address.
    pub destination: Ipv6Addr,
    /// Segments of the SRH, in the order in which they are used; without any there is no SRH.
    pub segments: Vec<Ipv6Addr>,
}

/// Effect of one id, or of the end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// uN: the packet takes the shortest path to this switch, or is there already.
    Node(SwitchId),
    /// uA: this switch sends it over this link.
    Link(SwitchId, LinkId),
    /// End.DT6: this switch takes off the outer header, and looks the inner one up for this tenant.
    Tenant(SwitchId, u16),
}

/// The reason why a path has no program, or an address is not a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ProgramError {
    /// The error and its place.
    pub problem: String,
}

fn wrong<T>(problem: String) -> Result<T, ProgramError> {
    Err(ProgramError { problem })
}

impl Program {
    /// Writes a path, with a tenant's service at its last switch if one is given.
    ///
    /// # Errors
    ///
    /// A tenant of 4,096 or more.
    pub fn encode(
        plan: &SidPlan,
        topology: &Topology,
        path: &Path,
        encoding: Encoding,
        tenant: Option<u16>,
    ) -> Result<Self, ProgramError> {
        let service = match tenant {
            Some(tenant) => match tenant_id(tenant) {
                Some(id) => Some(id),
                None => return wrong(format!("tenant {tenant} has no id: expected 4095 at most")),
            },
            None => None,
        };
        let mut ids = Vec::new();
        let mut hops = path.hops(topology).peekable();
        while let Some((switch, link)) = hops.next() {
            let is_last = hops.peek().is_none();
            match encoding {
                Encoding::Nodes => {
                    ids.push(plan.id(switch));
                    if !is_last && has_parallel(topology, switch, link) {
                        ids.extend(port_of(topology, switch, link).map(port_id));
                    }
                }
                Encoding::Links if is_last && service.is_some() => {}
                Encoding::Links => ids.extend(port_of(topology, switch, link).map(port_id)),
            }
        }
        ids.extend(service);
        let mut containers = ids.chunks(IDS_PER_CONTAINER).map(|ids| plan.address(ids.iter().copied()));
        let destination = containers.next().unwrap_or(plan.block());
        Ok(Program { destination, segments: containers.collect() })
    }

    /// Parses a program. Local ids at its beginning have a meaning at the first switch alone: the one that the sender,
    /// if given, is attached to.
    ///
    /// # Errors
    ///
    /// A destination outside the block, an id of no switch, a local id that its switch does not have or whose switch is
    /// not known, an id behind the end, a program without any.
    pub fn decode(&self, plan: &SidPlan, topology: &Topology, from: Option<HostId>) -> Result<Vec<Step>, ProgramError> {
        let mut at = from.and_then(|from| {
            let mut attached = topology.attached_to(from);
            let first = attached.next();
            first.filter(|_| attached.next().is_none()).map(NodeId::Switch)
        });
        let mut steps = Vec::new();
        for container in [self.destination].iter().chain(&self.segments) {
            let [first, second, ids @ ..] = container.segments();
            if plan.block().segments()[..2] != [first, second] {
                return wrong(format!("{container} is not in the block {}/32", plan.block()));
            }
            let used = ids.iter().rposition(|id| *id != 0).map_or(0, |last| last + 1);
            if used == 0 {
                return wrong(format!("{container} is a block without an id"));
            }
            for id in &ids[..used] {
                if let Some(Step::Tenant(switch, _)) = steps.last() {
                    let name = topology.name(NodeId::Switch(*switch));
                    return wrong(format!("{container} continues with {id:#06x} after the tenant's service at {name}"));
                }
                let step = step(plan, topology, at, *id).map_err(|problem| ProgramError {
                    problem: format!("{container} is no program of this fabric: {problem}"),
                })?;
                at = Some(match step {
                    Step::Node(switch) | Step::Tenant(switch, _) => NodeId::Switch(switch),
                    Step::Link(switch, link) => far_end(topology, switch, link),
                });
                steps.push(step);
            }
        }
        Ok(steps)
    }
}

/// Effect of an id at a node.
fn step(plan: &SidPlan, topology: &Topology, at: Option<NodeId>, id: u16) -> Result<Step, String> {
    if id == 0 {
        return Err("0x0000 is the end of a container, but ids stand behind it".to_owned());
    }
    if let Some(NodeId::Host(host)) = at {
        let name = topology.name(NodeId::Host(host));
        return Err(format!("{id:#06x} stands behind the last link, to {name}"));
    }
    if !LIB.contains(&id) {
        return plan.switch(id).map(Step::Node).ok_or_else(|| format!("{id:#06x} is the id of no switch"));
    }
    let Some(NodeId::Switch(switch)) = at else {
        return Err(format!("{id:#06x} is local, and which switch is first is not known: name the sender"));
    };
    let name = topology.name(NodeId::Switch(switch));
    if PORT_IDS.contains(&id) {
        let port = id - PORT_IDS.start();
        let found = topology.port(NodeId::Switch(switch), port).map(|port| Step::Link(switch, port.link));
        return found.ok_or_else(|| format!("{id:#06x} would be port {port} of {name}, where no link is"));
    }
    if TENANT_IDS.contains(&id) {
        return Ok(Step::Tenant(switch, id - TENANT_IDS.start()));
    }
    Err(format!("{id:#06x} is neither a port nor a tenant of {name}"))
}

fn port_of(topology: &Topology, switch: SwitchId, link: LinkId) -> Option<u16> {
    ends_from(topology, NodeId::Switch(switch), link).map(|(own, _)| own.port)
}

fn far_end(topology: &Topology, switch: SwitchId, link: LinkId) -> NodeId {
    let node = NodeId::Switch(switch);
    ends_from(topology, node, link).map_or(node, |(_, far)| far.node)
}

/// Whether another link joins the same two switches, so that the far one's uN is ambiguous.
fn has_parallel(topology: &Topology, switch: SwitchId, link: LinkId) -> bool {
    let far = far_end(topology, switch, link);
    topology.ports(NodeId::Switch(switch)).iter().filter(|port| port.peer.node == far).count() > 1
}
