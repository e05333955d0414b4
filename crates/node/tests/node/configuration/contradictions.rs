//! Sections that contradict each other or themselves: each error names file, line and the contradiction.

use super::errors::{EDGE, TRANSIT, refused, refused_with};
use super::parse;

#[test]
fn node_and_ports() {
    let file = TRANSIT;
    refused(file, "name = 'down'", "name = 'up'", "7: there is a port up already");
    refused(
        file,
        "name = 'down'",
        "name = 'down'\naddresses = ['2001:db8::1',\n'2001:db8:4::1']",
        "9: 2001:db8:4::1/128 cannot be an address of port down: in line 2 it is the node's loopback",
    );
    refused(
        file,
        "[[port]]\nname = 'up'",
        "end_mt_tlv_type = 125\n[[port]]\nname = 'up'",
        "3: end_mt_tlv_type and mr_tlv_type are both 125, expected two types",
    );
    refused(
        file,
        "[[port]]\nname = 'up'",
        "mr_tlv_type = 5\n[[port]]\nname = 'up'",
        "3: invalid value: integer `5`, expected an integer from 7 to 126",
    );
    // Link-local addresses belong to a link.
    let both = file.replace("name = 'up'", "name = 'up'\naddresses = ['fe80::4']");
    parse(&both.replace("name = 'down'", "name = 'down'\naddresses = ['fe80::4']")).expect("right");
}

/// D209: features that see every packet run on one data thread, which is the default with them.
#[test]
fn features_of_one_data_thread() {
    let several = |more: &str| TRANSIT.replacen("[[port]]", &format!("[daemon]\nworkers = 2\n{more}[[port]]"), 1);
    let error = |file: &str| parse(file).expect_err("refused");
    let classes =
        "[[traffic_class]]\nclass = 3\ndscps = [26]\n[[egress]]\nport = 'up'\nrate_bits_per_s = 1_000_000_000\n";
    assert_eq!(parse(&several("")).expect("right").workers(), 2);
    assert_eq!(parse(&format!("{TRANSIT}\n{classes}")).expect("right").workers(), 1);
    let found = error(&format!("{}\n{classes}", several("")));
    assert!(
        found.contains("workers is 2, but traffic classes need one data thread, which sees every packet"),
        "{found}"
    );
    let found = error(&several("fast_path = true\n"));
    assert!(found.contains("workers is 2, but fast paths need one data thread"), "{found}");
}

#[test]
fn vlans() {
    let file = TRANSIT;
    let down = "name = 'down'";
    let with = |keys: &str| format!("name = 'down'\n{keys}");
    parse(&file.replace(down, &with("parent = 'up'\nvlan = 0\ntrust = 'pcp'"))).expect("right");
    refused(file, down, &with("vlan = 5"), "8: missing key `parent`, the port whose link carries the VLAN");
    refused(file, down, &with("parent = 'up'"), "8: missing key `vlan`, the VLAN identifier");
    let vlan = "vlan = 4095\nparent = 'up'";
    refused(file, down, &with(vlan), "8: invalid value: integer `4095`, expected an integer from 0 to 4094");
    let vlan = "vlan = 5\nparent = 'down'";
    refused(file, down, &with(vlan), "9: there is no port down before this one, expected its parent there");
    let vlan = "vlan = 5\nparent = 'up'\ndriver = 'af_xdp'";
    refused(file, down, &with(vlan), "9: `driver` of a VLAN port is that of its parent: give it at port up");
    let more =
        "parent = 'up'\nvlan = 5\nmac = '02:00:00:00:00:03'\n[[port]]\nname = 'more'\nparent = 'down'\nvlan = 6\n#";
    refused(file, down, &with(more), "13: port down has a VLAN itself, expected a port without one");
    let more = more.replace("'down'\nvlan = 6", "'up'\nvlan = 5");
    refused(file, down, &with(&more), "14: VLAN 5 at port up is already that of port down");
    let vlan = file.replace(down, &with("parent = 'up'\nvlan = 5"));
    let egress = "[[egress]]\nport = 'down'\nrate_bits_per_s = 1000\n";
    refused_with(&vlan, egress, "35: the frames of VLAN port down wait at its parent: expected port up");
    let connected = "[[sr_policy]]\nid = 1\nsegment_list = [{ segments = ['2001:db8:77::1'] }]\n[[cross_connect]]\nport = 'up'\npolicy = 1\n";
    refused_with(
        &vlan,
        connected,
        "38: port up has a VLAN or carries one, expected a port whose frames are all its own",
    );
    let sid = "[[sid]]\nsid = '2001:db8:77::2'\nbehavior = 'End.DX2'\nport = 'down'\n";
    refused_with(&vlan, sid, "37: port down has a VLAN, expected a port that sends frames as they are");
}

#[test]
fn neighbours_and_routes() {
    let file = TRANSIT;
    refused(file, "'2001:db8:6::1%up'", "'2001:db8:6::1%middle'", "10: unknown port middle: ports are up, down");
    refused_with(
        "[node]\nloopback = '2001:db8::1'\n",
        "[[neighbour]]\naddress = 'fe80::1%up'\nmac = '02:00:00:00:00:01'",
        "4: unknown port up: there is no [[port]]",
    );
    refused(
        file,
        "'2001:db8:6::1%up'",
        "'2001:db8:1::1%down'",
        "13: there is a neighbour 2001:db8:1::1 at port down already",
    );
    refused(
        file,
        "'2001:db8:6::1%up'",
        "'2001:db8:4::1%up'",
        "10: 2001:db8:4::1 cannot be a neighbour: it is the node's loopback",
    );
    let via = "via = ['2001:db8:1::1%down']";
    refused(file, via, "via = ['2001:db8:1::1%middle']", "17: unknown port middle: ports are up, down");
    refused(
        file,
        via,
        "via = [\n'2001:db8:1::1%up']",
        "18: there is no [[neighbour]] 2001:db8:1::1%up, which would give its MAC address",
    );
    refused(file, via, "via = []", "17: expected at least one neighbour, found none");
    refused(file, via, "", "15: expected exactly one of via, encaps, path and blackhole = true");
    refused(file, via, "blackhole = false", "15: expected exactly one of via, encaps, path and blackhole = true");
    refused(
        file,
        via,
        &format!("{via}\nblackhole = true"),
        "15: expected exactly one of via, encaps, path and blackhole = true",
    );
    refused(
        file,
        via,
        "encaps = { segments = [] }",
        "16: route 2001:db8:1::/64: an encapsulation policy needs at least one segment",
    );
    let again = "[[route]]\nprefix = '2001:db8:1::/64'\nblackhole = true";
    refused_with(
        file,
        again,
        "33: 2001:db8:1::/64 cannot be the prefix of a route: in line 16 it is the prefix of a route",
    );
    parse(&format!("{file}{again}\ntable = 1\n")).expect("another table");
    refused_with(
        file,
        &format!("{again}\ntable = 1\n{again}\ntable = 1"),
        "37: 2001:db8:1::/64 cannot be the prefix of a route: in line 33 it is the prefix of a route",
    );
}

#[test]
fn sr_policies() {
    let file = TRANSIT;
    let via = "via = ['2001:db8:1::1%down']";
    refused(file, via, "encaps = { mode = 'H.Encaps' }", "17: expected exactly one of segments and policy");
    refused(
        file,
        via,
        "encaps = { policy = 1, segments = ['5f00::1'] }",
        "17: expected exactly one of segments and policy",
    );
    refused(file, via, "encaps = { policy = 1 }", "17: there is no [[sr_policy]] 1");
    refused(
        file,
        via,
        "encaps = { policy = 1,\nhmac_key_id = 1 }",
        "18: the hmac_key_id of a policy stands in its [[sr_policy]]",
    );
    let policy = "[[sr_policy]]\nid = 1\nsegment_list = [{ segments = ['5f00::1'] }]\n";
    let route = "[[route]]\nprefix = '2001:db8:9::/64'\nencaps = { policy = 1 }\n";
    parse(&format!("{file}{policy}{route}")).expect("right");
    refused_with(file, &format!("{policy}{policy}"), "36: there is an SR policy 1 already");
    let with = |lists: &str| policy.replace("{ segments = ['5f00::1'] }", lists);
    refused_with(file, &with(""), "33: SR policy 1: a policy needs at least one segment list");
    refused_with(
        file,
        &with("{ segments = ['5f00::1'], weight = 0 }"),
        "34: invalid value: integer `0`, expected an integer from 1 to 4294967295",
    );
    let long = format!("{{ segments = [{}] }}", "'5f00::1',".repeat(13));
    let text = "33: SR policy 1: segment list 1: 13 segments need 256 octets of outer headers, there is room for 242";
    refused_with(file, &with(&long), text);
    let signed = format!("{policy}hmac_key_id = 5");
    refused_with(file, &signed, "33: SR policy 1: HMAC key 5 is not known to this node");
}

#[test]
fn cross_connects() {
    let file = TRANSIT;
    let policy = "[[sr_policy]]\nid = 1\nsegment_list = [{ segments = ['5f00::1'] }]\n\
                  [[port]]\nname = 'circuit'\nmac = '02:00:00:00:00:08'\n";
    let with = |more: &str| format!("{policy}[[cross_connect]]\n{more}");
    refused_with(
        file,
        &with("port = 'circuits'\npolicy = 1"),
        "39: unknown port circuits: ports are up, down, circuit",
    );
    refused_with(file, &with("port = 'circuit'\npolicy = 2"), "40: there is no [[sr_policy]] 2");
    let right = with("port = 'circuit'\npolicy = 1\n");
    parse(&format!("{file}{right}")).expect("right");
    refused_with(
        file,
        &format!("{right}[[cross_connect]]\nport = 'circuit'\npolicy = 1"),
        "42: port circuit is cross-connected already",
    );
    refused_with(
        file,
        &with("port = 'down'\npolicy = 1"),
        "13: port down is cross-connected in SRv6, and has no neighbours of the node's own",
    );
    let sid = "[[sid]]\nsid = '2001:db8:4::d2'\nbehavior = 'End.DX2'\n";
    refused_with(file, sid, "34: behavior End.DX2 needs the key port");
}

#[test]
fn multicast_routes() {
    let route = "[[multicast_route]]\nsource = '2001:db8:6::1'\ngroup = 'ff3e::1'\n";
    let file = format!("{TRANSIT}{route}outgoing = ['down']\n");
    parse(&file).expect("right");
    refused(
        &file,
        "'ff3e::1'",
        "'2001:db8::1'",
        "34: invalid value: string \"2001:db8::1\", expected an IPv6 multicast address such as \"ff3e::100\"",
    );
    refused(
        &file,
        "outgoing = ['down']",
        "",
        "32: the route leads nowhere: expected outgoing ports, end_mt = true, or both",
    );
    refused(&file, "['down']", "['left']", "35: unknown port left: ports are up, down");
    refused(&file, "['down']", "['down',\n'down']", "36: port down stands in this route twice");
    refused(&file, "['down']", "['down']\nincoming = 'down'", "35: port down stands in this route twice");
    refused_with(
        &file,
        &format!("{route}end_mt = true"),
        "36: there is a multicast route (2001:db8:6::1, ff3e::1) already",
    );
}

#[test]
fn shared_hosts() {
    let file = TRANSIT;
    let with =
        |more: &str| format!("[[shared_hosts]]\nhosts = '2001:db8:d0::/64'\nproxies = '2001:db8:c0::/48'\n{more}");
    let right = with("peer = '2001:db8:6::1'\nsid = '2001:db8:6::1'\n");
    parse(&format!("{file}{right}")).expect("right");
    let more = right.replace("d0::/64", "d1::/64");
    let both = parse(&format!("{file}{right}{more}")).expect("the same Proxy Addresses");
    assert_eq!(both.spec.entries.shared_hosts.len(), 2);
    let more = right.replace("d0::/64", "d0::/96");
    refused_with(
        file,
        &format!("{right}{more}"),
        "38: 2001:db8:d0::/96 and 2001:db8:d0::/64 overlap: a host has one peer",
    );
    let own = with("peer = '2001:db8:4::1'\nsid = '2001:db8:6::1'\n");
    refused_with(file, &own, "33: shared hosts: the peer 2001:db8:4::1 is the node itself");
    let nowhere = with("peer = '2001:db8:6::1'\nsid = '2001:db9::1'\n");
    refused_with(file, &nowhere, "36: SID of the peer 2001:db9::1: no neighbour and no route \"via\" leads there");
    let everything = right.replace("2001:db8:c0::/48", "::/0");
    refused_with(file, &everything, "34: ::/0 are no Proxy Addresses: every address would be one");
    let one = right.replace("c0::/48", "c0::1");
    refused_with(file, &one, "33: shared hosts: 2001:db8:c0::1/128 is one Proxy Address, expected a prefix of all");
    let ports = |list: &str| format!("{right}ports = {list}\n");
    let links = parse(&format!("{file}{}", ports("['down', 'up']"))).expect("right").host_links;
    assert_eq!(links.len(), 1);
    assert_eq!((links[0].hosts.to_string().as_str(), links[0].ports.len()), ("2001:db8:d0::/64", 2));
    refused_with(file, &ports("['left']"), "37: unknown port left: ports are up, down");
    refused_with(file, &ports("['up',\n'up']"), "38: port up stands in this section twice");
    let route = right.replace("2001:db8:c0::/48", "2001:db8:1::/64");
    refused_with(
        file,
        &route,
        "34: 2001:db8:1::/64 cannot be the Proxy Addresses of shared hosts: in line 16 it is the prefix of a route",
    );
}

#[test]
fn sids() {
    let file = TRANSIT;
    let sid = |lines: &str| format!("[[sid]]\n{lines}");
    refused_with(
        file,
        &sid("sid = '2001:db8:4::f'\nbehavior = 'End'"),
        "33: 2001:db8:4::f/128 cannot be a SID of behavior End: in line 19 it is a SID of behavior End.Replicate",
    );
    refused_with(
        file,
        &sid("sid = '2001:db8:4::1'\nbehavior = 'End'"),
        "33: 2001:db8:4::1/128 cannot be a SID of behavior End: in line 2 it is the node's loopback",
    );
    refused_with(file, &sid("sid = '2001:db8:4::a'\nbehavior = 'End.X'"), "34: behavior End.X needs the key next_hop");
    refused_with(
        file,
        &sid("sid = '2001:db8:4::a'\nbehavior = 'uA'\nnext_hop = 'fe80::9%up'"),
        "33: 2001:db8:4::a/128 has a length of 128, expected that of block and compressed SID, 32 + 16 bits",
    );
    refused_with(
        file,
        &sid("sid = '2001:db8:4::a'\nbehavior = 'End.X'\nnext_hop = 'fe80::9%up'"),
        "35: there is no [[neighbour]] fe80::9%up, which would give its MAC address",
    );
    refused_with(
        file,
        &sid("sid = '2001:db8:4::a'\nbehavior = 'End.DT6'\nflavors = ['PSP']"),
        "35: behavior End.DT6 has no key flavors, its keys are table",
    );
    refused_with(
        file,
        &sid("sid = '2001:db8:4::a'\nbehavior = 'End'\ntable = 1"),
        "35: behavior End has no key table, its keys are flavors, block_bits, csid_bits",
    );
    refused_with(
        file,
        &sid("sid = '2001:db8:4::a'\nbehavior = 'End'\nflavors = ['PSP',\n'psp']"),
        "36: unknown value `psp`, expected one of `PSP`, `USP`, `USD`, `NEXT-CSID`",
    );
    refused_with(
        file,
        &sid("sid = '2001:db8:4::a'\nbehavior = 'End'\ncsid_bits = 16"),
        "35: block_bits and csid_bits belong to flavor NEXT-CSID, which is not given",
    );
    refused_with(
        file,
        &sid("sid = '5f00::/32'\nbehavior = 'uN'\nblock_bits = 0"),
        "35: invalid value: integer `0`, expected an integer from 1 to 127",
    );
    let binding = "sid = '2001:db8:4::b6'\nbehavior = 'End.B6.Encaps'";
    refused_with(file, &sid(binding), "34: behavior End.B6.Encaps needs the key policy");
    refused_with(file, &sid(&format!("{binding}\npolicy = 3")), "35: there is no [[sr_policy]] 3");
    refused_with(
        file,
        &sid("sid = '2001:db8:4::d8'\nbehavior = 'End.DX6'\npolicy = 3"),
        "35: behavior End.DX6 has no key policy, its keys are next_hop, table",
    );
    refused(file, "group = 7", "group = 8", "21: there is no [[group]] 8");
    refused(file, "group = 7", "", "20: behavior End.Replicate needs the key group");
    refused_with(
        EDGE,
        &sid("sid = '2001:db8:1::f'\nbehavior = 'End.Replicate'\ngroup = 7"),
        "30: group 7 is replicated by nodes of role transit or bud, this one is an edge",
    );
}

#[test]
fn groups() {
    let file = TRANSIT;
    let group = "[[group]]\nid = 8\nproxy = '2001:db8:cc::1'\ndesignated_qpn = 2\ninitial_psn = 0\nrole = 'transit'\n";
    refused_with(
        file,
        group,
        "34: 2001:db8:cc::1/128 cannot be the Proxy Address of group 8: in line 24 it is the Proxy Address of group 7",
    );
    refused_with(file, &group.replace('8', "7").replace("cc::1", "cc::2"), "33: there is a group 7 already");
    refused(
        file,
        "proxy = '2001:db8:cc::1'",
        "proxy = '2001:db8:4::f'",
        "24: 2001:db8:4::f/128 cannot be the Proxy Address of group 7: in line 19 it is a SID of behavior \
         End.Replicate",
    );
    refused(
        file,
        "\nsid = '2001:db8:4::f'\nparent",
        "\nparent",
        "22: missing key `sid`: only a headend can be without",
    );
    refused(
        file,
        "\nsid = '2001:db8:4::f'\nparent",
        "\nsid = '2001:db8:4::e'\nparent",
        "28: 2001:db8:4::e is no SID for group 7, expected a [[sid]] of behavior End.Replicate for this group, \
         or the group of a [[multicast_route]]",
    );
    refused(
        EDGE,
        "\nsid = '2001:db8:1::e'\nparent",
        "\nsid = 'ff3e::1'\nparent",
        "24: ff3e::1 is no SID for group 7, expected a [[sid]] of behavior End.MT, or the group of a \
         [[multicast_route]] with end_mt = true",
    );
}

#[test]
fn parents_and_branches() {
    let file = TRANSIT;
    let parent = "parent = { loopback = '2001:db8:6::1' }";
    refused(file, parent, "", "22: a group needs a parent, or at the root of its tree a source");
    refused(
        file,
        parent,
        "parent = { loopback = '2001:db8:4::1' }",
        "29: the tree loops: parent 2001:db8:4::1 is this node itself",
    );
    refused(
        file,
        parent,
        "parent = { loopback = '2001:db8:1::1' }",
        "30: the tree loops: branch 2001:db8:1::1 is the parent's loopback",
    );
    refused(
        file,
        parent,
        "parent = { loopback = '2001:db8:7::1' }",
        "29: parent 2001:db8:7::1: no neighbour and no route \"via\" leads there",
    );
    refused(
        file,
        parent,
        "parent = { loopback = '2001:db8:7::1', sid = '2001:db8:4::f' }",
        "29: SID of the parent 2001:db8:4::f: no neighbour and no route \"via\" leads there",
    );
    refused(
        file,
        parent,
        &format!("{parent}\nsource = {{ address = '2001:db8:6::1', qpn = 2 }}"),
        "30: source is a key of the root, which has no parent, and of the headend",
    );
    refused(
        file,
        parent,
        "source = { address = '2001:db8:7::1', qpn = 2 }",
        "29: source 2001:db8:7::1: no neighbour and no route \"via\" leads there",
    );
    let branches = "branches = ['2001:db8:1::1']";
    refused(
        file,
        branches,
        "branches = ['2001:db8:1::1', '2001:db8:1::1']",
        "30: branch 2001:db8:1::1 stands here twice",
    );
    refused(
        file,
        branches,
        "branches = ['2001:db8:4::1']",
        "30: the tree loops: branch 2001:db8:4::1 is this node's own",
    );
    refused(file, branches, "branches = []", "22: a transit node needs branches");
    let downstream = "downstream = ['2001:db8:1::e']";
    refused(file, downstream, "", "22: a transit node needs downstream");
    refused(
        file,
        downstream,
        "downstream = ['2001:db8:1::e',\n'2001:db8:1::e']",
        "32: downstream 2001:db8:1::e stands here twice",
    );
    refused(
        file,
        downstream,
        "downstream = ['2001:db8:2::e']",
        "31: downstream SID 2001:db8:2::e: no neighbour and no route \"via\" leads there",
    );
    refused(file, downstream, "downstream = ['ff3e::1']", "31: no [[multicast_route]] from 2001:db8:4::1 to ff3e::1");
    refused(
        file,
        downstream,
        &format!("{downstream}\nreceiver = [{{ address = '2001:db8:1::9', qpn = 2 }}]"),
        "22: a transit node has no [[group.receiver]]: with receivers its role is bud (D246)",
    );
    refused(
        file,
        downstream,
        &format!("{downstream}\nmore_region = [{{ base = 0, length = 9, rkey = 1 }}]"),
        "22: a transit node has no [[group.more_region]]: edges select a region (D191)",
    );
    for key in [
        "branches: its receivers are its branches, with nodes below its role is bud (D246)",
        "downstream: it replicates to its receivers",
    ] {
        let name = key.split(':').next().unwrap_or(key);
        refused_with(EDGE, &format!("{name} = ['2001:db8:1::1']"), &format!("18: an edge has no {key}"));
    }
    let as_bud = |text: &str| text.replacen("role = 'edge'", "role = 'bud'", 1);
    assert_ne!(as_bud(EDGE), EDGE, "the role is written so");
    refused_with(&as_bud(EDGE), "branches = ['2001:db8:1::1']", "18: a bud node needs downstream");
    refused_with(EDGE, "headend = {}", "18: an edge has no [group.headend]: a headend is a transit or bud node");
}

#[test]
fn receivers() {
    let receiver = "receiver = [{ address = '2001:db8:bb::1', qpn = 2 }]";
    let with = |more: &str| format!("receiver = [{{ address = '2001:db8:bb::1', qpn = 2 }},\n{{ {more} }}]");
    refused(EDGE, receiver, "", "18: an edge needs [[group.receiver]]");
    refused(
        EDGE,
        receiver,
        &with("address = '2001:db8:bb::1', qpn = 3"),
        "27: receiver 2001:db8:bb::1 is in the group twice: two queue pairs of a host are indistinguishable on the way \
         back (D8)",
    );
    refused(
        EDGE,
        receiver,
        &with("address = '2001:db8:cc::1', qpn = 3"),
        "27: receiver 2001:db8:cc::1 is the Proxy Address",
    );
    refused(
        EDGE,
        receiver,
        &with("address = '2001:db8:bb::2', qpn = 3"),
        "27: receiver 2001:db8:bb::2: no neighbour and no route \"via\" leads there",
    );
    refused(
        EDGE,
        receiver,
        &with("address = '2001:db8:bb::2', qpn = 3, base = 1"),
        "27: receiver 2001:db8:bb::2 needs both of base and rkey, or neither",
    );
    refused_with(
        EDGE,
        "region = { base = 0, length = 9, rkey = 1 }",
        "26: receiver 2001:db8:bb::1 needs base and rkey, since the group has a region",
    );
    let two = "region = { base = 0, length = 9, rkey = 1 }\nmore_region = [{ base = 0, length = 9, rkey = 2 }]\n";
    let has =
        |more: &str| format!("{two}receiver = [{{ address = '2001:db8:bb::1', qpn = 2, base = 0, rkey = 1{more} }}]");
    refused(EDGE, receiver, &has(""), "28: receiver 2001:db8:bb::1 has 0 more_regions, the group has 1 (D191)");
    let same = has(", more_regions = [{ base = 0, rkey = 1 }]").replace("rkey = 2", "rkey = 1");
    let text = "27: regions 1 and 2 of the group have the same rkey: requests select a region by it";
    refused(EDGE, receiver, &same, text);
    refused(
        EDGE,
        receiver,
        &two.replace("region = { base = 0, length = 9, rkey = 1 }\n", &format!("{receiver}\n")),
        "27: further regions need a first one",
    );
    refused(
        EDGE,
        "qpn = 2 }]",
        "qpn = 0x1ffffff }]",
        "26: invalid value: integer `33554431`, expected a queue pair number of 24 bits, from 2 to 0xffffff: 0 \
         and 1 are reserved",
    );
}

#[test]
fn headends() {
    let source = "source = { address = '2001:db8:6::1', qpn = 2 }";
    let file = TRANSIT.replace("parent = { loopback = '2001:db8:6::1' }", source);
    let list = |more: &str| format!("[group.headend]\n[[group.headend.list]]\nedge = '2001:db8:1::1'\n{more}");
    refused_with(TRANSIT, &list("receiver = []"), "22: a headend needs [group.source], whose packets it encapsulates");
    refused_with(&file, &list("receiver = []"), "34: the list of edge 2001:db8:1::1 has no receiver");
    let receiver = "receiver = [{ address = '2001:db8:bb::1', qpn = 2 }]\n";
    parse(&format!("{file}{}", list(receiver))).expect("right");
    let region = "region = { base = 0, length = 9, rkey = 1 }\n";
    refused_with(
        &file,
        &format!("{region}headend = {{ recorded_regions = true }}"),
        "22: recorded_regions: the headend of a group of several regions has no [group.region] without \
         [[group.more_region]] (D191, D231)",
    );
    let again = format!("{receiver}[[group.headend.list]]\nedge = '2001:db8:2::1'\n{receiver}");
    refused_with(
        &file,
        &list(&again),
        "38: receiver 2001:db8:bb::1 is in the group twice: two queue pairs of a host are indistinguishable on the way \
         back (D8)",
    );
    let many: Vec<String> = (1..=99).map(|host| format!("{{ address = '2001:db8:bb::{host}', qpn = 2 }}")).collect();
    let many = format!("receiver = [{}]", many.join(", "));
    refused_with(&file, &list(&many), "23: group 7: receiver lists exceed an SRH of 2048 octets");
    refused_with(&file, "headend = {}\npolicy = { hmac_key_id = 9 }", "33: there is no [[hmac_key]] 9");
    refused_with(&file, "policy = { hmac_key_id = 9 }", "32: hmac_key_id is a key of the headend, which signs");
}

/// D150, D161: a node that does not repair has no buffer, one that does sends to one child.
#[test]
fn repair() {
    let message = "32: this node does not repair, by `repair` of the group's policy";
    refused_with(TRANSIT, "repair = { levels = 2 }", message);
    refused_with(TRANSIT, "repair = { levels = 2 }\npolicy = { repair = 'edge' }", message);
    parse(&format!("{TRANSIT}repair = {{ levels = 2 }}\npolicy = {{ repair = 'tree' }}\n")).expect("right");
    refused_with(
        TRANSIT,
        "policy = { repair = 'tree', rules = 'literal' }",
        "23: a group with rules = \"literal\" is not repaired: its nodes take a NAK for what it is (D150)",
    );
    refused_with(
        TRANSIT,
        "policy = { repair = 'tree', round_trip = '0s' }",
        "32: round_trip is zero: packets would be sent again at once, without end (D161)",
    );
    refused_with(
        TRANSIT,
        "repair = { window_packets = 65537 }",
        "32: invalid value: integer `65537`, expected an integer from 1 to 65536",
    );
    refused_with(EDGE, "policy = { repair = 'all' }", "27: unknown value `all`, expected one of `off`, `edge`, `tree`");
}

/// D2, D8, D25, D28, D30: the message names the rule.
#[test]
fn members_and_policies_follow_their_rules() {
    let receiver = "receiver = [{ address = '2001:db8:bb::1', qpn = 2 }]";
    let joined = "receiver = [{ address = '2001:db8:bb::1', qpn = 2, joined = { psn = 9, msn = 1 } }]";
    let message = "26: no receiver has joined a group of epoch 0: each change of membership raises the epoch (D30)";
    refused(EDGE, receiver, joined, message);
    parse(&EDGE.replace(receiver, joined).replace("id = 7", "id = 7\nepoch = 1")).expect("right");
    let qpn = |number: &str| {
        let to = receiver.replace("qpn = 2", &format!("qpn = {number}"));
        let value = number.parse::<u32>().expect("a number");
        let text = format!(
            "26: invalid value: integer `{value}`, expected a queue pair number of 24 bits, from 2 to 0xffffff: 0 and 1 \
             are reserved"
        );
        refused(EDGE, receiver, &to, &text);
    };
    ["0", "1", "16777216"].into_iter().for_each(qpn);

    let branches = "branches = ['2001:db8:1::1']";
    let renewed = "branches = [{ loopback = '2001:db8:1::1', renewed = 3 }]";
    let message = "30: renewed by epoch 3, but the group's epoch is 0: no later one can have been";
    refused(TRANSIT, branches, renewed, message);
    let right = TRANSIT.replace(branches, renewed).replace("[[group]]\nid = 7", "[[group]]\nid = 7\nepoch = 3");
    parse(&right).expect("right");
    refused(
        &right,
        "epoch = 3",
        "epoch = 3\nrenewed = 4",
        "25: renewed by epoch 4, but the group's epoch is 3: no later one can have been",
    );
    let message = "30: invalid type: integer `1`, expected a unicast IPv6 address such as \"2001:db8::1\", neither :: nor \
                   ::1, or a table of loopback, joined, renewed and repairs";
    refused(TRANSIT, branches, "branches = [1]", message);

    let policy = |keys: &str, message: &str| {
        refused_with(EDGE, &format!("policy = {{ {keys} }}"), &format!("27: {message}"));
    };
    policy("on_failure = 'ignore'", "unknown value `ignore`, expected `strict` or `evict`");
    policy("rules = 'fast'", "unknown value `fast`, expected `default` or `literal`");
    policy("t_stall = '0s'", "t_stall is zero: every receiver would be stalled at once (D25)");
    policy("t_not_ready = '0s'", "t_not_ready is zero: no receiver could have a receive missing (D196)");
    policy("stall_sends = 1", "invalid value: integer `1`, expected an integer from 2 to 15");
    policy("min_receivers = 0", "invalid value: integer `0`, expected an integer from 1 to 4294967295");
    policy("ack_dscp = 64", "invalid value: integer `64`, expected an integer from 0 to 63");
    policy("cnp_limit = 0", "invalid value: integer `0`, expected an integer from 1 to 65535");
    let message = "cnp_window_most is less than cnp_window: the window only grows (MT-5.3.3-3)";
    policy("cnp_window = '50us', cnp_window_most = '40us'", message);

    let (_, group) = EDGE.split_once("[[group]]").expect("the file has a group");
    let second = |receiver: &str| {
        let group = group.replace("id = 7", "id = 8").replace("cc::1'", "cc::2'");
        format!("[[group]]{}", group.replace("'2001:db8:bb::1', qpn = 2", receiver))
    };
    let message =
        "35: receiver 2001:db8:cc::1 is the Proxy Address of group 7: such an address belongs to its group alone (D2)";
    refused_with(EDGE, &second("'2001:db8:cc::1', qpn = 2"), message);
    let message = "35: receiver 2001:db8:bb::1: its queue pair 0x2 is in group 7 already, and a queue pair is connected \
                   to one Proxy Address (D2)";
    refused_with(EDGE, &second("'2001:db8:bb::1', qpn = 2"), message);
    parse(&format!("{EDGE}{}", second("'2001:db8:bb::1', qpn = 3"))).expect("right");
}

#[test]
fn keys_have_ids_of_their_own() {
    let key = "[[hmac_key]]\nid = 1\nkey = '4444444444444444'\n";
    refused_with(EDGE, key, "28: there is an HMAC key 1 already");
    refused(EDGE, "id = 1\n", "id = 0\n", "16: HMAC Key ID 0 means that there is no HMAC, expected 1 or more");
}
