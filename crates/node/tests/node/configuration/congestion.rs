//! `[[traffic_class]]`, `[[egress]]`, `[ioam]`, `[fast_cnp]` and `[[connection]]`: the resulting configuration, and
//! contradictions.

use super::errors::{TRANSIT, refused_with};
use super::parse;
use srdma_dataplane::{
    ClassMap, Command, Connection, EgressConfig, FastCnpConfig, IoamConfig, IoamInterface, IoamNamespace, Marking,
    PfcConfig, Scheduling, StormAction, TimestampFormat, Watchdog, WideData,
};
use srdma_frame::PortId;
use srdma_wire::Qpn;
use std::time::Duration;

/// From line 32 on.
const EGRESS: &str = "\
[[traffic_class]]
class = 3
dscps = [26, 27]
[[egress]]
port = 'up'
rate_bits_per_s = 25_000_000_000
limit_octets = 500_000
watchdog = { bound = '200ms', quiet = '400ms', action = 'drop' }
[[egress.class]]
class = 3
limit_octets = 900_000
quantum_octets = 9216
notify_octets = 0
ecn = { k_min_octets = 100_000, k_max_octets = 400_000, p_max = 0.2 }
pfc = { xoff_octets = 300_000, xon_octets = 200_000, headroom_octets = 100_000, quanta = 1000 }
[[egress]]
port = 'down'
rate_bits_per_s = 1000
paced = true
";

const FAST_CNP: &str = "\
[fast_cnp]
senders = ['2001:db8:aa::/64']
translated = ['2001:db8:bb::/64']
[[connection]]
host = '2001:db8:bb::1'
host_qpn = 17
peer = '2001:db8:aa::1'
peer_qpn = 18
";

const IOAM: &str = "\
[ioam]
node_id = 7
namespace = [{ id = 1, data_wide = 'link_load' }]
interface = [{ port = 'up', id = 4, fills = true }]
";

/// The commands of the sections that are added to a transit node.
fn commands(more: &str) -> Vec<Command> {
    let without = parse(TRANSIT).expect("right").spec.commands().len();
    let configuration = parse(&format!("{TRANSIT}{more}")).expect("right");
    configuration.node().expect("a node takes it");
    let is_ours = |command: &Command| {
        matches!(
            command,
            Command::SetClasses(_)
                | Command::SetEgress { .. }
                | Command::SetIoam(_)
                | Command::SetFastCnp(_)
                | Command::AddConnection(_)
        )
    };
    let count = configuration.spec.commands().len();
    let ours: Vec<Command> = configuration.spec.commands().into_iter().filter(is_ours).collect();
    assert_eq!(ours.len() + without, count);
    ours
}

/// A section with one thing changed.
fn with(section: &str, from: &str, to: &str) -> String {
    assert_eq!(section.matches(from).count(), 1, "{from} occurs once");
    section.replace(from, to)
}

#[track_caller]
fn refused(more: &str, message: &str) {
    refused_with(TRANSIT, more, message);
}

/// FC-5-4: and no queue behaves otherwise than before.
#[test]
fn everything_is_off_by_default() {
    assert!(commands("").is_empty());
}

#[test]
fn ports_get_their_classes() {
    let commands = commands(EGRESS);
    let [
        Command::SetClasses(map),
        Command::SetEgress { port, egress },
        Command::SetEgress { port: second, egress: plain },
    ] = commands.as_slice()
    else {
        panic!("{commands:?}")
    };
    let mut expected = ClassMap::default();
    expected.set(26, 3).and(expected.set(27, 3)).expect("there are these");
    assert_eq!((map, *port, *second), (&expected, PortId(0), PortId(1)));
    let mut expected = EgressConfig::new(25_000_000_000, 500_000);
    let class = &mut expected.classes[3];
    class.limit_octets = 900_000;
    class.scheduling = Scheduling::Weighted { quantum_octets: 9216 };
    class.notify_octets = Some(0);
    class.marking = Some(Marking { k_min_octets: 100_000, k_max_octets: 400_000, p_max: 0.2 });
    class.pfc = Some(PfcConfig { xoff_octets: 300_000, xon_octets: 200_000, headroom_octets: 100_000, quanta: 1000 });
    expected.watchdog = Some(Watchdog { bound_ns: 200_000_000, quiet_ns: 400_000_000, action: StormAction::Drop });
    assert_eq!(**egress, expected);
    // Without a limit it is that of the port.
    assert_eq!(**plain, EgressConfig::new(1000, 1 << 20));
    let interfaces = parse(&format!("{TRANSIT}{EGRESS}")).expect("right").interfaces;
    assert_eq!(interfaces.iter().map(|port| port.pace_bits_per_s).collect::<Vec<_>>(), [None, Some(1000)]);
}

/// D88: trimmed packets have a class that the file names.
#[test]
fn ports_trim_where_trimmed_packets_have_a_class() {
    let trimming = |dscp: u8| with(EGRESS, "'drop' }\n", &format!("'drop' }}\ntrim_dscp = {dscp}\n"));
    let Some(Command::SetEgress { egress, .. }) = commands(&trimming(27)).into_iter().nth(1) else {
        panic!("no classes of a port")
    };
    assert_eq!(egress.trim_dscp, Some(27));
    let problem = "40: DSCP 48 belongs to no class: a [[traffic_class]] has to map it";
    refused(&trimming(48), problem);
}

#[test]
fn classes_that_contradict_themselves_are_refused() {
    let changed = |from: &str, to: &str| with(EGRESS, from, to);
    let several = |from: &str, to: &str| EGRESS.replacen(from, to, 1);
    refused(&changed("port = 'down'", "port = 'up'"), "48: there is an [[egress]] of port up already");
    refused(&changed("port = 'down'", "port = 'out'"), "48: unknown port out: ports are up, down");
    refused(&changed("[26, 27]", "[26, 26]"), "34: DSCP 26 belongs to class 3 already");
    refused(&changed("[26, 27]", "[26, 64]"), "34: invalid value: integer `64`, expected an integer from 0 to 63");
    refused(&changed("[26, 27]", "[]"), "33: no DSCP belongs to class 3, expected some");
    refused(&several("class = 3", "class = 4"), "41: no DSCP belongs to class 3: no [[traffic_class]] maps one");
    refused(
        &format!("{EGRESS}[[traffic_class]]\nclass = 3\ndscps = [2]\n"),
        "52: there is a [[traffic_class]] 3 already",
    );
    refused("[[traffic_class]]\nclass = 3\ndscps = [2]\n", "33: no port has traffic classes: there is no [[egress]]");
    refused(&format!("{EGRESS}class = [{{ class = 0 }}, {{ class = 0 }}]\n"), "51: port down has a class 0 already");
    refused(
        &changed("xon_octets = 200_000", "xon_octets = 300_001"),
        "46: xon_octets is 300001, expected no more than xoff_octets, 300000",
    );
    refused(
        &changed("k_max_octets = 400_000", "k_max_octets = 99_999"),
        "45: k_min_octets is 100000, expected no more than k_max_octets, 99999",
    );
    refused(
        &changed("p_max = 0.2", "p_max = 1.1"),
        "45: invalid value: floating point `1.1`, expected a number from 0 to 1",
    );
    refused(&changed("quiet = '400ms'", "quiet = '0s'"), "39: quiet is 0, expected a time above it");
    refused(
        &changed("action = 'drop'", "action = 'ignore'"),
        "39: unknown value `ignore`, expected `forward` or `drop`",
    );
    refused(
        &changed("rate_bits_per_s = 1000", "rate_bits_per_s = 0"),
        "49: invalid value: integer `0`, expected an integer from 1 to 18446744073709551615",
    );
    refused(
        &changed("quantum_octets = 9216", "quantum_octets = 255"),
        "43: invalid value: integer `255`, expected an integer from 256 to 4294967295",
    );
    refused(
        &changed("quanta = 1000", "quanta = 0"),
        "46: invalid value: integer `0`, expected an integer from 1 to 65535",
    );
}

/// FC-6-1, D45, D48.
#[test]
fn fast_cnp_has_the_documented_keys() {
    let commands = commands(&format!("{EGRESS}{FAST_CNP}"));
    let [_, _, _, Command::SetFastCnp(config), Command::AddConnection(connection)] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    let prefix = |text: &str| vec![srdma_wire::Prefix::new(text.parse().expect("an address"), 64).expect("one")];
    let expected = FastCnpConfig {
        senders: prefix("2001:db8:aa::"),
        translated: prefix("2001:db8:bb::"),
        ..FastCnpConfig::default()
    };
    assert_eq!(**config, expected);
    let qpn = |number| Qpn::new(number).expect("24 bits");
    let expected = Connection {
        host: "2001:db8:bb::1".parse().expect("an address"),
        host_qpn: qpn(17),
        peer: "2001:db8:aa::1".parse().expect("an address"),
        peer_qpn: qpn(18),
    };
    assert_eq!(*connection, expected);

    let rest = "capable = ['2001:db8:aa::/64']\nswitches = ['2001:db8:ff::/64']\nhosts_inside = ['2001:db8:bb::/64']\n\
                learn_connections = true\nmark_unknown = false\nmark_notified = false\ninterval = '20us'\n\
                per_second = 1000\nat_once = 10\ndrain = '200us'\nincapable_for = '9s'\n";
    let section = FAST_CNP.replace("[[connection]]", &format!("{rest}[[connection]]"));
    let all = self::commands(&format!("{EGRESS}{section}"));
    let Some(Command::SetFastCnp(config)) = all.get(3) else { panic!("{all:?}") };
    let expected = FastCnpConfig {
        senders: prefix("2001:db8:aa::"),
        capable: prefix("2001:db8:aa::"),
        switches: prefix("2001:db8:ff::"),
        hosts_inside: prefix("2001:db8:bb::"),
        translated: prefix("2001:db8:bb::"),
        learn_connections: true,
        mark_unknown: false,
        mark_notified: false,
        interval: Duration::from_micros(20),
        per_second: 1000,
        at_once: 10,
        drain: Some(Duration::from_micros(200)),
        incapable_for: Duration::from_secs(9),
    };
    assert_eq!(**config, expected);

    let types = with(
        TRANSIT,
        "[node]\n",
        "[node]\nfast_cnp_address_type = 0x9d\nfast_cnp_trace_type = 0x9f\nmarking_seed = 4\n",
    );
    let node = parse(&types).expect("right").spec.node;
    assert_eq!((node.fast_cnp_types.address(), node.fast_cnp_types.trace(), node.marking_seed), (0x9D, 0x9F, 4));
}

/// FC-4-3, FC-5-3, D48.
#[test]
fn fast_cnp_that_could_not_work_is_refused() {
    let changed = |from: &str, to: &str| format!("{EGRESS}{}", with(FAST_CNP, from, to));
    refused(
        &with(EGRESS, "notify_octets = 0\n", "").replace("[[traffic", &format!("{FAST_CNP}[[traffic")),
        "32: no sender would be notified: no [[egress.class]] has notify_octets",
    );
    refused(
        &changed("host = '2001:db8:bb::1'", "host = '2001:db8:b::1'"),
        "55: 2001:db8:b::1 is in no prefix of `translated` in [fast_cnp]: it is not translated for",
    );
    let (_, connection) = FAST_CNP.split_at(FAST_CNP.find("[[connection]]").expect("there is one"));
    refused(connection, "33: [[connection]] needs [fast_cnp] or [steering]");
    refused(
        &format!("{EGRESS}{FAST_CNP}{connection}"),
        "63: 2001:db8:bb::1 has a connection with queue pair 0x12 of 2001:db8:aa::1 already",
    );
    refused(
        &changed("translated = ['2001:db8:bb::/64']", "learn_connections = true"),
        "53: connections are learnt of `translated` hosts, and there are none",
    );
    for key in ["switches", "hosts_inside"] {
        refused(
            &changed("senders", &format!("{key} = ['::/0']\nsenders")),
            &format!("52: {key} has ::/0, which excludes no address (FC-5-3)"),
        );
    }
    refused(&changed("senders", "interval = '0s'\nsenders"), "52: interval is 0, expected a time above it");
    refused(
        &changed("senders", "per_second = 0\nsenders"),
        "52: invalid value: integer `0`, expected an integer from 1 to 4294967295",
    );
    super::errors::refused(
        TRANSIT,
        "[node]",
        "[node]\nfast_cnp_address_type = 0x3e",
        "2: invalid value: integer `62`, expected an integer from 128 to 159",
    );
}

#[test]
fn traces_are_written_to_as_the_file_says() {
    let config = |more: &str| match commands(more).as_slice() {
        [Command::SetIoam(config)] => (**config).clone(),
        other => panic!("{other:?}"),
    };
    let up = IoamInterface { port: PortId(0), id: Some(4), id_wide: None, fills: true };
    let namespace = IoamNamespace { id: 1, data: None, data_wide: Some(WideData::LinkLoad), opaque: None };
    let expected =
        IoamConfig { node_id: Some(7), namespaces: vec![namespace], interfaces: vec![up], ..IoamConfig::default() };
    assert_eq!(config(IOAM), expected);
    let with_groups = IoamConfig { group_interval: Some(Duration::from_micros(20)), ..expected };
    assert_eq!(config(&with(IOAM, "node_id = 7", "node_id = 7\ngroup_interval = '20us'")), with_groups);
    let all = "\
[ioam]
node_id_wide = 0xff_ffff_ffff_fffe
timestamps = 'ptp'
tells_buffer_occupancy = true
namespace = [{ id = 0xffff, data = 1, data_wide = 2, opaque = { schema_id = 3, data = '00ff10ab' } }]
interface = [{ port = 'down', id_wide = 5, fills = true }, { port = 'up' }]
";
    let opaque = Some((3, vec![0x00, 0xFF, 0x10, 0xAB]));
    let namespace = IoamNamespace { id: 0xFFFF, data: Some(1), data_wide: Some(WideData::Fixed(2)), opaque };
    let down = IoamInterface { port: PortId(1), id: None, id_wide: Some(5), fills: true };
    let expected = IoamConfig {
        node_id: None,
        node_id_wide: Some(0xFF_FFFF_FFFF_FFFE),
        namespaces: vec![namespace],
        interfaces: vec![down, IoamInterface { id: None, fills: false, ..up }],
        timestamps: TimestampFormat::Ptp,
        tells_buffer_occupancy: true,
        group_interval: None,
    };
    assert_eq!(config(all), expected);
}

#[test]
fn traces_that_could_not_be_written_are_refused() {
    let changed = |from: &str, to: &str| with(IOAM, from, to);
    refused(
        &changed("namespace = [{ id = 1, data_wide = 'link_load' }]\n", ""),
        "32: the node is in no namespace: no trace would be written to",
    );
    let of_groups = |interval: &str| format!("node_id = 7\ngroup_interval = '{interval}'");
    refused(&changed("node_id = 7", &of_groups("500ns")), "34: expected a time of at least 1us");
    refused(
        &with(&changed("node_id = 7", &of_groups("5us")), "'link_load'", "3"),
        "34: no [[ioam.namespace]] has data_wide = \"link_load\"",
    );
    refused(&changed(", fills = true", ""), "32: no trace would be written to: no [[ioam.interface]] has fills = true");
    refused(&changed("'link_load' }", "'link_load' }, { id = 1 }"), "34: there is a namespace 1 already");
    refused(
        &changed("fills = true }", "fills = true }, { port = 'up' }"),
        "35: there is an interface of port up already",
    );
    refused(&changed("port = 'up'", "port = 'ab'"), "35: unknown port ab: ports are up, down");
    refused(
        &changed("node_id = 7", "node_id = 0xffffff"),
        "33: invalid value: integer `16777215`, expected an integer from 0 to 16777214",
    );
    refused(
        &changed("'link_load' }", "'load' }"),
        "34: invalid value: string \"load\", expected an integer of 64 bits, or \"link_load\"",
    );
    refused(
        &changed("'link_load' }", "'link_load', opaque = { schema_id = 1, data = '00ff' } }"),
        "34: opaque data of 2 octets, expected a multiple of 4, at most 1020",
    );
}
