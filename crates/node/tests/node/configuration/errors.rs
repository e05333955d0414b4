//! Wrong keys, types and notations: each error names file and line, the expected and the found value.

use super::documentation::example;
use super::parse;

/// A transit node; line numbers below count from its first line.
pub(crate) const TRANSIT: &str = "\
[node]
loopback = '2001:db8:4::1'
[[port]]
name = 'up'
mac = '02:00:00:00:00:01'
[[port]]
name = 'down'
mac = '02:00:00:00:00:02'
[[neighbour]]
address = '2001:db8:6::1%up'
mac = '02:00:00:00:00:06'
[[neighbour]]
address = '2001:db8:1::1%down'
mac = '02:00:00:00:00:03'
[[route]]
prefix = '2001:db8:1::/64'
via = ['2001:db8:1::1%down']
[[sid]]
sid = '2001:db8:4::f'
behavior = 'End.Replicate'
group = 7
[[group]]
id = 7
proxy = '2001:db8:cc::1'
designated_qpn = 0xd00000
initial_psn = 5
role = 'transit'
sid = '2001:db8:4::f'
parent = { loopback = '2001:db8:6::1' }
branches = ['2001:db8:1::1']
downstream = ['2001:db8:1::e']
";

/// An edge; so are they here.
pub(crate) const EDGE: &str = "\
[node]
loopback = '2001:db8:1::1'
[[port]]
name = 'up'
mac = '02:00:00:00:00:01'
[[neighbour]]
address = '2001:db8:4::1%up'
mac = '02:00:00:00:00:04'
[[neighbour]]
address = '2001:db8:bb::1%up'
mac = '02:00:00:00:00:0b'
[[sid]]
sid = '2001:db8:1::e'
behavior = 'End.MT'
[[hmac_key]]
id = 1
key = '0011223344556677'
[[group]]
id = 7
proxy = '2001:db8:cc::1'
designated_qpn = 0xd00000
initial_psn = 5
role = 'edge'
sid = '2001:db8:1::e'
parent = { loopback = '2001:db8:4::1' }
receiver = [{ address = '2001:db8:bb::1', qpn = 2 }]
";

/// Replaces `from`, which occurs once, by `to`; the file must be refused with this message.
#[track_caller]
pub(crate) fn refused(file: &str, from: &str, to: &str, message: &str) {
    assert_eq!(file.matches(from).count(), 1, "{from} occurs once");
    match parse(&file.replace(from, to)) {
        Ok(_) => panic!("{to} is accepted"),
        Err(error) => assert_eq!(error, format!("node.toml:{message}")),
    }
}

/// Appends to a file, which must be refused with this message.
#[track_caller]
pub(crate) fn refused_with(file: &str, more: &str, message: &str) {
    match parse(&format!("{file}{more}")) {
        Ok(_) => panic!("{more} is accepted"),
        Err(error) => assert_eq!(error, format!("node.toml:{message}")),
    }
}

#[test]
fn the_files_below_are_valid_before_their_changes() {
    for file in [TRANSIT, EDGE] {
        parse(file).expect("right").node().expect("a node takes it");
    }
}

#[test]
fn keys_and_types() {
    let file = TRANSIT;
    refused(
        file,
        "[node]",
        "[nodes]",
        "1: unknown key `nodes`, expected one of `node`, `daemon`, `port`, `domain`, `inside`, `border`, `neighbour`, `sr_policy`, \
         `cross_connect`, `route`, `multicast_route`, `shared_hosts`, `sid`, `hmac_key`, `group`, `learning`, `traffic_class`, `egress`, `ioam`, `fast_cnp`, \
         `backpressure`, `backpressure_sids`, `steering`, `isis`, `ospf`, `bfd`, `controller`, `connection`",
    );
    for (old, message) in [
        ("[notifications]\n", "32: unknown key `notifications`, renamed to `backpressure`"),
        ("[[notification_sids]]\n", "32: unknown key `notification_sids`, renamed to `backpressure_sids`"),
    ] {
        refused_with(file, old, message);
    }
    refused(file, "loopback = '2001:db8:4::1'\n", "", "1: missing key `loopback`");
    refused(file, "name = 'down'\n", "", "6: missing key `name`");
    refused_with("", "", "1: missing key `node`");
    refused(
        file,
        "'02:00:00:00:00:06'",
        "'02:00:00:00:06'",
        "11: invalid value: string \"02:00:00:00:06\", expected a unicast MAC address such as \"02:00:00:00:00:01\"",
    );
    refused(
        file,
        "'02:00:00:00:00:06'",
        "6",
        "11: invalid value: integer `6`, expected a unicast MAC address such as \"02:00:00:00:00:01\"",
    );
    refused(
        file,
        "'2001:db8:6::1%up'",
        "'2001:db8:6::1'",
        "10: invalid value: string \"2001:db8:6::1\", expected a neighbour as ADDRESS%PORT, such as \"fe80::1%uplink\" \
         or \"192.0.2.1%hosts\"",
    );
    refused(
        file,
        "loopback = '2001:db8:4::1'",
        "loopback = 'ff02::1'",
        "2: invalid value: string \"ff02::1\", expected a unicast IPv6 address such as \"2001:db8::1\", neither \
         :: nor ::1",
    );
    refused(
        file,
        "prefix = '2001:db8:1::/64'",
        "prefix = '2001:db8:1::1/64'",
        "16: invalid value: string \"2001:db8:1::1/64\", expected a unicast address or prefix such as \
         \"2001:db8::/32\" or \"192.0.2.0/24\", all bits behind its length zero",
    );
    refused(
        file,
        "name = 'up'",
        "name = 'a/b'",
        "4: invalid value: string \"a/b\", expected a port's name: up to 64 letters, digits, '.', '_' and '-', \
         the first a letter or digit",
    );
    refused(
        file,
        "name = 'up'",
        "name = 'up'\nlink_mtu = 1279",
        "5: invalid value: integer `1279`, expected an integer from 1280 to 65535",
    );
    refused(
        file,
        "initial_psn = 5",
        "initial_psn = -1",
        "26: invalid value: integer `-1`, expected a packet sequence number of 24 bits, from 0 to 0xffffff",
    );
    refused(
        file,
        "designated_qpn = 0xd00000",
        "designated_qpn = 0x1000000",
        "25: invalid value: integer `16777216`, expected a queue pair number of 24 bits, from 2 to 0xffffff: 0 and \
         1 are reserved",
    );
    refused(
        file,
        "designated_qpn = 0xd00000",
        "designated_qpn = 1",
        "25: invalid value: integer `1`, expected a queue pair number of 24 bits, from 2 to 0xffffff: 0 and \
         1 are reserved",
    );
    refused(
        file,
        "role = 'transit'",
        "role = 'leaf'",
        "27: unknown value `leaf`, expected one of `edge`, `transit`, `bud`",
    );
    refused(
        file,
        "initial_psn = 5",
        "initial_psn = 5\npolicy = { t_hold = '20' }",
        "27: invalid value: string \"20\", expected a time such as \"20us\": a number and one of ns, us, ms, s",
    );
    refused(
        file,
        "behavior = 'End.Replicate'",
        "behavior = 'End.B6'",
        "20: unknown value `End.B6`, expected one of `End`, `End.X`, `uN`, `uA`, `End.DT6`, `End.DX6`, `End.DT4`, \
         `End.DT46`, `End.DX4`, `End.DX2`, \
         `End.B6.Encaps`, `End.B6.Encaps.Red`, `End.Replicate`, `End.MT`, `END.C`, `END.E`",
    );
    refused(file, "[node]", "[node", "1: unclosed table, expected `]`");
}

/// In the terms of TOML, not in those of the program.
#[test]
fn wrong_shapes() {
    refused(TRANSIT, "[node]", "node = 5\n[other]", "1: invalid type: integer `5`, expected a table");
    refused_with("", "[node]\nloopback = '2001:db8::1'\n[port]", "3: invalid type: table, expected an array");
    refused(
        TRANSIT,
        "parent = { loopback = '2001:db8:6::1' }",
        "parent = '2001:db8:6::1'",
        "29: invalid type: string \"2001:db8:6::1\", expected a table",
    );
    refused(
        TRANSIT,
        "branches = ['2001:db8:1::1']",
        "branches = 1",
        "30: invalid type: integer `1`, expected an array",
    );
}

/// No error shows a key, or what may have been meant as one.
#[test]
fn keys_stay_secret() {
    let expected = "wrong value, not shown here: expected a string of 8 to 64 octets, each two hexadecimal digits";
    for key in
        ["'00112'", "'s3cret'", "''", "0x112233", "1.5", "['0011223344556677']", "{ a = '0011223344556677' }", "true"]
    {
        refused(EDGE, "'0011223344556677'", key, &format!("17: {expected}"));
    }
    for length in [1, 7, 65] {
        let key = format!("'{}'", "5e".repeat(length));
        refused(EDGE, "'0011223344556677'", &key, &format!("17: {expected}"));
    }
    refused(
        EDGE,
        "id = 1\n",
        "id = '0011223344556677'\n",
        "16: wrong value, not shown here: expected an integer from 0 to 4294967295",
    );
    refused(
        EDGE,
        "key = '0011223344556677'",
        "key = '0011223344556677'\ncover = '0011223344556677'",
        "18: wrong value, not shown here: expected one of `rfc8754`, `tlvs`, `linux`",
    );
    let without = EDGE.replace("[[hmac_key]]\nid = 1\nkey = '0011223344556677'\n", "");
    let top = |value: &str| format!("{value}\n{without}");
    let array = "1: wrong value, not shown here: expected an array";
    refused_with(&top("hmac_key = '0011223344556677'"), "", array);
    refused_with(&top("hmac_key = { id = 1, key = '0011223344556677' }"), "", array);
    refused_with(&top("hmac_key = ['0011223344556677']"), "", "1: wrong value, not shown here: expected a table");
    refused(EDGE, "'0011223344556677'", "'0011223344556677", "17: invalid literal string, expected `'`");
    refused(EDGE, "'0011223344556677'", "0011223344556677", "17: unexpected leading zero, expected nothing");
    refused(EDGE, "'0011223344556677'", "s3cret", "17: string values must be quoted, expected literal string");
}

/// Nor does anything that holds one, however it is written out.
#[test]
fn keys_are_not_printed() {
    let configuration = parse(EDGE).expect("right");
    let node = configuration.node().expect("a node takes it");
    let all = format!("{configuration:?}{configuration:#?}{:?}{node:?}{node:#?}", configuration.spec.commands());
    let all: String = all.chars().filter(|character| !character.is_whitespace()).collect();
    assert!(all.contains("HmacKey(Tlvs)"), "the key is there");
    for octets in ["0011223344556677", "0,17,34,51,68", "0,11,22,33,44", "0x0,0x11,0x22", "00,11,22,33", "\\0\\u{11}"] {
        assert!(!all.contains(octets), "{octets}");
    }
}

/// Whatever line of the example is left out or cut off: the answer is a configuration, or an error with a line of the
/// file.
#[test]
fn damaged_files_are_refused_without_a_panic() {
    let lines: Vec<&str> = example().lines().collect();
    let mut refused = 0;
    for (number, line) in lines.iter().enumerate() {
        for replacement in ["", &line[..line.len() / 2], "= 1"] {
            let mut changed = lines.clone();
            changed[number] = replacement;
            let Err(error) = parse(&changed.join("\n")) else {
                continue;
            };
            let line: usize = error.split(':').nth(1).and_then(|line| line.parse().ok()).expect("a line");
            assert!((1..=lines.len() + 1).contains(&line), "{error}");
            assert!(!error.contains("0001020304050607"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > lines.len());
}
