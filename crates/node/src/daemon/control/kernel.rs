//! Links, neighbours and routes of the kernel: updates to the node, and requests to the kernel.

use super::Control;
use super::learnt_routes::LearntRoutes;
use super::reloading::Cause;
use crate::configuration::{Configuration, PortInterface};
use crate::daemon::agent::lost_hosts;
use crate::daemon::claim::Claim;
use crate::daemon::handle::Died;
use crate::daemon::interest;
use crate::daemon::mirror::{Effects, Mirror, MirroredPort, PortLinks};
use crate::daemon::order::Refusal;
use srdma_dataplane::{Command, PortConfig};
use srdma_frame::PortId;
use srdma_io::nd::ProxyNd;
use srdma_io::netlink::{Change, Kernel, KernelNextHop, Watcher};
use srdma_node_spec::{Entries, Owner};
use srdma_wire::{MacAddress, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv6Addr;

/// State between the node and the kernel of its network namespace.
#[derive(Debug)]
pub(super) struct KernelSide {
    watcher: Watcher,
    pub(super) mirror: Mirror,
    kernel: Kernel,
    /// State of each port's link as the node knows it.
    links: PortLinks,
    /// Destinations with a blackhole in the kernel.
    blackholes: BTreeSet<Prefix>,
    /// Answers for Proxy Addresses, once there are any.
    neighbour_discovery: Option<ProxyNd>,
    /// Routes that were learnt.
    learnt_routes: LearntRoutes,
    /// Last refusal of the kernel, so that it is logged once.
    refused: Option<String>,
    /// Held by the first node of the namespace, which may clear what a dead one has left.
    _first: Option<Claim>,
}

impl KernelSide {
    /// Reads the present state, and removes what a killed node has left behind.
    pub(super) async fn start() -> io::Result<Self> {
        let mut watcher = Watcher::start()?;
        let mut mirror = Mirror::new();
        let mut is_known = false;
        let mut changes = Vec::new();
        while !is_known {
            watcher.receive(&mut changes).await?;
            for change in changes.drain(..) {
                is_known |= change == Change::DumpEnds;
                mirror.apply(change);
            }
        }
        let mut kernel = Kernel::new()?;
        let first = Claim::of_namespace();
        let mut refused = None;
        if first.is_some()
            && let Err(error) = kernel.clear_stale().await
        {
            refused = Some(format!("cannot remove what a killed node has left in the kernel: {error}"));
        }
        Ok(KernelSide {
            watcher,
            mirror,
            kernel,
            links: PortLinks::default(),
            blackholes: BTreeSet::new(),
            neighbour_discovery: None,
            learnt_routes: LearntRoutes::default(),
            refused,
            _first: first,
        })
    }

    /// Waits for changes, and takes them.
    pub(super) async fn changed(&mut self) -> io::Result<()> {
        let mut changes = Vec::new();
        self.watcher.receive(&mut changes).await?;
        for change in changes {
            self.learnt_routes.observe(&change);
            self.mirror.apply(change);
        }
        Ok(())
    }

    /// Takes a configuration and the entries of all layers above the kernel's; brings the kernel's layer up to date.
    pub(super) fn configure(
        &mut self,
        configuration: &Configuration,
        entries: &Entries,
        layer: &mut Entries,
    ) -> Effects {
        let ports = configuration.interfaces.iter().map(|port| MirroredPort {
            interface: port.name.clone(),
            mac: port.mac,
            addresses: port.addresses.clone(),
            link_mtu: port.link_mtu,
        });
        self.mirror.configure(ports.collect(), &configuration.spec.node, entries, layer);
        self.mirror.flush(layer)
    }

    /// Requests that the kernel keep neighbours resolved, and ends that for those no longer needed.
    pub(super) async fn keep(&mut self, effects: &Effects) {
        for (index, address) in &effects.keep {
            let kept = self.kernel.keep_resolved(*index, *address).await;
            self.note(kept, || format!("cannot have the kernel keep neighbour {address} resolved"));
        }
        for (index, address) in &effects.release {
            let left = self.kernel.remove_kept(*index, *address).await;
            self.note(left, || format!("cannot leave neighbour {address} to the kernel"));
        }
    }

    /// Answers for these addresses at these interfaces, where hosts look for them on their link.
    fn answer_for(&mut self, addresses: BTreeSet<Ipv6Addr>, interfaces: &[(u32, MacAddress)]) {
        if self.neighbour_discovery.is_none() && !addresses.is_empty() {
            match ProxyNd::start() {
                Ok(started) => self.neighbour_discovery = Some(started),
                Err(error) => self.note(Err(error), || "cannot answer for Proxy Addresses".to_owned()),
            }
        }
        if let Some(neighbour_discovery) = &mut self.neighbour_discovery {
            let set = neighbour_discovery.set(interfaces.iter().copied(), addresses);
            self.note(set, || "cannot hear everybody who looks for a Proxy Address".to_owned());
        }
    }

    /// Has the kernel leave these destinations alone, and no others.
    async fn leave_alone(&mut self, wanted: BTreeSet<Prefix>) {
        let before = std::mem::replace(&mut self.blackholes, wanted.clone());
        for prefix in wanted.difference(&before) {
            let added = self.kernel.add_blackhole(*prefix).await;
            self.note(added, || format!("cannot have the kernel leave {prefix} to the node"));
        }
        for prefix in before.difference(&wanted) {
            let removed = self.kernel.remove_blackhole(*prefix).await;
            self.note(removed, || format!("cannot leave {prefix} to the kernel"));
        }
    }

    /// Installs routes to these prefixes by these neighbours in the kernel, from which the node mirrors them, and
    /// removes those of earlier calls.
    pub(super) async fn lead(&mut self, wanted: &BTreeMap<Prefix, Vec<KernelNextHop>>) {
        if let Some(refusal) = self.learnt_routes.set(&mut self.kernel, wanted).await {
            self.refused.get_or_insert(refusal);
        }
    }

    /// Whether the kernel has dropped routes that were installed.
    pub(super) fn has_lost_routes(&self) -> bool {
        self.learnt_routes.has_lost_routes()
    }

    /// Removes everything that was installed in the kernel.
    pub(super) async fn clear(&mut self) -> io::Result<()> {
        self.kernel.clear().await
    }

    /// Refusal of the kernel since the last call, once.
    fn take_refusal(&mut self) -> Option<String> {
        self.refused.take()
    }

    fn note(&mut self, result: io::Result<()>, what: impl FnOnce() -> String) {
        if let Err(error) = result {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => "; this needs root or CAP_NET_ADMIN",
                _ => "",
            };
            self.refused.get_or_insert_with(|| format!("{}: {error}{hint}", what()));
        }
    }
}

impl Control {
    /// Applies changes of the kernel to the node.
    pub(super) async fn follow_kernel(&mut self) -> Result<(), Died> {
        self.follow_links().await?;
        let effects = self.kernel.mirror.flush(self.layers.get_mut(Owner::Kernel));
        self.apply_effects(&effects).await?;
        self.look_after_ports().await?;
        let facts = self.kernel.mirror.interfaces();
        let has_changed = |name: &String| facts.get(name) != self.facts.get(name);
        if self.configuration.interfaces.iter().any(|interface| has_changed(&interface.name)) {
            self.facts = facts;
            self.reread().await?;
        }
        self.settle_routing().await
    }

    /// Carries out what the kernel's changes have led to.
    pub(super) async fn apply_effects(&mut self, effects: &Effects) -> Result<(), Died> {
        if effects.commands.is_empty() && effects.keep.is_empty() && effects.release.is_empty() {
            return Ok(());
        }
        tracing::debug!(commands = effects.commands.len(), "changes that follow the kernel");
        if !effects.commands.is_empty()
            && let Err(Refusal::Interest(reason) | Refusal::Command(reason)) =
                self.data.change(None, effects.commands.clone()).await?
        {
            tracing::warn!(reason, "the node refuses what the kernel says");
        }
        self.kernel.keep(effects).await;
        Ok(())
    }

    /// Answers for Proxy Addresses; and with AF_PACKET, by which the kernel sees what the node takes, keeps it from
    /// forwarding or answering that.
    pub(super) async fn settle_with_kernel(&mut self) {
        let entries = self.layers.above(Owner::Kernel);
        self.kernel.answer_for(entries.proxies().collect(), &self.interfaces());
        let wanted = if self.kernel_sees_frames() {
            let wanted = interest::of(&self.configuration, &entries);
            interest::taken_from_the_kernel(&wanted).collect()
        } else {
            BTreeSet::new()
        };
        self.kernel.leave_alone(wanted).await;
        self.bfd_ports.hold(self.kernel_sees_frames() && !entries.bfd.is_empty());
        self.say_refusal();
    }

    /// Logs a refusal of the kernel since the last call.
    pub(super) fn say_refusal(&mut self) {
        if let Some(refusal) = self.kernel.take_refusal() {
            tracing::warn!("{refusal}");
        }
    }

    /// The ports' interfaces that are there, and the MAC addresses that the node has at them.
    fn interfaces(&self) -> Vec<(u32, MacAddress)> {
        let found = |(port, (config, interface)): (u16, (&PortConfig, &PortInterface))| {
            let (index, _) = self.kernel.mirror.interface(PortId(port))?;
            let mac = interface.mac.or(self.facts.get(&interface.name).map(|facts| facts.mac));
            Some((index, mac.unwrap_or(config.mac)))
        };
        let configured = self.configuration.spec.node.ports.iter().zip(&self.configuration.interfaces);
        (0..).zip(configured).filter_map(found).collect()
    }

    /// Tells the node which links have gone down or come up since the last call, before anything else that follows from
    /// it (D285), and logs them. An interface that is gone has its own event.
    pub(super) async fn follow_links(&mut self) -> Result<(), Died> {
        let links = self.links();
        let commands = self.kernel.links.follow(&links);
        if commands.is_empty() {
            return Ok(());
        }
        // Those that have lost their last link just now; the others are known.
        let is_down = |port: &PortId| {
            let is_it =
                |command: &Command| matches!(command, Command::SetLink { port: of, is_up: false } if of == port);
            commands.iter().any(is_it)
        };
        let just_now = self.configuration.host_links.iter().filter(|one| one.ports.iter().any(is_down)).cloned();
        self.controller.hosts_lost(lost_hosts(&links, &just_now.collect::<Vec<_>>()));
        if let Err(Refusal::Interest(reason) | Refusal::Command(reason)) =
            self.data.change(None, commands.clone()).await?
        {
            tracing::warn!(reason, "the node refuses what the kernel says");
        }
        for command in commands {
            let Command::SetLink { port, is_up } = command else { continue };
            if self.kernel.mirror.interface(port).is_some() {
                let port = &self.configuration.spec.node.ports[port.index()].name;
                match is_up {
                    true => tracing::info!(port, "link up"),
                    false => tracing::warn!(port, "link down"),
                }
            }
        }
        Ok(())
    }

    /// Ports with links that are up.
    pub(super) fn links(&self) -> Vec<bool> {
        self.kernel.mirror.links(&self.configuration.interfaces)
    }

    /// Reads the file again after a change of interfaces, which may resolve its names.
    async fn reread(&mut self) -> Result<(), Died> {
        let text = self.text.clone();
        match self.apply_text(text).await? {
            Ok(0) => {}
            Ok(commands) => tracing::info!(cause = %Cause::Interfaces, changes = commands, "reloaded"),
            Err(reason) => {
                tracing::error!(cause = %Cause::Interfaces, reason, "not reloaded, the old configuration stays");
            }
        }
        Ok(())
    }
}
