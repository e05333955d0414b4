//! A node at level 1, whose way out of the area is an FRR at both levels (D249).

use crate::own_lab::{Lab, wait_until};

#[test]
#[ignore = "needs root"]
fn frr_leads_out_of_the_area_while_it_is_attached() {
    let lab = Lab::of("isis-area", include_str!("area.toml"));
    lab.up();
    let out = || lab.inside("N1", "ip -6 route show proto 201 default");
    let leads_out = || out().contains("via fe80::2 dev f");
    wait_until(leads_out, || format!("{}{}", lab.show("N1", "neighbors"), lab.show("N1", "database")));
    let routes = lab.show("N1", "routes")["routes"].clone();
    let routes = routes.as_array().expect("routes");
    let way_out = routes.iter().find(|route| route["prefix"] == "::/0").expect("a way out");
    assert_eq!((way_out["distance"].as_u64(), way_out["via"][0].as_str()), (Some(10), Some("F")));
    assert!(!routes.iter().any(|route| route["prefix"] == "2001:db8:ff:10::1/128"), "{routes:?}");
    // S reaches G, of which level 1 knows nothing.
    let ping = || lab.runs("S", "ping -6 -c 3 -i 0.2 -W 1 -I 2001:db8:aa::1 2001:db8:ff:10::1").status.success();
    wait_until(ping, || lab.inside("F", "ip -6 route"));

    // Without its adjacency at level 2, F is attached no more.
    lab.kill_frr("frr-g", "isisd");
    wait_until(|| out().is_empty(), out);
    assert!(lab.routes("N1", "201").contains("2001:db8:ff:f::1"), "the area itself stays");
}
