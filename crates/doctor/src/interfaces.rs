//! Interfaces, and the drivers that work on them.

use crate::finding::{Finding, State};
use srdma_io::namespace::NamespaceGuard;
use srdma_io::{Choice, Interest, Umem, open};
use std::fs;
use std::path::Path;

const THEME: &str = "Interfaces";
const PROBED: &str = "Drivers, as tried";

/// Pages of the UMEM of a probe.
const PAGES: usize = 1024;

/// Lists the interfaces without opening any.
pub(crate) fn check() -> Vec<Finding> {
    let mut names: Vec<String> = match fs::read_dir("/sys/class/net") {
        Ok(entries) => entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect(),
        Err(_) => Vec::new(),
    };
    names.retain(|name| name != "lo" && Path::new("/sys/class/net").join(name).join("type").exists());
    names.sort();
    let finding = |name: &String| {
        let directory = Path::new("/sys/class/net").join(name);
        let read = |file: &str| fs::read_to_string(directory.join(file)).unwrap_or_default().trim().to_owned();
        let driver = fs::read_link(directory.join("device/driver")).ok();
        let driver = driver.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or("virtual");
        let detail = format!("driver {driver}, MTU {}, {}", read("mtu"), read("operstate"));
        Finding::info(THEME, name.clone(), format!("{detail}; `srdma doctor --probe {name}` tries AF_XDP on it"))
    };
    match names.as_slice() {
        [] => vec![Finding::info(THEME, "none", "only the loopback is in this namespace")],
        names => names.iter().map(finding).collect(),
    }
}

/// Tries each driver on a temporary veth, and on these interfaces.
pub(crate) fn probe(interfaces: &[String]) -> Vec<Finding> {
    let mut findings = match on_veth() {
        Ok(findings) => findings,
        Err(error) => {
            vec![Finding::missing(PROBED, "veth", format!("cannot be created: {error}")).with_remedy("run as root")]
        }
    };
    findings.extend(interfaces.iter().flat_map(|interface| drivers(interface)));
    findings
}

fn on_veth() -> Result<Vec<Finding>, srdma_io::namespace::CommandError> {
    let namespace = NamespaceGuard::unique("srdma-doctor")?;
    for line in ["ip link add veth type veth peer peer", "ip link set veth up", "ip link set peer up"] {
        namespace.run(&line.split(' ').collect::<Vec<_>>())?;
    }
    namespace.enter(|| drivers("veth"))
}

/// Opens an interface with each driver in turn.
fn drivers(interface: &str) -> Vec<Finding> {
    let choices = [
        (Choice::Xdp, "AF_XDP native", State::Degraded),
        (Choice::XdpGeneric, "AF_XDP generic", State::Degraded),
        (Choice::Packet, "AF_PACKET", State::Missing),
    ];
    let finding = |(choice, driver, failed): (Choice, &str, State)| {
        let name = format!("{interface}: {driver}");
        match attach(interface, choice) {
            Ok(()) => Finding::ok(PROBED, name, "works"),
            Err(error) => Finding::new(PROBED, name, failed, error),
        }
    };
    choices.map(finding).to_vec()
}

/// Opens an interface without interest in any frame, so that all frames go to the kernel, and closes it.
fn attach(interface: &str, choice: Choice) -> Result<(), String> {
    let (umem, mut pool) = Umem::new(PAGES).map_err(|error| format!("no memory: {error}"))?;
    let mut opened = open(interface, choice, &Interest::default(), Some(&umem)).map_err(|error| error.to_string())?;
    opened.driver.detach(&mut pool);
    Ok(())
}
