//! `node.toml`: the configuration of one node. `docs/configuration.md` defines its keys.
//!
//! Reading takes two steps. [`srdma_node_spec::file`] parses; a wrong key, type or notation is an error there. The
//! modules here convert its sections into the dataplane's types, and reject contradictions: undefined names, addresses
//! with two meanings, trees with loops. Each error names the line.

mod backpressure;
mod bfd;
mod border;
mod claims;
mod controller;
mod cross_connects;
mod daemon;
mod deny_list;
mod egress;
mod entropy_routes;
mod error;
mod fast_cnp;
mod group;
mod interfaces;
mod ioam;
mod isis;
mod keys;
mod learning;
mod member;
mod ospf;
mod paths_file;
mod ports;
mod regions;
mod repair;
mod routes;
mod shared_hosts;
mod sides;
mod sids;
mod sr_policies;
mod steering;
mod workers;

use claims::Claims;
pub use controller::{ControllerLink, ControllerSettings};
pub use daemon::DaemonSettings;
pub use deny_list::{Denied, DenyList, DenyListSettings};
pub use entropy_routes::{EntropyRoutes, entropy_routes};
pub use interfaces::{InterfaceFacts, PortInterface, Purpose};
pub use isis::{IsisCircuit, IsisSettings};
pub use ospf::{OspfCircuit, OspfSettings};
pub use paths_file::PathsFile;
pub use shared_hosts::HostLinks;
pub use sides::Side;
use srdma_dataplane::{ConfigError, Node};
use srdma_frame::PortId;
pub use srdma_node_spec::file::parse_duration;
use srdma_node_spec::file::{Located, NodeFile, PositiveU32};
use srdma_node_spec::{Entries, NodeSpec};
use srdma_toml_error::{FileError, Problem};
use srdma_wire::Prefix;
use std::path::{Path, PathBuf};

/// The configuration of a node, checked.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The desired state of the node, as the file has it.
    pub spec: NodeSpec,
    /// Location of each port, in the order of the ports.
    pub interfaces: Vec<PortInterface>,
    /// Destinations whose packets the node forwards itself, although nothing but a route leads there.
    pub forwards: Vec<Prefix>,
    /// The ports of hosts that are attached to another node as well.
    pub host_links: Vec<HostLinks>,
    /// The settings of the daemon.
    pub daemon: DaemonSettings,
    /// Settings of IS-IS, if it is on.
    pub isis: Option<IsisSettings>,
    /// Settings of OSPFv3, if it is on.
    pub ospf: Option<OspfSettings>,
    /// Controller for groups beside those of the file.
    pub controller: Option<ControllerSettings>,
    /// The deny list that its routes follow.
    pub deny_list: Option<DenyListSettings>,
    /// Files that hold keys, the configuration itself included.
    private_files: Vec<PathBuf>,
}

impl Configuration {
    /// Reads a file for a run over captures.
    ///
    /// # Errors
    ///
    /// Those of [`Configuration::read_for`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        Self::read_for(file, Purpose::Captures)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and those of [`Configuration::parse_for`].
    pub fn read_for(file: &Path, purpose: Purpose<'_>) -> Result<Self, FileError> {
        let text = srdma_toml_error::read(file)?;
        Self::parse_for(file, &text, purpose)
    }

    /// Reads the content of a file for a run over captures.
    ///
    /// # Errors
    ///
    /// Those of [`Configuration::parse_for`].
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        Self::parse_for(file, text, Purpose::Captures)
    }

    /// Reads the content of a file; `file` is for errors, and names the node if nothing else does.
    ///
    /// # Errors
    ///
    /// [`FileError::Wrong`] names the first line in error, the expected and the found value.
    pub fn parse_for(file: &Path, text: &str, purpose: Purpose<'_>) -> Result<Self, FileError> {
        Self::resolve(file, text, purpose).map_err(|problem| problem.in_file(file, text))
    }

    /// A node that is configured so.
    ///
    /// # Errors
    ///
    /// Errors of the node. [`Configuration::parse`] lets nothing pass that a new node would refuse.
    pub fn node(&self) -> Result<Node, ConfigError> {
        self.spec.build()
    }

    /// Checks that files which hold keys are their owner's alone: [`srdma_toml_error::check_private`].
    ///
    /// # Errors
    ///
    /// If other users may read or write one.
    pub(crate) fn check_private_files(&self) -> Result<(), FileError> {
        self.private_files.iter().try_for_each(|file| srdma_toml_error::check_private(file))
    }

    /// The port of this name.
    pub fn port(&self, name: &str) -> Option<PortId> {
        let position = self.spec.node.ports.iter().position(|port| port.name == name)?;
        Some(PortId(position as u16))
    }

    fn resolve(path: &Path, text: &str, purpose: Purpose<'_>) -> Result<Self, Problem> {
        let file: NodeFile = toml::from_str(text).map_err(|error| error::of_toml(&error, text))?;
        let daemon = DaemonSettings::of(&file.daemon, path)?;
        let mut claims = Claims::new(text, purpose);
        let (node, interfaces) = ports::node(&file, &mut claims)?;
        let mut draft = Draft { node: Node::new(node.clone()), entries: Entries::default() };
        keys::add(&file, &mut draft)?;
        border::add(&file, &node, &mut draft)?;
        egress::add(&file, &node, &mut draft)?;
        ioam::add(&file, &node, &mut draft)?;
        steering::add(&file, &claims, &mut draft)?;
        fast_cnp::add(&file, &mut draft)?;
        backpressure::add(&file, &node, &mut draft)?;
        sr_policies::add(&file, &mut draft)?;
        cross_connects::add(&file, &node, &mut draft)?;
        routes::add(&file, &node, &mut claims, &mut draft)?;
        shared_hosts::add(&file, &mut claims, &mut draft)?;
        sids::add(&file, &node, &mut claims, &mut draft)?;
        group::add(&file, &node, &mut claims, &mut draft)?;
        learning::add(&file, &claims, &mut draft)?;
        bfd::add(&file, &node, &interfaces, purpose, &mut draft)?;
        border::check_open(&file, purpose, &draft)?;
        workers::check(&file, &daemon, &draft)?;
        let forwards = file.node.forwards.iter().map(|prefix| prefix.value.0).collect();
        let host_links = shared_hosts::host_links(&file, &node)?;
        let isis = isis::settings(path, &file, &daemon.name, &node, &draft)?;
        let ospf = ospf::settings(&file, &daemon.name, &node, &draft)?;
        let controller = controller::settings(path, &file, &daemon.name, &node, &draft)?;
        let deny_list = DenyListSettings::of(path, &file)?;
        let of_keys = (!file.hmac_key.is_empty()).then(|| path.to_owned());
        let private_files = of_keys.into_iter().chain(isis::secret_file(path, &file)).collect();
        let spec = NodeSpec { node, entries: draft.entries };
        Ok(Configuration {
            private_files,
            spec,
            interfaces,
            forwards,
            host_links,
            daemon,
            isis,
            ospf,
            controller,
            deny_list,
        })
    }
}

/// A count, if the file gives one.
fn count_or(given: &Option<Located<PositiveU32>>, default: u32) -> u32 {
    given.as_ref().map_or(default, |count| count.value.get() as u32)
}

/// The entries so far, and a node that has taken them.
struct Draft {
    node: Node,
    entries: Entries,
}

impl Draft {
    /// Adds entries, which stand at an offset of the file.
    fn add(&mut self, at: usize, entries: Entries) -> Result<(), Problem> {
        let mut commands = entries.commands().into_iter();
        commands
            .try_for_each(|command| self.node.apply(command))
            .map_err(|error| Problem::new(at, error.to_string()))?;
        self.entries.extend(entries);
        Ok(())
    }
}
