//! The crate against octets of other implementations: the Linux kernel, soft-RoCE, a ConnectX-4 Lx, scapy.
//! `testdata/golden/README.md` describes the contents and origin of each capture.

mod captures;
mod cm;
mod fast_cnp;
mod headers;
mod icrc;
mod incremental;
mod ioam;
mod options;
mod pfc;
mod srh;
mod translation;
