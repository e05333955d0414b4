//! Connection management for IP addresses and ports (IBTA volume 1, annex A11).
//!
//! ```text
//!  private data of a Request                      Service ID
//!  octet 0  major, minor version 4 bits each      | 0 0 0 0 0 1 | protocol 1 | port 2 |
//!        1  IP version 4 bits, reserved
//!        2  source port 2
//!        4  source address 16
//!       20  destination address 16
//!       36  the program's private data 56
//! ```

use crate::message::{Request, array_at, put};
use std::net::Ipv6Addr;

/// Protocol number of TCP, for which the port space `RDMA_PS_TCP` stands.
const TCP: u64 = 6;

/// The Service ID of a port in `RDMA_PS_TCP`.
pub fn service_id(port: u16) -> u64 {
    0x0100_0000 | TCP << 16 | u64::from(port)
}

/// Addresses of a connection, and the program's private data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct IpRequest {
    pub source_port: u16,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub private_data: [u8; IpRequest::PRIVATE],
}

impl IpRequest {
    /// Octets of the program's private data.
    pub const PRIVATE: usize = 56;

    /// Reads it; `None`: another version, or that of IPv4.
    pub fn parse(octets: &[u8; Request::PRIVATE]) -> Option<Self> {
        (octets[0] == 0 && octets[1] >> 4 == 6).then(|| IpRequest {
            source_port: u16::from_be_bytes(array_at(octets, 2)),
            source: Ipv6Addr::from(array_at::<16>(octets, 4)),
            destination: Ipv6Addr::from(array_at::<16>(octets, 20)),
            private_data: array_at(octets, 36),
        })
    }

    /// The octets.
    pub fn emit(&self) -> [u8; Request::PRIVATE] {
        let mut octets = [0; Request::PRIVATE];
        octets[1] = 6 << 4;
        put(&mut octets, 2, self.source_port.to_be_bytes());
        put(&mut octets, 4, self.source.octets());
        put(&mut octets, 20, self.destination.octets());
        put(&mut octets, 36, self.private_data);
        octets
    }
}
