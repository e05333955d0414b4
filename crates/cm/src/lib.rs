//! RDMA connection management (IBTA volume 1, chapter 12) between one client and the receivers of a group that listen,
//! as a value without I/O (D250).
//!
//! A client connects to the Proxy Address as to any server. Each server is asked for a connection from the Proxy
//! Address and the Designated QPN, as by any client.
//!
//! ```text
//!   client                  Exchange, at the Proxy Address              each server
//!     │ REQ                           │                                      │
//!     │ ────────────────────────────→ │ REQ: Designated QPN                  │
//!     │ ←──────────────────────── MRA │ ───────────────────────────────────→ │
//!     │                               │ ←──────────────────────────── REP    │   its queue pair is ready to receive
//!     │                               │ RTU                                  │
//!     │                               │ ───────────────────────────────────→ │
//!     │                               │ MakeGroup, when all have answered    │
//!     │ ←────── REP: Designated QPN, PSN                                     │
//!     │ RTU                           │                                      │
//!     │ ────────────────────────────→ │                                      │
//!     │ data: by the nodes            │                                      │
//!     │ DREQ                          │ DREQ                                 │
//!     │ ────────────────────────────→ │ ───────────────────────────────────→ │
//!     │ ←─────────────────────── DREP │ ←─────────────────────────── DREP    │
//!     │                               │ Finish                               │
//! ```
//!
//! The format is compared with messages of Linux in `testdata/cm`.

mod action;
mod client;
mod datagram;
mod exchange;
mod exchanges;
pub mod ip;
mod mad;
mod message;
mod reason;
mod refusal;
mod retry;
mod server;
mod text;

pub use action::{Action, End, Group, Party, Receiver, Source};
pub use datagram::{DatagramError, Flow, PAYLOAD_LEN};
pub use exchange::{Exchange, MOST_SERVERS, ServerAddress, Terms, is_host};
pub use exchanges::Exchanges;
pub use mad::{Mad, MadError};
pub use message::{Answered, DisconnectRequest, Ids, Message, Receipt, Reject, Reply, Request};
pub use reason::Reason;
pub use refusal::Refusal;
