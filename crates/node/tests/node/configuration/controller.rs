//! `[controller]`: the status that the controller receives, and contradictions.

use super::errors::{EDGE, refused_with};
use super::parse;
use srdma_node::ControllerSettings;
use std::path::Path;

/// From line 27 of the edge on.
const CONTROLLER: &str = "[controller]\nurl = 'http://[::1]:8470'\nend_mt = '2001:db8:1::e'\n";

fn settings(more: &str) -> ControllerSettings {
    parse(&format!("{EDGE}{CONTROLLER}{more}")).expect("right").controller.expect("there is a controller")
}

#[track_caller]
fn refused(more: &str, message: &str) {
    refused_with(EDGE, &format!("{CONTROLLER}{more}"), message);
}

#[test]
fn absent_keys_have_defaults() {
    let found = settings("token_file = 'token'\nlink = [{ to = '2001:db8:6::1', port = 'up' }]\n");
    assert_eq!((found.name.as_str(), found.replication, found.hosts.len()), ("node", None, 0));
    assert_eq!(found.token_file.as_deref(), Some(Path::new("token")));
    let link = found.links[0];
    assert_eq!((link.port.map(|port| port.index()), link.mtu, link.cost), (Some(0), None, 1));
    assert_eq!(parse(EDGE).expect("right").controller, None);
}

#[test]
fn contradictions_are_refused() {
    refused(
        "replication = '2001:db8:1::/97'",
        "30: replication: 2001:db8:1::/97 has no SID for each group, expected a prefix of 1 to 96 bits",
    );
    refused(
        "replication = '2001:db8:1::/64'",
        "30: replication: SID 2001:db8:1::e/128 lies in 2001:db8:1::/64, which is the controller's",
    );
    refused(
        "replication = '2001:db8:cc::/64'",
        "30: replication: Proxy Address 2001:db8:cc::1 lies in 2001:db8:cc::/64, which is the controller's",
    );
    refused("link = [{ to = '2001:db8:1::1' }]", "30: link to 2001:db8:1::1: that is this node itself");
    refused(
        "link = [{ to = '2001:db8:6::1' },\n{ to = '2001:db8:6::1' }]",
        "31: link to 2001:db8:6::1 stands here twice",
    );
    refused("link = [{ to = '2001:db8:6::1', port = 'none' }]", "30: unknown port none: ports are up");
    let wrong = |section: &str, message: &str| refused_with(EDGE, section, message);
    wrong(
        "[controller]\nurl = 'controller'",
        "28: controller: expected the URL of a controller, such as http://[::1]:8470 or https://controller.example:8470",
    );
    wrong(
        "[controller]\nurl = 'http://[::1]:8470'",
        "27: expected end_mt, replication or both: without, the node can be in no tree",
    );
    wrong(
        "[controller]\nurl = 'http://[::1]:8470'\nend_mt = '2001:db8:1::f'",
        "29: end_mt: 2001:db8:1::f is no [[sid]] of behavior End.MT",
    );
}
