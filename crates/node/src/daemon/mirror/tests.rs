use super::*;
use srdma_dataplane::{EncapsMode, Node, PortConfig, SidBehavior};
use srdma_io::netlink::{KernelNextHop, KernelRoute, MAIN_TABLE, PROTOCOL};

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 1, 1]);
const HOST: &str = "2001:db8:bb::1";
const ROUTER: &str = "fe80::1";

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn prefix(text: &str) -> Prefix {
    let (address_text, len) = text.split_once('/').unwrap();
    Prefix::new(address(address_text), len.parse().unwrap()).unwrap()
}

/// A mirror and the node behind it, which has applied its commands.
struct Bench {
    mirror: Mirror,
    node: Node,
    config: NodeConfig,
    layer: Entries,
    ports: Vec<MirroredPort>,
    kept: BTreeSet<(u32, Ipv6Addr)>,
}

impl Bench {
    /// Ports p0 and p1 of interfaces 10 and 11, both up; interface 5 is no port.
    fn new(fixed: &Entries) -> Self {
        let config = |name: &str| PortConfig {
            name: name.to_owned(),
            mac: MacAddress([2, 0, 0, 0, 0, 0]),
            addresses: Vec::new(),
            link_mtu: 1500,
            queue_limit_octets: 1 << 16,
            ..PortConfig::default()
        };
        let config = NodeConfig::new(address("2001:db8:ff::1"), vec![config("p0"), config("p1")]);
        let port = |name: &str| MirroredPort { interface: name.to_owned(), mac: None, addresses: None, link_mtu: None };
        let mut bench = Bench {
            mirror: Mirror::new(),
            node: Node::new(config.clone()),
            config,
            layer: Entries::default(),
            ports: vec![port("p0"), port("p1")],
            kept: BTreeSet::new(),
        };
        bench.configure(fixed);
        for (index, name) in [(5, "eth0"), (10, "p0"), (11, "p1")] {
            bench.mirror.apply(link(index, name, true));
        }
        bench.flush();
        bench
    }

    fn configure(&mut self, entries: &Entries) {
        entries.commands().into_iter().for_each(|command| self.node.apply(command).unwrap());
        self.mirror.configure(self.ports.clone(), &self.config, entries, &mut self.layer);
    }

    /// Applies changes to the mirror and its commands to the node; a refused command fails the test.
    fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Vec<String> {
        changes.into_iter().for_each(|change| self.mirror.apply(change));
        self.flush()
    }

    fn flush(&mut self) -> Vec<String> {
        let effects = self.mirror.flush(&mut self.layer);
        for released in effects.release {
            self.kept.remove(&released);
        }
        self.kept.extend(effects.keep);
        effects.commands.iter().for_each(|command| self.node.apply(command.clone()).unwrap());
        effects.commands.iter().map(shown).collect()
    }
}

/// A command in short.
fn shown(command: &Command) -> String {
    let hop = |hop: &NextHop| format!("{}%{}", hop.address, hop.port.0);
    match command {
        Command::SetPort { port, addresses, link_mtu, .. } => format!("port {} {addresses:?} {link_mtu}", port.0),
        Command::AddNeighbour { next_hop, mac } => format!("+neighbour {} {mac}", hop(next_hop)),
        Command::RemoveNeighbour(next_hop) => format!("-neighbour {}", hop(next_hop)),
        Command::AddRoute { table, prefix, action: RouteAction::Via(hops) } => {
            let hops: Vec<String> = hops.iter().map(hop).collect();
            format!("+route {} {prefix} {}", table.0, hops.join(" "))
        }
        Command::AddRoute { table, prefix, action } => format!("+route {} {prefix} {action:?}", table.0),
        Command::RemoveRoute { table, prefix } => format!("-route {} {prefix}", table.0),
        other => format!("{other:?}"),
    }
}

fn link(index: u32, name: &str, is_up: bool) -> Change {
    let mac = Some(MacAddress([2, 0, 0, 0, 0, index as u8]));
    Change::Link { index, name: name.to_owned(), mac, mtu: 1500, is_up }
}

fn neighbour(index: u32, text: &str, mac: Option<MacAddress>) -> Change {
    Change::Neighbour { index, address: address(text), mac, is_permanent: false, gone: false }
}

/// A route of the main table: `(interface, gateway)` each, the gateway empty for a link.
fn route(to: &str, hops: &[(u32, &str)]) -> KernelRoute {
    let hop = |(index, gateway): &(u32, &str)| KernelNextHop {
        index: *index,
        gateway: (!gateway.is_empty()).then(|| address(gateway)),
    };
    KernelRoute {
        table: MAIN_TABLE,
        prefix: prefix(to),
        metric: 1024,
        kind: RouteKind::Unicast,
        protocol: 3,
        next_hops: hops.iter().map(hop).collect(),
        is_tunnelled: false,
        replaces: false,
        gone: false,
    }
}

fn there(to: &str, hops: &[(u32, &str)]) -> Change {
    Change::Route(route(to, hops))
}

fn gone(to: &str, hops: &[(u32, &str)]) -> Change {
    Change::Route(KernelRoute { gone: true, ..route(to, hops) })
}

#[test]
fn ports_follow_their_links() {
    let mut bench = Bench::new(&Entries::default());
    let of = |text: &str, gone| Change::Address { index: 10, address: address(text), gone };
    assert_eq!(bench.apply([of("2001:db8::1", false)]), ["port 0 [2001:db8::1] 1500"]);
    assert_eq!(bench.apply([of("2001:db8::1", false)]), [""; 0]);
    let mtu = Change::Link { index: 10, name: "p0".to_owned(), mac: Some(MAC), mtu: 70_000, is_up: true };
    assert_eq!(bench.apply([mtu]), ["port 0 [2001:db8::1] 65535"]);
    assert_eq!(bench.apply([of("2001:db8::1", true)]), ["port 0 [] 65535"]);
    // Gone, and back under another index.
    assert_eq!(bench.apply([Change::LinkGone { index: 10 }]), [""; 0]);
    assert_eq!(bench.mirror.interface(PortId(0)), None);
    assert_eq!(bench.apply([link(20, "p0", true)]), ["port 0 [] 1500"]);
    assert_eq!(bench.mirror.interface(PortId(0)), Some((20, true)));
}

#[test]
fn keys_of_the_configuration_win_over_links() {
    let mut bench = Bench::new(&Entries::default());
    bench.ports[0] = MirroredPort {
        interface: "p0".to_owned(),
        mac: Some(MAC),
        addresses: Some(vec![address("2001:db8::7")]),
        link_mtu: Some(1400),
    };
    bench.configure(&Entries::default());
    assert_eq!(bench.flush(), ["port 0 [2001:db8::7] 1400"]);
    let of = Change::Address { index: 10, address: address("2001:db8::1"), gone: false };
    assert_eq!(bench.apply([of, link(10, "p0", true)]), [""; 0]);
}

#[test]
fn routes_are_added_changed_and_removed() {
    let mut bench = Bench::new(&Entries::default());
    let (one, two) = ((10, ROUTER), (11, "fe80::2"));
    assert_eq!(bench.apply([there("2001:db8:1::/48", &[one])]), ["+route 0 2001:db8:1::/48 fe80::1%0"]);
    assert_eq!(bench.kept, BTreeSet::from([(10, address(ROUTER))]));
    let both = bench.apply([there("2001:db8:1::/48", &[one, two])]);
    assert_eq!(both, ["+route 0 2001:db8:1::/48 fe80::1%0 fe80::2%1"]);
    assert_eq!(bench.kept.len(), 2);
    assert_eq!(bench.apply([gone("2001:db8:1::/48", &[one])]), ["+route 0 2001:db8:1::/48 fe80::2%1"]);
    let better = KernelRoute { metric: 10, ..route("2001:db8:1::/48", &[one]) };
    assert_eq!(bench.apply([Change::Route(better.clone())]), ["+route 0 2001:db8:1::/48 fe80::1%0"]);
    let flap = [gone("2001:db8:1::/48", &[two]), there("2001:db8:1::/48", &[two])];
    assert_eq!(bench.apply(flap), [""; 0]);
    let worse_left = Change::Route(KernelRoute { gone: true, ..better });
    assert_eq!(bench.apply([worse_left]), ["+route 0 2001:db8:1::/48 fe80::2%1"]);
    assert_eq!(bench.apply([gone("2001:db8:1::/48", &[two])]), ["-route 0 2001:db8:1::/48"]);
    assert_eq!(bench.kept, BTreeSet::new());
}

#[test]
fn tables_keep_their_numbers() {
    let mut bench = Bench::new(&Entries::default());
    let of = |table| Change::Route(KernelRoute { table, ..route("::/0", &[(10, ROUTER)]) });
    assert_eq!(bench.apply([of(100), of(70_000)]), ["+route 100 ::/0 fe80::1%0"]);
}

/// Packets that the kernel handles itself are not sent elsewhere by a shorter prefix.
#[test]
fn routes_that_are_the_kernels_drop() {
    let mut bench = Bench::new(&Entries::default());
    let drop = |kind| Change::Route(KernelRoute { kind, ..route("2001:db8:1::/48", &[(1, "")]) });
    let tunnelled = KernelRoute { is_tunnelled: true, ..route("2001:db8:2::/48", &[(10, ROUTER)]) };
    let commands = bench.apply([
        drop(RouteKind::Unreachable),
        Change::Route(tunnelled),
        there("2001:db8:3::/48", &[(5, "fe80::9")]),
        there("::/0", &[(5, "fe80::9")]),
        there("2001:db8:4::/48", &[(5, "fe80::9"), (10, ROUTER)]),
    ]);
    let expected = [
        "+route 0 2001:db8:1::/48 Blackhole",
        "+route 0 2001:db8:2::/48 Blackhole",
        "+route 0 2001:db8:3::/48 Blackhole",
        "+route 0 2001:db8:4::/48 fe80::1%0",
    ];
    assert_eq!(commands, expected);
    // Our own additions, link-local and multicast routes are nothing to follow.
    let ours = KernelRoute { protocol: PROTOCOL, ..route("5f00::/16", &[(1, "")]) };
    let commands = bench.apply([Change::Route(ours), there("fe80::/64", &[(10, "")]), there("ff00::/8", &[(10, "")])]);
    assert_eq!(commands, [""; 0]);
}

/// A host on the link is reached when it is a known neighbour; a claim on an address that is elsewhere has no effect.
#[test]
fn neighbours_are_used_where_a_route_needs_them() {
    let mut bench = Bench::new(&Entries::default());
    assert_eq!(bench.apply([neighbour(10, HOST, Some(MAC))]), [""; 0], "no route says that it is there");
    let connected = there("2001:db8:bb::/64", &[(10, "")]);
    let known = format!("+neighbour {HOST}%0 {MAC}");
    assert_eq!(bench.apply([connected.clone()]), [known.as_str(), "+route 0 2001:db8:bb::/64 ::%0"]);
    assert_eq!(bench.apply([neighbour(11, HOST, Some(MAC))]), [""; 0], "it is not on that link");
    assert_eq!(bench.apply([neighbour(10, HOST, Some(MAC))]), [""; 0]);
    // A longer prefix leads elsewhere.
    let longer = there("2001:db8:bb::/120", &[(11, ROUTER)]);
    assert_eq!(bench.apply([longer]), ["+route 0 2001:db8:bb::/120 fe80::1%1", "-neighbour 2001:db8:bb::1%0"]);
    bench.apply([gone("2001:db8:bb::/120", &[(11, ROUTER)])]);
    // Lost.
    assert_eq!(bench.apply([neighbour(10, HOST, None)]), ["-neighbour 2001:db8:bb::1%0"]);
    // The address alone is enough for a router, a link-local one too.
    bench.apply([there("::/0", &[(11, ROUTER)])]);
    assert_eq!(bench.apply([neighbour(11, ROUTER, Some(MAC))]), [format!("+neighbour {ROUTER}%1 {MAC}")]);
}

/// Two links with the same prefix: two routes that the kernel does not join.
#[test]
fn links_may_share_a_prefix() {
    let mut bench = Bench::new(&Entries::default());
    let (a, b) = (("2001:db8:bb::/64", [(10, "")]), ("2001:db8:bb::/64", [(11, "")]));
    assert_eq!(bench.apply([there(a.0, &a.1), there(b.0, &b.1)]), ["+route 0 2001:db8:bb::/64 ::%0"]);
    assert_eq!(bench.apply([gone(a.0, &a.1)]), ["+route 0 2001:db8:bb::/64 ::%1"]);
}

#[test]
fn a_link_goes_down_and_up() {
    let mut bench = Bench::new(&Entries::default());
    bench.apply([there("2001:db8:bb::/64", &[(10, "")]), neighbour(10, HOST, Some(MAC))]);
    bench.apply([there("::/0", &[(10, ROUTER), (11, "fe80::2")])]);
    let down = bench.apply([link(10, "p0", false)]);
    assert_eq!(down, ["+route 0 ::/0 fe80::2%1", "-route 0 2001:db8:bb::/64", "-neighbour 2001:db8:bb::1%0"]);
    assert_eq!(bench.kept, BTreeSet::from([(11, address("fe80::2"))]));
    let up = bench.apply([link(10, "p0", true)]);
    let known = format!("+neighbour {HOST}%0 {MAC}");
    assert_eq!(up, [known.as_str(), "+route 0 ::/0 fe80::1%0 fe80::2%1", "+route 0 2001:db8:bb::/64 ::%0"]);
    // The kernel removes a kept neighbour with its link, and gets a new request; not so when resolution merely failed.
    let lost = |gone| Change::Neighbour { index: 10, address: address(ROUTER), mac: None, is_permanent: false, gone };
    bench.mirror.apply(lost(false));
    assert_eq!(bench.mirror.flush(&mut bench.layer).keep, []);
    bench.mirror.apply(lost(true));
    assert_eq!(bench.mirror.flush(&mut bench.layer).keep, [(10, address(ROUTER))]);
}

/// D285: routes with backups stay as they were while their link is down, whether the kernel keeps them or not, until it
/// has others, or there are no backups any more.
#[test]
fn routes_with_backups_stay_while_their_link_is_down() {
    let mut bench = Bench::new(&Entries::default());
    let hop = NextHop { port: PortId(0), address: address(ROUTER) };
    let texts = ["2001:db8:1::/48", "2001:db8:2::/48", "2001:db8:3::/48", "2001:db8:4::/48"];
    bench.apply(texts.map(|to| there(to, &[(10, ROUTER)])));
    bench.apply([neighbour(10, ROUTER, Some(MAC))]);
    bench.mirror.set_backed_up(texts[..3].iter().map(|to| (prefix(to), hop)).collect());
    assert_eq!(bench.flush(), [""; 0]);
    // Without a carrier, then taken down: the kernel's routes go.
    let down = bench.apply([link(10, "p0", false)]);
    assert_eq!(down, ["-route 0 2001:db8:4::/48", "-neighbour fe80::1%0"]);
    assert_eq!(bench.apply(texts.map(|to| gone(to, &[(10, ROUTER)]))), [""; 0]);
    // IS-IS has computed its paths: another neighbour, none, and none that is there yet.
    bench.mirror.set_backed_up([0, 2].map(|of: usize| (prefix(texts[of]), hop)).into());
    assert_eq!(bench.flush(), ["-route 0 2001:db8:2::/48"]);
    assert_eq!(bench.apply([there(texts[0], &[(11, "fe80::2")])]), ["+route 0 2001:db8:1::/48 fe80::2%1"]);
    // The backups' time is over.
    bench.mirror.set_backed_up(BTreeSet::new());
    assert_eq!(bench.flush(), ["-route 0 2001:db8:3::/48"]);
    // What is not there yet does not come by a link that is down, nor does another table's.
    bench.mirror.set_backed_up([(prefix(texts[3]), hop)].into());
    let of_table = Change::Route(KernelRoute { table: 7, ..route(texts[3], &[(10, ROUTER)]) });
    assert_eq!(bench.apply([there(texts[3], &[(10, ROUTER)]), of_table]), [""; 0]);
    bench.apply([neighbour(10, ROUTER, None)]);
    let up = bench.apply([link(10, "p0", true)]);
    assert_eq!(up, ["+route 0 2001:db8:4::/48 fe80::1%0", "+route 7 2001:db8:4::/48 fe80::1%0"]);
    assert_eq!(bench.apply([link(10, "p0", false)]), ["-route 7 2001:db8:4::/48"]);
    // The interface is gone as well.
    let of_table = Change::Route(KernelRoute { table: 7, gone: true, ..route(texts[3], &[(10, ROUTER)]) });
    let gone = [of_table, gone(texts[3], &[(10, ROUTER)]), Change::LinkGone { index: 10 }];
    assert_eq!(bench.apply(gone), [""; 0]);
}

/// D285: the node hears of each change of a link, once.
#[test]
fn links_that_change_are_told_to_the_node() {
    let mut links = PortLinks::default();
    let mut follow = |now: &[bool]| -> Vec<(u16, bool)> {
        let told = |command| match command {
            Command::SetLink { port, is_up } => (port.0, is_up),
            other => panic!("{other:?}"),
        };
        links.follow(now).into_iter().map(told).collect()
    };
    assert_eq!(follow(&[true, true]), []);
    assert_eq!(follow(&[true, false]), [(1, false)]);
    assert_eq!(follow(&[true, false]), []);
    assert_eq!(follow(&[false, true, false]), [(0, false), (2, false), (1, true)]);
    assert_eq!(follow(&[true, true, true]), [(0, true), (2, true)]);
}

#[test]
fn the_configuration_wins() {
    let to = prefix("2001:db8:1::/48");
    let by_hand = NextHop { port: PortId(1), address: address("fe80::7") };
    let neighbours = [((PortId(1), address("fe80::7")), MAC)].into();
    let only_neighbour = Entries { neighbours, ..Entries::default() };
    let fixed = Entries {
        routes: [((TableId(0), to), RouteAction::Via(vec![by_hand]))].into(),
        sids: [(prefix("5f00:0:1::/48"), SidBehavior::EndDt6(TableId(0)))].into(),
        ..only_neighbour.clone()
    };
    let mut bench = Bench::new(&fixed);
    let kernels = [
        there("2001:db8:1::/48", &[(10, ROUTER)]),
        there("5f00:0:1::/48", &[(10, ROUTER)]),
        there("2001:db8:ff::1/128", &[(10, ROUTER)]),
        neighbour(11, "fe80::7", Some(MacAddress([2; 6]))),
    ];
    assert_eq!(bench.apply(kernels), [""; 0]);
    assert_eq!(bench.apply([gone("2001:db8:1::/48", &[(10, ROUTER)])]), [""; 0]);
    bench.apply([there("2001:db8:1::/48", &[(10, ROUTER)])]);
    // The configuration lets go of the route and the SID: the kernel's take their place.
    bench.node.apply(Command::RemoveRoute { table: TableId(0), prefix: to }).unwrap();
    bench.node.apply(Command::RemoveSid(prefix("5f00:0:1::/48"))).unwrap();
    bench.mirror.configure(bench.ports.clone(), &bench.config, &only_neighbour, &mut bench.layer);
    assert_eq!(bench.flush(), ["+route 0 2001:db8:1::/48 fe80::1%0", "+route 0 5f00:0:1::/48 fe80::1%0"]);
    // And back.
    bench.configure(&fixed);
    assert_eq!(bench.flush(), [""; 0]);
    assert_eq!(bench.apply([gone("2001:db8:1::/48", &[(10, ROUTER)])]), [""; 0]);
}

/// Next hops of the configuration are kept resolved: those without a MAC address, and destinations on a link.
#[test]
fn next_hops_in_use_are_kept_resolved() {
    let hop = NextHop { port: PortId(1), address: address("fe80::7") };
    let encaps = RouteAction::Encaps { segments: vec![address(HOST)], mode: EncapsMode::Reduced, hmac_key_id: None };
    let mut bench = Bench::new(&Entries {
        sids: [(prefix("5f00:0:1::/48"), SidBehavior::EndX(Default::default(), hop))].into(),
        routes: [((TableId(0), prefix("2001:db8:1::/48")), encaps)].into(),
        ..Entries::default()
    });
    assert_eq!(bench.kept, BTreeSet::from([(11, address("fe80::7"))]));
    assert_eq!(bench.apply([neighbour(11, "fe80::7", Some(MAC))]), [format!("+neighbour fe80::7%1 {MAC}")]);
    bench.apply([there("2001:db8:bb::/64", &[(10, "")])]);
    assert_eq!(bench.kept, BTreeSet::from([(10, address(HOST)), (11, address("fe80::7"))]));
    // Entries set by hand in the kernel are not changed.
    bench.apply([Change::Neighbour {
        index: 10,
        address: address(HOST),
        mac: Some(MAC),
        is_permanent: true,
        gone: false,
    }]);
    assert_eq!(bench.kept, BTreeSet::from([(11, address("fe80::7"))]));
}

/// A second dump: entries that it does not have are removed, and nothing else changes.
#[test]
fn a_new_dump_keeps_the_entries_that_it_repeats() {
    let mut bench = Bench::new(&Entries::default());
    bench.apply([there("2001:db8:1::/48", &[(10, ROUTER)]), there("2001:db8:2::/48", &[(10, ROUTER)])]);
    let links = [(5, "eth0"), (10, "p0"), (11, "p1")].map(|(index, name)| link(index, name, true));
    let kept = there("2001:db8:2::/48", &[(10, ROUTER)]);
    let dump = [Change::DumpBegins].into_iter().chain(links).chain([kept, Change::DumpEnds]);
    assert_eq!(bench.apply(dump), ["-route 0 2001:db8:1::/48"]);
}

/// D262: a site's network with its hosts, a default route and a VRF, beside those of IPv6; the prefixes of one version
/// say nothing about addresses of the other.
#[test]
fn ipv4_is_followed_as_ipv6_is() {
    let ipv4 = |text: &str| format!("::ffff:{text}");
    let net =
        |text: &str, len| KernelRoute { prefix: prefix(&format!("::ffff:{text}/{}", 96 + len)), ..route("::/0", &[]) };
    let on_link = |index| vec![KernelNextHop { index, gateway: None }];
    let mut bench = Bench::new(&Entries::default());
    let gone = bench.apply([Change::Address { index: 10, address: address(&ipv4("192.0.2.1")), gone: false }]);
    assert_eq!(gone, ["port 0 [::ffff:192.0.2.1] 1500"]);
    // A neighbour is accepted where a route of its own version leads.
    let host = || neighbour(10, &ipv4("192.0.2.7"), Some(MAC));
    let ipv6_default = Change::Route(KernelRoute { next_hops: on_link(10), ..route("::/0", &[]) });
    assert_eq!(bench.apply([ipv6_default, host()]), ["+route 0 ::/0 ::%0"]);
    let connected = Change::Route(KernelRoute { next_hops: on_link(10), ..net("192.0.2.0", 24) });
    let expected = ["+neighbour ::ffff:192.0.2.7%0 02:00:00:00:01:01", "+route 0 192.0.2.0/24 ::%0"];
    assert_eq!(bench.apply([connected]), expected);
    let gateway = |table| {
        let next_hops = vec![KernelNextHop { index: 11, gateway: Some(address(&ipv4("198.51.100.1"))) }];
        Change::Route(KernelRoute { table, next_hops, ..net("0.0.0.0", 0) })
    };
    let expected = ["+route 0 0.0.0.0/0 ::ffff:198.51.100.1%1", "+route 7 0.0.0.0/0 ::ffff:198.51.100.1%1"];
    assert_eq!(bench.apply([gateway(MAIN_TABLE), gateway(7)]), expected);
    assert!(bench.kept.contains(&(11, address(&ipv4("198.51.100.1")))), "{:?}", bench.kept);
    let away = Change::Neighbour {
        index: 10,
        address: address(&ipv4("192.0.2.7")),
        mac: None,
        is_permanent: false,
        gone: true,
    };
    assert_eq!(bench.apply([away]), ["-neighbour ::ffff:192.0.2.7%0"]);
}
