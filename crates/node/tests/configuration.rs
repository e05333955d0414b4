//! `docs/configuration.md` and the errors of `node.toml`.

#[path = "configuration/border.rs"]
mod border;
#[path = "configuration/congestion.rs"]
mod congestion;
#[path = "configuration/contradictions.rs"]
mod contradictions;
#[path = "configuration/controller.rs"]
mod controller;
#[path = "configuration/documentation.rs"]
mod documentation;
#[path = "configuration/errors.rs"]
mod errors;
#[path = "configuration/interfaces.rs"]
mod interfaces;
#[path = "configuration/isis.rs"]
mod isis;
#[path = "configuration/learning.rs"]
mod learning;
#[path = "configuration/notifications.rs"]
mod notifications;
#[path = "configuration/steering.rs"]
mod steering;
#[path = "configuration/values.rs"]
mod values;

use srdma_node::Configuration;
use std::path::Path;

fn parse(text: &str) -> Result<Configuration, String> {
    Configuration::parse(Path::new("node.toml"), text).map_err(|error| error.to_string())
}
