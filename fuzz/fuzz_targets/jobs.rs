//! Files of jobs, traces and flows.
#![no_main]

srdma_fuzz::text_target!(jobs);
