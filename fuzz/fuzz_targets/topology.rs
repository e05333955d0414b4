//! The files of labs.
#![no_main]

srdma_fuzz::text_target!(topology);
