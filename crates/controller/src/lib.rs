//! The controller: groups and jobs over an API, kept in a store, carried out at the nodes (D25, D30, D31).
//!
//! ```text
//!   http ──► shell ──► core ── group lives ──► orders
//!              │         └──── network, trees
//!              └──► store
//! ```
//!
//! The core decides, without I/O; the shell lets its decisions out when they are durable; `http` is where all others
//! come in.

mod access;
mod backup;
mod config;
mod core;
mod daemon;
mod http;
mod jobs;
mod migration;
mod network;
mod refusal;
mod rows;
mod say;
mod seen;
mod shell;
mod store;
mod tree;

pub use backup::{BackupError, restore, write_backup};
pub use config::{Config, ConfigError, EtcdTrust, Role, Tenant, Tls, Token};
pub use daemon::{Keeping, run};
pub use http::{ServeError, Server, description};
pub use jobs::{JobError, JobRow, Jobs, MOST_FLOWS};
pub use refusal::{Kind, Refusal};
pub use store::{Etcd, Leadership, OnDisk, Row, Standby, Store, StoreError, Write};
