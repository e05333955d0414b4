//! Names in requests, parsed once.

use super::Refusal;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Octets of a buffer's name at most: its sockets are below the directory of sockets, whose paths have 107 octets.
pub const MAX_BUFFER_OCTETS: usize = 64;
/// Octets of a claim's name at most, the length of names in Kubernetes.
const MAX_CLAIM_OCTETS: usize = 253;
/// Octets of a target at most, the length of a host name.
const MAX_TARGET_OCTETS: usize = 253;

/// The end of the name of a socket that notifies.
const NOTIFY: &str = "_notify";
/// The name, without its suffix, of the socket that speaks gRPC.
pub const GRPC: &str = "wpi-grpc";

/// The name of a buffer, which is a part of the names of its sockets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(String);

impl BufferId {
    /// # Errors
    ///
    /// If it has other characters than letters, digits, `-`, `_` and `.`, begins with `.`, is too long, or would have
    /// the socket of something else.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let is_usual = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
        let has_form = (1..=MAX_BUFFER_OCTETS).contains(&text.len()) && text.bytes().all(is_usual);
        if !has_form || text.starts_with('.') || text.ends_with(NOTIFY) || text == GRPC {
            return Err(Refusal::BufferName(shown(text)));
        }
        Ok(BufferId(text.to_owned()))
    }

    /// The buffer of one shard of this one.
    ///
    /// # Errors
    ///
    /// Those of [`BufferId::parse`].
    pub fn shard(&self, index: u32) -> Result<Self, Refusal> {
        BufferId::parse(&format!("{self}__shard_{index}"))
    }

    /// The file name of the socket that passes the buffer.
    pub fn socket(&self) -> String {
        format!("{self}.sock")
    }

    /// The file name of the socket that says when the buffer changes.
    pub fn notify_socket(&self) -> String {
        format!("{self}{NOTIFY}.sock")
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a claim: the reason for which a buffer is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimId(String);

impl ClaimId {
    /// # Errors
    ///
    /// If it is empty or too long, or has characters that are not printable.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let has_form =
            (1..=MAX_CLAIM_OCTETS).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_graphic());
        if has_form { Ok(ClaimId(text.to_owned())) } else { Err(Refusal::ClaimName(shown(text))) }
    }
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node that is to have a buffer: the address or the host name of its driver, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    text: String,
    host: String,
    port: Option<u16>,
}

impl Target {
    /// # Errors
    ///
    /// If it is neither an address nor a host name.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refused = || Refusal::TargetName(shown(text));
        if text.len() > MAX_TARGET_OCTETS {
            return Err(refused());
        }
        let (host, port) = match (text.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
            (Ok(address), _) => (address.to_string(), None),
            (Err(_), Ok(socket)) => (socket.ip().to_string(), Some(socket.port())),
            (Err(_), Err(_)) => match text.split_once(':') {
                Some((host, port)) => (host.to_ascii_lowercase(), Some(port.parse().map_err(|_| refused())?)),
                None => (text.to_ascii_lowercase(), None),
            },
        };
        let is_address = host.parse::<IpAddr>().is_ok();
        let is_usual = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.');
        if port == Some(0) || !(is_address || !host.is_empty() && host.bytes().all(is_usual)) {
            return Err(refused());
        }
        Ok(Target { text: text.to_owned(), host, port })
    }

    /// As the request has it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its address, or its host name in lower case: that by which its driver knows itself.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port of its driver, if it is stated.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A text of a peer as a message may have it: cut, without control characters.
fn shown(text: &str) -> String {
    text.chars().take(MAX_BUFFER_OCTETS).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_buffer_is_the_name_of_a_file_and_of_no_other_socket() {
        for good in ["model", "a", "llama-3.1_8b", "m__shard_0", &"x".repeat(64)] {
            assert_eq!(BufferId::parse(good).expect("good").as_str(), good);
        }
        for bad in ["", ".", "..", ".a", "a/b", "../a", "a b", "a\0", "ü", "m_notify", "wpi-grpc", &"x".repeat(65)] {
            assert!(matches!(BufferId::parse(bad), Err(Refusal::BufferName(_))), "{bad:?}");
        }
        let buffer = BufferId::parse("m").expect("good");
        assert_eq!((buffer.socket(), buffer.notify_socket()), ("m.sock".to_owned(), "m_notify.sock".to_owned()));
        assert_eq!(buffer.shard(7).expect("good").as_str(), "m__shard_7");
        assert!(BufferId::parse(&"x".repeat(60)).expect("good").shard(0).is_err());
    }

    #[test]
    fn a_target_is_an_address_or_a_host_name() {
        let parts = |text: &str| {
            let target = Target::parse(text).expect("a target");
            (target.host().to_owned(), target.port())
        };
        assert_eq!(parts("10.0.0.7"), ("10.0.0.7".to_owned(), None));
        assert_eq!(parts("10.0.0.7:9"), ("10.0.0.7".to_owned(), Some(9)));
        assert_eq!(parts("2001:DB8::0:1"), ("2001:db8::1".to_owned(), None));
        assert_eq!(parts("[2001:db8::1]:9"), ("2001:db8::1".to_owned(), Some(9)));
        assert_eq!(parts("Node-1.example"), ("node-1.example".to_owned(), None));
        assert_eq!(parts("node-1:9"), ("node-1".to_owned(), Some(9)));
        for bad in
            ["", ":", ":9", "a:b", "a:0", "a:65536", "a:1:2", "a/b", "http://a", "a b", "[::1]", &"a".repeat(254)]
        {
            assert!(matches!(Target::parse(bad), Err(Refusal::TargetName(_))), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_name_or_refused(text in any::<String>()) {
            if let Ok(buffer) = BufferId::parse(&text) {
                prop_assert!(!buffer.socket().contains('/') && buffer.notify_socket().len() <= 76);
            }
            for refusal in [ClaimId::parse(&text).err(), Target::parse(&text).err()].into_iter().flatten() {
                prop_assert!(refusal.to_string().chars().all(|c| c.is_ascii() && !c.is_ascii_control()));
            }
        }
    }
}
