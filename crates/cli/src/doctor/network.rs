//! Features that labs need: namespaces, kernel routes with SRv6, taps.

use super::finding::Finding;
use srdma_io::namespace::NamespaceGuard;
use std::fs::OpenOptions;
use std::io::ErrorKind;

const THEME: &str = "Labs";

/// The findings about what labs need of the system. Makes a namespace and deletes it again.
pub(super) fn check() -> Vec<Finding> {
    let mut findings = Vec::new();
    match NamespaceGuard::unique("srdma-doctor") {
        Err(error) => {
            let detail = format!("none can be made: {error}");
            findings.push(Finding::missing(THEME, "namespaces", detail).mend("run as root, with the package iproute2"));
        }
        Ok(namespace) => {
            findings.push(Finding::ok(THEME, "namespaces", "one was made and deleted"));
            let route = "ip -6 route add 2001:db8::1/128 encap seg6local action End dev lo";
            let words: Vec<&str> = route.split(' ').collect();
            findings.push(match namespace.run(&words) {
                Ok(_) => Finding::ok(THEME, "seg6local", "Linux routers can have SIDs"),
                Err(error) => Finding::missing(THEME, "seg6local", format!("Linux routers can have no SIDs: {error}"))
                    .mend("use a kernel with CONFIG_IPV6_SEG6_LWTUNNEL=y, and apt-get install iproute2"),
            });
        }
    }
    findings.push(tun());
    findings
}

fn tun() -> Finding {
    match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Finding::ok(THEME, "/dev/net/tun", "guests can have network cards"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::missing(THEME, "/dev/net/tun", "not there, labs with guests need it")
                .mend("modprobe tun, or mkdir -p /dev/net && mknod /dev/net/tun c 10 200")
        }
        Err(error) => {
            Finding::missing(THEME, "/dev/net/tun", format!("{error}; labs with guests need it")).mend("run as root")
        }
    }
}
