//! Connection management for IP addresses and ports (IBTA volume 1, annex A11).
//!
//! ```text
//!  private data of a Request                      Service ID
//!  octet 0  major, minor version 4 bits each      | 0 0 0 0 0 1 | protocol 1 | port 2 |
//!        1  IP version 4 bits, reserved
//!        2  source port 2
//!        4  source address 16, one of IPv4 in the last 4
//!       20  destination address 16, the same
//!       36  the program's private data 56
//! ```

use crate::message::{Request, array_at, put};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Protocol number of TCP, for which the port space `RDMA_PS_TCP` stands.
const TCP: u64 = 6;

/// Place of an IPv4 address in the octets of an address.
const IPV4_AT: usize = 12;

/// The Service ID of a port in `RDMA_PS_TCP`.
pub fn service_id(port: u16) -> u64 {
    0x0100_0000 | TCP << 16 | u64::from(port)
}

/// Addresses of a connection, and the program's private data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct IpRequest {
    pub source_port: u16,
    /// Both are of one IP version; addresses of IPv4 are IPv4-mapped here.
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub private_data: [u8; IpRequest::PRIVATE],
}

impl IpRequest {
    /// Octets of the program's private data.
    pub const PRIVATE: usize = 56;

    /// Reads it; `None`: another version, of this format or of IP.
    pub fn parse(octets: &[u8; Request::PRIVATE]) -> Option<Self> {
        let address = |at: usize| match octets[1] >> 4 {
            4 => Some(Ipv4Addr::from(array_at::<4>(octets, at + IPV4_AT)).to_ipv6_mapped()),
            6 => Some(Ipv6Addr::from(array_at::<16>(octets, at))),
            _ => None,
        };
        let (source, destination) = (address(4)?, address(20)?);
        (octets[0] == 0).then(|| IpRequest {
            source_port: u16::from_be_bytes(array_at(octets, 2)),
            source,
            destination,
            private_data: array_at(octets, 36),
        })
    }

    /// The octets. The IP version is that of the destination.
    pub fn emit(&self) -> [u8; Request::PRIVATE] {
        let mut octets = [0; Request::PRIVATE];
        let is_ipv4 = self.destination.to_ipv4_mapped().is_some();
        octets[1] = if is_ipv4 { 4 << 4 } else { 6 << 4 };
        put(&mut octets, 2, self.source_port.to_be_bytes());
        for (at, address) in [(4, self.source), (20, self.destination)] {
            match address.to_ipv4_mapped().filter(|_| is_ipv4) {
                Some(address) => put(&mut octets, at + IPV4_AT, address.octets()),
                None => put(&mut octets, at, address.octets()),
            }
        }
        put(&mut octets, 36, self.private_data);
        octets
    }
}
