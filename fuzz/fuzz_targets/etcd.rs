//! Responses of etcd's servers.
#![no_main]

srdma_fuzz::text_target!(etcd);
