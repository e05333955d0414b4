//! `srdma perftest`: stands between one client of perftest and several servers, and makes them a group. Described in
//! `docs/perftest.md`.

mod connections;
mod relay;
mod server;

use crate::endpoint;
use crate::output::print_line;
use crate::programs_group::{Options, ProgramsGroup};
use crate::remote::{self, ControllerArguments};
use crate::terminal::escaped;
use crate::units;
use anyhow::{Context, Result};
use clap::value_parser;
use connections::Connections;
use relay::{Measured, Relay};
use serde::Serialize;
use server::Server;
use srdma_api::SourceTransport;
use srdma_perftest::{Conversation, MOST_SERVERS, Operation};
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Measure a multicast group with unmodified ib_write_bw or ib_send_bw.
///
/// Stands between one client of perftest and several servers, as the server of the client and the client of each
/// server, and makes a group of their queue pairs at the controller. The client measures the rate at which all servers
/// receive. One queue pair, one way, type RC, on IPv6 GIDs; other tests are refused. Exit code 1: the test did not end
/// well.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Servers: ib_write_bw or ib_send_bw without a host, one on each receiver; the port is 18515 if none is given.
    #[arg(long, value_name = "HOST[:PORT],...", required = true, value_delimiter = ',', value_parser = Server::parse)]
    servers: Vec<Server>,
    /// Address and port for the client, which names this host, and the port by -p if it is another.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:18515")]
    listen: SocketAddr,
    #[command(flatten)]
    controller: ControllerArguments,
    /// A name of the group, for people.
    #[arg(long, value_name = "NAME", default_value = "perftest")]
    name: String,
    /// The group's Proxy Address [default: one of the tenant's pool].
    #[arg(long, value_name = "ADDRESS")]
    proxy: Option<Ipv6Addr>,
    /// ACK timeout of the client's queue pair, its option -u: 4.096 µs · 2^T.
    #[arg(long, value_name = "T", default_value_t = 14, value_parser = value_parser!(u8).range(0..=31))]
    ack_timeout: u8,
    /// Octets that the client has in flight at most, for which nodes have buffers [default: 524288].
    #[arg(long, value_name = "OCTETS", value_parser = value_parser!(u32).range(1..))]
    window_octets: Option<u32>,
    /// Wait so long for servers that do not listen yet, and for the client.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = endpoint::parse_time)]
    wait: Duration,
    /// Give up when nothing comes for this time, during the run, too.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = endpoint::parse_time)]
    timeout: Duration,
    /// Print JSON: a line when the client may connect, one with the group, and one with the result.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  srdma perftest --servers r1,r2,r3,r4,r5
      On each of r1 to r5:     ib_write_bw -x 3
      then at the source:      ib_write_bw -x 3 HOST
      where HOST is the one that runs srdma perftest, and 3 the index of an IPv6 GID for RoCE v2 (show_gids). The
      controller is that of SRDMA_CONTROLLER.

  srdma perftest --servers 192.0.2.1:18516,192.0.2.2:18516 --listen [::]:18517 --json
      Servers with -p 18516, the client with -p 18517: any of them may be on the host that runs srdma perftest.

  srdma perftest --servers r1,r2 --ack-timeout 17 --proxy 2001:db8:cc::1
      For a client with -u 17, and with this Proxy Address.";

/// The line when the client may connect, for `--json`.
#[derive(Serialize)]
struct Listening {
    listening: SocketAddr,
}

/// The result, for `--json`. What the client has not told is absent.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    receivers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    /// Longest time for which the client was silent: that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_octets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits_per_second: Option<u64>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(measure(arguments))
}

fn measure(arguments: &Arguments) -> Result<ExitCode> {
    let count = arguments.servers.len();
    let conversation = Conversation::new(count);
    let conversation = conversation.with_context(|| format!("--servers: at most {MOST_SERVERS}"))?;
    let is_interrupted = remote::interruption()?;
    let client = arguments.controller.client()?;
    // A wrong token shows before a client is kept waiting.
    client.groups(None, None, Some(1))?;
    let listener = TcpListener::bind(arguments.listen);
    let listener = listener.with_context(|| format!("cannot listen at {}", arguments.listen))?;
    let listening = listener.local_addr()?;
    if arguments.json {
        print_line(&serde_json::to_string(&Listening { listening })?)?;
    } else {
        print_line(&format!("listening at {listening} for ib_write_bw or ib_send_bw"))?;
    }
    let deadline = Instant::now() + arguments.wait;
    let servers = connections::connect(&arguments.servers, deadline, &is_interrupted)?;
    let socket = connections::accept(&listener, deadline, &is_interrupted)?;
    // Another client is refused rather than kept waiting.
    drop(listener);
    let connections = Connections::new(socket, servers)?;
    let options = Options {
        name: arguments.name.clone(),
        proxy: arguments.proxy,
        window_octets: arguments.window_octets,
        says_json: arguments.json,
    };
    let group = ProgramsGroup::new(client, options, count);
    let transport = SourceTransport { ack_timeout: arguments.ack_timeout, ..SourceTransport::USUAL };
    let (servers, timeout) = (&arguments.servers, arguments.timeout);
    let mut relay = Relay::new(conversation, connections, group, servers, transport, timeout, is_interrupted);
    let result = relay.run();
    let result = result.and_then(|measured| relay.close().map(|()| measured));
    finish(arguments, result)
}

fn finish(arguments: &Arguments, result: Result<Measured>) -> Result<ExitCode> {
    let receivers = arguments.servers.len();
    let (report, error) = match result {
        Ok(measured) => (report(receivers, &measured), None),
        // That of the controller as any command has it.
        Err(error) if error.chain().any(|cause| cause.is::<srdma_api::ClientError>()) && !arguments.json => {
            return Err(error);
        }
        Err(error) => {
            let text = format!("{error:#}");
            (Report { error: Some(text.clone()), ..empty(receivers) }, Some(text))
        }
    };
    if arguments.json {
        print_line(&serde_json::to_string(&report)?)?;
    } else if error.is_none() {
        print_line(&in_words(&report))?;
    }
    let Some(error) = error else { return Ok(ExitCode::SUCCESS) };
    eprintln!("srdma: {}", escaped(&error));
    Ok(ExitCode::FAILURE)
}

fn empty(receivers: usize) -> Report {
    Report {
        error: None,
        receivers,
        operation: None,
        seconds: None,
        message_octets: None,
        messages: None,
        messages_per_second: None,
        bits_per_second: None,
    }
}

fn report(receivers: usize, measured: &Measured) -> Report {
    let figures = measured.outcome.figures;
    // A client that could not calibrate its clock tells 0.
    let rate = figures.filter(|figures| figures.messages_per_second > 0.0);
    Report {
        operation: Some(match measured.outcome.operation {
            Operation::Write => "write",
            Operation::Send => "send",
        }),
        seconds: Some(measured.longest_silence.as_secs_f64()),
        message_octets: figures.map(|figures| figures.message_octets),
        messages: figures.map(|figures| figures.iterations),
        messages_per_second: rate.map(|figures| figures.messages_per_second),
        bits_per_second: rate.map(|figures| (figures.octets_per_second() * 8.0) as u64),
        ..empty(receivers)
    }
}

fn in_words(report: &Report) -> String {
    let receivers = units::count(report.receivers as u64, "receiver");
    let operation = report.operation.unwrap_or_default();
    let seconds = report.seconds.unwrap_or_default();
    let messages = report
        .messages
        .zip(report.message_octets)
        .map(|(messages, octets)| format!("{} of {}", units::count(messages, "message"), units::octets(octets)));
    match (messages, report.bits_per_second) {
        (Some(messages), Some(rate)) => format!("{operation} to {receivers}: {messages} at {}", units::rate(rate)),
        (Some(messages), None) => {
            format!(
                "{operation} to {receivers}: {messages} in {seconds:.3} s; the client could not calibrate its clock"
            )
        }
        (None, _) => format!("{operation} to {receivers}: {seconds:.3} s; the client has printed its rate"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_perftest::{Figures, Outcome};

    fn words(operation: Operation, messages_per_second: Option<f64>) -> String {
        let figures = |messages_per_second| Figures { message_octets: 65536, iterations: 5000, messages_per_second };
        let outcome = Outcome { operation, figures: messages_per_second.map(figures) };
        in_words(&report(5, &Measured { outcome, longest_silence: Duration::from_millis(2500) }))
    }

    #[test]
    fn results_say_what_the_client_has_told() {
        assert_eq!(
            words(Operation::Write, Some(50.0)),
            "write to 5 receivers: 5,000 messages of 64 KiB at 26.2 Mbit/s"
        );
        assert_eq!(
            words(Operation::Write, Some(0.0)),
            "write to 5 receivers: 5,000 messages of 64 KiB in 2.500 s; the client could not calibrate its clock"
        );
        assert_eq!(words(Operation::Send, None), "send to 5 receivers: 2.500 s; the client has printed its rate");
    }
}
