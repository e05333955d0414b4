//! Profiles: the configuration of a device, and its cases.

mod end_c;
mod end_e;
mod end_mt;
mod end_replicate;
mod fast_cnp;
mod ipv4;
mod multicast;
mod rfc8986;
mod router;
mod usid;

use crate::parameters::{Port, read};
use crate::{Case, Expected, Frame, Parameter, sources};
use serde::Serialize;
use srdma_toml_error::LineError;
use std::net::Ipv6Addr;

/// Configuration of a device, and the cases for it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Profile {
    pub name: &'static str,
    /// Purpose, a sentence.
    pub about: &'static str,
    /// The ports of the device, each connected to the tester.
    pub ports: Vec<(&'static str, Port)>,
    /// The configuration in words, a line each.
    pub words: Vec<String>,
    /// The configuration as the `node.toml` of an srdma node.
    pub configuration: String,
    /// Parameters, with the values in use.
    pub parameters: Vec<Parameter>,
    pub cases: Vec<Case>,
    /// Requirements that no case can show, each with the reason.
    pub untested: Vec<(&'static str, &'static str)>,
}

/// The name of a profile.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProfileName {
    /// Its name.
    pub name: &'static str,
    /// Purpose, a sentence.
    pub about: &'static str,
    #[serde(skip)]
    build: fn(Option<&str>) -> Result<Profile, LineError>,
}

/// The profiles.
pub const PROFILES: [ProfileName; 8] = [
    ProfileName {
        name: "end-mt",
        about: end_mt::ABOUT,
        build: |text| Ok(end_mt::profile(&read::<end_mt::EndMt>(text)?)),
    },
    ProfileName {
        name: "end-replicate",
        about: end_replicate::ABOUT,
        build: |text| Ok(end_replicate::profile(&read::<end_replicate::EndReplicate>(text)?)),
    },
    ProfileName { name: "usid", about: usid::ABOUT, build: |text| Ok(usid::profile(&read::<usid::Usid>(text)?)) },
    ProfileName {
        name: "rfc8986",
        about: rfc8986::ABOUT,
        build: |text| Ok(rfc8986::profile(&read::<rfc8986::Rfc8986>(text)?)),
    },
    ProfileName { name: "ipv4", about: ipv4::ABOUT, build: |text| Ok(ipv4::profile(&read::<ipv4::Ipv4>(text)?)) },
    ProfileName {
        name: "fast-cnp",
        about: fast_cnp::ABOUT,
        build: |text| Ok(fast_cnp::profile(&read::<fast_cnp::FastCnp>(text)?)),
    },
    ProfileName { name: "end-c", about: end_c::ABOUT, build: |text| Ok(end_c::profile(&read::<end_c::EndC>(text)?)) },
    ProfileName { name: "end-e", about: end_e::ABOUT, build: |text| Ok(end_e::profile(&read::<end_e::EndE>(text)?)) },
];

impl ProfileName {
    /// The profile of this name.
    pub fn of(name: &str) -> Option<Self> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    /// The profile with the parameters of a file, given as its text, or with those by default.
    ///
    /// # Errors
    ///
    /// If the text is no TOML, or names a parameter that the profile does not have.
    pub fn load(self, parameters: Option<&str>) -> Result<Profile, LineError> {
        let mut profile = (self.build)(parameters)?;
        for case in &mut profile.cases {
            case.sources = sources::of(profile.name, case.name);
        }
        Ok(profile)
    }
}

/// A frame that the tester sends at a port.
fn sent((name, port): (&'static str, Port), packet: &[u8]) -> Frame {
    Frame { port: name, octets: port.to_device(packet) }
}

/// A packet that must leave a port, every octet of it.
fn left((name, port): (&'static str, Port), packet: &[u8]) -> Expected {
    Expected::exactly(name, port.to_tester(packet))
}

/// The parts of a `node.toml` that profiles have in common.
struct NodeToml(String);

impl NodeToml {
    /// An open node with this loopback, and further keys of `[node]`.
    fn new(loopback: Ipv6Addr, keys: &str) -> Self {
        Self::in_domain(loopback, &format!("open = true\n{keys}"))
    }

    /// The same for a node that gets a `[domain]`.
    fn in_domain(loopback: Ipv6Addr, keys: &str) -> Self {
        NodeToml(format!("[node]\nloopback = \"{loopback}\"\n{keys}"))
    }

    /// A section, or several.
    fn add(mut self, section: &str) -> Self {
        self.0.push('\n');
        self.0.push_str(section.trim_end());
        self.0.push('\n');
        self
    }

    /// A port, and the tester as the neighbour behind it.
    fn port(self, (name, port): (&str, Port), tester: Ipv6Addr) -> Self {
        self.add(&format!(
            "[[port]]\nname = \"{name}\"\nmac = \"{}\"\n\n[[neighbour]]\naddress = \"{tester}%{name}\"\nmac = \"{}\"",
            port.device_mac, port.tester_mac
        ))
    }

    /// A port without neighbours.
    fn port_alone(self, (name, port): (&str, Port)) -> Self {
        self.add(&format!("[[port]]\nname = \"{name}\"\nmac = \"{}\"", port.device_mac))
    }

    /// A neighbour with an address of its own.
    fn neighbour(self, (name, port): (&str, Port), address: Ipv6Addr) -> Self {
        self.add(&format!("[[neighbour]]\naddress = \"{address}%{name}\"\nmac = \"{}\"", port.tester_mac))
    }

    /// A route by the tester.
    fn route(self, prefix: &str, tester: Ipv6Addr, port: &str) -> Self {
        self.add(&format!("[[route]]\nprefix = \"{prefix}\"\nvia = [\"{tester}%{port}\"]"))
    }
}
