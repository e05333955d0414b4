//! Bodies of the fuzz targets: the processing of a fuzzer's octets, and the required results. `fuzz/` runs them under
//! libFuzzer; the tests here replay the corpora.

#[cfg(feature = "files")]
mod backup;
mod bfd;
mod capture;
mod choices;
mod cm_exchange;
#[cfg(feature = "files")]
mod controller;
#[cfg(feature = "files")]
mod controller_config;
pub mod corpus;
#[cfg(feature = "files")]
mod etcd;
#[cfg(feature = "files")]
mod files;
mod headend;
mod ioam;
mod isis;
#[cfg(feature = "files")]
mod jobs;
#[cfg(feature = "files")]
mod manifest;
#[cfg(feature = "files")]
mod mapper;
mod node;
mod notification;
#[cfg(feature = "files")]
mod orders;
mod ospf;
#[cfg(feature = "files")]
mod parameters;
mod perftest;
#[cfg(feature = "files")]
mod ranks;
mod rc;
pub mod wire;
pub mod words;

#[cfg(feature = "files")]
pub use backup::backup;
pub use bfd::bfd;
pub use capture::capture;
pub use cm_exchange::cm_exchange;
#[cfg(feature = "files")]
pub use controller::{requests, rows};
#[cfg(feature = "files")]
pub use controller_config::controller_config;
#[cfg(feature = "files")]
pub use etcd::etcd;
#[cfg(feature = "files")]
pub use files::{configuration, decode, fabric, file_list, paths, scenario, topology, transfer};
pub use headend::headend;
pub use ioam::ioam;
pub use isis::isis;
#[cfg(feature = "files")]
pub use jobs::jobs;
#[cfg(feature = "files")]
pub use manifest::manifest;
#[cfg(feature = "files")]
pub use mapper::mapper;
pub use node::{LIFETIME, NodeTarget, WorkersTarget};
pub use notification::notification;
#[cfg(feature = "files")]
pub use orders::orders;
pub use ospf::ospf;
#[cfg(feature = "files")]
pub use parameters::parameters;
pub use perftest::perftest;
#[cfg(feature = "files")]
pub use ranks::ranks;
pub use rc::rc;

/// Runs inputs of a target one after the other.
pub type Run = Box<dyn FnMut(&[u8])>;

/// Creates a run of a target.
pub type Begin = fn() -> Run;

/// Every target under its name.
pub const TARGETS: &[(&str, Begin)] = &[
    ("ethernet", || Box::new(wire::ethernet)),
    ("ipv6", || Box::new(wire::ipv6)),
    ("srh", || Box::new(wire::srh)),
    ("tlvs", || Box::new(wire::tlvs)),
    ("rocev2", || Box::new(wire::rocev2)),
    ("icmpv6", || Box::new(wire::icmpv6)),
    ("ioam", || Box::new(ioam)),
    ("pfc", || Box::new(wire::pfc)),
    ("udp", || Box::new(wire::udp)),
    ("fast_cnp", || Box::new(wire::fast_cnp)),
    ("cm", || Box::new(wire::cm)),
    ("cm_exchange", || Box::new(cm_exchange)),
    ("icrc", || Box::new(wire::icrc)),
    ("probe", || Box::new(wire::probe)),
    ("headend", || Box::new(headend)),
    ("isis", || Box::new(isis)),
    ("ospf", || Box::new(ospf)),
    ("bfd", || Box::new(bfd)),
    ("notification", || Box::new(notification)),
    ("perftest", || Box::new(perftest)),
    ("capture", || Box::new(capture)),
    ("rc", || Box::new(rc)),
    ("node", || {
        let mut target = NodeTarget::default();
        Box::new(move |input| target.run(input))
    }),
    ("workers", || {
        let mut target = WorkersTarget::default();
        Box::new(move |input| target.run(input))
    }),
    #[cfg(feature = "files")]
    ("configuration", || Box::new(configuration)),
    #[cfg(feature = "files")]
    ("topology", || Box::new(topology)),
    #[cfg(feature = "files")]
    ("decode", || Box::new(decode)),
    #[cfg(feature = "files")]
    ("manifest", || Box::new(manifest)),
    #[cfg(feature = "files")]
    ("ranks", || Box::new(ranks)),
    #[cfg(feature = "files")]
    ("mapper", || Box::new(mapper)),
    #[cfg(feature = "files")]
    ("requests", || Box::new(requests)),
    #[cfg(feature = "files")]
    ("rows", || Box::new(rows)),
    #[cfg(feature = "files")]
    ("orders", || Box::new(orders)),
    #[cfg(feature = "files")]
    ("scenario", || Box::new(scenario)),
    #[cfg(feature = "files")]
    ("jobs", || Box::new(jobs)),
    #[cfg(feature = "files")]
    ("fabric", || Box::new(fabric)),
    #[cfg(feature = "files")]
    ("file_list", || Box::new(file_list)),
    #[cfg(feature = "files")]
    ("transfer", || Box::new(transfer)),
    #[cfg(feature = "files")]
    ("paths", || Box::new(paths)),
    #[cfg(feature = "files")]
    ("backup", || Box::new(backup)),
    #[cfg(feature = "files")]
    ("controller_config", || Box::new(controller_config)),
    #[cfg(feature = "files")]
    ("etcd", || Box::new(etcd)),
    #[cfg(feature = "files")]
    ("parameters", || Box::new(parameters)),
];
