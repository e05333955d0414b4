//! The controller: groups and jobs over an API, kept in a store, installed at the nodes (D25, D30, D31).
//!
//! ```text
//!   http ──► service ──► srdma-controller-core: decisions, orders, writes
//!               │
//!               └──► store
//! ```
//!
//! The core decides, without I/O; the service releases what it decides when it is durable; `http` is the API.

mod access;
mod backup;
mod config;
mod daemon;
mod http;
mod placements;
mod reload;
mod service;
mod store;
mod watchers;

pub use backup::{BackupError, restore, write_backup};
pub use config::{Config, ConfigError, EtcdTrust, Tls, Token};
pub use daemon::{StateStore, run};
pub use http::{ServeError, Server, description};
pub use service::Exit;
pub use srdma_controller_core::{Refusal, Role, Row, RowError, StatedNode, Tenant, Write};
pub use store::{Etcd, Leadership, OnDisk, Standby, Store, StoreError};
