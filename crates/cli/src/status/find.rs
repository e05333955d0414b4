//! The socket of a running node.

use anyhow::{Context, bail};
use srdma_node::{Configuration, Purpose};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Default directory of the nodes' sockets.
const DIRECTORY: &str = "/run/srdma";

/// The running node to query.
#[derive(clap::Args)]
pub(crate) struct NodeArguments {
    /// The node's status socket. Without it, the one in /run/srdma, if there is only one.
    #[arg(value_name = "SOCKET", conflicts_with = "config")]
    socket: Option<PathBuf>,
    /// The node's configuration, which names its socket.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl NodeArguments {
    /// The named socket, that of a configuration, or the only one.
    pub(crate) fn socket(&self) -> anyhow::Result<PathBuf> {
        match (&self.socket, &self.config) {
            (Some(socket), _) => Ok(socket.clone()),
            (None, Some(config)) => {
                // The path of the socket does not depend on the kernel's interfaces.
                let configuration = Configuration::read_for(config, Purpose::Interfaces(&BTreeMap::new()))?;
                Ok(configuration.daemon.status)
            }
            (None, None) => only(Path::new(DIRECTORY)),
        }
    }
}

/// The only socket of a directory.
fn only(directory: &Path) -> anyhow::Result<PathBuf> {
    let sockets = sockets(directory).with_context(|| directory.display().to_string())?;
    match sockets.as_slice() {
        [socket] => Ok(socket.clone()),
        [] => bail!(
            "no node is running, or its socket is not in {}: start one with `srdma node --config FILE`, or name its \
             SOCKET or --config",
            directory.display()
        ),
        several => {
            let list: Vec<String> =
                several.iter().map(|socket| format!("  srdma status {}", socket.display())).collect();
            bail!("several nodes are running, name one:\n{}", list.join("\n"))
        }
    }
}

/// The sockets of a directory by name; none when it does not exist.
fn sockets(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut sockets = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension() == Some(OsStr::new("sock")) && !is_hidden {
            sockets.push(path);
        }
    }
    sockets.sort();
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_socket_needs_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let message = |directory: &Path| only(directory).unwrap_err().to_string();
        assert!(message(&directory.path().join("none")).starts_with("no node is running"));
        for name in ["n6.sock", ".n7.sock.12", "lab"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(only(directory.path()).unwrap(), directory.path().join("n6.sock"));
        fs::write(directory.path().join("n1.sock"), "").unwrap();
        let message = message(directory.path());
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines[0], "several nodes are running, name one:");
        assert!(lines[1].ends_with("/n1.sock") && lines[2].ends_with("/n6.sock"), "{message}");
    }
}
