//! Changes of a file that require a restart of the node, and the ports that a change moves.

use crate::{Configuration, PortInterface};
use srdma_frame::PortId;
use srdma_node_spec::DiffError;

/// Ports that get another interface, driver or pace, the fast path or none, or are new.
///
/// # Errors
///
/// If the daemon's own sections differ, which are read at its start.
pub(super) fn moved_ports(old: &Configuration, new: &Configuration) -> Result<Vec<PortId>, DiffError> {
    if old.daemon != new.daemon {
        return Err(DiffError::Restart("[daemon]".to_owned()));
    }
    if old.controller != new.controller {
        return Err(DiffError::Restart("[controller]".to_owned()));
    }
    let place = |configuration: &Configuration, index: usize| {
        let interface = configuration.interfaces.get(index)?;
        let PortInterface { name, driver, pace_bits_per_s, fast_path, parent, carries_vlans, .. } = interface;
        Some((name.clone(), *driver, *pace_bits_per_s, *fast_path, *parent, *carries_vlans))
    };
    let moved = (0..new.interfaces.len()).filter(|index| place(old, *index) != place(new, *index));
    Ok(moved.map(|index| PortId(index as u16)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_dataplane::Command;
    use srdma_node_spec::diff;
    use std::path::Path;

    const BASE: &str = "\
[node]
loopback = '2001:db8:ff:1::1'
[[port]]
name = 'p'
mac = '02:00:00:00:00:01'
[[neighbour]]
address = 'fe80::2%p'
mac = '02:00:00:00:00:02'
[[route]]
prefix = '2001:db8:bb::/64'
via = ['fe80::2%p']
[[sid]]
sid = '2001:db8:ff:1::e'
behavior = 'End.MT'
";

    fn group(id: u32, proxy: u32, receiver: u32) -> String {
        format!(
            "[[group]]\nid = {id}\nproxy = '2001:db8:cc::{proxy}'\ndesignated_qpn = {}\ninitial_psn = 0\n\
             role = 'edge'\nsid = '2001:db8:ff:1::e'\nparent = {{ loopback = '2001:db8:bb::1' }}\n\
             receiver = [{{ address = '2001:db8:bb::{receiver}', qpn = 3{id} }}]\n",
            16 + id
        )
    }

    fn configuration(text: &str) -> Configuration {
        Configuration::parse(Path::new("node.toml"), text).expect("right")
    }

    /// The commands between two files, which a node of the first takes.
    #[track_caller]
    fn commands(old: &str, new: &str) -> Vec<String> {
        let (old, new) = (configuration(old), configuration(new));
        let commands = diff(&old.spec, &new.spec).expect("possible");
        let mut node = old.node().expect("right");
        commands.iter().for_each(|command| node.apply(command.clone()).expect("taken"));
        let name = |command: &Command| match command {
            Command::AddGroup(entry) => format!("AddGroup {}", entry.id.0),
            Command::RemoveGroup(id) => format!("RemoveGroup {}", id.0),
            Command::AddNeighbour { next_hop, .. } => format!("AddNeighbour {}", next_hop.address),
            Command::AddRoute { prefix, .. } => format!("AddRoute {prefix}"),
            Command::RemoveRoute { prefix, .. } => format!("RemoveRoute {prefix}"),
            Command::AddSid { prefix, .. } => format!("AddSid {prefix}"),
            Command::RemoveSid(prefix) => format!("RemoveSid {prefix}"),
            Command::AddHmacKey { key_id, .. } => format!("AddHmacKey {key_id}"),
            Command::RemoveHmacKey(key_id) => format!("RemoveHmacKey {key_id}"),
            Command::AddPort(port) => format!("AddPort {}", port.name),
            Command::SetBorder { port, .. } | Command::RemoveBorder(port) => format!("{} {}", variant(command), port.0),
            Command::SetEgress { port, .. } | Command::RemoveEgress(port) => format!("{} {}", variant(command), port.0),
            Command::SetBackpressureSids(sids) => format!("SetBackpressureSids {}", sids.len()),
            Command::AddConnection(connection) => format!("AddConnection {}", connection.host),
            Command::RemoveConnection { host, .. } => format!("RemoveConnection {host}"),
            other => variant(other),
        };
        commands.iter().map(name).collect()
    }

    fn variant(command: &Command) -> String {
        let debug = format!("{command:?}");
        debug.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_owned()
    }

    /// Reasons for which one file cannot follow another.
    fn refusal(old: &str, new: &str) -> String {
        let (old, new) = (configuration(old), configuration(new));
        match moved_ports(&old, &new).and_then(|_| diff(&old.spec, &new.spec)) {
            Ok(commands) => panic!("possible: {commands:?}"),
            Err(error) => error.to_string(),
        }
    }

    fn refused(from: &str, to: &str) -> String {
        refusal(BASE, &BASE.replace(from, to))
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn unchanged_entries_are_not_touched() {
        let one = format!("{BASE}{}", group(1, 1, 2));
        assert_eq!(commands(&one, &one), NOTHING);
        let two = format!("{one}{}", group(2, 2, 2));
        assert_eq!(commands(&one, &two), ["AddGroup 2"]);
        assert_eq!(commands(&two, &one), ["RemoveGroup 2"]);
        let other_receiver = format!("{BASE}{}epoch = 1\n", group(1, 1, 3));
        assert_eq!(commands(&one, &other_receiver), ["AddGroup 1"]);
    }

    /// D30: a change without a new epoch is an error for the operator, and the group keeps its state.
    #[test]
    fn another_membership_has_another_epoch() {
        let refused = refusal;
        let (one, other) = (format!("{BASE}{}", group(1, 1, 2)), format!("{BASE}{}", group(1, 1, 3)));
        let message = "group 1 has changed, but its epoch is still 0: each change of membership raises the epoch (D30)";
        assert_eq!(refused(&one, &other), message);
        let message = "the epoch of group 1 goes back from 4 to 3: it only rises (D30)";
        assert_eq!(refused(&format!("{one}epoch = 4\n"), &format!("{one}epoch = 3\n")), message);
        let policy = format!("{one}policy = {{ t_hold = '30us' }}\n");
        assert_eq!(commands(&one, &policy), ["AddGroup 1"]);
    }

    #[test]
    fn an_address_may_get_another_meaning() {
        let swapped = |one, other| format!("{BASE}{}{}", group(1, one, 2), group(2, other, 2));
        let exchange = ["RemoveGroup 1", "RemoveGroup 2", "AddGroup 1", "AddGroup 2"];
        assert_eq!(commands(&swapped(1, 2), &swapped(2, 1)), exchange);
        let route = "[[route]]\nprefix = '2001:db8:cc::1'\nblackhole = true\n";
        let as_route = format!("{BASE}{route}");
        let as_sid = format!("{BASE}[[sid]]\nsid = '2001:db8:cc::1'\nbehavior = 'End'\n");
        assert_eq!(commands(&as_route, &as_sid), ["RemoveRoute 2001:db8:cc::1/128", "AddSid 2001:db8:cc::1/128"]);
        let as_proxy = format!("{BASE}{}", group(1, 1, 2));
        assert_eq!(commands(&as_sid, &as_proxy), ["RemoveSid 2001:db8:cc::1/128", "AddGroup 1"]);
        assert_eq!(commands(&as_proxy, &as_route), ["RemoveGroup 1", "AddRoute 2001:db8:cc::1/128"]);
    }

    #[test]
    fn neighbours_and_ports_follow() {
        let other_mac = BASE.replace("00:02'", "00:03'");
        assert_eq!(commands(BASE, &other_mac), ["AddNeighbour fe80::2"]);
        let port = BASE.replace("[[neighbour]]", "[[port]]\nname = 'q'\nmac = '02:00:00:00:00:09'\n[[neighbour]]");
        assert_eq!(commands(BASE, &port), ["AddPort q"]);
        let moved = BASE.replace("name = 'p'", "name = 'p'\ninterface = 'eth9'\nlink_mtu = 4200");
        let moved = moved_ports(&configuration(BASE), &configuration(&moved)).expect("possible");
        assert_eq!(moved, [PortId(0)]);
    }

    #[test]
    fn an_unused_key_is_removed() {
        let key = format!("{BASE}[[hmac_key]]\nid = 4\nkey = '0011223344556677'\n");
        assert_eq!(commands(&key, BASE), ["RemoveHmacKey 4"]);
        assert_eq!(commands(BASE, &key), ["AddHmacKey 4"]);
    }

    /// The three files of a rotation, and all of it at once: the new key is there before anything is signed with it,
    /// the old one goes when nothing is any more.
    #[test]
    fn a_key_is_rotated() {
        let key = |id: u32| format!("[[hmac_key]]\nid = {id}\nkey = '001122334455660{id}'\n");
        let signing = |id: u32| {
            let route = "prefix = '2001:db8:dd::/64'\nencaps = { segments = ['2001:db8:bb::1', '2001:db8:bb::2']";
            format!("{BASE}[[route]]\n{route}, hmac_key_id = {id} }}\n")
        };
        let (old, both) = (format!("{}{}", signing(4), key(4)), format!("{}{}{}", signing(4), key(4), key(5)));
        let switched = format!("{}{}{}", signing(5), key(4), key(5));
        let new = format!("{}{}", signing(5), key(5));
        assert_eq!(commands(&old, &both), ["AddHmacKey 5"]);
        assert_eq!(commands(&both, &switched), ["AddRoute 2001:db8:dd::/64"]);
        assert_eq!(commands(&switched, &new), ["RemoveHmacKey 4"]);
        assert_eq!(commands(&old, &new), ["AddHmacKey 5", "AddRoute 2001:db8:dd::/64", "RemoveHmacKey 4"]);
    }

    #[test]
    fn the_boundary_follows() {
        let domain = |nodes: &str, hosts: &str| {
            format!(
                "{BASE}[domain]\nsids = ['2001:db8:ff::/48']\ninfrastructure = ['2001:db8:ff::/48', '{nodes}']\n\
                 [[border]]\nport = 'p'\nsources = ['{hosts}']\n"
            )
        };
        let (one, other) = (domain("2001:db8:a::/48", "2001:db8:b::/64"), domain("2001:db8:b::/48", "2001:db8:a::/64"));
        assert_eq!(commands(&one, &one), NOTHING);
        assert_eq!(commands(BASE, &one), ["SetDomain", "SetBorder 0"]);
        assert_eq!(commands(&one, BASE), ["RemoveBorder 0", "RemoveDomain"]);
        assert_eq!(commands(&one, &other), ["RemoveBorder 0", "RemoveDomain", "SetDomain", "SetBorder 0"]);
    }

    /// D48: connections go before what they are of use to, and come behind it.
    #[test]
    fn congestion_follows_the_file() {
        let class = |more: &str| {
            format!(
                "{BASE}[[traffic_class]]\nclass = 3\ndscps = [26]\n[[egress]]\nport = 'p'\n\
                 rate_bits_per_s = 1000\nclass = [{{ class = 3, {more} }}]\n"
            )
        };
        let fast_cnp = |more: &str, peer_qpn: u32| {
            format!(
                "{}[fast_cnp]\nsenders = ['2001:db8:a::/48']\ntranslated = ['2001:db8:bb::/64']\n{more}[[connection]]\n\
                 host = '2001:db8:bb::2'\nhost_qpn = 5\npeer = '2001:db8:a::1'\npeer_qpn = {peer_qpn}\n",
                class("notify_octets = 1")
            )
        };
        let traces = |id: u8| {
            let interface = "interface = [{ port = 'p', fills = true }]\n";
            format!("{BASE}[ioam]\nnode_id = {id}\nnamespace = [{{ id = 0 }}]\n{interface}")
        };
        let (plain, on) = (class("notify_octets = 1"), fast_cnp("", 6));
        for same in [&plain, &on, &traces(1)] {
            assert_eq!(commands(same, same), NOTHING);
        }
        assert_eq!(commands(BASE, &plain), ["SetClasses", "SetEgress 0"]);
        assert_eq!(commands(&plain, &class("notify_octets = 2")), ["SetEgress 0"]);
        assert_eq!(commands(&plain, BASE), ["RemoveEgress 0", "SetClasses"]);
        assert_eq!(commands(&plain, &on), ["SetFastCnp", "AddConnection 2001:db8:bb::2"]);
        assert_eq!(commands(&on, &fast_cnp("at_once = 7\n", 6)), ["SetFastCnp"]);
        let other_peer = ["RemoveConnection 2001:db8:bb::2", "AddConnection 2001:db8:bb::2"];
        assert_eq!(commands(&on, &fast_cnp("", 7)), other_peer);
        assert_eq!(commands(&on, &plain), ["RemoveConnection 2001:db8:bb::2", "RemoveFastCnp"]);
        assert_eq!(commands(BASE, &traces(1)), ["SetIoam"]);
        assert_eq!(commands(&traces(1), &traces(2)), ["SetIoam"]);
        assert_eq!(commands(&traces(1), BASE), ["RemoveIoam"]);
        let types = "fast_cnp_trace_type of [node] cannot change while the node runs: restart it";
        assert_eq!(refused("[node]", "[node]\nfast_cnp_trace_type = 0x9f"), types);
        let paced = plain.replace("rate_bits_per_s = 1000", "rate_bits_per_s = 1000\npaced = true");
        let moved = moved_ports(&configuration(&plain), &configuration(&paced)).expect("possible");
        assert_eq!((commands(&plain, &paced), moved), (Vec::new(), vec![PortId(0)]));
    }

    /// Backpressure names ports with PFC: it is removed before they are, and added after them.
    #[test]
    fn backpressure_follows_the_file() {
        let class = "[[traffic_class]]\nclass = 3\ndscps = [26]\n[[egress]]\nport = 'p'\nrate_bits_per_s = 1000\n\
                     class = [{ class = 3, pfc = { xoff_octets = 9, xon_octets = 5, headroom_octets = 9 } }]\n";
        let on = |hold: &str| {
            let priority = "priority = [{ traffic_class = 3, ports = ['p'], priority = 3 }]";
            format!("{BASE}{class}[backpressure]\nhold = '{hold}'\n{priority}\n")
        };
        let sids = |end_c: u8| {
            format!("{BASE}[[backpressure_sids]]\nouter_source = '2001:db8::1/128'\nend_c = '5f00::{end_c}'\n")
        };
        let off = format!("{BASE}{class}");
        for same in [&on("1ms"), &sids(1)] {
            assert_eq!(commands(same, same), NOTHING);
        }
        assert_eq!(commands(&off, &on("1ms")), ["SetBackpressure"]);
        assert_eq!(commands(&on("1ms"), &on("2ms")), ["SetBackpressure"]);
        assert_eq!(commands(&on("1ms"), BASE), ["RemoveBackpressure", "RemoveEgress 0", "SetClasses"]);
        assert_eq!(commands(BASE, &sids(1)), ["SetBackpressureSids 1"]);
        assert_eq!(commands(&sids(1), &sids(2)), ["SetBackpressureSids 1"]);
        assert_eq!(commands(&sids(1), BASE), ["SetBackpressureSids 0"]);
    }

    /// Settings that change are removed first: the new domain may not hold the old Proxy Addresses.
    #[test]
    fn learning_follows_the_file() {
        let learning = |proxies: &str| {
            format!("{BASE}[learning]\nproxies = ['{proxies}']\nparent = {{ loopback = '2001:db8:bb::1' }}\n")
        };
        let (one, other) = (learning("2001:db8:c1::/48"), learning("2001:db8:c2::/48"));
        assert_eq!(commands(&one, &one), NOTHING);
        assert_eq!(commands(BASE, &one), ["SetLearning"]);
        assert_eq!(commands(&one, &other), ["RemoveLearning", "SetLearning"]);
        assert_eq!(commands(&one, BASE), ["RemoveLearning"]);
    }

    #[test]
    fn settings_fixed_at_start_are_kept() {
        let of_node = "verify_icrc of [node] cannot change while the node runs: restart it";
        assert_eq!(refused("[node]", "[node]\nverify_icrc = true"), of_node);
        let port = "the place of port p among the ports cannot change while the node runs: restart it";
        let second = "[[port]]\nname = 'q'\nmac = '02:00:00:00:00:07'\n[[port]]\nname = 'p'";
        assert_eq!(refused("[[port]]\nname = 'p'", second), port);
        let daemon = "[daemon] cannot change while the node runs: restart it";
        assert_eq!(refused("[[neighbour]]", "[daemon]\ncpu = 1\n[[neighbour]]"), daemon);
    }
}
