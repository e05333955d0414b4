//! A lab as a topology of [containerlab](https://containerlab.dev), with containers instead of namespaces.
//!
//! ```text
//!   NAME.clab.yml   nodes and links, and what is run in each container once it has its links
//!   transfer.sh     the lab's transfer, by `docker exec`
//!   README.md       how to use them
//!   NODE/           what the container of a node has as /etc/srdma
//! ```
//!
//! In a lab receivers report the address of their memory, and nodes are configured with it. Here a `node.toml` is
//! written before there is a receiver, so queue pairs, keys and addresses are given to both.

mod topology_file;
mod transfer;

use crate::controller::{self, ControllerAccess, Secrets};
use crate::error::{LabError, Result};
use crate::node_file::{self, NodeChoices};
use crate::topology::{ControllerPlan, Kind, Topology, Transfer};
use srdma_node_spec::file::DriverName;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The image that containers are made of where no other is named: that of this version.
pub const IMAGE: &str = concat!("srdma:", env!("CARGO_PKG_VERSION"));

/// Directory of a node's files in its container.
const FILES: &str = "/etc/srdma";

/// Directory of files made in the container: status sockets, and `{directory}` in command lines.
const DIRECTORY: &str = "/run/srdma";

/// The reason why a lab cannot be written as a topology of containerlab.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A container has the kernel of its host.
    #[error(
        "{node} of lab {lab} is a guest, a virtual machine, and containerlab has containers: \
         make it `kind = \"endpoint\"`, or run the lab by `srdma lab run {lab}`"
    )]
    Guest { lab: String, node: String },
    /// A container has one command.
    #[error(
        "the controller of lab {lab} runs at {node}, beside `srdma node`, and a container has one command: \
         give it a node of kind router"
    )]
    Controller { lab: String, node: String },
    /// The value in the topology file cannot be the name of an image.
    #[error("{0:?} cannot be an image: expected a name such as {IMAGE}")]
    Image(String),
    /// The topology cannot be written as YAML.
    #[error("the topology of lab {lab} cannot be written as YAML: {problem}")]
    Yaml { lab: String, problem: String },
}

/// A file of an exported lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Below the directory of the export.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// Whether it can be run.
    pub is_program: bool,
    /// Whether only its owner may read it.
    pub is_secret: bool,
}

impl ExportedFile {
    fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        ExportedFile { path: path.into(), text: text.into(), is_program: false, is_secret: false }
    }

    /// Writes it below a directory. A file that is there is replaced.
    ///
    /// # Errors
    ///
    /// If a directory or the file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(&self.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(LabError::file("make", parent))?;
        }
        let mode = match (self.is_program, self.is_secret) {
            (true, _) => Some(0o755),
            (false, true) => Some(0o600),
            (false, false) => None,
        };
        // A secret is readable by its owner only, from the first octet on.
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(mode.unwrap_or(0o666));
        let written = options.open(&path).and_then(|mut file| file.write_all(self.text.as_bytes()));
        written.map_err(LabError::file("write", &path))?;
        if let Some(mode) = mode {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(&path, permissions).map_err(LabError::file("set the permissions of", &path))?;
        }
        Ok(())
    }
}

/// The files of a lab whose containers are made of `image`, and which transfers so much.
///
/// # Errors
///
/// [`ExportError`] when containerlab has nothing that a node could be; and when the group cannot be.
pub fn export(topology: &Topology, transfer: &Transfer, image: &str) -> Result<Vec<ExportedFile>> {
    if let Some(guest) = topology.nodes.iter().find(|node| node.kind == Kind::Guest) {
        return Err(ExportError::Guest { lab: topology.name.clone(), node: guest.name.clone() }.into());
    }
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if image.is_empty() || !image.chars().all(is_good) {
        return Err(ExportError::Image(image.to_owned()).into());
    }
    let group = transfer::group(topology, transfer)?;
    // Loss and rate are made by the interfaces of the containers, and AF_XDP passes those by.
    let controller = topology.controller.as_ref().map(access);
    let shaped_driver = Some(DriverName::AfPacket);
    let choices = NodeChoices { shaped_driver, controller, ..NodeChoices::default() };
    let mut files = match &topology.controller {
        Some(plan) => controller_files(topology, plan)?,
        None => Vec::new(),
    };
    for (position, node) in topology.nodes.iter().enumerate() {
        if let Kind::Srdma { .. } = node.kind {
            let text = node_file::text(topology, group.as_ref(), position, &socket(&node.name), &choices)?;
            // It may have keys, which the node takes from a private file alone.
            let file = ExportedFile::new(Path::new(&node.name).join("node.toml"), text);
            files.push(ExportedFile { is_secret: true, ..file });
        }
    }
    files.extend(topology_file::scripts(topology));
    let transfers = transfer::all(topology, transfer)?;
    files.extend(transfers.iter().filter_map(|transfer| transfer.peer.clone()));
    files.push(topology_file::file(topology, image, &files)?);
    if !transfers.is_empty() {
        let text = transfer::script(topology, &transfers)?;
        files.push(ExportedFile { is_program: true, ..ExportedFile::new("transfer.sh", text) });
    }
    files.push(ExportedFile::new("README.md", readme(topology, image, &transfers)));
    Ok(files)
}

/// URL of the controller from a container.
fn access(plan: &ControllerPlan) -> ControllerAccess {
    ControllerAccess::in_directory(plan.url(), Path::new(FILES))
}

/// Files of the controller and its clients: configuration, certificates and tokens.
fn controller_files(topology: &Topology, plan: &ControllerPlan) -> Result<Vec<ExportedFile>> {
    let own = &topology.nodes[plan.node];
    if let Kind::Srdma { .. } = own.kind {
        return Err(ExportError::Controller { lab: topology.name.clone(), node: own.name.clone() }.into());
    }
    let secrets = Secrets::new(plan.address)?;
    let configuration = controller::configuration(plan, &secrets, Path::new(FILES))?;
    let file = |node: &str, name: &str, text: &String| ExportedFile::new(Path::new(node).join(name), text.clone());
    let secret = |file| ExportedFile { is_secret: true, ..file };
    let mut files = vec![
        file(&own.name, controller::CONFIGURATION, &configuration),
        secret(file(&own.name, controller::KEY, &secrets.key)),
    ];
    for node in &topology.nodes {
        files.push(file(&node.name, controller::CERTIFICATE, &secrets.certificate));
        files.push(secret(file(&node.name, controller::TOKEN, &secrets.token)));
    }
    Ok(files)
}

/// The status socket of a node, in its container.
fn socket(node: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{node}.sock"))
}

/// The name that containerlab gives a node's container.
fn container(topology: &Topology, node: usize) -> String {
    format!("clab-{}-{}", topology.name, topology.nodes[node].name)
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    if is_plain(word) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Whether a word means itself to a shell, to containerlab, which expands variables, and to YAML.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c))
}

const TRANSFER_NOTE: &str = "
`transfer.sh` starts the receivers, then the sources, and prints the result: exit code 0 when every receiver has its
source's data. The output of each is in `results`.
";

const GROUP_NOTE: &str = "
A group takes one transfer: for another one, `containerlab redeploy` first.
";

const SHAPED_NOTE: &str = "
Rates and losses of links are made by `tc netem` at the interfaces that send, so the host's kernel needs `sch_netem`,
and srdma nodes use AF_PACKET there: AF_XDP would pass `tc` by.
";

fn readme(topology: &Topology, image: &str, transfers: &[transfer::Planned]) -> String {
    let name = &topology.name;
    let mut text = format!(
        "# {name}\n\n{}.\n\nWritten by `srdma lab export`, for containerlab. As root, in this directory:\n\n\
         ```sh\ncontainerlab deploy -t {name}.clab.yml\n",
        topology.description
    );
    if !transfers.is_empty() {
        text += "./transfer.sh\n";
    }
    text += &format!("containerlab destroy -t {name}.clab.yml\n```\n\n");
    text += &format!(
        "Containers are made of the image `{image}`, which has `srdma`, `ip`, `tc` and `ethtool`, and whatever else\n\
         the command lines of the lab start. srdma's own is built by `dist/container/Dockerfile` of its sources, or\n\
         of `/usr/share/srdma/container`, from the Debian package.\n"
    );
    if !transfers.is_empty() {
        text += TRANSFER_NOTE;
    }
    if topology.group.is_some() {
        text += GROUP_NOTE;
    }
    if topology.links.iter().any(|link| link.is_shaped()) {
        text += SHAPED_NOTE;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_when_necessary() {
        for (word, expected) in
            [("fe80::1%n1", "fe80::1%n1"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
