//! The state file of an instance, which another process reads to inspect it and take it down.

use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::process::Process;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;

/// State of an instance that another process needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The name of the topology file, which names the lab.
    pub(crate) file: PathBuf,
    /// The file.
    pub(crate) text: String,
    /// The links as they were made, in the order of the topology: rate and loss may be those of the command line.
    pub(crate) links: Vec<LinkState>,
    /// The processes that were started.
    pub(crate) processes: Vec<Process>,
}

/// Parameters of a link that may differ from the topology file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkState {
    pub(crate) rate_bits_per_s: Option<u64>,
    pub(crate) loss: f64,
}

impl State {
    /// Makes the directory of a new instance, with this in it.
    pub(crate) fn create(&self, instance: &Instance) -> Result<()> {
        let directory = instance.directory();
        let parent = directory.parent().unwrap_or(&directory).to_owned();
        fs::create_dir_all(&parent).map_err(LabError::file("create", &parent))?;
        // Of two that begin at once, one makes it.
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(LabError::IsUp(instance.name().to_owned()));
            }
            result => result.map_err(LabError::file("create", &directory))?,
        }
        for name in ["log", "out", "node"] {
            let path = directory.join(name);
            fs::create_dir(&path).map_err(LabError::file("create", &path))?;
        }
        self.save(instance)
    }

    /// Writes it again.
    pub(crate) fn save(&self, instance: &Instance) -> Result<()> {
        let (path, new) = (path(instance), instance.directory().join("state.json.new"));
        let text =
            serde_json::to_string_pretty(self).map_err(io::Error::other).map_err(LabError::file("write", &new))?;
        fs::write(&new, text).map_err(LabError::file("write", &new))?;
        fs::rename(&new, &path).map_err(LabError::file("write", &path))
    }

    /// Reads the state of an instance; `None` if it has none.
    pub(crate) fn load(instance: &Instance) -> Result<Option<Self>> {
        let path = path(instance);
        match fs::read_to_string(&path) {
            Ok(text) => match serde_json::from_str(&text) {
                Ok(state) => Ok(Some(state)),
                Err(error) => Err(LabError::Unexpected { who: path.display().to_string(), problem: error.to_string() }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LabError::file("read", &path)(error)),
        }
    }

    /// The topology, with the links as they were made.
    pub(crate) fn topology(&self) -> Result<Topology> {
        let mut topology = Topology::parse(&self.file, &self.text)?;
        for (link, state) in topology.links.iter_mut().zip(&self.links) {
            (link.rate_bits_per_s, link.loss) = (state.rate_bits_per_s, state.loss);
        }
        Ok(topology)
    }

    /// Takes the directory away.
    pub(crate) fn remove(instance: &Instance) -> Result<()> {
        let directory = instance.directory();
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(LabError::file("remove", &directory)),
        }
    }
}

fn path(instance: &Instance) -> PathBuf {
    instance.directory().join("state.json")
}
