//! The headend of placed paths at a node (PP-4-3, PP-4-6): routes that lead to several paths, answers to the hosts
//! behind it that are listened to, and probes.

use super::state::Target;
use super::{Arrival, Node};
use crate::config::{ConfigError, TableId};
use crate::headend::{Headend, HeadendConfig, HeadendError, HeadendPath, Incoming};
use srdma_frame::{Frame, Pool, PortId};
use srdma_steering::SetId;
use srdma_wire::{Instant, Prefix};

/// The paths of routes, and the headend's set of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) paths: Vec<HeadendPath>,
    pub(super) set: SetId,
}

impl Node {
    /// Steers from now on, or otherwise than before: what is believed of paths is forgotten.
    pub(super) fn set_steering(&mut self, config: HeadendConfig) -> Result<(), ConfigError> {
        let (source, fast_cnp_types) = (self.config.loopback, self.config.fast_cnp_types);
        let mut headend = Headend::new(HeadendConfig { source, fast_cnp_types, ..config });
        // Each of these was taken before; but for a hop limit or the like nothing about it has changed.
        for placed in self.placed.values_in_use_mut() {
            let set = headend.set_paths(Instant::ZERO, None, &placed.paths);
            placed.set = set.map_err(ConfigError::Steering)?;
        }
        if let Some(before) = self.headend.as_deref_mut() {
            headend.succeed(before);
        }
        self.replace_headend(Some(Box::new(headend)));
        Ok(())
    }

    /// The address of probes is the node's own while it steers.
    fn replace_headend(&mut self, headend: Option<Box<Headend>>) {
        let before = std::mem::replace(&mut self.headend, headend);
        let address = |headend: &Headend| headend.config().probe_address();
        if let Some(before) = before.as_deref().map(address).filter(|before| !self.is_own(*before)) {
            self.withdraw(Prefix::host(before), Target::Local);
        }
        if let Some(address) = self.headend.as_deref().map(address) {
            self.fall_back(Prefix::host(address));
        }
    }

    pub(super) fn remove_steering(&mut self) -> Result<(), ConfigError> {
        let routes = self.placed.in_use();
        if routes > 0 {
            return Err(ConfigError::SteeringInUse(routes));
        }
        self.replace_headend(None);
        Ok(())
    }

    /// The target of a route to these paths. Routes with the same ones share what is known of them; a route whose paths
    /// change, and which shares them with no other, keeps what is known of those that stay.
    pub(super) fn hold_placed(
        &mut self,
        table: TableId,
        prefix: Prefix,
        paths: Vec<HeadendPath>,
    ) -> Result<Target, ConfigError> {
        let before = match table {
            TableId(0) => self.main.get(prefix),
            table => self.tables.get(&table).and_then(|routes| routes.get(prefix)),
        };
        let headend = self.headend.as_mut().ok_or(ConfigError::SteeringIsOff(prefix))?;
        let refused = |error: HeadendError| ConfigError::Headend { prefix, error };
        if self.placed.find(|known| known.paths == paths).is_none() {
            if let Some(Target::Placed(place)) = before
                && self.placed.uses(place) == 1
            {
                let set = self.placed[place as usize].set;
                headend.set_paths(Instant::ZERO, Some(set), &paths).map_err(refused)?;
                self.placed[place as usize].paths = paths;
                // That of the route before ends with it.
                self.placed.hold_again(place);
                return Ok(Target::Placed(place));
            }
            let set = headend.set_paths(Instant::ZERO, None, &paths).map_err(refused)?;
            return Ok(Target::Placed(self.placed.hold(|_| false, || Placed { paths, set })));
        }
        let new = || Placed { paths: paths.clone(), set: SetId::default() };
        Ok(Target::Placed(self.placed.hold(|known| known.paths == paths, new)))
    }

    pub(super) fn release_placed(&mut self, place: u32) {
        if self.placed.release(place)
            && let Some(headend) = &mut self.headend
        {
            headend.remove_set(self.placed[place as usize].set);
        }
    }

    /// Listens to a batch, and takes the headend's own probes out of it. Done ahead, so that nodes without a headend
    /// pay nothing for it.
    #[inline(never)]
    pub(super) fn listen(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        let (Some(headend), Some(mac)) = (self.headend.as_mut(), self.macs.get(port.index())) else { return };
        let mut index = 0;
        while let Some(frame) = frames.get(index) {
            let is_ours = frame.head(pool).starts_with(&mac.0);
            match is_ours.then(|| headend.incoming(now, frame, pool)) {
                Some(Incoming::Probe) => {
                    let frame = frames.remove(index);
                    if let Some(counters) = self.port_counters.get_mut(port.index()) {
                        counters.received.count(frame.len());
                    }
                    frame.release(pool);
                }
                Some(Incoming::Passing) | None => index += 1,
            }
        }
    }

    /// Sends the probes that are due, by the FIB.
    pub(super) fn probe(&mut self, now: Instant, pool: &mut Pool) {
        let arrival = Arrival::own(now);
        let Some(headend) = self.headend.as_mut() else { return };
        headend.tick(now);
        while let Some(mut frame) = self.headend.as_mut().and_then(|headend| headend.poll_probe(now, pool)) {
            match self.way_of(&mut frame, pool) {
                Ok(adjacency) => self.transmit(arrival, frame, pool, adjacency),
                Err(reason) => self.drop_frame(arrival, frame, pool, reason),
            }
        }
    }

    /// The headend, when the node steers.
    pub fn headend(&self) -> Option<&Headend> {
        self.headend.as_deref()
    }

    /// The prefixes that lead to placed paths, with the headend's set of them.
    pub fn placed(&self) -> impl Iterator<Item = (TableId, Prefix, SetId)> {
        let main = self.main.iter().map(|(prefix, target)| (TableId(0), prefix, target));
        let others = self
            .tables
            .iter()
            .flat_map(|(table, routes)| routes.iter().map(move |(prefix, target)| (*table, prefix, target)));
        main.chain(others).filter_map(|(table, prefix, target)| match target {
            Target::Placed(place) => Some((table, prefix, self.placed[place as usize].set)),
            Target::Adjacency(_)
            | Target::Ecmp(_)
            | Target::Sid(_)
            | Target::Group(_)
            | Target::Encaps(_)
            | Target::Local
            | Target::Blackhole => None,
        })
    }
}
