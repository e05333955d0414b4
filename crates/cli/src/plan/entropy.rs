//! `srdma plan entropy`: paths as values of 32 bits, and back (D254, D255).

use super::FabricArguments;
use super::text::rows;
use crate::output::{print, print_json, print_text};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use srdma_fabric::{AddressPlan, Encoding, HostId, ListedPath, NodeId, Template, Topology};
use srdma_wire::Entropy;
use srdma_wire::entropy::AddressTemplate;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  srdma plan entropy --fabric fabrics/figure1.toml --from nic1 --to nic3              all paths with their values
  srdma plan entropy --fabric fabrics/figure1.toml --from nic1 --to nic3 3 0x6        the paths of these values
  srdma plan entropy --fabric fabrics/figure1.toml --from nic1 --to nic3 --source-port 49155 --flow-label 0x80000
                                                                                      the path of a packet
  srdma plan entropy --fabric dc.toml --from h1.1 --to h2.1 --route                   a [[route]] of node.toml
  srdma plan entropy --fabric dc.toml --from h1.1 --to h2.1 --route --deny-list denied.json      without dead paths

docs/placement.md describes the values and the JSON.
Exit codes: 0 done, 2 a value is no path, or the files or arguments make no sense.";

/// Print the paths between two NICs as entropy values, with UDP source port, flow label and program of each.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    fabric: FabricArguments,

    /// The NIC that sends.
    #[arg(long, value_name = "NIC")]
    from: String,

    /// The NIC that receives.
    #[arg(long, value_name = "NIC")]
    to: String,

    /// Name links (uA) in the programs instead of switches (uN).
    #[arg(long)]
    links: bool,

    /// The tenant whose service ends the programs.
    #[arg(long, value_name = "NUMBER")]
    tenant: Option<u16>,

    /// The UDP source port of a packet whose path is to be read.
    #[arg(long, value_name = "PORT", requires = "flow_label", conflicts_with = "values")]
    source_port: Option<u16>,

    /// The flow label of that packet, decimal or 0x….
    #[arg(long, value_name = "LABEL", requires = "source_port", value_parser = number)]
    flow_label: Option<u32>,

    /// Print a [[route]] of node.toml to the receiver's /64, with the template if there is one.
    #[arg(long, conflicts_with = "json")]
    route: bool,

    /// The /32 below which NICs have their addresses, for --route.
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0))]
    addresses: Ipv6Addr,

    /// The deny list that srdma map has written on the sender: its values are denied.
    #[arg(long, value_name = "FILE")]
    deny_list: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Values, decimal or 0x…; all of them without any.
    #[arg(value_name = "VALUE", value_parser = number)]
    values: Vec<u32>,
}

/// What is printed.
#[derive(Serialize)]
struct Printed {
    /// Bits in which values of the fabric differ.
    bits: u32,
    fields: Vec<PrintedField>,
    /// `null` where addresses do not follow from values by arithmetic.
    template: Option<PrintedTemplate>,
    paths: Vec<PrintedPath>,
}

#[derive(Serialize)]
struct PrintedField {
    /// 0 is the NIC, 1 the first switch.
    hop: usize,
    /// The tier of the switches there.
    tier: Option<u8>,
    /// The most alternatives of any pair of NICs.
    choices: usize,
    bits: u32,
    /// The number of bits behind it.
    shift: u32,
}

#[derive(Serialize)]
struct PrintedTemplate {
    base: Ipv6Addr,
    choices: Vec<PrintedChoice>,
}

#[derive(Serialize)]
struct PrintedChoice {
    bits: u8,
    choices: u32,
    step: Ipv6Addr,
}

#[derive(Serialize)]
struct PrintedPath {
    entropy: u32,
    source_port: u16,
    flow_label: u32,
    /// The nodes on the way.
    path: Vec<String>,
    destination: Ipv6Addr,
    /// Segments of the SRH, in the order in which they are used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    segments: Vec<Ipv6Addr>,
    /// A link of it has failed.
    is_failed: bool,
    /// It is in the deny list.
    is_denied: bool,
}

/// The part of a deny list that counts here.
#[derive(Deserialize)]
struct DenyList {
    nic: String,
    excluded: BTreeMap<String, Vec<u32>>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (topology, sids) = arguments.fabric.read()?;
    let template = Template::new(&topology)?;
    let ends = [nic(&topology, "--from", &arguments.from)?, nic(&topology, "--to", &arguments.to)?];
    let encoding = if arguments.links { Encoding::Links } else { Encoding::Nodes };
    let listed = template.listed(&sids, ends, encoding, arguments.tenant)?;
    let addresses = template.addresses(&listed).ok();
    let denied = denied(arguments, &template, ends)?;
    let chosen = chosen(arguments, &template, ends, listed)?;
    let is_failed = |own: &ListedPath| own.path.links.iter().any(|link| topology.is_failed(*link));
    if arguments.route {
        let is_denied = |own: &ListedPath| is_failed(own) || denied.contains(&own.entropy);
        let prefix = AddressPlan::below(arguments.addresses).host_prefix(&topology, ends[1]);
        let head = format!("# {} to {}, SIDs below {}/32\n", arguments.from, arguments.to, sids.block());
        let route = route(prefix, &arguments.to, addresses.as_ref(), &chosen, is_denied);
        print(&format!("{head}{route}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let printed = Printed {
        bits: template.bits(),
        fields: template
            .fields()
            .map(|field| {
                let srdma_fabric::entropy::Field { hop, tier, choices, bits, shift } = *field;
                PrintedField { hop, tier, choices, bits, shift }
            })
            .collect(),
        template: addresses.map(|addresses| PrintedTemplate::new(&addresses)),
        paths: chosen
            .iter()
            .map(|own| PrintedPath::new(&topology, own, is_failed(own), denied.contains(&own.entropy)))
            .collect(),
    };
    if arguments.json {
        print_json(&printed)?;
    } else {
        print_text(&printed.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The values of the deny list, if there is one; one that is no path is refused.
fn denied(arguments: &Arguments, template: &Template, [from, to]: [HostId; 2]) -> Result<Vec<Entropy>> {
    let Some(file) = &arguments.deny_list else { return Ok(Vec::new()) };
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let list: DenyList =
        serde_json::from_str(&text).with_context(|| format!("{} is no deny list of srdma map", file.display()))?;
    if list.nic != arguments.from {
        bail!("{} is the deny list of {}: expected that of {}", file.display(), list.nic, arguments.from);
    }
    let values: Vec<Entropy> = list.excluded.get(&arguments.to).into_iter().flatten().copied().map(Entropy).collect();
    for value in &values {
        template.expand(from, to, *value).with_context(|| format!("{} is of another fabric", file.display()))?;
    }
    Ok(values)
}

/// The paths that the arguments name; a value that is none is refused.
fn chosen(
    arguments: &Arguments,
    template: &Template,
    [from, to]: [HostId; 2],
    listed: Vec<ListedPath>,
) -> Result<Vec<ListedPath>> {
    let mut values: Vec<Entropy> = arguments.values.iter().copied().map(Entropy).collect();
    if let (Some(port), Some(label)) = (arguments.source_port, arguments.flow_label) {
        values.push(Entropy::of_fields(port, label)?);
    }
    if values.is_empty() {
        return Ok(listed);
    }
    let one = |value: Entropy| {
        template.expand(from, to, value)?;
        let own = listed.iter().find(|own| own.entropy == value);
        own.cloned().with_context(|| format!("entropy {:#x} is not listed", value.0))
    };
    values.into_iter().map(one).collect()
}

impl PrintedTemplate {
    fn new(addresses: &AddressTemplate) -> Self {
        let choices = addresses.choices().iter();
        let choices = choices.map(|own| PrintedChoice { bits: own.bits, choices: own.choices, step: own.step });
        PrintedTemplate { base: addresses.base(), choices: choices.collect() }
    }
}

impl PrintedPath {
    fn new(topology: &Topology, listed: &ListedPath, is_failed: bool, is_denied: bool) -> Self {
        let ListedPath { entropy, path, program } = listed;
        PrintedPath {
            entropy: entropy.0,
            source_port: entropy.source_port(),
            flow_label: entropy.flow_label(),
            path: path.node_names(topology),
            destination: program.destination,
            segments: program.segments.clone(),
            is_failed,
            is_denied,
        }
    }

    fn row(&self) -> [String; 5] {
        let more = self.segments.iter().map(|segment| format!(", {segment}")).collect::<String>();
        let state = match (self.is_failed, self.is_denied) {
            (true, _) => " (failed)",
            (false, true) => " (denied)",
            (false, false) => "",
        };
        [
            format!("{:#x}", self.entropy),
            self.source_port.to_string(),
            format!("{:#x}", self.flow_label),
            format!("{}{state}", super::text::switches(&self.path)),
            format!("{}{more}", self.destination),
        ]
    }
}

impl Printed {
    fn text(&self) -> String {
        let mut text = format!("{} bits\n", self.bits);
        for PrintedField { hop, tier, choices, bits, shift } in &self.fields {
            let at = match (hop, tier) {
                (0, _) => "the NIC".to_owned(),
                (hop, Some(tier)) => format!("switch {hop} of the path, tier {tier}"),
                (hop, None) => format!("switch {hop} of the path"),
            };
            let last = shift + bits - 1;
            let _ = writeln!(text, "bits {shift} to {last}: the port out of {at}, {choices} at most");
        }
        match &self.template {
            Some(PrintedTemplate { base, choices }) => {
                let steps = choices.iter().filter(|own| own.choices > 1).map(|own| format!(" + n × {}", own.step));
                let _ = writeln!(text, "address      {base}{}", steps.collect::<String>());
            }
            None => text.push_str("address      does not follow from the value by arithmetic\n"),
        }
        text.push('\n');
        let titles = ["entropy", "port", "flow label", "by", "destination"];
        rows(&mut text, titles, None, self.paths.iter().map(PrintedPath::row).collect());
        text
    }
}

/// A `[[route]]` of `node.toml`: by the template where there is one, else path by path.
fn route(
    prefix: Ipv6Addr,
    nic: &str,
    addresses: Option<&AddressTemplate>,
    chosen: &[ListedPath],
    is_denied: impl Fn(&ListedPath) -> bool,
) -> String {
    let mut text = format!("[[route]]\nprefix = \"{prefix}/64\"\nnic = {nic:?}\n\n");
    if let Some(addresses) = addresses {
        let choice = |own: &srdma_wire::entropy::Choice| {
            format!("{{ bits = {}, choices = {}, step = \"{}\" }}", own.bits, own.choices, own.step)
        };
        let choices: Vec<String> = addresses.choices().iter().map(choice).collect();
        let list = |mut of: Vec<u32>| {
            of.sort_unstable();
            of.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        };
        let mut keys = format!("base = \"{}\", choice = [{}]", addresses.base(), choices.join(", "));
        if (chosen.len() as u64) < addresses.paths() {
            let _ = write!(keys, ", values = [{}]", list(chosen.iter().map(|own| own.entropy.0).collect()));
        }
        let denied: Vec<u32> = chosen.iter().filter(|own| is_denied(own)).map(|own| own.entropy.0).collect();
        if !denied.is_empty() {
            let _ = write!(keys, ", denied = [{}]", list(denied));
        }
        let _ = writeln!(text, "[[route.path]]\nrank = 0\ntemplate = {{ {keys} }}");
        return text;
    }
    for own in chosen {
        let segments = [own.program.destination].into_iter().chain(own.program.segments.iter().copied());
        let segments: Vec<String> = segments.map(|segment| format!("\"{segment}\"")).collect();
        let _ = writeln!(text, "[[route.path]]\nrank = 0\nentropy = {}", own.entropy.0);
        let _ = writeln!(text, "segments = [{}]", segments.join(", "));
        if is_denied(own) {
            text.push_str("denied = true\n");
        }
        text.push('\n');
    }
    text
}

fn nic(topology: &Topology, option: &str, name: &str) -> Result<HostId> {
    match topology.node(name) {
        Some(NodeId::Host(host)) => Ok(host),
        Some(NodeId::Switch(_)) => bail!("{option} {name}: a switch; expected a NIC"),
        None => bail!("{option} {name}: no such NIC in this fabric"),
    }
}

/// A number of 32 bits, decimal or with 0x.
fn number(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a number of 32 bits, decimal or 0x…".to_owned())
}
