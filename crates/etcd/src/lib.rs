//! The controller's store in etcd, for high availability: the leader writes, standbys wait. Requests go through a
//! [`Gateway`], which is HTTP in the controller and a simulated server in the chaos tests of clusters.

mod election;
mod gateway;
pub mod response;
mod store;

pub use election::{Election, LEASE, Leadership, campaign};
pub use gateway::{Comparison, EtcdError, Gateway, KeyValue, Operation, Outcome, Property, Range, end_of};
pub use store::{Etcd, EtcdStoreError, Limits};

/// The key of the leader; has its lease.
const LEADER: &[u8] = b"srdma/leader";
