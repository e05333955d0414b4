//! `controller.toml`.
#![no_main]

srdma_fuzz::text_target!(controller_config);
