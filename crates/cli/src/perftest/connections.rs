//! TCP connections of the client and the servers: a thread reads each of them.

use super::server::Server;
use anyhow::{Context, Result, bail, ensure};
use srdma_perftest::Party;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval for looking whether the process is interrupted, and for connecting again.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Time for one attempt to connect, and for a party to take a message.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Reads that wait to be handled.
const MOST_EVENTS: usize = 64;

/// What a party has done.
pub(super) enum Event {
    Octets(Party, Vec<u8>),
    Ended(Party),
}

/// The connections of a handshake. Dropping them closes all.
pub(super) struct Connections {
    client: TcpStream,
    servers: Vec<TcpStream>,
    events: Receiver<Event>,
}

impl Connections {
    pub(super) fn new(client: TcpStream, servers: Vec<TcpStream>) -> io::Result<Self> {
        let (sender, events) = sync_channel(MOST_EVENTS);
        read(&client, Party::Client, sender.clone())?;
        for (at, server) in servers.iter().enumerate() {
            read(server, Party::Server(at), sender.clone())?;
        }
        Ok(Connections { client, servers, events })
    }

    /// Sends a message by one write: perftest reads it by one read.
    pub(super) fn send(&mut self, party: Party, octets: &[u8]) -> io::Result<()> {
        match party {
            Party::Client => self.client.write_all(octets),
            Party::Server(at) => match self.servers.get_mut(at) {
                Some(server) => server.write_all(octets),
                None => Ok(()),
            },
        }
    }

    /// The next event, if one comes soon.
    pub(super) fn next(&self) -> Option<Event> {
        self.events.recv_timeout(LOOK_INTERVAL).ok()
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        for stream in self.servers.iter().chain([&self.client]) {
            // Its thread ends; a connection that has ended is shut down.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Starts the thread that reads a connection.
fn read(stream: &TcpStream, party: Party, events: SyncSender<Event>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(ATTEMPT))?;
    let mut stream = stream.try_clone()?;
    thread::Builder::new().name("connection".to_owned()).spawn(move || {
        let mut octets = [0; 256];
        loop {
            let event = match stream.read(&mut octets) {
                Ok(0) => Event::Ended(party),
                Ok(length) => Event::Octets(party, octets[..length].to_vec()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => Event::Ended(party),
            };
            let is_end = matches!(event, Event::Ended(_));
            if events.send(event).is_err() || is_end {
                return;
            }
        }
    })?;
    Ok(())
}

/// Connects to all servers, in their order, as soon as each listens.
pub(super) fn connect(servers: &[Server], deadline: Instant, is_interrupted: &AtomicBool) -> Result<Vec<TcpStream>> {
    servers.iter().map(|server| connect_to(server, deadline, is_interrupted)).collect()
}

fn connect_to(server: &Server, deadline: Instant, is_interrupted: &AtomicBool) -> Result<TcpStream> {
    let addresses = server.addresses().with_context(|| format!("cannot find server {server}"))?;
    loop {
        let mut failure = io::Error::from(ErrorKind::AddrNotAvailable);
        for address in &addresses {
            match TcpStream::connect_timeout(address, ATTEMPT) {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        ensure!(!is_interrupted.load(Ordering::Relaxed), "interrupted");
        if Instant::now() >= deadline {
            return Err(failure).with_context(|| format!("cannot connect to server {server}"));
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

/// Waits for the client.
pub(super) fn accept(listener: &TcpListener, deadline: Instant, is_interrupted: &AtomicBool) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // A client that has given up already.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error).context("cannot take the client's connection"),
        }
        ensure!(!is_interrupted.load(Ordering::Relaxed), "interrupted");
        if Instant::now() >= deadline {
            bail!("no client has come");
        }
        thread::sleep(LOOK_INTERVAL);
    }
}
