//! The OSPFv3 state as tables.

use crate::isis::text::{sid_row, table};
use srdma_node::daemon::OspfSnapshot;

pub(super) fn router(ospf: &OspfSnapshot) -> String {
    let overload = if ospf.is_overloaded { "yes" } else { "no" };
    let row = [ospf.router.clone(), ospf.hostname.clone(), ospf.area.clone(), overload.to_owned()];
    table(["router", "hostname", "area", "overload"], [row].into_iter())
}

pub(super) fn neighbors(ospf: &OspfSnapshot) -> String {
    let rows = ospf.circuits.iter().map(|circuit| {
        [
            circuit.port.clone(),
            if circuit.is_open { circuit.state.clone() } else { "closed".to_owned() },
            circuit.neighbour.clone().unwrap_or_default(),
            circuit.hostname.clone().unwrap_or_default(),
            circuit.metric.to_string(),
            circuit.dead_s.map(|seconds| format!("{seconds} s")).unwrap_or_default(),
            circuit.address.map(|address| address.to_string()).unwrap_or_default(),
            circuit.unacknowledged.to_string(),
        ]
    });
    table(["port", "state", "neighbor", "hostname", "metric", "dead in", "address", "unacknowledged"], rows)
}

pub(super) fn database(ospf: &OspfSnapshot) -> String {
    let rows = ospf.lsas.iter().map(|lsa| {
        [
            lsa.name.clone().unwrap_or_else(|| format!("{:#06x}", lsa.kind)),
            lsa.id.to_string(),
            lsa.router.clone(),
            format!("{:#010x}", lsa.sequence),
            format!("{:#06x}", lsa.checksum),
            format!("{} s", lsa.age_s),
            lsa.octets.to_string(),
            lsa.port.clone().unwrap_or_default(),
            if lsa.is_own { "own" } else { "" }.to_owned(),
        ]
    });
    table(["type", "id", "router", "sequence", "checksum", "age", "octets", "port", ""], rows)
}

pub(super) fn sids(ospf: &OspfSnapshot) -> String {
    let rows = ospf.nodes.iter().flat_map(|node| {
        let of_node = (node.router.as_str(), node.hostname.as_deref(), node.handles_notifications);
        node.sids.iter().map(move |sid| sid_row(of_node, sid))
    });
    table(["router", "hostname", "C", "SID", "behavior", "block+node+function+argument", ""], rows)
}

pub(super) fn routes(ospf: &OspfSnapshot) -> String {
    let rows = ospf.routes.iter().map(|route| [route.prefix.clone(), route.distance.to_string(), route.via.join(" ")]);
    table(["prefix", "distance", "via"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_node::daemon::{
        IsisSidSnapshot, OspfCircuitSnapshot, OspfLsaSnapshot, OspfNodeSnapshot, OspfRouteSnapshot,
    };

    #[test]
    fn tables_have_a_row_for_each_subject() {
        let circuit = |port: &str, is_open, state: &str, neighbour: Option<&str>| OspfCircuitSnapshot {
            port: port.to_owned(),
            metric: 10,
            is_open,
            state: state.to_owned(),
            neighbour: neighbour.map(str::to_owned),
            hostname: neighbour.map(|_| "n2".to_owned()),
            address: neighbour.map(|_| "fe80::2".parse().unwrap()),
            dead_s: neighbour.map(|_| 39),
            unacknowledged: 0,
        };
        let lsa = |kind: u16, name: Option<&str>, port: Option<&str>, is_own| OspfLsaSnapshot {
            kind,
            name: name.map(str::to_owned),
            id: 0,
            router: "10.0.0.1".to_owned(),
            port: port.map(str::to_owned),
            sequence: 0x8000_0001,
            checksum: 0x1234,
            age_s: 7,
            octets: 40,
            is_own,
        };
        let sid = IsisSidSnapshot {
            sid: "5f00:0:2:c000::".parse().unwrap(),
            behavior: 0x8001,
            name: Some("END.C".to_owned()),
            structure: Some([32, 16, 16, 0]),
            is_used: true,
        };
        let node = OspfNodeSnapshot {
            router: "10.0.0.2".to_owned(),
            hostname: Some("n2".to_owned()),
            distance: Some(10),
            has_srv6: true,
            handles_notifications: true,
            locators: vec!["5f00:0:2::/48".to_owned()],
            sids: vec![sid],
        };
        let route = OspfRouteSnapshot { prefix: "5f00:0:2::/48".to_owned(), distance: 10, via: vec!["n2".to_owned()] };
        let ospf = OspfSnapshot {
            router: "10.0.0.1".to_owned(),
            hostname: "n1".to_owned(),
            area: "0.0.0.0".to_owned(),
            circuits: vec![circuit("core", true, "full", Some("10.0.0.2")), circuit("n4", false, "down", None)],
            lsas: vec![
                lsa(0x2001, Some("router"), None, true),
                lsa(0x0008, Some("link"), Some("core"), false),
                lsa(0x4005, None, None, false),
            ],
            nodes: vec![node],
            routes: vec![route],
            ..OspfSnapshot::default()
        };
        let expected = "\
router     hostname   area      overload
10.0.0.1   n1         0.0.0.0   no
";
        assert_eq!(router(&ospf), expected);
        let expected = "\
port   state    neighbor   hostname   metric   dead in   address   unacknowledged
core   full     10.0.0.2   n2         10       39 s      fe80::2   0
n4     closed                         10                           0
";
        assert_eq!(neighbors(&ospf), expected);
        let expected = "\
type     id   router     sequence     checksum   age   octets   port
router   0    10.0.0.1   0x80000001   0x1234     7 s   40              own
link     0    10.0.0.1   0x80000001   0x1234     7 s   40       core
0x4005   0    10.0.0.1   0x80000001   0x1234     7 s   40
";
        assert_eq!(database(&ospf), expected);
        let expected = "\
router     hostname   C   SID               behavior        block+node+function+argument
10.0.0.2   n2         C   5f00:0:2:c000::   END.C (32769)   32+16+16+0                     notifications
";
        assert_eq!(sids(&ospf), expected);
        let expected = "\
prefix          distance   via
5f00:0:2::/48   10         n2
";
        assert_eq!(routes(&ospf), expected);
    }
}
