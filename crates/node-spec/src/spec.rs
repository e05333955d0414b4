//! The desired state of a node.

use crate::Entries;
use srdma_dataplane::{Command, ConfigError, Node, NodeConfig};

/// The desired state of a node.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Settings that a node is made with, and its ports.
    pub node: NodeConfig,
    /// Everything else.
    pub entries: Entries,
}

impl NodeSpec {
    /// A node with these settings and no entries.
    pub fn new(node: NodeConfig) -> Self {
        NodeSpec { node, entries: Entries::default() }
    }

    /// The commands that a new node of these settings is given.
    pub fn commands(&self) -> Vec<Command> {
        self.entries.commands()
    }

    /// A new node in this state.
    ///
    /// # Errors
    ///
    /// The first entry that the node refuses.
    pub fn build(&self) -> Result<Node, ConfigError> {
        let mut node = Node::new(self.node.clone());
        self.commands().into_iter().try_for_each(|command| node.apply(command))?;
        Ok(node)
    }
}
