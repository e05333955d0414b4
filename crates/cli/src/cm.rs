//! `srdma cm`: answers connection management at a Proxy Address, and makes one client and several listening servers a
//! group. Described in `docs/rdma-cm.md`.

mod controller;
mod messages;
mod service;

use crate::endpoint;
use crate::output::print_line;
use crate::programs_group::{Options, ProgramsGroup};
use crate::remote::{self, ControllerArguments};
use crate::terminal::escaped;
use crate::units;
use anyhow::{Context, Result, anyhow, ensure};
use clap::value_parser;
use controller::Controller;
use messages::Messages;
use serde::Serialize;
use service::{Served, Service};
use srdma_api::Client;
use srdma_cm::{Exchange, MOST_SERVERS, ServerAddress, Terms, is_host};
use srdma_random::Stream;
use srdma_wire::{Psn, Qpn, host_address};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Let an unmodified rdma_cm program send to a multicast group as to one peer.
///
/// Answers RDMA connection management (REQ, REP, RTU, DREQ) at a group's Proxy Address. A client that connects there
/// becomes the source of a group; its receivers are programs that listen, each of which sees a connection from the
/// Proxy Address. Type RC, SEND, one connection at a time at a Proxy Address. It ends when its client has disconnected,
/// or so many as --clients says. Exit code 1: a connection did not end well.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The group's Proxy Address. It has to be an address of this host, where the network's route for it leads. With
    /// several, each may have a client at the same time, whose group has all servers.
    #[arg(
        long,
        value_name = "ADDRESS,...",
        required = true,
        value_delimiter = ',',
        value_parser = endpoint::parse_address
    )]
    proxy: Vec<Ipv6Addr>,
    /// Port to which the client connects.
    #[arg(long, value_name = "PORT", value_parser = value_parser!(u16).range(1..))]
    port: u16,
    /// Receivers: addresses of RDMA devices at which a program listens, of the Proxy Address's IP version. One that
    /// listens at another port has that behind a colon, and an IPv6 address in brackets.
    #[arg(long, value_name = "ADDRESS,...", required = true, value_delimiter = ',', value_parser = parse_server)]
    servers: Vec<(Ipv6Addr, Option<u16>)>,
    #[command(flatten)]
    controller: ControllerArguments,
    /// A name of the group, for people.
    #[arg(long, value_name = "NAME", default_value = "cm")]
    name: String,
    /// Octets that the client has in flight at most, for which nodes have buffers [default: 524288].
    #[arg(long, value_name = "OCTETS", value_parser = value_parser!(u32).range(1..))]
    window_octets: Option<u32>,
    /// Serve so many clients at each Proxy Address, one after the other; 0: any number, until it is interrupted.
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    clients: u32,
    /// Wait so long for each client [default: 600s, or without end with --clients 0].
    #[arg(long, value_name = "TIME", value_parser = endpoint::parse_time)]
    wait: Option<Duration>,
    /// Print JSON: a line when the client may connect, one with the group, one when it is connected, and one with the
    /// result.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  srdma cm --proxy 2001:db8:cc::1 --port 7471 --servers 2001:db8:bb::1,2001:db8:bb::2
      Programs listen at port 7471 of both receivers. Then a client connects to 2001:db8:cc::1, port 7471,
      and what it sends comes to both. The controller is that of SRDMA_CONTROLLER.

  srdma cm --proxy 2001:db8:cc::1 --port 7471 --servers [2001:db8:bb::1]:7472 --json
      One receiver, which listens at another port.

  srdma cm --proxy 2001:db8:cc::1 --port 7471 --servers 2001:db8:bb::1,2001:db8:bb::2 --clients 0
      A service: the receivers' programs listen again after each client.

  srdma cm --proxy 2001:db8:cc::1,2001:db8:cc::2 --port 7471 --servers 2001:db8:bb::1,2001:db8:bb::2
      Two clients at the same time, each of which connects to an address of its own.

  srdma cm --proxy 10.255.0.1 --port 7471 --servers 10.2.1.1,10.2.2.1:7472
      The same over IPv4.

  ip -6 address add 2001:db8:cc::1/128 dev lo
      Makes the Proxy Address one of this host. Nodes have its address as cm_host, or cm_host_ipv4, and a
      route for the Proxy Address.";

/// Time to wait for a client.
const WAIT: Duration = Duration::from_secs(600);

/// The line when the client may connect, for `--json`.
#[derive(Serialize)]
struct Answering {
    answering: IpAddr,
    port: u16,
}

/// The result, for `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    proxy: IpAddr,
    receivers: usize,
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    /// Time for which the client was connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// Messages that were refused, by their reasons.
    refused: BTreeMap<String, u64>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(answer(arguments))
}

fn answer(arguments: &Arguments) -> Result<ExitCode> {
    let proxies = &arguments.proxy;
    let is_first = |at: usize| proxies[..at].iter().all(|other| *other != proxies[at]);
    ensure!((0..proxies.len()).all(is_first), "--proxy: each client at the same time needs a Proxy Address of its own");
    // Numbers that are not used: options that make no exchange are refused before anything is opened.
    for proxy in proxies {
        exchange(arguments, *proxy, &mut endpoint::chance("cm"))?;
    }
    let is_interrupted = remote::interruption()?;
    let client = arguments.controller.client()?;
    // A wrong token shows before a client is kept waiting.
    client.groups(None, None, Some(1))?;
    let messages = proxies.iter().map(|proxy| Messages::at(*proxy)).collect::<Result<Vec<_>>>()?;
    let serve = |messages| serve(arguments, messages, &client, &is_interrupted);
    let results: Vec<Result<bool>> = thread::scope(|scope| {
        let threads: Vec<_> = messages.into_iter().map(|messages| scope.spawn(move || serve(messages))).collect();
        let ended = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|_| Err(anyhow!("a panic")));
        threads.into_iter().map(ended).collect()
    });
    let mut is_well = true;
    for result in results {
        is_well &= result?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Serves the clients of a Proxy Address; gives whether all connections ended well.
fn serve(arguments: &Arguments, messages: Messages, client: &Client, is_interrupted: &AtomicBool) -> Result<bool> {
    let proxy = messages.proxy();
    let mut chance = endpoint::chance(&format!("cm {proxy}"));
    let controller = || -> Result<Controller> {
        let options = Options {
            name: arguments.name.clone(),
            proxy: Some(proxy),
            window_octets: arguments.window_octets,
            says_json: arguments.json,
        };
        Ok(Controller::start(ProgramsGroup::new(client.clone(), options, arguments.servers.len()))?)
    };
    let first = exchange(arguments, proxy, &mut chance)?;
    let mut service = Service::new(first, messages, controller()?, arguments.json);
    let any_number = arguments.clients == 0;
    let wait = arguments.wait.unwrap_or(if any_number { Duration::MAX } else { WAIT });
    let (mut number, mut is_well) = (1, true);
    loop {
        print_answering(arguments, proxy)?;
        let result = match service.run(wait, is_interrupted) {
            Ok(Some(served)) => Ok(served),
            Ok(None) if any_number => break,
            Ok(None) => Err(anyhow!("interrupted")),
            Err(error) => Err(error),
        };
        let is_last = number == arguments.clients || is_interrupted.load(Ordering::Relaxed) || service.has_no_client();
        match finish(arguments, proxy, result, service.take_refused()) {
            Ok(of_client) => is_well &= of_client,
            Err(error) if is_last => return Err(error),
            Err(error) => {
                eprintln!("srdma: {}", escaped(&format!("{error:#}")));
                is_well = false;
            }
        }
        if is_last {
            break;
        }
        number += 1;
        service.succeed(exchange(arguments, proxy, &mut chance)?, controller()?);
    }
    Ok(is_well)
}

fn print_answering(arguments: &Arguments, proxy: Ipv6Addr) -> Result<()> {
    let (proxy, port) = (proxy.to_canonical(), arguments.port);
    print_line(&if arguments.json {
        serde_json::to_string(&Answering { answering: proxy, port })?
    } else {
        format!("answering at {proxy}, port {port}")
    })
}

/// The exchange, with numbers that no other has.
fn exchange(arguments: &Arguments, proxy: Ipv6Addr, chance: &mut Stream) -> Result<Exchange> {
    let count = arguments.servers.len();
    ensure!(count <= MOST_SERVERS, "--servers: at most {MOST_SERVERS}");
    let designated_qpn = Qpn::new(endpoint::any_qpn(chance)).context("24 bits")?;
    let initial_psn = Psn::new(chance.below(1 << 24) as u32);
    let mut number = || 1 + chance.below(u64::from(u32::MAX)) as u32;
    let terms = Terms {
        proxy,
        port: arguments.port,
        ca_guid: u64::from(number()) << 32 | u64::from(number()),
        client_id: number(),
        designated_qpn,
        initial_psn,
    };
    let server = |(address, port): &(Ipv6Addr, Option<u16>)| ServerAddress {
        address: *address,
        port: port.unwrap_or(arguments.port),
        id: number(),
    };
    let servers: Vec<ServerAddress> = arguments.servers.iter().map(server).collect();
    Exchange::new(terms, &servers).context("--servers: each needs an address of its own, of the IP version of --proxy")
}

/// Prints a result; gives whether it is a good one.
fn finish(
    arguments: &Arguments,
    proxy: Ipv6Addr,
    result: Result<Served>,
    refused: BTreeMap<String, u64>,
) -> Result<bool> {
    let receivers = arguments.servers.len();
    let (served, error) = match result {
        Ok(served) => (Some(served), None),
        // That of the controller as any command has it.
        Err(error) if error.chain().any(|cause| cause.is::<srdma_api::ClientError>()) && !arguments.json => {
            return Err(error);
        }
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    if arguments.json {
        let report = Report {
            error: error.clone(),
            proxy: proxy.to_canonical(),
            receivers,
            client: served.as_ref().map(|served| served.client.to_canonical()),
            seconds: served.as_ref().map(|served| served.connected.as_secs_f64()),
            refused,
        };
        print_line(&serde_json::to_string(&report)?)?;
    } else {
        if let Some(Served { client, connected }) = served {
            let receivers = units::count(receivers as u64, "receiver");
            let seconds = connected.as_secs_f64();
            let client = client.to_canonical();
            print_line(&format!("{client} was connected to {receivers} for {seconds:.3} s"))?;
        }
        for (reason, count) in &refused {
            eprintln!("srdma: {} refused: {reason}", units::count(*count, "message"));
        }
    }
    let Some(error) = error else { return Ok(true) };
    eprintln!("srdma: {}", escaped(&error));
    Ok(false)
}

/// Parses `2001:db8::1` or `[2001:db8::1]:7471`, and `192.0.2.1` or `192.0.2.1:7471`, which becomes IPv4-mapped.
fn parse_server(text: &str) -> Result<(Ipv6Addr, Option<u16>), String> {
    let wrong = || "expected an address, or one with its port, such as [2001:db8::1]:7471 or 192.0.2.1:7471".to_owned();
    let (address, port) = match text.parse::<SocketAddr>() {
        Ok(SocketAddr::V6(socket)) if socket.scope_id() != 0 => return Err(wrong()),
        Ok(socket) if socket.port() > 0 => (mapped(socket.ip()), Some(socket.port())),
        Ok(_) => return Err(wrong()),
        Err(_) => (host_address(text).ok_or_else(wrong)?, None),
    };
    if is_host(address) {
        Ok((address, port))
    } else {
        Err(format!("no receiver can have the address {}", address.to_canonical()))
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(address) => address,
        IpAddr::V4(address) => address.to_ipv6_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_addresses_with_or_without_ports() {
        let address: Ipv6Addr = "2001:db8::1".parse().expect("an address");
        assert_eq!(parse_server("2001:db8::1"), Ok((address, None)));
        assert_eq!(parse_server("[2001:db8::1]:7471"), Ok((address, Some(7471))));
        let of_ipv4: Ipv6Addr = "::ffff:192.0.2.1".parse().expect("an address");
        assert_eq!(parse_server("192.0.2.1"), Ok((of_ipv4, None)));
        assert_eq!(parse_server("192.0.2.1:7471"), Ok((of_ipv4, Some(7471))));
        let of_ipv6 = ["[2001:db8::1]", "[2001:db8::1]:0", "[2001:db8::1]:65536", "fe80::1", "::1", "[fe80::1%1]:7471"];
        let of_ipv4 =
            ["192.0.2", "192.0.2.1:0", "[192.0.2.1]:7471", "127.0.0.1", "224.0.0.1", "169.254.0.1", "0.0.0.0"];
        for wrong in ["", "r1"].into_iter().chain(of_ipv6).chain(of_ipv4) {
            assert!(parse_server(wrong).is_err(), "{wrong}");
        }
    }
}
