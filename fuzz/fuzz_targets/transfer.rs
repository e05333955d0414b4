//! Files and messages of transfers.
#![no_main]

srdma_fuzz::text_target!(transfer);
