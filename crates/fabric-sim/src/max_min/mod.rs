//! Max-min fair allocation: transfers without packets, in seconds rather than hours.
//!
//! [`Flows`] that share links have max-min fair rates (Bertsekas and Gallager, "Data Networks", section 6.5.2). When a
//! transfer begins or ends, the rates of the flows that share links with it, directly or transitively, are recomputed,
//! and no others.
//!
//! With many events, rates are recomputed at most once per 0.5 % of the mean duration of a transfer, or per another
//! share (D295).
//!
//! There are no packets, so no queues, losses, PAUSE frames or congestion control: the result is that of ideal rate
//! control.

mod allocation;
mod flows;
mod links;
mod rates;
mod route;

pub use flows::{FlowId, Flows, MIN_INTERVAL};
