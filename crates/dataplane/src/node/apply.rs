//! Commands: each goes to the part that owns what it changes.

use super::Node;
use crate::config::{Command, ConfigError, NodeConfig, PortConfig, RouteAction, SidBehavior, TableId};
use crate::cross_connect::CrossConnect;
use crate::egress::Ports;
use crate::encaps::{ENCAPS_HOP_LIMIT, Encaps};
use crate::fast_cnp::Connection;
use crate::groups::{Owner, Surroundings, tree_nodes};
use crate::headend;
use crate::learning::Learning;
use crate::policy::{Form, Outer, Payload, PolicyId, SrPolicy};
use crate::security::{HmacKey, Security};
use crate::tables::{Target, Unused};
use srdma_frame::PortId;
use srdma_wire::{MacAddress, NextHeader, Prefix, Qpn};
use std::net::Ipv6Addr;

impl Node {
    /// Applies a command. A command that is refused changes nothing.
    ///
    /// # Errors
    ///
    /// Why the command is refused.
    pub fn apply(&mut self, command: Command) -> Result<(), ConfigError> {
        self.check_tree(&command)?;
        let Node { config, ports, tables, groups, security, fast_cnp, backpressure, ioam, headend, .. } = self;
        let mut around = Surroundings { config: &*config, tables: &mut *tables, security: &*security };
        let mut unused: Unused = None;
        match command {
            Command::AddGroup(entry) => {
                unused = groups.add(*entry, around.config.restarted, Owner::File, &mut around)?;
            }
            Command::RestoreGroup(entry) => unused = groups.add(*entry, true, Owner::Controller, &mut around)?,
            Command::PrepareGroup(entry) => groups.prepare(*entry, &around)?,
            Command::CommitGroup { id, epoch, is_first } => unused = groups.commit(id, epoch, is_first, &mut around)?,
            Command::AbortGroup(id) => groups.abort(id),
            Command::RemoveGroup(id) => groups.remove(id, &mut around)?,
            Command::SetLearning(learning) => groups.set_learning(learning, &mut around)?,
            Command::RemoveLearning => groups.remove_learning(tables),
            Command::AddNeighbour { next_hop, mac } => tables.add_neighbour(next_hop, mac)?,
            Command::RemoveNeighbour(next_hop) => tables.remove_neighbour(next_hop)?,
            Command::AddRoute { table, prefix, action } => unused = self.add_route(table, prefix, action)?,
            Command::RemoveRoute { table, prefix } => unused = tables.remove_route(table, prefix)?,
            Command::AddPolicy { id, policy } => self.add_policy(id, *policy)?,
            Command::RemovePolicy(id) => tables.remove_policy(id)?,
            Command::SetBackups { next_hop, routes } => tables.set_backups(next_hop, &routes, config.loopback)?,
            Command::RemoveBackups(next_hop) => tables.remove_backups(next_hop)?,
            Command::AddSid { prefix, behavior } => unused = self.add_sid(prefix, behavior)?,
            Command::RemoveSid(prefix) => tables.remove_sid(prefix)?,
            Command::AddMulticastRoute(route) => tables.add_multicast_route(&route)?,
            Command::RemoveMulticastRoute { source, group } => tables.remove_multicast_route(source, group)?,
            Command::AddPort(port) => self.add_port(port)?,
            Command::SetPort { port, mac, addresses, link_mtu } => self.set_port(port, mac, addresses, link_mtu)?,
            Command::SetSharedHosts(all) => security.shared_hosts.set(&all, config.loopback)?,
            Command::SetLink { port, is_up } => {
                check_port(config.ports.len(), port)?;
                tables.set_link_state(port, is_up);
            }
            Command::SetCrossConnect { port, cross_connect } => {
                check_port(config.ports.len(), port)?;
                if ports.vlans.concerns(port) {
                    return Err(ConfigError::OnVlanLink(port.0, "its frames cannot be cross-connected"));
                }
                self.set_cross_connect(port, cross_connect)?;
            }
            Command::RemoveCrossConnect(port) => self.remove_cross_connect(port)?,
            Command::SetEgress { port, egress } => {
                check_port(config.ports.len(), port)?;
                check_own_queues(ports, port)?;
                ports.set_classes(port, *egress)?;
            }
            Command::RemoveEgress(port) => {
                check_port(config.ports.len(), port)?;
                check_own_queues(ports, port)?;
                ports.egress.remove_classes(port, config.ports[port.index()].queue_limit_octets);
                ioam.prepare_port(port, config, &mut ports.egress);
            }
            Command::SetClasses(classes) => ports.classes = classes,
            Command::AddHmacKey { key_id, key } => self.add_hmac_key(key_id, key)?,
            Command::RemoveHmacKey(key_id) => {
                if let Some(group) = groups.signs_with(key_id) {
                    return Err(ConfigError::KeyInUse { key_id, group: group.0 });
                }
                if tables.signs_routes(key_id) {
                    return Err(ConfigError::KeySignsRoutes(key_id));
                }
                security.remove_key(key_id)?;
            }
            Command::SetDomain(domain) => security.set_domain(domain, config, tables, groups)?,
            Command::RemoveDomain => security.remove_domain(),
            Command::SetBorder { port, sources } => {
                check_port(config.ports.len(), port)?;
                security.set_border(port, &sources)?;
                tables.set_border(port, true);
            }
            Command::RemoveBorder(port) => {
                check_port(config.ports.len(), port)?;
                security.remove_border(port);
                tables.set_border(port, false);
            }
            Command::SetIoam(settings) => ioam.set(*settings, config, &mut ports.egress)?,
            Command::RemoveIoam => ioam.remove(),
            Command::SetFastCnp(settings) => fast_cnp.set(*settings),
            Command::RemoveFastCnp => fast_cnp.remove(),
            Command::SetBackpressure(settings) => {
                settings.check()?;
                let mut mapped = settings.priorities.iter().flat_map(|mapping| &mapping.ports);
                mapped.try_for_each(|port| check_port(config.ports.len(), *port))?;
                backpressure.set(*settings, &mut ports.egress);
            }
            Command::RemoveBackpressure => backpressure.remove(&mut ports.egress),
            Command::SetBackpressureSids(sids) => backpressure.set_sids(&sids, config.loopback)?,
            Command::SetSteering(settings) => headend.set(*settings, config, tables)?,
            Command::RemoveSteering => headend.remove(tables)?,
            Command::SetBfdSession(session) => self.bfd.set(&session, &mut self.tables)?,
            Command::RemoveBfdSession(peer) => self.bfd.remove(peer, &mut self.tables)?,
            Command::AddConnection(connection) => self.add_connection(connection)?,
            Command::RemoveConnection { host, peer, peer_qpn } => self.remove_connection(host, peer, peer_qpn)?,
        }
        if let Some(place) = unused {
            self.headend.release(place);
        }
        self.tables.invalidate();
        Ok(())
    }

    /// That no route with entropy values leads to a node of a tree (D244).
    fn check_tree(&self, command: &Command) -> Result<(), ConfigError> {
        let has_entropy = |address: &Ipv6Addr| match self.tables.lookup_main(&address.octets()) {
            Some(Target::Placed(place)) => self.headend.has_entropy(place),
            _ => false,
        };
        match command {
            Command::AddGroup(entry) | Command::RestoreGroup(entry) | Command::PrepareGroup(entry) => {
                let node = tree_nodes(entry).find(has_entropy);
                node.map_or(Ok(()), |node| Err(ConfigError::EntropyInTree { node, group: entry.id.0 }))
            }
            Command::SetLearning(Learning { parent, parent_sid, .. }) => {
                let parent = parent_sid.unwrap_or(*parent);
                if has_entropy(&parent) { Err(ConfigError::EntropyToParent(parent)) } else { Ok(()) }
            }
            Command::AddRoute { table: TableId(0), prefix, action: RouteAction::Placed(paths) }
                if headend::has_entropy(paths) =>
            {
                let takes = |node: Ipv6Addr| prefix.contains(node) && !self.tables.has_longer(*prefix, node);
                if let Some((group, node)) = self.groups.tree_nodes().find(|(_, node)| takes(*node)) {
                    return Err(ConfigError::EntropyInTree { node, group: group.0 });
                }
                let parent = self.groups.learnt_parent().filter(|parent| takes(*parent));
                parent.map_or(Ok(()), |parent| Err(ConfigError::EntropyToParent(parent)))
            }
            _ => Ok(()),
        }
    }

    fn add_port(&mut self, port: PortConfig) -> Result<(), ConfigError> {
        self.groups.check_not_proxies(&port.addresses)?;
        self.ports.vlans.check(&port).map_err(|error| ConfigError::Vlan { name: port.name.clone(), error })?;
        self.ports.add(&port);
        self.tables.add_port(&port);
        self.config.ports.push(port);
        Ok(())
    }

    fn set_port(
        &mut self,
        port: PortId,
        mac: MacAddress,
        addresses: Vec<Ipv6Addr>,
        link_mtu: u16,
    ) -> Result<(), ConfigError> {
        check_port(self.config.ports.len(), port)?;
        self.groups.check_not_proxies(&addresses)?;
        self.ports.set_mac(port, mac);
        self.tables.set_link(port, mac, link_mtu);
        addresses.iter().for_each(|address| self.tables.add_own(*address));
        let config = &mut self.config.ports[port.index()];
        (config.mac, config.link_mtu) = (mac, link_mtu);
        let before = std::mem::replace(&mut config.addresses, addresses);
        before.into_iter().for_each(|address| self.tables.remove_own(address));
        Ok(())
    }

    fn add_route(&mut self, table: TableId, prefix: Prefix, action: RouteAction) -> Result<Unused, ConfigError> {
        let payload = if prefix.is_ipv4() { Payload::Ipv4 } else { Payload::Ipv6 };
        let target = match action {
            RouteAction::Blackhole => Target::Blackhole,
            RouteAction::ToPeer if table != TableId(0) || prefix.is_ipv4() => return Err(ConfigError::ToPeer(prefix)),
            RouteAction::ToPeer => Target::ToPeer,
            RouteAction::Policy { policy, mode } => Target::Policy(self.hold_policy(policy, Form { mode, payload })?),
            RouteAction::Encaps { segments, mode, hmac_key_id } => {
                let hmac = match hmac_key_id {
                    None => None,
                    Some(key_id) => {
                        let key = self.security.key(key_id);
                        Some((key_id, key.ok_or(ConfigError::UnknownEncapsKey { prefix, key_id })?))
                    }
                };
                let policy = Encaps::signed(self.config.loopback, &segments, mode, ENCAPS_HOP_LIMIT, hmac)
                    .map_err(|error| ConfigError::Encaps { prefix, error })?;
                self.tables.hold_encaps(if prefix.is_ipv4() { policy.around(NextHeader::IPV4) } else { policy })
            }
            RouteAction::Placed(_) if prefix.is_ipv4() => return Err(ConfigError::PlacedIpv4(prefix)),
            RouteAction::Placed(paths) => self.headend.hold(prefix, paths, self.tables.get(table, prefix))?,
            RouteAction::Via(next_hops) => self.tables.hold_next_hops(prefix, &next_hops)?,
        };
        Ok(self.tables.insert_route(table, prefix, target))
    }

    fn add_sid(&mut self, prefix: Prefix, behavior: SidBehavior) -> Result<Unused, ConfigError> {
        self.security.check_sid_in_domain(prefix)?;
        let group = match behavior {
            SidBehavior::EndReplicate(id) => self.groups.transit_group(id),
            _ => None,
        };
        let policy = match behavior {
            SidBehavior::EndB6Encaps { policy, mode } => {
                Some(self.hold_policy(policy, Form { mode, payload: Payload::Ipv6 })?)
            }
            _ => None,
        };
        let unused = self.tables.add_sid(prefix, behavior, group, policy)?;
        if matches!(behavior, SidBehavior::EndE(_)) {
            self.backpressure.expect_end_e();
        }
        Ok(unused)
    }

    fn add_policy(&mut self, id: PolicyId, policy: SrPolicy) -> Result<(), ConfigError> {
        let outer = outer(&self.config, &self.security, id, &policy)?;
        self.tables.set_policy(id, policy, outer)
    }

    /// The place of an SR policy in a form, used once more.
    fn hold_policy(&mut self, id: PolicyId, form: Form) -> Result<u32, ConfigError> {
        let outer = outer(&self.config, &self.security, id, self.tables.policy(id)?)?;
        self.tables.hold_policy(id, form, outer)
    }

    fn set_cross_connect(&mut self, port: PortId, cross_connect: CrossConnect) -> Result<(), ConfigError> {
        let CrossConnect { policy, mode } = cross_connect;
        let place = self.hold_policy(policy, Form { mode, payload: Payload::Ethernet })?;
        if let Some(before) = self.cross_connects.set(port, Some(place)) {
            self.tables.release_policy(before);
        }
        Ok(())
    }

    fn remove_cross_connect(&mut self, port: PortId) -> Result<(), ConfigError> {
        let before = self.cross_connects.policy(port).ok_or(ConfigError::UnknownCrossConnect(port.0))?;
        self.cross_connects.set(port, None);
        self.tables.release_policy(before);
        Ok(())
    }

    fn add_hmac_key(&mut self, key_id: u32, key: HmacKey) -> Result<(), ConfigError> {
        self.tables.sign_routes(key_id, &key);
        self.security.add_key(key_id, key);
        self.groups.rebuild_headers(&self.config, &self.security)
    }

    fn add_connection(&mut self, connection: Connection) -> Result<(), ConfigError> {
        let translates = self.fast_cnp.add_connection(connection);
        let steers = self.headend.add_connection(connection);
        if translates || steers { Ok(()) } else { Err(ConfigError::FastCnpIsOff) }
    }

    fn remove_connection(&mut self, host: Ipv6Addr, peer: Ipv6Addr, peer_qpn: Qpn) -> Result<(), ConfigError> {
        if !self.fast_cnp.is_on() && !self.headend.is_on() {
            return Err(ConfigError::FastCnpIsOff);
        }
        let translated = self.fast_cnp.remove_connection(host, peer, peer_qpn);
        let steered = self.headend.remove_connection(host, peer, peer_qpn);
        match translated || steered {
            true => Ok(()),
            false => Err(ConfigError::UnknownConnection { host, peer, peer_qpn }),
        }
    }
}

/// What the outer headers of an SR policy have in common.
fn outer<'s>(
    config: &NodeConfig,
    security: &'s Security,
    id: PolicyId,
    policy: &SrPolicy,
) -> Result<Outer<'s>, ConfigError> {
    let hmac = match policy.hmac_key_id {
        None => None,
        Some(key_id) => {
            let key = security.key(key_id);
            Some((key_id, key.ok_or(ConfigError::UnknownPolicyKey { policy: id.0, key_id })?))
        }
    };
    Ok(Outer { source: config.loopback, hop_limit: ENCAPS_HOP_LIMIT, hmac })
}

/// That the frames of a port wait in queues of its own, not its parent's.
fn check_own_queues(ports: &Ports, port: PortId) -> Result<(), ConfigError> {
    match ports.vlans.carrier(port).1 {
        None => Ok(()),
        Some(_) => Err(ConfigError::OnVlanLink(port.0, "its frames wait in the queues of its parent")),
    }
}

fn check_port(ports: usize, port: PortId) -> Result<(), ConfigError> {
    if port.index() < ports { Ok(()) } else { Err(ConfigError::UnknownPort(port.0, ports)) }
}
