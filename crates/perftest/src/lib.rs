//! The handshake of perftest (`ib_write_bw`, `ib_send_bw`) between one client and several servers, as a value without
//! I/O (D205).
//!
//! The client takes it for a server whose queue pair has the Proxy Address and the Designated QPN, each server for a
//! client that has them.
//!
//! ```text
//!   client                    Conversation                         each server
//!     │ version, buffer size, cache line, path MTU │                    │
//!     │ ─────────────────────────────────────────→ │ ─────────────────→ │   one after the other; each is answered
//!     │ ←───────────────────────────────────────── │ ←───────────────── │   before the next one
//!     │ key: GID, QPN, PSN, R_Key, address         │                    │
//!     │ ─────────────────────────────────────────→ │ CreateGroup        │
//!     │                                            │ ─────────────────→ │   key: Proxy Address, Designated QPN, PSN
//!     │                                            │ ←───────────────── │   key
//!     │                                            │ BeginGroup         │
//!     │ ←───────────────────────────────────────── │                    │   key: Proxy Address, Designated QPN, region
//!     │ the key again, as a barrier, n times       │                    │
//!     │ five figures of the result (WRITE only)    │                    │
//!     │ the key again, done                        │                    │
//! ```
//!
//! A WRITE runs between the second barrier and the third, a SEND between the third and the fourth; a SEND over all
//! sizes has two more for each size. The messages are as perftest 4.5-0.17 (Debian 12) sends them; recordings are in
//! `testdata/perftest`.

mod action;
mod conversation;
mod inbox;
mod key;
mod message;
mod refusal;
mod value;

pub use action::{Action, GroupEnd, Outcome, Receiver, Source};
pub use conversation::{Conversation, MOST_SERVERS};
pub use key::Key;
pub use message::{Figures, Operation, Version};
pub use refusal::{Party, Problem, Refusal, Step};
