//! Backups of a controller's store.
#![no_main]

srdma_fuzz::text_target!(backup);
