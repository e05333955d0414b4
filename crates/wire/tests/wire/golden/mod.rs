//! The crate against octets that others made: the Linux kernel, soft-RoCE, a ConnectX-4 Lx, scapy. What each capture
//! holds and who made it stands in `testdata/golden/README.md`.

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
