//! `srdma plan provision`: the configuration of each device of a fabric, for its own system.

mod check;

use super::{FabricArguments, read};
use crate::output::print;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use srdma_dataplane::Domain;
use srdma_fabric::provision::{Choices, Device};
use srdma_fabric::{AddressPlan, HostId, NodeId, SidPlan, Topology, provision};
use srdma_node_spec::file::DomainSection;
use srdma_placement::jobs_with_traces_from_toml;
use srdma_toml_error::read_beside;
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  srdma plan provision --fabric fabrics/figure1.toml --format linux --device leaf1
  srdma plan provision --fabric dc.toml --format sonic --interfaces Ethernet{port} --out config
  srdma plan provision --fabric dc.toml --format frr --jobs jobs.toml         with End.DT6 of the jobs' tenants
  srdma plan provision --fabric fabrics/figure1.toml --check ai-backend       lists what a running lab lacks

docs/placement.md describes each format and what its system needs to be.
Exit codes: 0 done, 1 the lab differs from the plan, 2 invalid files or arguments.";

/// Write the configuration of each device: its SIDs, and routes to the SIDs of others.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    fabric: FabricArguments,

    /// System that the configuration is for.
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,

    /// These devices alone; may be given several times.
    #[arg(long, value_name = "NAME")]
    device: Vec<String>,

    /// Only SIDs for programs of this encoding, by switches or by links [default: for both].
    #[arg(long, value_enum)]
    encoding: Option<EncodingName>,

    /// Jobs, a TOML file: adds an End.DT6 for each of their tenants.
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,

    /// The /32 of the addresses of switches and NICs.
    #[arg(long, value_name = "ADDRESS", default_value = "2001:db8::")]
    addresses: Ipv6Addr,

    /// Pattern of interface names: {port} is the port's number, {peer} the name of the device at the other end.
    #[arg(long, value_name = "PATTERN", default_value = "{peer}")]
    interfaces: String,

    /// Linux: existing interface that SID routes use, instead of a new one of type dummy.
    #[arg(long, value_name = "INTERFACE")]
    sid_device: Option<String>,

    /// A file for each device in this directory, instead of everything to the standard output.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Compare a running lab with the plan, and list missing and different SIDs and routes.
    #[arg(long, value_name = "LAB", conflicts_with_all = ["format", "out", "sid_device"])]
    check: Option<String>,

    /// With --check: instance of the lab.
    #[arg(long, value_name = "SUFFIX", requires = "check")]
    instance: Option<String>,

    /// With --check: print one JSON object.
    #[arg(long, requires = "check")]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `node.toml` of srdma node.
    Node,
    /// Commands of iproute2.
    Linux,
    /// Configuration of FRR.
    Frr,
    /// config_db.json of SONiC.
    Sonic,
    /// The plan itself.
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum EncodingName {
    /// By uN.
    Un,
    /// By uA.
    Ua,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Format::Node => "toml",
            Format::Linux => "sh",
            Format::Frr => "conf",
            Format::Sonic | Format::Json => "json",
        }
    }
}

/// One device in the words of a system.
enum Written {
    Text(String),
    Json(Value),
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (topology, sids) = arguments.fabric.read()?;
    let devices = arguments.devices(&topology, &sids)?;
    if let Some(lab) = &arguments.check {
        return check::run(lab, arguments.instance.as_deref(), &devices, arguments.json);
    }
    let is_written = |device: &&Device| match (arguments.format, device.node) {
        (Format::Frr | Format::Sonic, NodeId::Host(_)) => !arguments.device.is_empty(),
        _ => true,
    };
    let written: Vec<(&str, Written)> = devices
        .iter()
        .filter(is_written)
        .map(|device| Ok((device.name.as_str(), arguments.written(device, &sids)?)))
        .collect::<Result<_>>()?;
    match &arguments.out {
        Some(directory) => arguments.write_files(directory, written)?,
        None => print(&in_one(written)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn devices(&self, topology: &Topology, sids: &SidPlan) -> Result<Vec<Device>> {
        let tenants = self.tenants(topology)?;
        let choices = Choices {
            sids,
            addresses: AddressPlan::below(self.addresses),
            by_nodes: !matches!(self.encoding, Some(EncodingName::Ua)),
            by_links: !matches!(self.encoding, Some(EncodingName::Un)),
            interfaces: &self.interfaces,
            tenants: &tenants,
        };
        let all = || {
            let switches = topology.switch_ids().map(NodeId::Switch);
            switches.chain(topology.host_ids().map(NodeId::Host)).collect::<Vec<_>>()
        };
        let named = |name: &String| match topology.node(name) {
            Some(node) => Ok(node),
            None => bail!("--device {name}: no such switch or NIC in this fabric"),
        };
        let of =
            if self.device.is_empty() { all() } else { self.device.iter().map(named).collect::<Result<Vec<_>>>()? };
        Ok(provision(topology, &choices, &of)?)
    }

    fn tenants(&self, topology: &Topology) -> Result<BTreeMap<u16, Vec<HostId>>> {
        let mut tenants: BTreeMap<u16, Vec<HostId>> = BTreeMap::new();
        let jobs = self.jobs.as_deref().map(|path| {
            let read_trace = |name: &str| read_beside(path, name);
            read(path, |text| jobs_with_traces_from_toml(text, topology, &read_trace))
        });
        let jobs = jobs.transpose()?;
        for job in jobs.into_iter().flatten() {
            if let Some(tenant) = job.tenant {
                tenants.entry(tenant).or_default().extend(job.nics);
            }
        }
        Ok(tenants)
    }

    fn written(&self, device: &Device, sids: &SidPlan) -> Result<Written> {
        Ok(match self.format {
            Format::Node => Written::Text(srdma_provision::node_toml(device, self.domain(sids))?),
            Format::Linux => Written::Text(srdma_provision::linux::script(device, self.sid_device.as_deref())),
            Format::Frr => Written::Text(srdma_provision::frr_configuration(device, sids)),
            Format::Sonic => Written::Json(srdma_provision::sonic_config_db(device, sids)),
            Format::Json => Written::Json(serde_json::to_value(srdma_provision::Device::from(device))?),
        })
    }

    /// The SIDs, and the addresses of switches and NICs: NICs send to SIDs.
    fn domain(&self, sids: &SidPlan) -> DomainSection {
        let all = |address| Prefix::new(address, 32).into_iter().collect();
        DomainSection::of(&Domain { sids: all(sids.block()), infrastructure: all(self.addresses), proxies: Vec::new() })
    }

    fn write_files(&self, directory: &Path, written: Vec<(&str, Written)>) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let count = written.len();
        for (name, written) in written {
            let path = directory.join(format!("{name}.{}", self.format.extension()));
            let text = match written {
                Written::Text(text) => text,
                Written::Json(value) => format!("{}\n", serde_json::to_string_pretty(&value)?),
            };
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        eprintln!("{count} files in {}", directory.display());
        Ok(())
    }
}

/// All devices one after the other; JSON as one object with the devices' names as keys.
fn in_one(written: Vec<(&str, Written)>) -> Result<String> {
    let mut texts = Vec::new();
    let mut object = Map::new();
    for (name, written) in written {
        match written {
            Written::Text(text) => texts.push(text),
            Written::Json(value) => drop(object.insert(name.to_owned(), value)),
        }
    }
    if texts.is_empty() {
        return Ok(format!("{}\n", serde_json::to_string_pretty(&object)?));
    }
    Ok(texts.join("\n"))
}
