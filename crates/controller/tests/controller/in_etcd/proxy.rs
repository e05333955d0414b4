//! A proxy before an etcd that drops, delays or interrupts requests and responses.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Rules {
    /// Number of responses to requests of this path that are still to be dropped.
    to_lose: Option<(String, usize)>,
    lost: usize,
    /// Requests of this path are held.
    to_hold: Option<String>,
    held: Vec<Vec<u8>>,
    /// Number of requests of this path that pass; later ones and everything else are dropped.
    to_pass: Option<(String, usize)>,
    is_cut: bool,
}

pub(crate) struct Proxy {
    port: u16,
    server: u16,
    rules: Arc<Mutex<Rules>>,
}

impl Proxy {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let rules = Arc::new(Mutex::new(Rules::default()));
        let shared = Arc::clone(&rules);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let rules = Arc::clone(&shared);
                std::thread::spawn(move || pass(client, server, &rules));
            }
        });
        Proxy { port, server, rules }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn lose_responses(&self, path: &str, count: usize) {
        self.rules.lock().unwrap().to_lose = Some((path.to_owned(), count));
    }

    pub(crate) fn lost(&self) -> usize {
        self.rules.lock().unwrap().lost
    }

    pub(crate) fn hold(&self, path: &str) {
        self.rules.lock().unwrap().to_hold = Some(path.to_owned());
    }

    /// Forwards the held requests and waits for their responses; returns their number.
    pub(crate) fn forward_held(&self) -> usize {
        let held = std::mem::take(&mut self.rules.lock().unwrap().held);
        held.iter().for_each(|request| drop(send(self.server, request).unwrap()));
        held.len()
    }

    /// Drops everything after `count` requests of a path.
    pub(crate) fn cut_after(&self, path: &str, count: usize) {
        self.rules.lock().unwrap().to_pass = Some((path.to_owned(), count));
    }

    pub(crate) fn wait_until_cut(&self) {
        while !self.rules.lock().unwrap().is_cut {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Drops everything from now on.
    pub(crate) fn cut(&self) {
        self.rules.lock().unwrap().is_cut = true;
    }
}

/// Forwards the requests of a connection, one after the other.
fn pass(mut client: TcpStream, server: u16, rules: &Mutex<Rules>) {
    while let Some(request) = request(&mut client) {
        let path = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
        let is_held = {
            let mut rules = rules.lock().unwrap();
            if let Some((passes, left)) = &mut rules.to_pass
                && path.contains(passes.as_str())
            {
                match left.checked_sub(1) {
                    Some(less) => *left = less,
                    None => rules.is_cut = true,
                }
            }
            if rules.is_cut {
                return;
            }
            let is_held = rules.to_hold.as_ref().is_some_and(|held| path.contains(held.as_str()));
            if is_held {
                rules.to_hold = None;
                rules.held.push(request.clone());
            }
            is_held
        };
        if is_held {
            // Longer than the client's timeout.
            std::thread::sleep(Duration::from_secs(3));
            return;
        }
        let Ok(response) = send(server, &request) else { return };
        let mut rules = rules.lock().unwrap();
        if let Some((lost, left @ 1..)) = &mut rules.to_lose
            && path.contains(lost.as_str())
        {
            *left -= 1;
            rules.lost += 1;
            return;
        }
        if rules.is_cut || client.write_all(&response).is_err() {
            return;
        }
    }
}

/// A request with its body.
fn request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    let mut piece = [0; 65_536];
    loop {
        let read = client.read(&mut piece).ok().filter(|read| *read > 0)?;
        octets.extend(&piece[..read]);
        let Some(end) = octets.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&octets[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        if octets.len() >= end + 4 + length.unwrap_or(0) {
            return Some(octets);
        }
    }
}

/// Sends a request on a connection of its own; returns the response.
fn send(server: u16, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut connection = TcpStream::connect(("127.0.0.1", server))?;
    let end = request.windows(2).position(|two| two == b"\r\n").unwrap_or(0);
    connection.write_all(&[&request[..end], b"\r\nconnection: close", &request[end..]].concat())?;
    let mut response = Vec::new();
    connection.read_to_end(&mut response)?;
    Ok(response)
}
