//! Requirements of labs: namespaces, seg6local routes, tap interfaces.

use crate::finding::Finding;
use srdma_io::namespace::NamespaceGuard;
use std::fs::OpenOptions;
use std::io::ErrorKind;

const THEME: &str = "Labs";

/// Creates and deletes a namespace to test it.
pub(crate) fn check() -> Vec<Finding> {
    let mut findings = Vec::new();
    match NamespaceGuard::unique("srdma-doctor") {
        Err(error) => {
            let detail = format!("cannot be created: {error}");
            findings.push(
                Finding::missing(THEME, "namespaces", detail).with_remedy("run as root, with the package iproute2"),
            );
        }
        Ok(namespace) => {
            findings.push(Finding::ok(THEME, "namespaces", "can be created"));
            let route = "ip -6 route add 2001:db8::1/128 encap seg6local action End dev lo";
            let words: Vec<&str> = route.split(' ').collect();
            findings.push(match namespace.run(&words) {
                Ok(_) => Finding::ok(THEME, "seg6local", "Linux routers can have SIDs"),
                Err(error) => Finding::missing(THEME, "seg6local", format!("Linux routers cannot have SIDs: {error}"))
                    .with_remedy("use a kernel with CONFIG_IPV6_SEG6_LWTUNNEL=y, and apt-get install iproute2"),
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
            Finding::missing(THEME, "/dev/net/tun", "not available; required by labs with guests")
                .with_remedy("modprobe tun, or mkdir -p /dev/net && mknod /dev/net/tun c 10 200")
        }
        Err(error) => Finding::missing(THEME, "/dev/net/tun", format!("{error}; required by labs with guests"))
            .with_remedy("run as root"),
    }
}
