//! Configuration of a fabric's devices, each in the language of its system. A [`srdma_fabric::provision::Device`] is
//! what one device needs for the programs of placed paths: addresses, SIDs and routes.

mod frr;
mod json;
pub mod linux;
mod node_toml;
mod sonic;

pub use frr::configuration as frr_configuration;
pub use json::{Device, behavior_name, tenant_table};
pub use node_toml::text as node_toml;
pub use sonic::config_db as sonic_config_db;

/// The table of tenant 0. Tables below it belong to the kernel.
const FIRST_TABLE: u32 = 1000;
