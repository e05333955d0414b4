//! The IS-IS state as tables.

use crate::demo::table::Table;
use srdma_node::daemon::{IsisSidSnapshot, IsisSnapshot, IsisState};

pub(super) fn system(isis: &IsisSnapshot) -> String {
    let rows = [[
        isis.system.clone(),
        isis.hostname.clone(),
        isis.area.clone(),
        levels(&isis.levels) + if isis.is_attached { ", attached" } else { "" },
        topology(isis.topology),
        isis.authentication.clone(),
        isis.overload.clone().unwrap_or_else(|| "no".to_owned()),
    ]];
    let headings = ["system", "hostname", "area", "level", "topology", "authentication", "overload"];
    table(headings, rows.into_iter())
}

/// Levels: 1, 2 or 1-2.
fn levels(numbers: &[u8]) -> String {
    numbers.iter().map(u8::to_string).collect::<Vec<_>>().join("-")
}

/// A topology with its id, unless it is the standard one.
fn topology(id: u16) -> String {
    match id {
        0 => "standard".to_owned(),
        2 => "IPv6 (2)".to_owned(),
        other => other.to_string(),
    }
}

pub(super) fn neighbors(isis: &IsisSnapshot) -> String {
    let rows = isis.circuits.iter().map(|circuit| {
        let state = match circuit.state {
            _ if !circuit.is_open => "closed",
            IsisState::Up if !circuit.is_in_topology => "up, other topology",
            state => state.name(),
        };
        let addresses: Vec<String> = circuit.addresses.iter().map(ToString::to_string).collect();
        [
            circuit.port.clone(),
            circuit.level.to_string(),
            state.to_owned(),
            circuit.neighbour.clone().unwrap_or_default(),
            circuit.hostname.clone().unwrap_or_default(),
            circuit.metric.to_string(),
            circuit.holds_s.map(|seconds| format!("{seconds} s")).unwrap_or_default(),
            addresses.join(" "),
            circuit.designated.clone().unwrap_or_default(),
        ]
    });
    table(["port", "level", "state", "neighbor", "hostname", "metric", "holds", "addresses", "LAN"], rows)
}

pub(super) fn database(isis: &IsisSnapshot) -> String {
    let rows = isis.lsps.iter().map(|lsp| {
        let flags = [(lsp.is_own, "own"), (lsp.is_attached, "attached"), (lsp.is_overloaded, "overloaded")];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned());
        let remarks: Vec<String> = set.chain(purge(&lsp.purged_by)).collect();
        [
            lsp.level.to_string(),
            lsp.id.clone(),
            lsp.hostname.clone().unwrap_or_default(),
            format!("{:#010x}", lsp.sequence),
            format!("{:#06x}", lsp.checksum),
            format!("{} s", lsp.lifetime_s),
            lsp.octets.to_string(),
            remarks.join(" "),
        ]
    });
    table(["level", "LSP", "hostname", "sequence", "checksum", "lifetime", "octets", ""], rows)
}

/// Generator of a purge, and the neighbour that has caused it.
fn purge(systems: &[String]) -> Option<String> {
    match systems {
        [] => None,
        [generator] => Some(format!("purged by {generator}")),
        [generator, neighbour, ..] => Some(format!("purged by {generator} because of {neighbour}")),
    }
}

pub(super) fn sids(isis: &IsisSnapshot) -> String {
    let rows = isis.nodes.iter().flat_map(|node| {
        let of_node = (node.system.as_str(), node.hostname.as_deref(), node.handles_notifications);
        node.sids.iter().map(move |sid| sid_row(of_node, sid))
    });
    table(["system", "hostname", "C", "SID", "behavior", "block+node+function+argument", ""], rows)
}

/// A SID of a node with this id, name and C-flag.
pub(crate) fn sid_row(node: (&str, Option<&str>, bool), sid: &IsisSidSnapshot) -> [String; 7] {
    let (id, hostname, handles_notifications) = node;
    let behavior = match &sid.name {
        Some(name) => format!("{name} ({})", sid.behavior),
        None => sid.behavior.to_string(),
    };
    let structure = sid.structure.map(|lengths| lengths.map(|bits| bits.to_string()).join("+"));
    [
        id.to_owned(),
        hostname.unwrap_or_default().to_owned(),
        if handles_notifications { "C" } else { "-" }.to_owned(),
        sid.sid.to_string(),
        behavior,
        structure.unwrap_or_default(),
        if sid.is_used { "notifications" } else { "" }.to_owned(),
    ]
}

pub(super) fn routes(isis: &IsisSnapshot) -> String {
    let rows = isis.routes.iter().map(|route| {
        let kind = if route.kind == "up" { "" } else { &route.kind };
        let (level, distance) = (route.level.to_string(), route.distance.to_string());
        [route.prefix.clone(), level, distance, route.via.join(" "), kind.to_owned()]
    });
    table(["prefix", "level", "distance", "via", ""], rows)
}

pub(super) fn backups(isis: &IsisSnapshot) -> String {
    let rows = isis.backups.iter().map(|backup| {
        let segments: Vec<String> = backup.segments.iter().map(ToString::to_string).collect();
        [
            backup.prefix.clone(),
            backup.level.to_string(),
            backup.neighbour.clone(),
            backup.protects.clone(),
            backup.via.clone(),
            backup.port.clone(),
            segments.join(" "),
        ]
    });
    table(["prefix", "level", "neighbor", "protects", "via", "port", "segments"], rows)
}

pub(crate) fn table<const N: usize>(headings: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new(&headings).with_text_from(0);
    rows.for_each(|row| table.row(row));
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_node::daemon::{
        IsisBackupSnapshot, IsisCircuitSnapshot, IsisNodeSnapshot, IsisRouteSnapshot, LspSnapshot,
    };

    #[test]
    fn tables_have_a_row_for_each_thing() {
        let circuit = |port: &str, state, neighbour: Option<&str>| IsisCircuitSnapshot {
            port: port.to_owned(),
            kind: "broadcast".to_owned(),
            level: 2,
            designated: neighbour.map(|_| "0000.0000.0002.01".to_owned()),
            metric: 10,
            is_open: true,
            state,
            is_in_topology: port != "n5",
            neighbour: neighbour.map(str::to_owned),
            hostname: None,
            addresses: neighbour.map(|_| "fe80::2".parse().unwrap()).into_iter().collect(),
            holds_s: neighbour.map(|_| 29),
        };
        let lsp = LspSnapshot {
            level: 1,
            id: "0000.0000.0001.00-00".to_owned(),
            hostname: Some("n1".to_owned()),
            sequence: 7,
            checksum: 0xab,
            lifetime_s: 1199,
            octets: 120,
            is_overloaded: false,
            is_attached: true,
            is_own: true,
            purged_by: Vec::new(),
        };
        let purge = LspSnapshot {
            id: "0000.0000.0002.00-00".to_owned(),
            hostname: None,
            lifetime_s: 0,
            octets: 59,
            is_attached: false,
            is_own: false,
            purged_by: vec!["0000.0000.0003".to_owned(), "0000.0000.0004".to_owned()],
            ..lsp.clone()
        };
        let sid = IsisSidSnapshot {
            sid: "5f00:0:1:c000::".parse().unwrap(),
            behavior: 0x8001,
            name: Some("END.C".to_owned()),
            structure: Some([32, 16, 16, 0]),
            is_used: true,
        };
        let node = IsisNodeSnapshot {
            system: "0000.0000.0001".to_owned(),
            hostname: Some("n1".to_owned()),
            distance: Some(0),
            has_srv6: true,
            handles_notifications: true,
            locators: vec!["5f00:0:1::/48".to_owned()],
            sids: vec![sid],
        };
        let route = |prefix: &str, kind: &str| IsisRouteSnapshot {
            prefix: prefix.to_owned(),
            level: 1,
            kind: kind.to_owned(),
            distance: 20,
            via: vec!["n2".to_owned(), "n3".to_owned()],
        };
        let backup = |protects: &str, segments: &[&str]| IsisBackupSnapshot {
            prefix: "5f00:0:2::/48".to_owned(),
            level: 2,
            neighbour: "n2".to_owned(),
            protects: protects.to_owned(),
            via: "n4".to_owned(),
            port: "core".to_owned(),
            segments: segments.iter().map(|segment| segment.parse().unwrap()).collect(),
        };
        let isis = IsisSnapshot {
            backups: vec![backup("link and node", &["5f00:0:3:1::", "5f00:0:5:e002::"]), backup("link", &[])],
            system: "0000.0000.0001".to_owned(),
            hostname: "n1".to_owned(),
            area: "49.0001".to_owned(),
            levels: vec![1, 2],
            is_attached: true,
            topology: 2,
            authentication: "none".to_owned(),
            circuits: vec![
                circuit("core", IsisState::Up, Some("0000.0000.0002")),
                circuit("n4", IsisState::Down, None),
                circuit("n5", IsisState::Up, Some("0000.0000.0003")),
            ],
            lsps: vec![lsp, purge],
            nodes: vec![node],
            routes: vec![route("5f00:0:2::/48", "up"), route("::/0", "out of area")],
            ..IsisSnapshot::default()
        };
        let expected = "\
system           hostname   area      level           topology   authentication   overload
0000.0000.0001   n1         49.0001   1-2, attached   IPv6 (2)   none             no
";
        assert_eq!(system(&isis), expected);
        let expected = "\
port   level   state                neighbor         hostname   metric   holds   addresses   LAN
core   2       up                   0000.0000.0002              10       29 s    fe80::2     0000.0000.0002.01
n4     2       down                                             10
n5     2       up, other topology   0000.0000.0003              10       29 s    fe80::2     0000.0000.0002.01
";
        assert_eq!(neighbors(&isis), expected);
        let expected = "\
level   LSP                    hostname   sequence     checksum   lifetime   octets
1       0000.0000.0001.00-00   n1         0x00000007   0x00ab     1199 s     120      own attached
1       0000.0000.0002.00-00              0x00000007   0x00ab     0 s        59       purged by 0000.0000.0003 because of 0000.0000.0004
";
        assert_eq!(database(&isis), expected);
        let expected = "\
system           hostname   C   SID               behavior        block+node+function+argument
0000.0000.0001   n1         C   5f00:0:1:c000::   END.C (32769)   32+16+16+0                     notifications
";
        assert_eq!(sids(&isis), expected);
        let expected = "\
prefix          level   distance   via
5f00:0:2::/48   1       20         n2 n3
::/0            1       20         n2 n3   out of area
";
        assert_eq!(routes(&isis), expected);
        let expected = "\
prefix          level   neighbor   protects        via   port   segments
5f00:0:2::/48   2       n2         link and node   n4    core   5f00:0:3:1:: 5f00:0:5:e002::
5f00:0:2::/48   2       n2         link            n4    core
";
        assert_eq!(backups(&isis), expected);
    }
}
