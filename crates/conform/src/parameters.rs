//! Parameters of a profile: addresses, MAC addresses, numbers.

use crate::Mac;
use serde::{Deserialize, Serialize};
use srdma_toml_error::{LineError, Problem};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Parameter of a profile, for the configuration of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its name in a parameter file.
    pub name: &'static str,
    /// Its value as the file writes it.
    pub value: String,
    /// Meaning of the parameter.
    pub meaning: &'static str,
}

/// A link between the device and the tester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// The MAC address of the device.
    pub device_mac: Mac,
    /// The MAC address of the tester, as every neighbour on the link.
    pub tester_mac: Mac,
}

impl Port {
    /// The port of this number, with default MAC addresses.
    pub(crate) const fn numbered(number: u8) -> Self {
        Port { device_mac: Mac([2, 0, 0, 0, number, 1]), tester_mac: Mac([2, 0, 0, 0, number, 2]) }
    }

    /// A frame of the tester around an IPv6 or IPv4 packet.
    pub(crate) fn to_device(self, packet: &[u8]) -> Vec<u8> {
        [&self.device_mac.0[..], &self.tester_mac.0, &ethertype(packet), packet].concat()
    }

    /// A frame of the device around an IPv6 or IPv4 packet.
    pub(crate) fn to_tester(self, packet: &[u8]) -> Vec<u8> {
        [&self.tester_mac.0[..], &self.device_mac.0, &ethertype(packet), packet].concat()
    }
}

fn ethertype(packet: &[u8]) -> [u8; 2] {
    if packet.first().is_some_and(|first| first >> 4 == 4) { [0x08, 0x00] } else { [0x86, 0xDD] }
}

/// Notation of a value in a parameter file.
pub(crate) trait Written {
    fn written(&self) -> String;
}

impl Written for Ipv6Addr {
    fn written(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Written for Ipv4Addr {
    fn written(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Written for u32 {
    fn written(&self) -> String {
        format!("{self:#x}")
    }
}

impl Written for Port {
    fn written(&self) -> String {
        format!("{{ device_mac = \"{}\", tester_mac = \"{}\" }}", self.device_mac, self.tester_mac)
    }
}

/// The parameters of a profile: a structure with a default for each field, whose comment is its meaning.
macro_rules! parameters {
    ($(#[$about:meta])* $name:ident { $(#[doc = $meaning:literal] $field:ident: $kind:ty = $default:expr,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct $name {
            $(#[doc = $meaning] pub(crate) $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)+ }
            }
        }

        impl $name {
            /// Each with its value and meaning.
            pub(crate) fn list(&self) -> Vec<$crate::Parameter> {
                use $crate::parameters::Written;
                vec![$($crate::Parameter {
                    name: stringify!($field),
                    value: self.$field.written(),
                    meaning: $meaning.trim(),
                },)+]
            }
        }
    };
}
pub(crate) use parameters;

/// An address of a default.
pub(crate) const fn address(segments: [u16; 8]) -> Ipv6Addr {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Addr::new(a, b, c, d, e, f, g, h)
}

/// Reads a file of parameters; without one all are as by default.
pub(crate) fn read<P: Default + for<'de> Deserialize<'de>>(text: Option<&str>) -> Result<P, LineError> {
    let Some(text) = text else { return Ok(P::default()) };
    toml::from_str(text).map_err(|error| Problem::of_toml(&error, text).in_text(text))
}
