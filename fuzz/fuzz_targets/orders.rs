//! Orders of a controller to a node.
#![no_main]

srdma_fuzz::text_target!(orders);
