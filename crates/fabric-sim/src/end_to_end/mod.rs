//! One stream from end to end, with all drafts in one run: over lossy links, a congested node, and a
//! restart.
//!
//! ```text
//!  source ══ leaf ══ spine ══ gateway ── PE1 ══ R1 ══ R3 ══ PE2 ── gateway ══ spine ══ leaves ── receivers
//!   NIC: uSIDs of DC1's fabric          H.Encaps      End.DT6       headend, End.Replicate, End.MT
//!                                        END.C, END.E ◄─ R1
//! ```
//!
//! The network is that of the WAN studies. The source's NIC writes the path through its own fabric into the outer
//! destination address (PP-4-3); the ingress PE puts the packets into its tunnel (CN-3-1), the egress PE forwards them
//! to the gateway that owns the group's Proxy Address, where replication begins (MT-5.2-2). Other hosts overload the
//! WAN, so that R1 sends to END.E and END.C (CN-4.1-2, CN-4.2-2). Nothing is mocked: switches are nodes of the
//! dataplane, hosts are RC endpoints, and the receivers' memory is compared octet by octet.

mod claims;
mod observe;
mod page;
mod report;
mod results;
mod scenario;
mod setup;
mod text;
mod totals;
mod world;

pub use report::EndToEndReport;
pub use results::{EndToEndResults, EndToEndRun, ReceiverRun};
pub use scenario::{EndToEndScenario, Restart, Section};

use super::parallel::{in_parallel, locked};
use super::run::RunError;
use srdma_sim::observer::PeriodicObserver;
use std::sync::Mutex;
use world::World;

/// Runs every seed. `done` gets the position of each completed run. The run with the first seed is observed. The
/// results depend neither on the observer nor on the number of threads.
///
/// # Errors
///
/// That of the first failed run, in the order of seeds.
pub fn run_end_to_end(
    plan: &EndToEndScenario,
    seeds: &[u64],
    threads: usize,
    done: &(dyn Fn(usize) + Sync),
    observer: Option<&Mutex<PeriodicObserver<'_>>>,
) -> Result<EndToEndResults, RunError> {
    let runs = in_parallel(seeds.len(), threads, &|position| {
        let mut observer = if position == 0 { observer.map(locked) } else { None };
        let run = World::new(plan, seeds[position]).and_then(|world| world.run(observer.as_deref_mut()));
        done(position);
        run
    });
    Ok(EndToEndResults {
        title: plan.title.clone(),
        description: plan.description.clone(),
        runs: runs.into_iter().collect::<Result<Vec<EndToEndRun>, RunError>>()?,
    })
}
