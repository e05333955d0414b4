//! RC endpoints on sockets and interfaces: what `srdma send` and `srdma recv` do.
