//! The configurations of the documentation and of the tests.

use super::bounds::{Ablation, CommitBounds, CommitFaults, StoreLoss};

const NONE: CommitFaults = CommitFaults {
    losses: 0,
    delays: 0,
    early_retransmissions: 0,
    partitions: 0,
    restarts: 0,
    controller_restarts: 0,
    store_losses: 0,
    joins: 0,
    reservations: 0,
    deaths: 0,
    slow_receivers: 0,
    leaves: 0,
    creations: 0,
};

const fn of(name: &'static str, faults: CommitFaults) -> CommitBounds {
    CommitBounds {
        name,
        edges: 1,
        is_ready: true,
        sends: false,
        changes_proxy: false,
        faults,
        store_loss: StoreLoss::Empty,
        ablation: Ablation::Nothing,
    }
}

const STORE_LOST: CommitBounds = of("store lost", CommitFaults { restarts: 1, store_losses: 1, creations: 2, ..NONE });

/// Seconds: for the tests.
pub const COMMIT_SMALL: [CommitBounds; 11] = [
    of("messages", CommitFaults { losses: 1, early_retransmissions: 1, joins: 1, leaves: 1, ..NONE }),
    of("join, node lost", CommitFaults { partitions: 1, joins: 1, restarts: 1, ..NONE }),
    of("join, controller", CommitFaults { controller_restarts: 1, joins: 1, ..NONE }),
    of("leave, controller", CommitFaults { partitions: 1, controller_restarts: 1, leaves: 1, ..NONE }),
    CommitBounds {
        is_ready: false,
        ..of("first commit", CommitFaults { losses: 1, restarts: 1, controller_restarts: 1, ..NONE })
    },
    CommitBounds { sends: true, ..of("source", CommitFaults { losses: 1, joins: 1, ..NONE }) },
    STORE_LOST,
    CommitBounds { name: "store lost, address", changes_proxy: true, ..STORE_LOST },
    CommitBounds {
        store_loss: StoreLoss::Rebuilt,
        ..of("rebuilt", CommitFaults { partitions: 1, store_losses: 1, leaves: 1, ..NONE })
    },
    CommitBounds { store_loss: StoreLoss::Backup, ..of("backup", CommitFaults { store_losses: 1, leaves: 1, ..NONE }) },
    CommitBounds {
        sends: true,
        ..of("two steps", CommitFaults { losses: 1, reservations: 1, deaths: 1, slow_receivers: 1, ..NONE })
    },
];

/// Minutes.
pub const COMMIT_LARGE: [CommitBounds; 11] = [
    of("store lost", CommitFaults { partitions: 1, restarts: 2, store_losses: 1, creations: 2, ..NONE }),
    CommitBounds {
        store_loss: StoreLoss::Rebuilt,
        ..of("rebuilt", CommitFaults { partitions: 1, restarts: 2, store_losses: 1, leaves: 1, ..NONE })
    },
    of("join", CommitFaults { partitions: 1, restarts: 1, controller_restarts: 1, joins: 1, ..NONE }),
    of("leave", CommitFaults { partitions: 1, restarts: 1, controller_restarts: 1, leaves: 1, ..NONE }),
    of("join and leave", CommitFaults { restarts: 1, controller_restarts: 1, joins: 1, leaves: 1, ..NONE }),
    CommitBounds {
        is_ready: false,
        ..of("first commit", CommitFaults { losses: 1, delays: 1, restarts: 2, controller_restarts: 1, ..NONE })
    },
    CommitBounds {
        sends: true,
        ..of("two steps, controller", CommitFaults { controller_restarts: 1, reservations: 1, deaths: 1, ..NONE })
    },
    CommitBounds {
        sends: true,
        ..of("two steps, nodes", CommitFaults { restarts: 1, reservations: 1, deaths: 1, ..NONE })
    },
    of("response lost", CommitFaults { losses: 1, partitions: 1, joins: 1, ..NONE }),
    of("early orders", CommitFaults { early_retransmissions: 1, partitions: 1, leaves: 1, ..NONE }),
    CommitBounds {
        store_loss: StoreLoss::Backup,
        ..of("backup", CommitFaults { partitions: 1, store_losses: 1, leaves: 1, ..NONE })
    },
];

/// Never explored to the end: a start for smaller bounds.
pub const COMMIT_ALL_FAULTS: CommitBounds = of(
    "all faults",
    CommitFaults {
        partitions: 1,
        restarts: 2,
        controller_restarts: 1,
        store_losses: 1,
        joins: 1,
        leaves: 1,
        creations: 2,
        ..NONE
    },
);
