//! End.MT and the reverse path over scapy's packets.

use crate::process::common::{Bench, golden, ipv6, packets, port};
use serde_json::{Value, json};

/// The key of scapy's packets, HMAC Key ID 42.
const KEY: &str = "7365637265742d6b65792d666f722d74657374732d303132333435363738396162";

/// The edge node of scapy's packets; receivers are behind port `hosts`.
fn edge(sid_keys: &str, more: &str) -> String {
    format!(
        "[node]
        loopback = '2001:db8:a::1'
        [[port]]
        name = 'up'
        mac = '02:00:00:00:00:02'
        [[port]]
        name = 'hosts'
        mac = '02:00:00:00:00:03'
        [[neighbour]]
        address = 'fe80::9%hosts'
        mac = '02:00:00:00:00:09'
        [[route]]
        prefix = '2001:db8:2::/64'
        via = ['fe80::9%hosts']
        [[sid]]
        sid = '5f00:0:1:e000::'
        behavior = 'End.MT'
        {sid_keys}
        {more}"
    )
}

fn run(configuration: &str) -> (Bench, Value) {
    let bench = Bench::new(configuration);
    let report = bench.run(&[("up", golden("scapy_02_endmt_in"))], &[]);
    (bench, report)
}

/// The copies of the first packet are scapy's, byte for byte (MT-5.2-3, MT-5.2-4, D5, D10, D11); so are those of the
/// packets that differ from it only in what the edge removes, at their times. The sixth names eleven receivers (D7),
/// the fifth one.
#[test]
fn copies_equal_those_of_scapy() {
    let (bench, report) = run(&edge("", ""));
    let inputs = packets(&golden("scapy_02_endmt_in"));
    let expected = packets(&golden("scapy_03_endmt_out"));
    let sent = bench.sent("hosts");
    assert_eq!(ipv6(&sent[..2]), ipv6(&expected));
    assert_eq!(sent[0].ethernet(), [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 3]);
    assert_eq!(sent[..2].iter().map(|packet| packet.time_ns).collect::<Vec<_>>(), [inputs[0].time_ns; 2]);
    for (input, copies) in [(1, 2..4), (2, 4..6), (3, 6..8), (6, 20..22)] {
        assert_eq!(ipv6(&sent[copies.clone()]), ipv6(&expected), "packet {}", input + 1);
        assert!(sent[copies].iter().all(|copy| copy.time_ns == inputs[input].time_ns));
    }
    assert_eq!(ipv6(&sent[8..9]), ipv6(&expected[..1]), "packet 5");
    assert_eq!(sent.len(), 22);
    assert_eq!(port(&report, "hosts")["sent"], json!({ "frames": 22, "octets": 22 * 130 }));
    assert_eq!(port(&report, "up")["received"]["frames"], 8);
    assert_eq!(
        port(&report, "up")["drops"],
        json!({ "no_multicast_route": 1 }),
        "the eighth goes to a multicast group"
    );
    assert_eq!(report["sids"][0]["frames"], 7);
}

/// Branch mode `multicast`: the group's address is the edge's End.MT SID (MT-5.1-3, D3).
#[test]
fn a_multicast_group_is_an_end_mt_sid() {
    let route = "[[multicast_route]]\nsource = '2001:db8:6::1'\ngroup = 'ff3e::100'\nincoming = 'up'\nend_mt = true";
    let (bench, report) = run(&edge("", route));
    let sent = bench.sent("hosts");
    assert_eq!(ipv6(&sent[22..]), ipv6(&packets(&golden("scapy_03_endmt_out"))));
    assert_eq!(port(&report, "up")["drops"], json!({}));
}

/// With `require_hmac` only the packet whose HMAC is that of the key and its cover passes (MT-9-1, D9).
#[test]
fn only_a_valid_hmac_passes() {
    let keyed = |id: u32, key: &str, cover: &str, admitted: &str| {
        edge("require_hmac = true", &format!("[[hmac_key]]\nid = {id}\nkey = '{key}'\ncover = '{cover}'"))
            .replace("loopback =", &format!("end_mt_cover = '{admitted}'\n        loopback ="))
    };
    let copies = packets(&golden("scapy_03_endmt_out"));
    let inputs = packets(&golden("scapy_02_endmt_in"));
    for (cover, passes) in [("rfc8754", 2), ("tlvs", 3)] {
        let (bench, report) = run(&keyed(42, KEY, cover, cover));
        let sent = bench.sent("hosts");
        assert_eq!(ipv6(&sent), ipv6(&copies), "{cover}");
        assert_eq!(sent[0].time_ns, inputs[passes].time_ns, "{cover}");
        let drops = json!({ "hmac_missing": 5, "hmac_mismatch": 1, "no_multicast_route": 1 });
        assert_eq!(port(&report, "up")["drops"], drops, "{cover}");
    }
    let (bench, report) = run(&keyed(42, KEY, "rfc8754", "tlvs"));
    assert_eq!(bench.sent("hosts"), [], "RFC 8754's text leaves the lists unsigned");
    let drops = json!({ "hmac_missing": 5, "hmac_cover": 1, "hmac_mismatch": 1, "no_multicast_route": 1 });
    assert_eq!(port(&report, "up")["drops"], drops);
    let wrong = KEY.replace("62", "63");
    for (id, key, reason) in [(42, wrong.as_str(), "hmac_mismatch"), (43, KEY, "hmac_unknown_key")] {
        let (bench, report) = run(&keyed(id, key, "tlvs", "tlvs"));
        assert_eq!(bench.sent("hosts"), []);
        let drops = json!({ "hmac_missing": 5, reason: 2, "no_multicast_route": 1 });
        assert_eq!(port(&report, "up")["drops"], drops);
    }
}

/// An edge of a group to which scapy's responses come, sent by one receiver to the Proxy Address `2001:db8:1::1`.
fn responses(policy: &str) -> String {
    format!(
        "[node]
        loopback = '2001:db8:a::1'
        [[port]]
        name = 'up'
        mac = '02:00:00:00:00:03'
        [[port]]
        name = 'hosts'
        mac = '02:00:00:00:00:02'
        [[neighbour]]
        address = '2001:db8:ff::100%hosts'
        mac = '02:00:00:00:00:01'
        [[neighbour]]
        address = '2001:db8:6::1%up'
        mac = '02:00:00:00:00:06'
        [[sid]]
        sid = '2001:db8:a::e'
        behavior = 'End.MT'
        [[group]]
        id = 1
        proxy = '2001:db8:1::1'
        designated_qpn = 0x77
        initial_psn = 95
        role = 'edge'
        sid = '2001:db8:a::e'
        parent = {{ loopback = '2001:db8:6::1' }}
        [[group.receiver]]
        address = '2001:db8:ff::100'
        qpn = 0x100
        [group.policy]
        {policy}"
    )
}

/// The CNP is the fifth packet; the draft's windows are cut at whole multiples of T. The timer fires at its deadline
/// while the node runs on, and not if it does not run on for so long (MT-5.3.3-2, D29).
#[test]
fn timers_fire_after_the_last_packet() {
    let configuration = responses("cnp_mode = 'trailing'\ncnp_window = '10ms'");
    let inputs = packets(&golden("scapy_01_rocev2_base"));
    let end_of_window = inputs[4].time_ns.next_multiple_of(10_000_000);
    let missing_ns = end_of_window - inputs[5].time_ns;
    let run = |run_on_ns: u64| {
        let bench = Bench::new(&configuration);
        let inputs = [("hosts", golden("scapy_01_rocev2_base"))];
        let report = bench.run(&inputs, &["--run-on", &format!("{run_on_ns}ns")]);
        assert_eq!(report["groups"][0]["cnps_received"], 1);
        (bench.sent("up"), report)
    };
    let (sent, report) = run(missing_ns - 1);
    assert_eq!(sent, []);
    assert_eq!(report["groups"][0]["cnps_sent"], 0);

    let (sent, report) = run(missing_ns + 5);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].time_ns, end_of_window);
    assert_eq!(sent[0].ipv6()[48], 0x81, "BTH opcode");
    assert_eq!(report["groups"][0]["cnps_sent"], 1);
    assert_eq!(report["end_time_ns"], end_of_window + 5);
    // No data were sent, so the ACK and the two NAKs acknowledge nothing (R1). The sixth packet has no route.
    assert_eq!(port(&report, "hosts")["drops"], json!({ "no_route": 1, "nothing_sent": 3 }));
}
