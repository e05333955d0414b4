//! `srdma`: SRv6 for RDMA.

// `output` prints: there a closed pipe is no panic.
#![deny(clippy::print_stdout)]

mod bench;
mod captures;
mod chaos;
mod cm;
mod conform;
mod congestion;
mod controller;
mod decode;
mod demo;
mod doctor;
mod endpoint;
mod explain;
mod generate;
mod group;
mod isis;
mod lab;
mod log;
mod map;
mod node;
mod ospf;
mod output;
mod paths;
mod perftest;
mod plan;
mod process;
mod programs_group;
mod pull;
mod push;
mod recv;
mod remote;
mod send;
mod sim;
mod source_name;
mod status;
mod terminal;
mod wpi;

use clap::{CommandFactory, Parser, Subcommand};
use srdma_report::units;
use std::io::Write;
use std::process::ExitCode;

/// SRv6 for RDMA: multicast of Reliable Connection traffic in the network.
#[derive(Parser)]
#[command(name = "srdma", version = env!("SRDMA_VERSION"), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Arguments),
    Cm(cm::Arguments),
    Conform(conform::Arguments),
    Controller(controller::Arguments),
    Decode(decode::Arguments),
    Demo(Box<demo::Arguments>),
    Doctor(doctor::Arguments),
    Explain(explain::Arguments),
    Generate(generate::Arguments),
    Group(Box<group::Arguments>),
    Isis(isis::Arguments),
    Lab(Box<lab::Arguments>),
    Map(map::Arguments),
    Node(node::Arguments),
    Ospf(ospf::Arguments),
    Perftest(perftest::Arguments),
    Plan(plan::Arguments),
    Process(process::Arguments),
    Pull(pull::Arguments),
    Push(push::Arguments),
    Recv(recv::Arguments),
    Send(Box<send::Arguments>),
    Sim(sim::Arguments),
    Status(status::Arguments),
    Chaos(chaos::Arguments),
    Wpi(wpi::Arguments),
}

/// Exit code of a run that failed before it began: input that cannot be read, an argument that makes no sense.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Conform(arguments) => conform::run(&arguments),
        Command::Controller(arguments) => controller::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments, Cli::command()),
        Command::Group(arguments) => group::run(&arguments),
        Command::Isis(arguments) => isis::run(&arguments),
        Command::Ospf(arguments) => ospf::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Map(arguments) => map::run(&arguments),
        Command::Node(arguments) => node::run(&arguments),
        Command::Perftest(arguments) => perftest::run(&arguments),
        Command::Cm(arguments) => cm::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Process(arguments) => process::run(&arguments),
        Command::Pull(arguments) => pull::run(&arguments),
        Command::Push(arguments) => push::run(&arguments),
        Command::Recv(arguments) => recv::run(&arguments),
        Command::Send(arguments) => send::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Chaos(arguments) => chaos::run(&arguments),
        Command::Wpi(arguments) => wpi::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "srdma: {}", terminal::escaped_lines(&format!("{error:#}")));
        ExitCode::from(BAD_INPUT)
    })
}
