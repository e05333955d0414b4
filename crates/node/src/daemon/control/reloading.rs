//! Applying another configuration.

use super::Control;
use super::agent::entries_of;
use super::ports::{PortDriver, claim_missing};
use crate::configuration::{Configuration, Purpose};
use crate::daemon::claim::Claim;
use crate::daemon::deny_watch::{self, DenyWatch};
use crate::daemon::handle::Died;
use crate::daemon::interest;
use crate::daemon::order::Refusal;
use crate::daemon::reload::moved_ports;
use srdma_frame::PortId;
use srdma_node_spec::{Layers, NodeSpec, Owner, diff};
use std::collections::BTreeMap;
use std::fmt;

/// Reason for reading a configuration again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// SIGHUP.
    Signal,
    /// The file changed.
    File,
    /// The facts of an interface have changed.
    Interfaces,
    /// The deny list changed.
    DenyList,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Signal => "SIGHUP",
            Cause::File => "file",
            Cause::Interfaces => "interfaces",
            Cause::DenyList => "deny list",
        })
    }
}

/// A configuration that can be applied.
struct Prepared {
    configuration: Configuration,
    deny_watch: DenyWatch,
    /// Ports that get another interface, driver or pace, or are new.
    moved: Vec<PortId>,
    /// Interfaces that are new.
    claims: BTreeMap<String, Claim>,
}

impl Control {
    /// Reads the file and applies it, or logs why it was rejected.
    pub(super) async fn reload(&mut self, cause: Cause) -> Result<(), Died> {
        self.supervisor.reloading();
        self.file.is_read();
        let outcome = match srdma_toml_error::read(&self.path) {
            Ok(text) => self.apply_text(text).await?,
            Err(error) => Err(error.to_string()),
        };
        self.reporting.reloaded(outcome.as_ref().err());
        match outcome {
            Ok(commands) => {
                tracing::info!(%cause, changes = commands, "reloaded");
                self.say_boundary();
            }
            Err(reason) => tracing::error!(%cause, reason, "not reloaded, the old configuration stays"),
        }
        self.look_after_ports().await?;
        self.supervisor.ready();
        Ok(())
    }

    /// Applies a deny list that has changed, or logs why it was rejected (D241).
    pub(super) async fn follow_deny_list(&mut self) -> Result<(), Died> {
        let outcome = self.apply_text(self.text.clone()).await?;
        self.reporting.reloaded(outcome.as_ref().err());
        let cause = Cause::DenyList;
        match outcome {
            Ok(commands) => tracing::info!(%cause, changes = commands, "reloaded"),
            Err(reason) => tracing::error!(%cause, reason, "not reloaded, the old configuration stays"),
        }
        Ok(())
    }

    /// Logs the side of each port, or that the SIDs are open to every sender, if they are (D129).
    pub(super) fn say_boundary(&self) {
        for (port, side) in self.configuration.sides() {
            tracing::info!(port, side = side.name(), "side of the domain");
        }
        if self.configuration.has_open_sids() {
            tracing::warn!("the SIDs are open to every sender: there is no [domain]");
        }
    }

    /// Applies the content of a file; returns the number of commands, or why it was rejected.
    pub(super) async fn apply_text(&mut self, text: String) -> Result<Result<usize, String>, Died> {
        // A list that is refused is not read again before it changes.
        self.deny_watch.is_read();
        let Prepared { configuration, deny_watch, moved, claims } = match self.prepare(&text) {
            Ok(prepared) => prepared,
            Err(reason) => return Ok(Err(reason)),
        };
        let is_other_isis = configuration.isis != self.configuration.isis;
        let is_other_ospf = configuration.ospf != self.configuration.ospf;
        let before = (self.kernel.mirror.clone(), self.layers.clone());
        self.layers.set(Owner::File, configuration.spec.entries.clone());
        let entries = self.layers.above(Owner::Kernel);
        let mut planned = entries.clone();
        planned.extend(entries_of(self.controller.table().commands_with_prepared()));
        let mut effects = self.kernel.configure(&configuration, &planned, self.layers.get_mut(Owner::Kernel));
        let node = |configuration: &Configuration, layers: &Layers| NodeSpec {
            node: configuration.spec.node.clone(),
            entries: layers.effective(),
        };
        effects.commands = match diff(&node(&self.configuration, &before.1), &node(&configuration, &self.layers)) {
            Ok(commands) => commands,
            Err(error) => {
                (self.kernel.mirror, self.layers) = before;
                return Ok(Err(format!("{}: {error}", self.path.display())));
            }
        };
        let commands = effects.commands.len() + usize::from(is_other_isis) + usize::from(is_other_ospf);
        // One order: no frame that the new interest brings meets the old commands.
        match self.data.change(Some(interest::of(&configuration, &entries)), effects.commands.clone()).await? {
            Ok(()) => {}
            Err(Refusal::Interest(reason)) => {
                (self.kernel.mirror, self.layers) = before;
                return Ok(Err(reason));
            }
            Err(Refusal::Command(reason)) => {
                tracing::warn!(reason, "the node refuses a part of its configuration");
            }
        }
        self.kernel.keep(&effects).await;
        self.text = text;
        (self.configuration, self.deny_watch) = (configuration, deny_watch);
        self.claims.extend(claims);
        let interfaces = &self.configuration.interfaces;
        self.claims.retain(|name, _| interfaces.iter().any(|interface| interface.name == *name));
        self.ports.resize(interfaces.len(), PortDriver::NONE);
        for port in moved {
            self.ports[port.index()] = PortDriver::NONE;
        }
        self.settle_with_kernel().await;
        self.settle_routing().await?;
        Ok(Ok(commands))
    }

    /// Checks all that can be checked before anything is changed.
    fn prepare(&self, text: &str) -> Result<Prepared, String> {
        let purpose = Purpose::Interfaces(&self.facts);
        let mut configuration =
            Configuration::parse_for(&self.path, text, purpose).map_err(|error| error.to_string())?;
        configuration.check_private_files().map_err(|error| error.to_string())?;
        let deny_watch = DenyWatch::of(&configuration);
        deny_watch::deny(&mut configuration)?;
        let in_file = |problem: String| format!("{}: {problem}", self.path.display());
        let moved = moved_ports(&self.configuration, &configuration).map_err(|error| in_file(error.to_string()))?;
        if self.data.workers() > 1
            && let Some(feature) = configuration.feature_of_one_worker()
        {
            let text = format!("{feature} need one data thread: set workers = 1 in [daemon] and restart the node");
            return Err(in_file(text));
        }
        let both = configuration.spec.entries.groups.keys().find(|group| self.controller.table().contains(**group));
        if let Some(group) = both {
            return Err(in_file(format!("group {group} is one of the controller's")));
        }
        // A node in the current state must accept the change; the kernel's layer follows from it.
        let old = NodeSpec { node: self.configuration.spec.node.clone(), entries: self.layers.above(Owner::Kernel) };
        let entries = self.layers.preview(Owner::File, &configuration.spec.entries);
        let new = NodeSpec { node: configuration.spec.node.clone(), entries };
        let commands = diff(&old, &new).map_err(|error| in_file(error.to_string()))?;
        let mut node = old.build().map_err(|error| in_file(error.to_string()))?;
        let mut commands = commands.into_iter();
        commands.try_for_each(|command| node.apply(command)).map_err(|error| in_file(error.to_string()))?;
        let claims = claim_missing(&configuration, &self.claims).map_err(|error| in_file(error.to_string()))?;
        Ok(Prepared { configuration, deny_watch, moved, claims })
    }
}
