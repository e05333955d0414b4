//! Transfers as fluids: what takes hours packet by packet takes seconds.
//!
//! Octets flow along [`Flows`] as water does; flows that share links share their rates so that they are max-min fair
//! (Bertsekas and Gallager, "Data Networks", section 6.5.2). What happens is that a transfer ends or begins: then the
//! rates of the flows that share links with it, directly or by others, are found anew, and those of no others.
//!
//! Where much happens at once, rates are not found anew each time but after half a hundredth of the time that a
//! transfer takes.
//!
//! There are no packets here, so no queue, no loss, no PAUSE and no congestion control: the result is what a network
//! comes to whose senders share its links perfectly.

mod allocation;
mod flows;
mod rates;

pub use flows::{FlowId, Flows};
