//! The shell at a guest's serial port.

use super::channel::Channel;
use super::peer::{Peer, PeerOptions};
use crate::error::Result;
use std::time::Duration;

/// A shell in a guest.
#[derive(Debug)]
pub struct Shell {
    channel: Channel,
}

impl Shell {
    pub(super) fn new(channel: Channel) -> Self {
        Shell { channel }
    }

    /// Runs a command and gives what it prints.
    ///
    /// # Errors
    ///
    /// If it fails, with what it printed, or takes longer than `patience`.
    pub fn run(&mut self, command: &str, patience: Duration) -> Result<String> {
        // The end stands on a line of its own, whatever the command has printed.
        self.channel.send(&format!("( {command}\n) 2>&1; printf '\\nended %d\\n' $?"))?;
        let mut output = String::new();
        loop {
            let line = self.channel.receive(patience)?;
            match line.strip_prefix("ended ") {
                Some("0") => return Ok(output.trim().to_owned()),
                Some(status) => {
                    let output = output.trim();
                    return Err(self.channel.problem(format!("`{command}` failed with status {status}: {output}")));
                }
                None => output = output + &line + "\n",
            }
        }
    }

    /// Puts the RDMA program in the shell's place.
    ///
    /// # Errors
    ///
    /// If it finds no RDMA device or no memory.
    pub fn into_peer(mut self, options: PeerOptions) -> Result<Peer> {
        let PeerOptions { octets, path_mtu, ack_timeout, address } = options;
        let address = address.map(|address| format!(" {address}")).unwrap_or_default();
        self.channel.send(&format!("exec peer {octets} {path_mtu} {ack_timeout}{address} 2>&1"))?;
        Peer::new(self.channel)
    }
}
