//! The configurations of the commit protocol's model.

use srdma_group::Safeguard;
use std::fmt;
use std::str::FromStr;

/// Maximum number of faults and requests of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CommitFaults {
    /// Responses of the controller that are lost, with their orders.
    pub losses: u8,
    /// Requests of nodes that arrive after later ones.
    pub delays: u8,
    /// Retransmissions while messages are on their way.
    pub early_retransmissions: u8,
    /// Nodes that lose the connection to the controller for longer than it waits; each at most once.
    pub partitions: u8,
    /// Nodes that lose their state; each at most once.
    pub restarts: u8,
    /// Restarts of the controller.
    pub controller_restarts: u8,
    /// Losses of the store.
    pub store_losses: u8,
    /// Receivers that join.
    pub joins: u8,
    /// Reservations of a receiver that joins in two steps (D187).
    pub reservations: u8,
    /// Deaths of that receiver.
    pub deaths: u8,
    /// Times in which it is slow: its reservation expires.
    pub slow_receivers: u8,
    /// Receivers that leave.
    pub leaves: u8,
    /// Creations of the group after a loss of the store.
    pub creations: u8,
}

/// What follows the loss of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreLoss {
    /// An empty store with another identity.
    Empty,
    /// An empty store, to be rebuilt from the nodes.
    Rebuilt,
    /// A backup of the first state.
    Backup,
}

/// A rule of the protocol that is left out, to show that its violation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ablation {
    /// None.
    Nothing,
    /// Nodes compare the number of the epoch, and neither store nor digests.
    EpochIsName,
    /// A lost node is not waited for.
    LostIsSettled,
    /// A registered entry is taken for the stored record's, of any epoch.
    AnyEpoch,
    /// Orders without an answer are not retransmitted.
    NoRetransmission,
    /// A receiver that has a reservation is a member without having said that it is ready.
    ReadinessNotAwaited,
    /// Reservations do not expire.
    NoExpiry,
}

impl Ablation {
    /// The safeguard of the controller that it is.
    pub(super) fn safeguard(self) -> Option<Safeguard> {
        match self {
            Ablation::ReadinessNotAwaited => Some(Safeguard::ReadinessAwaited),
            Ablation::NoExpiry => Some(Safeguard::ReservationsExpire),
            Ablation::Nothing
            | Ablation::EpochIsName
            | Ablation::LostIsSettled
            | Ablation::AnyEpoch
            | Ablation::NoRetransmission => None,
        }
    }
}

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitBounds {
    /// Its name.
    pub name: &'static str,
    /// Edges: one or two.
    pub edges: u8,
    /// Whether the group is in effect at first; else it is about to be committed.
    pub is_ready: bool,
    /// Whether the source has sent; else it has never reported.
    pub sends: bool,
    /// Whether the group that is created after a loss of the store has another Proxy Address.
    pub changes_proxy: bool,
    #[allow(missing_docs, reason = "explained by its type")]
    pub faults: CommitFaults,
    #[allow(missing_docs, reason = "explained by its type")]
    pub store_loss: StoreLoss,
    #[allow(missing_docs, reason = "explained by its type")]
    pub ablation: Ablation,
}

impl CommitFaults {
    fn named(&mut self) -> [(&'static str, &mut u8); 13] {
        [
            ("losses", &mut self.losses),
            ("delays", &mut self.delays),
            ("early retransmissions", &mut self.early_retransmissions),
            ("partitions", &mut self.partitions),
            ("restarts", &mut self.restarts),
            ("controller restarts", &mut self.controller_restarts),
            ("store losses", &mut self.store_losses),
            ("joins", &mut self.joins),
            ("reservations", &mut self.reservations),
            ("deaths", &mut self.deaths),
            ("slow receivers", &mut self.slow_receivers),
            ("leaves", &mut self.leaves),
            ("creations", &mut self.creations),
        ]
    }
}

impl fmt::Display for CommitFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = *self;
        let mut separator = "";
        for (name, number) in all.named().into_iter().filter(|(_, number)| **number > 0) {
            write!(f, "{separator}{name} {number}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// The form of the output: `joins 1, controller restarts 1`.
impl FromStr for CommitFaults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = CommitFaults::default();
        for part in text.split(',').map(str::trim) {
            let expected = || format!("{part}: expected a fault and a number, such as: joins 1, controller restarts 1");
            let (name, number) = part.rsplit_once(' ').ok_or_else(expected)?;
            let mut all = faults.named().into_iter();
            let (_, fault) = all.find(|(known, _)| *known == name).ok_or_else(expected)?;
            *fault = number.parse().map_err(|_| expected())?;
        }
        Ok(faults)
    }
}
