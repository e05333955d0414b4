//! Following and changing the kernel's state, in namespaces of the tests' own.

use srdma_io::namespace::{Namespace, NamespaceGuard, VethEnd, veth};
use srdma_io::netlink::{Change, Kernel, KernelNextHop, KernelRoute, MAIN_TABLE, PROTOCOL, RouteKind, Watcher};
use srdma_wire::{MacAddress, Prefix};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn prefix(text: &str, len: u8) -> Prefix {
    Prefix::new(address(text), len).unwrap()
}

/// Two namespaces and a link between them: v0 with 2001:db8::1, v1 with 2001:db8::2 and [`MAC`].
struct Pair {
    a: NamespaceGuard,
    b: NamespaceGuard,
}

impl Pair {
    fn new() -> Self {
        let [a, b] = [(); 2].map(|()| NamespaceGuard::unique("srdma-t").unwrap());
        let ends = [
            VethEnd { namespace: &a, interface: "v0", mac: None, addresses: &["2001:db8::1/64"] },
            VethEnd { namespace: &b, interface: "v1", mac: Some(MAC), addresses: &["2001:db8::2/64"] },
        ];
        veth(1500, ends).unwrap();
        Pair { a, b }
    }

    /// The index of v0.
    fn v0(&self) -> u32 {
        let text = self.a.run(&["cat", "/sys/class/net/v0/ifindex"]).unwrap();
        text.trim().parse().unwrap()
    }
}

fn ip(namespace: &Namespace, words: &str) {
    let words: Vec<&str> = ["ip", "-6"].into_iter().chain(words.split(' ')).collect();
    namespace.run(&words).unwrap();
}

/// Runs a task inside a namespace.
fn inside<T: Send>(namespace: &Namespace, task: impl AsyncFnOnce() -> T + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(task())
    };
    namespace.enter(run).unwrap()
}

/// A watcher, and its changes that were not waited for.
struct Seen {
    watcher: Watcher,
    changes: Vec<Change>,
}

impl Seen {
    fn new(watcher: Watcher) -> Self {
        Seen { watcher, changes: Vec::new() }
    }

    /// Waits for a change; earlier ones are discarded.
    async fn wait_for<T>(&mut self, what: &str, found: impl Fn(&Change) -> Option<T>) -> T {
        let wait = async {
            loop {
                if let Some(place) = self.changes.iter().position(|change| found(change).is_some()) {
                    return self.changes.drain(..=place).next_back().and_then(|change| found(&change)).unwrap();
                }
                self.changes.clear();
                self.watcher.receive(&mut self.changes).await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap_or_else(|_| panic!("{what} did not come"))
    }

    async fn dumped(&mut self) {
        self.wait_for("the end of the dump", |change| (*change == Change::DumpEnds).then_some(())).await;
    }

    async fn route(&mut self, to: Prefix) -> KernelRoute {
        let found = |change: &Change| match change {
            Change::Route(route) if route.prefix == to => Some(route.clone()),
            _ => None,
        };
        self.wait_for(&format!("a change of route {to}"), found).await
    }
}

#[test]
#[ignore = "needs root"]
fn a_dump_reports_every_object() {
    let pair = Pair::new();
    ip(&pair.a, "neigh replace 2001:db8::2 dev v0 lladdr 02:00:00:00:00:02 nud permanent");
    ip(&pair.a, "route add 2001:db8:1::/48 via 2001:db8::2");
    let v0 = pair.v0();
    let mut changes = Vec::new();
    inside(&pair.a, async || {
        let mut watcher = Watcher::start().unwrap();
        while changes.last() != Some(&Change::DumpEnds) {
            watcher.receive(&mut changes).await.unwrap();
        }
    });
    assert_eq!(changes[0], Change::DumpBegins);
    let is_v0 = |change: &Change| match change {
        Change::Link { index, name, mtu, is_up, mac } => {
            (*index, name.as_str(), *mtu, *is_up, mac.is_some()) == (v0, "v0", 1500, true, true)
        }
        _ => false,
    };
    assert_eq!(changes.iter().filter(|change| is_v0(change)).count(), 1, "{changes:?}");
    assert!(changes.contains(&Change::Address { index: v0, address: address("2001:db8::1"), gone: false }));
    let neighbour = Change::Neighbour {
        index: v0,
        address: address("2001:db8::2"),
        mac: Some(MAC),
        is_permanent: true,
        gone: false,
    };
    assert!(changes.contains(&neighbour), "{changes:?}");
    let via = KernelRoute {
        table: MAIN_TABLE,
        prefix: prefix("2001:db8:1::", 48),
        metric: 1024,
        kind: RouteKind::Unicast,
        protocol: 3,
        next_hops: vec![KernelNextHop { index: v0, gateway: Some(address("2001:db8::2")) }],
        is_tunnelled: false,
        replaces: false,
        gone: false,
    };
    let connected = KernelRoute {
        prefix: prefix("2001:db8::", 64),
        metric: 256,
        protocol: 2,
        next_hops: vec![KernelNextHop { index: v0, gateway: None }],
        ..via.clone()
    };
    for route in [via, connected] {
        assert!(changes.contains(&Change::Route(route)), "{changes:?}");
    }
}

#[test]
#[ignore = "needs root"]
fn routes_are_followed() {
    let pair = Pair::new();
    let v0 = pair.v0();
    let to = prefix("2001:db8:1::", 48);
    let hop = |text: &str| KernelNextHop { index: v0, gateway: Some(address(text)) };
    inside(&pair.a, async || {
        let mut seen = Seen::new(Watcher::start().unwrap());
        seen.dumped().await;
        ip(&pair.a, "route add 2001:db8:1::/48 nexthop via 2001:db8::2 nexthop via 2001:db8::3");
        let route = seen.route(to).await;
        assert_eq!((route.next_hops, route.gone), (vec![hop("2001:db8::2"), hop("2001:db8::3")], false));
        ip(&pair.a, "route append 2001:db8:1::/48 via 2001:db8::4");
        assert_eq!(seen.route(to).await.next_hops.len(), 3);
        ip(&pair.a, "route del 2001:db8:1::/48 via 2001:db8::3");
        let route = seen.route(to).await;
        assert_eq!((route.next_hops, route.gone), (vec![hop("2001:db8::3")], true));
        ip(&pair.a, "route replace 2001:db8:1::/48 via 2001:db8::5");
        let route = seen.route(to).await;
        assert_eq!((route.next_hops, route.gone, route.replaces), (vec![hop("2001:db8::5")], false, true));
        ip(&pair.a, "route del 2001:db8:1::/48");
        assert!(seen.route(to).await.gone);
        ip(&pair.a, "route add 2001:db8:1::/48 encap seg6 mode encap segs 5f00::1 dev v0 table 77");
        let route = seen.route(to).await;
        assert_eq!((route.is_tunnelled, route.table), (true, 77));
        ip(&pair.a, "route add unreachable 2001:db8:2::/48");
        assert_eq!(seen.route(prefix("2001:db8:2::", 48)).await.kind, RouteKind::Unreachable);
    });
}

#[test]
#[ignore = "needs root"]
fn links_addresses_and_neighbours_are_followed() {
    let pair = Pair::new();
    let v0 = pair.v0();
    inside(&pair.a, async || {
        let mut seen = Seen::new(Watcher::start().unwrap());
        seen.dumped().await;
        ip(&pair.a, "address add 2001:db8:9::1/64 dev v0 nodad");
        let of = |change: &Change| match change {
            Change::Address { index, address: found, gone } if *found == address("2001:db8:9::1") => {
                Some((*index, *gone))
            }
            _ => None,
        };
        assert_eq!(seen.wait_for("the address", of).await, (v0, false));
        ip(&pair.a, "address del 2001:db8:9::1/64 dev v0");
        assert_eq!(seen.wait_for("its end", of).await, (v0, true));

        // Resolved by a packet, then expired.
        std::net::UdpSocket::bind("[::]:0").unwrap().send_to(&[0], "[2001:db8::2]:9").unwrap();
        let of = |change: &Change| match change {
            Change::Neighbour { address: found, mac, .. } if *found == address("2001:db8::2") => Some(*mac),
            _ => None,
        };
        while seen.wait_for("the neighbour", of).await != Some(MAC) {}
        ip(&pair.a, "neigh del 2001:db8::2 dev v0");
        while seen.wait_for("its end", of).await.is_some() {}

        let of = |change: &Change| match change {
            Change::Link { index, is_up, mtu, .. } if *index == v0 => Some((*is_up, *mtu)),
            _ => None,
        };
        ip(&pair.b, "link set v1 down");
        while seen.wait_for("the loss of the carrier", of).await.0 {}
        ip(&pair.b, "link set v1 up");
        while !seen.wait_for("the carrier", of).await.0 {}
        ip(&pair.a, "link set v0 mtu 1400");
        while seen.wait_for("the new MTU", of).await.1 != 1400 {}
        ip(&pair.a, "link del v0");
        let gone = |change: &Change| (*change == Change::LinkGone { index: v0 }).then_some(());
        seen.wait_for("the end of the link", gone).await;
    });
}

/// More changes than the kernel buffers: a new dump gives the remaining state.
#[test]
#[ignore = "needs root"]
fn an_overrun_is_followed_by_a_new_dump() {
    let pair = Pair::new();
    let routes = |range: std::ops::Range<u32>, verb: &str| {
        let lines: Vec<String> = range.map(|n| format!("route {verb} 2001:db8:7:{n:x}::/64 via 2001:db8::2")).collect();
        let file = std::env::temp_dir().join(format!("srdma-t-{}-{verb}", std::process::id()));
        std::fs::write(&file, lines.join("\n")).unwrap();
        pair.a.run(&["ip", "-6", "-batch", file.to_str().unwrap()]).unwrap();
        std::fs::remove_file(&file).unwrap();
    };
    let ours = prefix("2001:db8:7::", 48);
    inside(&pair.a, async || {
        let mut seen = Seen::new(Watcher::with_buffer(4096).unwrap());
        seen.dumped().await;
        // This thread is the runtime's only one: nothing is read meanwhile.
        routes(0..2000, "add");
        routes(0..1990, "del");
        let begins = |change: &Change| (*change == Change::DumpBegins).then_some(());
        seen.wait_for("another dump", begins).await;
        let mut known = BTreeSet::new();
        while known.len() != 10 {
            let of = |change: &Change| match change {
                Change::Route(route) if ours.contains(route.prefix.address()) => Some((route.prefix, route.gone)),
                _ => None,
            };
            match seen.wait_for("a route", of).await {
                (prefix, true) => known.remove(&prefix),
                (prefix, false) => known.insert(prefix),
            };
        }
        let expected = (1990..2000).map(|n: u32| prefix(&format!("2001:db8:7:{n:x}::"), 64));
        assert_eq!(known, expected.collect());
    });
}

#[test]
#[ignore = "needs root"]
fn added_routes_are_removed() {
    let pair = Pair::new();
    let v0 = pair.v0();
    let sid = prefix("5f00:0:1::", 48);
    inside(&pair.a, async || {
        let shown = |words: &str| pair.a.run(&words.split(' ').collect::<Vec<_>>()).unwrap();
        let mut kernel = Kernel::new().unwrap();
        kernel.add_blackhole(sid).await.unwrap();
        kernel.add_blackhole(sid).await.unwrap();
        kernel.keep_resolved(v0, address("2001:db8::2")).await.unwrap();
        assert!(shown("ip -6 route show proto 200").contains("blackhole 5f00:0:1::/48 dev lo metric 1 "));
        assert!(shown("ip -6 neigh show dev v0").contains("managed"), "{}", shown("ip -6 neigh show dev v0"));
        // It is resolved without a packet to it.
        let mut seen = Seen::new(Watcher::start().unwrap());
        let resolved = |change: &Change| match change {
            Change::Neighbour { address: found, mac: Some(mac), .. } if *found == address("2001:db8::2") => Some(*mac),
            _ => None,
        };
        assert_eq!(seen.wait_for("the neighbour", resolved).await, MAC);
        kernel.clear().await.unwrap();
        assert_eq!(shown("ip -6 route show proto 200"), "");
        assert!(!shown("ip -6 neigh show dev v0").contains("managed"));

        // A killed process leaves them; the next one finds them, and no entries of others.
        ip(&pair.a, "route add blackhole 5f00:0:2::/48");
        ip(&pair.a, "neigh add 2001:db8::9 dev v0 lladdr 02:00:00:00:00:09");
        kernel.add_blackhole(sid).await.unwrap();
        kernel.keep_resolved(v0, address("2001:db8::2")).await.unwrap();
        drop(kernel);
        let mut kernel = Kernel::new().unwrap();
        assert_eq!(kernel.clear_stale().await.unwrap(), 2);
        assert_eq!(kernel.clear_stale().await.unwrap(), 0);
        assert_eq!(shown("ip -6 route show proto 200"), "");
        assert!(shown("ip -6 route show").contains("blackhole 5f00:0:2::/48"));
        assert!(shown("ip -6 neigh show dev v0").contains("2001:db8::9"));

        // The route carries our protocol number.
        kernel.add_blackhole(prefix("5f00:0:3::", 48)).await.unwrap();
        let route = seen.route(prefix("5f00:0:3::", 48)).await;
        assert_eq!((route.protocol, route.kind), (PROTOCOL, RouteKind::Blackhole));
        // Learnt routes are replaced and removed as well; other routes to the same prefix are not touched.
        let learnt = prefix("2001:db8:5::", 48);
        let hop = |text: &str| KernelNextHop { index: v0, gateway: Some(address(text)) };
        ip(&pair.a, "route add 2001:db8:5::/48 via 2001:db8::7");
        kernel.set_route(learnt, &[hop("2001:db8::2")]).await.unwrap();
        kernel.set_route(learnt, &[hop("2001:db8::2"), hop("2001:db8::3")]).await.unwrap();
        let routes = shown("ip -6 route show proto 201");
        assert!(
            routes.starts_with("2001:db8:5::/48 metric 2000 ") && routes.matches("nexthop").count() == 2,
            "{routes}"
        );
        kernel.set_route(learnt, &[hop("2001:db8::4")]).await.unwrap();
        assert!(shown("ip -6 route show proto 201").starts_with("2001:db8:5::/48 via 2001:db8::4 "));
        kernel.remove_route(learnt).await.unwrap();
        assert_eq!(shown("ip -6 route show proto 201"), "");
        kernel.set_route(learnt, &[hop("2001:db8::2"), hop("2001:db8::3")]).await.unwrap();
        drop(kernel);
        let mut kernel = Kernel::new().unwrap();
        assert!(kernel.clear_stale().await.unwrap() > 0);
        assert_eq!(shown("ip -6 route show proto 201"), "");
        assert!(shown("ip -6 route show 2001:db8:5::/48").contains("via 2001:db8::7"));
        let error = kernel.set_route(learnt, &[KernelNextHop { index: 9999, gateway: None }]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(19), "{error}");
        let error = kernel.keep_resolved(9999, address("2001:db8::2")).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(19), "{error}");
        kernel.clear().await.unwrap();
    });
}

/// D262: IPv4, dumped and as it changes, and what is added for the node.
#[test]
#[ignore = "needs root"]
fn ipv4_is_followed_and_changed() {
    let pair = Pair::new();
    let ipv4 = |words: &str| {
        let words: Vec<&str> = ["ip", "-4"].into_iter().chain(words.split(' ')).collect();
        pair.a.run(&words).unwrap()
    };
    let mapped = |text: &str| text.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped();
    let net = |text: &str, len| Prefix::of_ipv4(text.parse().unwrap(), len).unwrap();
    ipv4("addr add 192.0.2.1/24 dev v0");
    ipv4("neigh replace 192.0.2.2 dev v0 lladdr 02:00:00:00:00:02 nud permanent");
    ipv4("route add 198.51.100.0/24 via 192.0.2.2");
    ipv4("route add 203.0.113.0/24 via inet6 fe80::2 dev v0");
    let v0 = pair.v0();
    inside(&pair.a, async || {
        let mut seen = Seen::new(Watcher::start().unwrap());
        while seen.changes.last() != Some(&Change::DumpEnds) {
            seen.watcher.receive(&mut seen.changes).await.unwrap();
        }
        let changes = std::mem::take(&mut seen.changes);
        assert!(changes.contains(&Change::Address { index: v0, address: mapped("192.0.2.1"), gone: false }));
        let neighbour =
            |mac| Change::Neighbour { index: v0, address: mapped("192.0.2.2"), mac, is_permanent: true, gone: false };
        assert!(changes.contains(&neighbour(Some(MAC))), "{changes:?}");
        let of = |to: Prefix| {
            let found = changes.iter().find_map(|change| match change {
                Change::Route(route) if route.prefix == to => Some(route.next_hops.clone()),
                _ => None,
            });
            found.unwrap_or_default()
        };
        assert_eq!(of(net("192.0.2.0", 24)), [KernelNextHop { index: v0, gateway: None }]);
        let gateway = Some(mapped("192.0.2.2"));
        assert_eq!(of(net("198.51.100.0", 24)), [KernelNextHop { index: v0, gateway }]);
        assert_eq!(of(net("203.0.113.0", 24)), [], "by a next hop of IPv6");

        ipv4("route add default via 192.0.2.2");
        let default = seen.route(net("0.0.0.0", 0)).await;
        assert_eq!((default.next_hops, default.gone), (vec![KernelNextHop { index: v0, gateway }], false));
        ipv4("route del 198.51.100.0/24");
        assert!(seen.route(net("198.51.100.0", 24)).await.gone);

        let mut kernel = Kernel::new().unwrap();
        kernel.add_blackhole(net("10.2.0.0", 16)).await.unwrap();
        kernel.keep_resolved(v0, mapped("192.0.2.9")).await.unwrap();
        assert!(ipv4("route show").contains("blackhole 10.2.0.0/16 proto 200"));
        assert!(ipv4("neigh show").contains("192.0.2.9 dev v0"));
        // What a killed node has left.
        let mut next = Kernel::new().unwrap();
        assert_eq!(next.clear_stale().await.unwrap(), 2);
        assert!(!ipv4("route show").contains("blackhole"));
        kernel.add_blackhole(net("10.3.0.0", 16)).await.unwrap();
        kernel.clear().await.unwrap();
        assert!(!ipv4("route show").contains("blackhole"));
    });
}
