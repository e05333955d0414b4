//! Neighbor Discovery and ARP for Proxy Addresses, solicited by the kernel at the other end of a link.

use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_io::nd::ProxyNd;
use srdma_wire::MacAddress;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PROXY: &str = "2001:db8:cc::51";

/// The other end's entry of the Proxy Address, once it is in one of these states.
async fn known(other: &NamespaceGuard, states: &[&str]) -> String {
    for _ in 0..6_000 {
        let text = other.run(&["ip", "-6", "neigh", "show", PROXY, "dev", "v1"]).unwrap();
        if states.iter().any(|state| text.contains(state)) {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{PROXY} is in none of the states {states:?}");
}

/// D274: by ARP, unasked by anything but its own table.
#[test]
#[ignore = "needs root"]
fn the_kernel_resolves_proxy_addresses_of_ipv4() {
    let [node, other] = [(); 2].map(|()| NamespaceGuard::unique("srdma-t").unwrap());
    let ends = [
        VethEnd { namespace: &node, interface: "v0", mac: Some(OURS), addresses: &[] },
        VethEnd { namespace: &other, interface: "v1", mac: None, addresses: &[] },
    ];
    veth(1500, ends).unwrap();
    other.run(&["ip", "address", "add", "10.1.0.2/24", "dev", "v1"]).unwrap();
    let index: u32 = node.run(&["cat", "/sys/class/net/v0/ifindex"]).unwrap().trim().parse().unwrap();
    let proxies = ["10.1.0.51", "10.1.0.52"].map(|text| text.parse::<Ipv4Addr>().unwrap());
    let ask = |proxy: Ipv4Addr| {
        let send = || UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(&[0], (proxy, 9)));
        other.enter(send).unwrap().unwrap();
    };
    let shown = |state: &str| {
        for _ in 0..1_000 {
            let text = other.run(&["ip", "-4", "neigh", "show", "dev", "v1"]).unwrap();
            if text.contains(state) {
                return text;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no neighbour is {state}");
    };
    let run = async {
        let mut nd = ProxyNd::start().unwrap();
        nd.set([(index, OURS)], [proxies[0].to_ipv6_mapped()]).unwrap();
        ask(proxies[0]);
        assert!(shown("REACHABLE").contains("10.1.0.51 lladdr 02:00:00:00:00:01"));
        assert_eq!(nd.statistics().answered, 1);
        // Not one of them.
        ask(proxies[1]);
        assert!(shown("FAILED").contains("10.1.0.52"));
        let statistics = nd.statistics();
        assert_eq!((statistics.answered, statistics.invalid, statistics.send_errors), (1, 0, 0));
    };
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let inside = || runtime().block_on(run);
    node.enter(inside).unwrap();
}

#[test]
#[ignore = "needs root"]
fn the_kernel_resolves_proxy_addresses() {
    let [node, other] = [(); 2].map(|()| NamespaceGuard::unique("srdma-t").unwrap());
    let ends = [
        VethEnd { namespace: &node, interface: "v0", mac: Some(OURS), addresses: &[] },
        VethEnd { namespace: &other, interface: "v1", mac: None, addresses: &["2001:db8:cc::2/64"] },
    ];
    veth(1500, ends).unwrap();
    node.set("ipv6/conf/all/forwarding", "1").unwrap();
    other.set("ipv6/neigh/v1/retrans_time_ms", "100").unwrap();
    let index: u32 = node.run(&["cat", "/sys/class/net/v0/ifindex"]).unwrap().trim().parse().unwrap();
    let proxy: Ipv6Addr = PROXY.parse().unwrap();
    let ask = || {
        let send = || UdpSocket::bind("[::]:0").and_then(|socket| socket.send_to(&[0], (proxy, 9)));
        other.enter(send).unwrap().unwrap();
    };
    let run = async {
        let mut nd = ProxyNd::start().unwrap();
        nd.set([(index, OURS)], [proxy]).unwrap();
        let groups = node.run(&["ip", "-6", "maddress", "show", "dev", "v0"]).unwrap();
        assert!(groups.contains("ff02::1:ff00:51"), "{groups}");
        ask();
        assert!(known(&other, &["REACHABLE"]).await.contains("02:00:00:00:00:01"));
        assert_eq!(nd.statistics().answered, 1);

        // A neighbour that is used again is solicited by unicast, which the kernel here would forward.
        other.set("ipv6/neigh/v1/delay_first_probe_time", "1").unwrap();
        other
            .run(&["ip", "-6", "neigh", "change", PROXY, "dev", "v1", "lladdr", "02:00:00:00:00:01", "nud", "stale"])
            .unwrap();
        ask();
        assert!(!known(&other, &["REACHABLE", "FAILED"]).await.contains("FAILED"));
        assert_eq!(nd.statistics().answered, 2);

        // No other node may have the address.
        other.set("ipv6/conf/all/accept_dad", "1").unwrap();
        other.set("ipv6/conf/v1/accept_dad", "1").unwrap();
        other.run(&["ip", "-6", "address", "add", "2001:db8:cc::51/64", "dev", "v1"]).unwrap();
        let mut shown = String::new();
        for _ in 0..6_000 {
            shown = other.run(&["ip", "-6", "address", "show", "dev", "v1"]).unwrap();
            if shown.contains("dadfailed") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(shown.contains("dadfailed"), "{shown}");
        other.run(&["ip", "-6", "address", "del", "2001:db8:cc::51/64", "dev", "v1"]).unwrap();

        // No longer a Proxy Address.
        nd.set([(index, OURS)], []).unwrap();
        let before = nd.statistics();
        other.run(&["ip", "-6", "neigh", "flush", "dev", "v1"]).unwrap();
        ask();
        known(&other, &["FAILED"]).await;
        assert_eq!(nd.statistics(), before);
        assert_eq!((before.invalid, before.send_errors), (0, 0));
        let groups = node.run(&["ip", "-6", "maddress", "show", "dev", "v0"]).unwrap();
        assert!(!groups.contains("ff02::1:ff00:51"), "{groups}");

        // A missing interface returns an error, and the others work.
        assert!(nd.set([(9999, OURS), (index, OURS)], [proxy]).is_err());
        other.run(&["ip", "-6", "neigh", "flush", "dev", "v1"]).unwrap();
        ask();
        known(&other, &["REACHABLE"]).await;
    };
    // Answers come from another thread than the one that runs commands.
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let inside = || runtime().block_on(run);
    node.enter(inside).unwrap();
}
