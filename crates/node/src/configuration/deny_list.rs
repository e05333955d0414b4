//! The deny list of a mapper (`srdma map`, `docs/mapper.md`): paths of this node's routes that do not forward packets
//! (D241). A value without I/O: the daemon reads the file, and reads it again when it changes.

use super::Configuration;
use serde::Deserialize;
use srdma_dataplane::{RouteAction, TableId};
use srdma_node_spec::file::NodeFile;
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which deny list the node follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyListSettings {
    /// The file, which need not exist.
    pub file: PathBuf,
    /// The NIC whose mapper writes it.
    pub nic: String,
    /// The NIC to which each route leads, by its name in the list.
    routes: BTreeMap<(TableId, Prefix), String>,
}

/// The part of a deny list that counts for routes: for each NIC the entropy values of denied paths to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DenyList {
    nic: String,
    excluded: BTreeMap<String, Vec<u32>>,
}

/// Effect of a deny list on a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denied {
    /// How many paths are denied by the list alone.
    pub paths: usize,
    /// Routes of which the list denies every path: it says nothing about a choice between them, and denies none.
    pub spared: Vec<Prefix>,
}

impl DenyListSettings {
    /// Those of a file, if it names a list; `path` is its own name.
    pub(super) fn of(path: &Path, file: &NodeFile) -> Result<Option<Self>, Problem> {
        let section = file.steering.as_ref().and_then(|section| section.get_ref().deny_list.as_ref());
        let mut routes = BTreeMap::new();
        for route in &file.route {
            let route = route.get_ref();
            let Some(nic) = &route.nic else { continue };
            if route.path.is_none() {
                return Err(Problem::new(nic.span().start, "nic without path: a deny list is about paths"));
            }
            let table = TableId(route.table.as_ref().map_or(0, |table| table.value.get() as u16));
            routes.insert((table, route.prefix.value.0), nic.get_ref().clone());
        }
        let Some(section) = section else { return Ok(None) };
        if routes.is_empty() {
            let text = "no route follows the deny list: expected nic in a [[route]], the NIC that it leads to";
            return Err(Problem::new(section.span().start, text));
        }
        let section = section.get_ref();
        let file = path.parent().unwrap_or(Path::new("")).join(&section.file);
        Ok(Some(DenyListSettings { file, nic: section.nic.clone(), routes }))
    }
}

impl DenyList {
    /// Reads the content of a file, which is to be the list of this NIC.
    ///
    /// # Errors
    ///
    /// It is no deny list, or that of another NIC.
    pub fn parse(text: &str, nic: &str) -> Result<Self, String> {
        let list: DenyList =
            serde_json::from_str(text).map_err(|error| format!("no deny list of srdma map: {error}"))?;
        if list.nic != nic {
            return Err(format!("the deny list of {}, expected that of {nic}", list.nic));
        }
        Ok(list)
    }
}

impl Configuration {
    /// Denies the paths of a list, beside those that the configuration denies itself (D241).
    pub fn deny(&mut self, list: &DenyList) -> Denied {
        let mut denied = Denied::default();
        let Some(settings) = &self.deny_list else { return denied };
        for ((table, prefix), nic) in &settings.routes {
            let Some(values) = list.excluded.get(nic) else { continue };
            let Some(RouteAction::Placed(paths)) = self.spec.entries.routes.get_mut(&(*table, *prefix)) else {
                continue;
            };
            let is_listed: Vec<bool> = paths
                .iter()
                .map(|path| !path.path.is_denied && path.entropy.is_some_and(|value| values.contains(&value.0)))
                .collect();
            if paths.iter().zip(&is_listed).all(|(path, is_listed)| path.path.is_denied || *is_listed) {
                denied.spared.push(*prefix);
                continue;
            }
            for (path, _) in paths.iter_mut().zip(&is_listed).filter(|(_, is_listed)| **is_listed) {
                path.path.is_denied = true;
                denied.paths += 1;
            }
        }
        denied
    }
}
