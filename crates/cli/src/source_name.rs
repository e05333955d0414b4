//! Names of the hosts' retransmission on command lines.

use clap::ValueEnum;
use srdma_sim::retransmission::Retransmission;

/// Retransmission by the source and the receivers of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceName {
    /// From a lost packet on, everything is sent again.
    #[value(name = "go-back-n")]
    GoBackN,
    /// A lost packet is sent again alone; receivers keep what follows it.
    Selective,
    /// The source sends a lost packet again alone; every second receiver keeps what follows it.
    Mixed,
}

impl From<SourceName> for Retransmission {
    fn from(name: SourceName) -> Self {
        match name {
            SourceName::GoBackN => Retransmission::GoBackN,
            SourceName::Selective => Retransmission::Selective,
            SourceName::Mixed => Retransmission::Mixed,
        }
    }
}
