//! Servers as the command line names them.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// Port of perftest.
const PORT: u16 = 18515;

/// Host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    host: String,
    port: u16,
}

impl Server {
    /// Parses `host`, `host:port`, `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]:18515`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a host, and a port behind a colon, such as [2001:db8::1]:{PORT}");
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Server { host: address.to_string(), port: PORT });
        }
        let inside = |text: &str| text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).map(str::to_owned);
        if let Some(address) = inside(text) {
            return match address.parse::<Ipv6Addr>() {
                Ok(_) => Ok(Server { host: address, port: PORT }),
                Err(_) => Err(wrong()),
            };
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?),
            None => (text, PORT),
        };
        let host = inside(host).filter(|host| host.parse::<Ipv6Addr>().is_ok()).unwrap_or_else(|| host.to_owned());
        let is_name = |host: &str| !host.is_empty() && !host.contains([':', '[', ']', '/', ' ']);
        if is_name(&host) || host.parse::<Ipv6Addr>().is_ok() { Ok(Server { host, port }) } else { Err(wrong()) }
    }

    /// Its addresses.
    pub(super) fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]:{}", self.port),
            Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_hosts_with_ports() {
        for (text, shown) in [
            ("r1", "r1:18515"),
            ("r1.example:7", "r1.example:7"),
            ("192.0.2.1", "192.0.2.1:18515"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("2001:db8::1", "[2001:db8::1]:18515"),
            ("[2001:db8::1]", "[2001:db8::1]:18515"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            assert_eq!(Server::parse(text).map(|server| server.to_string()), Ok(shown.to_owned()));
        }
        for wrong in ["", ":7", "r1:", "r1:0", "r1:65536", "r1:x", "[r1]:7", "[::1", "a b", "http://r1", "[]", "r1:1:2"]
        {
            assert!(Server::parse(wrong).is_err(), "{wrong}");
        }
    }
}
