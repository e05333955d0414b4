//! Leader election: the leader is the controller whose key is in etcd. The key has a lease that its controller renews,
//! and each write is conditional on the key.

use crate::LEADER;
use crate::gateway::{Comparison, EtcdError, Gateway, Operation};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lifetime of a lease that is not renewed, seconds.
const LEASE_S: u64 = 5;
/// The same as a duration.
pub const LEASE: Duration = Duration::from_secs(LEASE_S);

/// The leader, as a controller has last read it.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// This controller.
    Own,
    /// Another controller.
    Other { url: String },
    /// Unknown: etcd does not respond, or no leader was elected yet.
    Unknown { reason: String },
}

/// Result of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Election {
    /// This controller is the leader, as long as it renews the lease.
    Leads {
        /// Id of the lease.
        lease: i64,
        /// Revision of the creation of the leader's key.
        created_at: i64,
    },
    /// It is not.
    Not(Leadership),
}

/// The value of the leader's key.
#[derive(Debug, Serialize, Deserialize)]
struct LeaderValue {
    url: String,
}

/// Becomes the leader if there is none. `url`: this controller's own.
///
/// # Errors
///
/// etcd does not respond, or rejects a request.
pub fn campaign(gateway: &impl Gateway, url: &str) -> Result<Election, EtcdError> {
    if let Some(other) = gateway.range(LEADER, None, 1)?.kvs.first() {
        return Ok(Election::Not(leadership(&other.value)));
    }
    let lease = gateway.grant(LEASE_S)?;
    let value = serde_json::to_vec(&LeaderValue { url: url.to_owned() }).unwrap_or_default();
    let outcome = gateway.transact(
        &[Comparison::created(LEADER, 0)],
        &[Operation::Put { key: LEADER.to_vec(), value, lease }],
        &[Operation::get(LEADER)],
    );
    match outcome {
        Ok(outcome) if outcome.succeeded => Ok(Election::Leads { lease, created_at: outcome.revision }),
        Ok(outcome) => {
            // If this fails, the lease expires.
            let _ = gateway.revoke(lease);
            let other = outcome.found(0).filter(|found| found.lease != lease);
            let unknown = || Leadership::Unknown { reason: "no leader was elected yet".to_owned() };
            Ok(Election::Not(other.map_or_else(unknown, |found| leadership(&found.value))))
        }
        Err(error) => {
            // The transaction may have taken effect: undo it.
            let _ = gateway.revoke(lease);
            Err(error)
        }
    }
}

fn leadership(value: &[u8]) -> Leadership {
    match serde_json::from_slice(value) {
        Ok(LeaderValue { url }) => Leadership::Other { url },
        Err(error) => Leadership::Unknown { reason: format!("the leader's key cannot be parsed: {error}") },
    }
}
