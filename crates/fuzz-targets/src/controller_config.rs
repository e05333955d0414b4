//! `controller.toml`: it is refused with the file's name, or its settings can be used.

use srdma_controller::Config;
use std::path::Path;

/// Reads a configuration.
pub fn controller_config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Config::parse(Path::new("controller.toml"), text) {
        // What was read was checked.
        Ok(config) => assert_eq!(config.check(), Ok(())),
        Err(error) => assert!(error.to_string().starts_with("controller.toml"), "{error}"),
    }
}
