//! `srdma conform`: any device against profiles of cases. `docs/conform.md` describes it.

mod progress;

use crate::captures::parse_input;
use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use progress::Bar;
use srdma_conform::{CommandDevice, Device, InterfaceDevice, PROFILES, Profile, ProfileName, Verdict, page, text};
use srdma_node::parse_duration;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Test a device's conformance with the drafts and RFCs, octet by octet.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(ListArguments),
    Describe(DescribeArguments),
    Run(RunArguments),
}

/// List the profiles.
#[derive(Args)]
struct ListArguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Print the configuration of a device for a profile, and the profile's cases.
#[derive(Args)]
#[command(after_long_help = DESCRIBE_EXAMPLES)]
struct DescribeArguments {
    #[command(flatten)]
    profile: ProfileArguments,
    /// Only the configuration, as the node.toml of an srdma node.
    #[arg(long, conflicts_with = "parameter_file")]
    node_toml: bool,
    /// Only the parameters, as a file for `--parameters`.
    #[arg(long)]
    parameter_file: bool,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["node_toml", "parameter_file"])]
    json: bool,
}

const DESCRIBE_EXAMPLES: &str = "\
Examples:
  srdma conform describe usid
      SIDs, routes and policies of the device as text, parameters, and cases.

  srdma conform describe usid --parameter-file > lab.toml
      Addresses and MAC addresses to edit for a device that has others.

  srdma conform describe usid --parameters lab.toml --node-toml > node.toml
      The configuration for an srdma node, with those addresses.

  srdma conform describe usid --json | jq '.cases[] | select(.sources != [])'
      The cases that are written after tests of VPP and of Linux, with their names.";

/// Run the cases of a profile on a device, and compare the frames that it sends with the expected ones.
///
/// The device is a command that turns captures into captures, or is connected to interfaces of this host. Exit code 0:
/// all cases pass; 1: some fail, or could not be tested; 2: nothing could be tested.
#[derive(Args)]
#[command(after_long_help = RUN_EXAMPLES)]
struct RunArguments {
    #[command(flatten)]
    profile: ProfileArguments,
    /// A command that is the device; `sh` runs it for each step of a case. It finds a capture for each port,
    /// {in}/PORT.pcapng, or one with an interface for each port, {in_file}; it writes {out}/PORT.pcapng (or .pcap) or
    /// {out_file}. {config} is the profile's node.toml.
    #[arg(long, value_name = "COMMAND", required_unless_present = "interfaces", conflicts_with = "interfaces")]
    command: Option<String>,
    /// An interface of this host that is linked to the device's port. May be repeated, for each port of the profile.
    #[arg(long = "interface", value_name = "PORT=INTERFACE", value_parser = parse_input)]
    interfaces: Vec<(String, PathBuf)>,
    /// Time to wait for frames after each step, at interfaces; for expected ones that are missing, nine times as long
    /// again.
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_time)]
    wait: Duration,
    /// Timeout of a command.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    timeout: Duration,
    /// Only the cases whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    case: String,
    /// Print the report as one JSON object.
    #[arg(long)]
    json: bool,
    /// Write the report as a page as well, one self-contained HTML file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  srdma conform run usid --command \\
      'srdma process --config {config} --in up={in}/up.pcapng --in down={in}/down.pcapng --out {out}'
      The node of this program, over captures.

  srdma conform run usid --interface up=eth1 --interface down=eth2 --parameters lab.toml
      A device at two interfaces, as root.

  srdma conform run usid --command './device {in_file} {out_file}' --case un- --json | jq '.requirements[]'
      Some cases; the verdict of each requirement.

  srdma conform run usid --command './device {in_file} {out_file}' --html usid.html
      The report as a self-contained page.";

#[derive(Args)]
struct ProfileArguments {
    /// The profile; `srdma conform list` has them.
    #[arg(value_name = "PROFILE")]
    name: String,
    /// Parameters that differ from the defaults: addresses, MAC addresses. `describe --parameter-file` writes such a
    /// file.
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
}

impl ProfileArguments {
    fn load(&self) -> Result<Profile> {
        let names = || PROFILES.map(|profile| profile.name).join(", ");
        let name = ProfileName::of(&self.name)
            .ok_or_else(|| anyhow!("unknown profile {:?}: there are {}", self.name, names()))?;
        let Some(file) = &self.parameters else { return Ok(name.load(None)?) };
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        name.load(Some(&text)).map_err(|error| error.in_file(file).into())
    }
}

/// Runs the command.
///
/// # Errors
///
/// If a profile, a parameter or a port does not exist, or the device cannot be used.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::List(arguments) => {
            let text = if arguments.json { serde_json::to_string(&PROFILES)? + "\n" } else { text::list(&PROFILES) };
            output::print(&text)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Describe(arguments) => {
            let profile = arguments.profile.load()?;
            let text = if arguments.node_toml {
                profile.configuration
            } else if arguments.parameter_file {
                text::parameter_file(&profile)
            } else if arguments.json {
                serde_json::to_string(&profile.description())? + "\n"
            } else {
                text::describe(&profile)
            };
            output::print(&text)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(arguments) => test(arguments),
    }
}

fn test(arguments: &RunArguments) -> Result<ExitCode> {
    let profile = arguments.profile.load()?;
    if !profile.cases.iter().any(|case| case.name.contains(&arguments.case)) {
        let name = profile.name;
        bail!("--case {}: no such case; `srdma conform describe {name}` lists them", arguments.case);
    }
    let html = arguments.html.as_ref().map(|path| {
        // Created before the run, so that an error is reported at once.
        File::create(path).with_context(|| format!("cannot write the report {}", path.display()))
    });
    let html = html.transpose()?;
    let mut device = device(arguments, &profile)?;
    let mut bar = Bar::new();
    let report = srdma_conform::run(&profile, &arguments.case, device.as_mut(), &mut |progress| bar.show(progress));
    bar.finish();
    let report = report?;
    if let Some(mut html) = html {
        let page = page::page(&report, &profile, &command_line());
        html.write_all(page.html().as_bytes()).context("cannot write the report")?;
    }
    let text = if arguments.json { serde_json::to_string(&report)? + "\n" } else { text::report(&report) };
    output::print(&text)?;
    if report.count(Verdict::Pass) == 0 && report.count(Verdict::Fail) == 0 {
        bail!("no case could be run on the device: {}", report.cases[0].reason.as_deref().unwrap_or("no reason"));
    }
    Ok(if report.is_pass() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The command line of the program.
fn command_line() -> String {
    let quoted = |argument: String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if argument.chars().all(is_plain) { argument } else { format!("'{}'", argument.replace('\'', "'\\''")) }
    };
    let arguments = std::env::args_os().skip(1).map(|argument| quoted(argument.to_string_lossy().into_owned()));
    ["srdma".to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

fn device(arguments: &RunArguments, profile: &Profile) -> Result<Box<dyn Device>> {
    if let Some(command) = &arguments.command {
        let ports: Vec<&'static str> = profile.ports.iter().map(|(name, _)| *name).collect();
        return Ok(Box::new(CommandDevice::new(command, &ports, &profile.configuration, arguments.timeout)));
    }
    let names = profile.ports.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if let Some((other, _)) =
        arguments.interfaces.iter().find(|(given, _)| profile.ports.iter().all(|(name, _)| name != given))
    {
        bail!("--interface {other}=…: profile {} has no port {other}, it has {names}", profile.name);
    }
    let mut ports = Vec::new();
    for (name, port) in &profile.ports {
        let (_, interface) =
            arguments.interfaces.iter().find(|(given, _)| given == name).ok_or_else(|| {
                anyhow!("--interface {name}=INTERFACE is missing: profile {} has {names}", profile.name)
            })?;
        ports.push((*name, interface.display().to_string(), port.tester_mac));
    }
    Ok(Box::new(InterfaceDevice::open(&ports, arguments.wait)?))
}

fn parse_time(argument: &str) -> Result<Duration, String> {
    parse_duration(argument).ok_or_else(|| "expected a number and one of ns, us, ms, s, such as 200ms".to_owned())
}
