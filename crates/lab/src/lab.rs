//! A lab that is up.

use crate::counters::{self, LinkCounters};
use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::network;
use crate::process::Process;
use crate::shipped;
use crate::state::{LinkState, State};
use crate::topology::Topology;
use crate::{command, namespace};
use std::fs;
use std::path::PathBuf;

/// A topology file, shipped or not.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the file, which names the lab.
    pub file: PathBuf,
    /// Its content.
    pub text: String,
}

impl Source {
    /// The shipped lab of this name, or a file.
    ///
    /// # Errors
    ///
    /// If there is neither.
    pub fn find(name: &str) -> Result<Self> {
        if let Some(text) = shipped::text(name) {
            return Ok(Source { file: format!("{name}.toml").into(), text: text.to_owned() });
        }
        let file = PathBuf::from(name);
        if !file.exists() {
            let shipped = shipped::names().map(str::to_owned).collect();
            return Err(LabError::Unknown { name: name.to_owned(), shipped });
        }
        let text = fs::read_to_string(&file).map_err(LabError::file("read", &file))?;
        Ok(Source { file, text })
    }

    /// The topology in it.
    ///
    /// # Errors
    ///
    /// Those of [`Topology::parse`].
    pub fn topology(&self) -> Result<Topology> {
        Ok(Topology::parse(&self.file, &self.text)?)
    }
}

/// An instance of a lab that exists, with its processes.
#[derive(Debug)]
pub struct Lab {
    instance: Instance,
    topology: Topology,
    state: State,
}

impl Lab {
    /// Makes the namespaces and links of a topology, which is that of `source` with other rates and losses of links at
    /// most. No process is started.
    ///
    /// # Errors
    ///
    /// If the instance exists, and when a command fails; then what has been made stays for [`Lab::down`].
    pub fn create(source: &Source, topology: Topology, instance: Instance) -> Result<Self> {
        check_root()?;
        let links = topology.links.iter();
        let links = links.map(|link| LinkState { rate_bits_per_s: link.rate_bits_per_s, loss: link.loss }).collect();
        let file = source.file.file_name().map(PathBuf::from).unwrap_or_default();
        let state = State { file, text: source.text.clone(), links, processes: Vec::new() };
        let left = network::namespaces(&instance, &topology).into_iter().any(|name| namespace::exists(&name));
        if left {
            return Err(LabError::IsUp(instance.name().to_owned()));
        }
        state.create(&instance)?;
        network::build(&instance, &topology)?;
        Ok(Lab { instance, topology, state })
    }

    /// The instance that is up.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn open(instance: Instance) -> Result<Self> {
        let state = State::load(&instance)?.ok_or_else(|| LabError::IsDown(instance.name().to_owned()))?;
        let topology = state.topology()?;
        Ok(Lab { instance, topology, state })
    }

    /// Takes an instance down, as much of it as there is: also what a lab left behind that was killed. `false` when
    /// there was nothing.
    ///
    /// # Errors
    ///
    /// If a command fails.
    pub fn down(instance: &Instance, topology: Option<&Topology>) -> Result<bool> {
        check_root()?;
        let state = State::load(instance)?;
        let recorded = state.as_ref().map(State::topology).transpose()?;
        let mut names: Vec<String> = recorded
            .iter()
            .chain(topology)
            .flat_map(|topology| network::namespaces(instance, topology))
            .filter(|name| namespace::exists(name))
            .collect();
        names.sort();
        names.dedup();
        let was_there = state.is_some() || !names.is_empty() || instance.directory().exists();
        namespace::end_processes(&names)?;
        state.iter().flat_map(|state| &state.processes).for_each(Process::kill);
        for name in &names {
            namespace::delete(name)?;
        }
        State::remove(instance)?;
        Ok(was_there)
    }

    /// Its names and places.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The topology that the lab was created from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Its processes, in the order in which they were started.
    pub fn processes(&self) -> &[Process] {
        &self.state.processes
    }

    /// Starts a process at a node and keeps note of it; one of the same name is replaced.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(&mut self, node: &str, name: &str, command: &[String]) -> Result<Process> {
        let process = Process::start(&self.instance, node, name, command)?;
        self.state.processes.retain(|other| other.name != name);
        self.state.processes.push(process.clone());
        self.state.save(&self.instance)?;
        Ok(process)
    }

    /// The name of a node, checked.
    ///
    /// # Errors
    ///
    /// If the lab has no such node.
    pub fn node(&self, name: &str) -> Result<usize> {
        self.topology.node(name).ok_or_else(|| LabError::UnknownNode {
            lab: self.instance.name().to_owned(),
            node: name.to_owned(),
            nodes: self.topology.nodes.iter().map(|node| node.name.clone()).collect(),
        })
    }

    /// Counters of each link, in the order of the topology.
    ///
    /// # Errors
    ///
    /// If the counters cannot be read.
    pub fn link_counters(&self) -> Result<Vec<LinkCounters>> {
        counters::of_links(&self.instance, self.topology.links.len())
    }

    /// The same once no frame is on its way, or after a second.
    ///
    /// # Errors
    ///
    /// If the counters cannot be read.
    pub fn idle_link_counters(&self) -> Result<Vec<LinkCounters>> {
        counters::of_idle_links(&self.instance, self.topology.links.len())
    }

    /// Runs a command in the namespace of a node and gives its output.
    ///
    /// # Errors
    ///
    /// If it fails.
    pub fn run(&self, node: &str, line: &str) -> Result<String> {
        command::run(&format!("ip netns exec {} {line}", self.instance.namespace(node)))
    }
}

/// That this may make namespaces.
pub fn check_root() -> Result<()> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err(LabError::NotRoot) }
}
