//! `docs/configuration.md` and the errors of `node.toml`.

mod backpressure;
mod bfd;
mod border;
mod congestion;
mod contradictions;
mod controller;
mod documentation;
mod errors;
mod interfaces;
mod isis;
mod learning;
mod ospf;
mod round_trip;
mod steering;
mod values;

use srdma_node::Configuration;
use std::path::Path;

fn parse(text: &str) -> Result<Configuration, String> {
    Configuration::parse(Path::new("node.toml"), text).map_err(|error| error.to_string())
}
