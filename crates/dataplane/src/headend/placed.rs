//! The headend of a node (PP-4-3, PP-4-6): routes that lead to placed paths, responses to the hosts behind it, probes.

use super::{Headend, HeadendConfig, HeadendError, HeadendPath, Incoming};
use crate::config::{ConfigError, NodeConfig};
use crate::drop::DropReason;
use crate::egress::Ports;
use crate::fast_cnp::Connection;
use crate::tables::{Shared, Tables, Target};
use srdma_frame::{Frame, Pool, PortId};
use srdma_steering::SetId;
use srdma_wire::{Instant, Prefix, Qpn};
use std::net::Ipv6Addr;

/// The paths of routes, and the headend's set of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    paths: Vec<HeadendPath>,
    set: SetId,
    /// The set to which a route led next that led here: flows of the last one follow.
    successor: Option<SetId>,
}

/// The headend, if the node steers, and the placed paths that its routes lead to.
#[derive(Debug, Default)]
pub(crate) struct PlacedRoutes {
    headend: Option<Box<Headend>>,
    placed: Shared<Placed>,
}

impl PlacedRoutes {
    /// Enables steering, or changes its settings: the learnt state of paths is discarded.
    pub(crate) fn set(
        &mut self,
        settings: HeadendConfig,
        config: &NodeConfig,
        tables: &mut Tables,
    ) -> Result<(), ConfigError> {
        let (source, fast_cnp_types) = (config.loopback, config.fast_cnp_types);
        let mut headend = Headend::new(HeadendConfig { source, fast_cnp_types, ..settings });
        // Each of these was accepted before; it can fail only for a changed setting such as the hop limit.
        for placed in self.placed.values_in_use_mut() {
            let set = headend.set_paths(Instant::ZERO, None, &placed.paths);
            (placed.set, placed.successor) = (set.map_err(ConfigError::Steering)?, None);
        }
        if let Some(before) = self.headend.as_deref_mut() {
            headend.succeed(before);
        }
        self.replace(Some(Box::new(headend)), tables);
        Ok(())
    }

    pub(crate) fn remove(&mut self, tables: &mut Tables) -> Result<(), ConfigError> {
        let routes = self.placed.in_use();
        if routes > 0 {
            return Err(ConfigError::SteeringInUse(routes));
        }
        self.replace(None, tables);
        Ok(())
    }

    /// The source address of probes is the node's own while it steers.
    fn replace(&mut self, headend: Option<Box<Headend>>, tables: &mut Tables) {
        let before = std::mem::replace(&mut self.headend, headend);
        let address = |headend: &Headend| headend.config().probe_address();
        if let Some(address) = self.headend.as_deref().map(address) {
            tables.add_own(address);
        }
        if let Some(before) = before.as_deref().map(address) {
            tables.remove_own(before);
        }
    }

    /// The target of a route to these paths, which leads to `before` now. Routes with the same paths share what is
    /// known of them; a route whose paths change, and which shares them with no other, keeps what is known of those
    /// that stay.
    pub(crate) fn hold(
        &mut self,
        prefix: Prefix,
        paths: Vec<HeadendPath>,
        before: Option<Target>,
    ) -> Result<Target, ConfigError> {
        let headend = self.headend.as_mut().ok_or(ConfigError::SteeringIsOff(prefix))?;
        let refused = |error: HeadendError| ConfigError::Headend { prefix, error };
        if self.placed.find(|known| known.paths == paths).is_none() {
            if let Some(Target::Placed(place)) = before
                && self.placed.uses(place) == 1
            {
                let set = self.placed[place as usize].set;
                headend.set_paths(Instant::ZERO, Some(set), &paths).map_err(refused)?;
                self.placed[place as usize].paths = paths;
                // The use by the route before ends when it is replaced.
                self.placed.hold_again(place);
                return Ok(Target::Placed(place));
            }
            let set = headend.set_paths(Instant::ZERO, None, &paths).map_err(refused)?;
            let place = self.placed.hold(|_| false, || Placed { paths, set, successor: None });
            self.follow(before, place);
            return Ok(Target::Placed(place));
        }
        let new = || Placed { paths: paths.clone(), set: SetId::default(), successor: None };
        let place = self.placed.hold(|known| known.paths == paths, new);
        self.follow(before, place);
        Ok(Target::Placed(place))
    }

    /// A route that leads to `before` is about to lead to the paths at a place.
    fn follow(&mut self, before: Option<Target>, place: u32) {
        if let Some(Target::Placed(before)) = before
            && before != place
        {
            self.placed[before as usize].successor = Some(self.placed[place as usize].set);
        }
    }

    /// Ends one use of placed paths.
    pub(crate) fn release(&mut self, place: u32) {
        if self.placed.release(place)
            && let Some(headend) = &mut self.headend
        {
            let Placed { set, successor, .. } = self.placed[place as usize];
            match successor {
                Some(successor) => headend.replace_set(set, successor),
                None => headend.remove_set(set),
            }
        }
    }

    /// Adds a connection of a host whose flows are steered. Returns whether the node steers.
    pub(crate) fn add_connection(&mut self, connection: Connection) -> bool {
        let Some(headend) = &mut self.headend else { return false };
        headend.add_connection(connection);
        true
    }

    /// Returns whether the connection was known.
    pub(crate) fn remove_connection(&mut self, host: Ipv6Addr, peer: Ipv6Addr, peer_qpn: Qpn) -> bool {
        self.headend.as_mut().is_some_and(|headend| headend.remove_connection(host, peer, peer_qpn))
    }

    pub(crate) fn headend(&self) -> Option<&Headend> {
        self.headend.as_deref()
    }

    /// Whether packets of some path have an entropy value.
    pub(crate) fn has_entropy(&self, place: u32) -> bool {
        has_entropy(&self.placed[place as usize].paths)
    }

    pub(crate) fn set_at(&self, place: u32) -> SetId {
        self.placed[place as usize].set
    }
}

/// Whether packets of some path have an entropy value.
pub(crate) fn has_entropy(paths: &[HeadendPath]) -> bool {
    paths.iter().any(|path| path.entropy.is_some())
}

/// Packets.
impl PlacedRoutes {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.headend.is_some()
    }

    /// Pushes the headers of its flow's path onto a packet; returns their octets.
    #[inline]
    pub(crate) fn encapsulate(
        &mut self,
        now: Instant,
        place: u32,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<usize, DropReason> {
        let set = self.placed[place as usize].set;
        self.headend.as_mut().ok_or(DropReason::NoPath)?.encapsulate(now, set, frame, pool)
    }

    /// Pushes the headers of the first path onto a packet of no flow.
    pub(crate) fn encapsulate_unsteered(
        &self,
        place: u32,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<(), DropReason> {
        let headend = self.headend.as_ref().ok_or(DropReason::NoPath)?;
        headend.encapsulate_unsteered(self.set_at(place), frame, pool)
    }

    /// Shows a batch to the headend, and removes the headend's own probes from it. Done ahead of forwarding, so that
    /// nodes without a headend pay nothing for it.
    #[inline(never)]
    pub(crate) fn snoop(
        &mut self,
        now: Instant,
        port: PortId,
        frames: &mut Vec<Frame>,
        pool: &mut Pool,
        ports: &mut Ports,
    ) {
        let (Some(headend), Some(mac)) = (self.headend.as_mut(), ports.mac(port).copied()) else { return };
        let mut index = 0;
        while let Some(frame) = frames.get(index) {
            let is_for_port = frame.head(pool).starts_with(&mac.0);
            match is_for_port.then(|| headend.incoming(now, frame, pool)) {
                Some(Incoming::Probe) => {
                    let frame = frames.remove(index);
                    ports.count_received(port, frame.len());
                    frame.release(pool);
                }
                Some(Incoming::Passing) | None => index += 1,
            }
        }
    }

    /// Does what is due; then [`PlacedRoutes::poll_probe`] has probes to send.
    pub(crate) fn tick(&mut self, now: Instant) {
        if let Some(headend) = &mut self.headend {
            headend.tick(now);
        }
    }

    pub(crate) fn poll_probe(&mut self, now: Instant, pool: &mut Pool) -> Option<Frame> {
        self.headend.as_mut()?.poll_probe(now, pool)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.headend.as_ref()?.next_deadline()
    }
}
