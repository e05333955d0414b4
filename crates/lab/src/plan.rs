//! The hosts of a lab's transfers, and their parameters.

use crate::error::{LabError, Result};
use crate::host::{Destination, Sender, Terms};
use crate::topology::{ControlledGroup, GroupPlan, Topology, Transfer};
use std::path::PathBuf;
use std::time::Duration;

/// The hosts of a transfer.
pub(crate) struct Plan {
    /// Position of the source among the nodes.
    pub(crate) source: usize,
    sender: Sender,
    /// The receivers' ranks, from 1, and their positions among the nodes.
    pub(crate) receivers: Vec<(usize, usize)>,
    destination: Option<Destination>,
}

impl Plan {
    /// All transfers of a lab: that to its group, or to its controller's, or one for each of its pairs.
    pub(crate) fn all(topology: &Topology) -> Result<Vec<Self>> {
        match (&topology.group, topology.controlled_group()) {
            (Some(plan), _) => Ok(vec![Plan::of_group(plan)]),
            (None, Some(group)) => Ok(vec![Plan::of_controlled(group)]),
            (None, None) => (0..topology.pairs.len())
                .map(|pair| Plan::of_pair(topology, pair))
                .collect::<Option<_>>()
                .ok_or_else(|| LabError::Group("a source has no address".to_owned())),
        }
    }

    fn of_group(plan: &GroupPlan) -> Self {
        let receivers = (1..).zip(plan.receivers.iter().map(|receiver| receiver.node)).collect();
        Plan { source: plan.source, sender: Sender::of_group(plan), receivers, destination: None }
    }

    fn of_controlled(group: &ControlledGroup) -> Self {
        let receivers = (1..).zip(group.receivers.iter().copied()).collect();
        Plan { source: group.source, sender: Sender::of_controlled(group), receivers, destination: None }
    }

    /// `None` when the source has no address.
    fn of_pair(topology: &Topology, position: usize) -> Option<Self> {
        let pair = *topology.pairs.get(position)?;
        let destination = Destination::of_pair(topology, position);
        let sender = Sender::of_pair(topology, pair)?;
        Some(Plan { source: pair.source, sender, receivers: vec![(position + 1, pair.destination)], destination })
    }

    /// Parameters of its hosts. Guests need an image in addition.
    pub(crate) fn terms(&self, topology: &Topology, program: PathBuf, transfer: Transfer, patience: Duration) -> Terms {
        Terms {
            program,
            source: self.source,
            sender: self.sender,
            destination: self.destination.clone(),
            at_controller: None,
            transfer,
            patience,
            slowest_bits_per_s: topology.links.iter().filter_map(|link| link.rate_bits_per_s).min(),
            image: None,
        }
    }
}
