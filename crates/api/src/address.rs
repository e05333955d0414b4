//! Addresses of hosts in requests: of IPv6, or of IPv4, which become IPv4-mapped ones (D273).

use serde::{Deserialize, Deserializer, de};
use std::net::Ipv6Addr;

struct Host(Ipv6Addr);

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refusal = || de::Error::custom(format_args!("{text}: expected an IPv6 or IPv4 address"));
        srdma_wire::host_address(&text).map(Host).ok_or_else(refusal)
    }
}

/// An address.
pub(crate) fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ipv6Addr, D::Error> {
    Host::deserialize(deserializer).map(|Host(address)| address)
}

/// An address that may be absent: with serde's `default`.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Ipv6Addr>, D::Error> {
    Ok(Option::<Host>::deserialize(deserializer)?.map(|Host(address)| address))
}

#[cfg(test)]
mod tests {
    use crate::group::SourceAddress;

    #[test]
    fn ipv4_addresses_are_mapped_ones() {
        let read =
            |address| serde_json::from_value::<SourceAddress>(serde_json::json!({ "address": address, "qpn": 7 }));
        let mapped: std::net::Ipv6Addr = "::ffff:10.1.0.1".parse().unwrap();
        assert_eq!(read("10.1.0.1").unwrap().address, mapped);
        // As the API writes it.
        let written = serde_json::to_value(read("10.1.0.1").unwrap()).unwrap();
        assert_eq!(written["address"], "::ffff:10.1.0.1");
        assert_eq!(serde_json::from_value::<SourceAddress>(written).unwrap().address, mapped);
        assert!(read("10.1.0").unwrap_err().to_string().contains("10.1.0: expected an IPv6 or IPv4 address"));
    }
}
