use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use srdma_node::daemon::{
    BackpressureSnapshot, BranchRepairSnapshot, BranchSnapshot, ClassSnapshot, ConfigurationSnapshot, DriverSnapshot,
    GroupSnapshot, PauseSnapshot, PfcSnapshot, PortSnapshot, Reload, RepairSnapshot, Role, SidSnapshot,
};
use srdma_node::{GroupCountersReport, TrafficReport};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

fn address(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, last, 0, 0, 0, 1)
}

fn traffic(frames: u64, octets: u64) -> TrafficReport {
    TrafficReport { frames, octets }
}

fn port(name: &str, at: u64) -> PortSnapshot {
    PortSnapshot {
        name: name.to_owned(),
        interface: name.to_owned(),
        driver: Some("AF_XDP native".to_owned()),
        note: None,
        is_up: true,
        vlan: None,
        mac: "02:00:00:06:00:01".to_owned(),
        link_mtu: 4608,
        received: traffic(1_000 * at, 4_200_000 * at),
        enqueued: traffic(12, 1_200),
        sent: traffic(10, 1_000),
        drops: BTreeMap::new(),
        fast_path: None,
        statistics: DriverSnapshot::default(),
        classes: Vec::new(),
    }
}

/// A node with `branches` branches, `at` seconds after its start.
fn snapshot(at: u64, branches: u16) -> Snapshot {
    let branch = |index: u16| BranchSnapshot {
        address: address(index),
        expected_psn: (index != 2).then_some(0xfffff0),
        lag: (index != 2).then(|| u32::from(index) * 24),
        stalls: u64::from(index / 3),
        cnps: 0,
        repair: None,
    };
    let mut ports = vec![port("s1", at), port("uplink-to-n4", at)];
    ports[0].drops = BTreeMap::from([("no_route".to_owned(), 3 * at), ("not_ipv6".to_owned(), 4)]);
    ports[1].note = Some("AF_XDP native: Operation not supported; AF_XDP generic instead".to_owned());
    ports[1].is_up = false;
    ports[1].statistics.too_long = 2;
    Snapshot {
        name: "n6".to_owned(),
        loopback: address(6),
        started_unix_s: 1_800_000_000,
        uptime_ns: at * 1_000_000_000,
        ports,
        sids: vec![SidSnapshot {
            sid: "5f00:0:600::/48".to_owned(),
            behavior: "uN".to_owned(),
            processed: traffic(500 * at, 600_000 * at),
        }],
        shared_hosts: Vec::new(),
        own_drops: BTreeMap::from([("no_neighbour".to_owned(), 1)]),
        groups: vec![GroupSnapshot {
            id: 1,
            epoch: 3,
            role: Role::Headend,
            is_learnt: false,
            proxy: "2001:db8:cc::1".parse().unwrap(),
            parent: "2001:db8:aa::1".parse().unwrap(),
            is_root: true,
            highest_psn: Some(0xfffff4),
            awaits_first_psn: false,
            repair: None,
            counters: GroupCountersReport {
                data_packets: 1_000 * at,
                copies: 3_000 * at,
                acks_received: 90,
                naks_received: 2,
                cnps_received: 1,
                acks_sent: 30,
                naks_sent: 1,
                cnps_sent: 1,
            },
            eviction_requests: 0,
            to_evict: Vec::new(),
            branches: (1..=branches).map(branch).collect(),
        }],
        prefixes: 23,
        neighbours: 4,
        fast_cnp: None,
        backpressure: None,
        traces: BTreeMap::new(),
        steering: None,
        bfd: Vec::new(),
        backups: Vec::new(),
        repair_memory: None,
        isis: None,
        ospf: None,
        controller: None,
        workers: Vec::new(),
        dropped_log_lines: 0,
        configuration: ConfigurationSnapshot {
            generation: 2,
            last_reload: Some(Reload { unix_s: 1_800_000_060, error: None }),
        },
    }
}

fn screen() -> Screen {
    let mut screen = Screen::new(Path::new("/run/srdma/n6.sock"));
    screen.take(Ok(snapshot(90, 4)));
    screen.take(Ok(snapshot(92, 4)));
    screen
}

fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let text = terminal.backend().to_string();
    let lines: Vec<&str> = text.lines().map(|line| line.trim_matches('"').trim_end()).collect();
    lines.join("\n")
}

fn press(screen: &mut Screen, code: KeyCode) -> Next {
    screen.event(&Event::Key(code.into()))
}

#[test]
fn a_wide_terminal_has_every_column() {
    insta::assert_snapshot!(drawn(&mut screen(), 140, 34));
}

#[test]
fn a_terminal_of_80_by_24_shows_the_main_columns() {
    insta::assert_snapshot!(drawn(&mut screen(), 80, 24));
}

#[test]
fn the_first_snapshot_has_no_rates() {
    let mut screen = Screen::new(Path::new("/run/srdma/n6.sock"));
    assert!(drawn(&mut screen, 80, 24).starts_with("asking /run/srdma/n6.sock\n"));
    screen.take(Ok(snapshot(90, 1)));
    insta::assert_snapshot!(drawn(&mut screen, 80, 24));
}

/// A group with repair: one branch is behind, one is repairing; another group has no memory for it.
#[test]
fn repair_has_a_line_and_columns() {
    let mut screen = Screen::new(Path::new("/run/srdma/n6.sock"));
    let mut snapshot = snapshot(90, 3);
    let mut without = snapshot.groups[0].clone();
    without.id = 2;
    without.repair = Some(RepairSnapshot { lacks_memory: true, ..RepairSnapshot::default() });
    let mut off = without.clone();
    off.id = 3;
    off.repair = Some(RepairSnapshot { is_off: true, ..RepairSnapshot::default() });
    let counters = [("packets_resent", 1_204), ("naks_absorbed", 31), ("requests_received", 7), ("requests_sent", 12)];
    let counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
    snapshot.groups[0].repair = Some(RepairSnapshot { kept: 17, capacity: 128, counters, ..RepairSnapshot::default() });
    for (branch, (resent, behind, repairing)) in
        snapshot.groups[0].branches.iter_mut().zip([(4, false, false), (200, true, false), (1_000, true, true)])
    {
        branch.repair = Some(BranchRepairSnapshot {
            packets_resent: resent,
            times_back: 3,
            is_behind: behind,
            is_repairing: repairing,
        });
    }
    snapshot.groups.extend([without, off]);
    screen.take(Ok(snapshot));
    let text = drawn(&mut screen, 140, 60);
    let (_, groups) = text.split_once("  1 headend").expect("the group");
    let groups: Vec<&str> = groups.lines().take(24).collect();
    insta::assert_snapshot!(groups.join("\n"));
}

#[test]
fn no_size_makes_it_panic() {
    let mut screen = screen();
    for width in [1, 2, 7, 20, 79, 300] {
        for height in [1, 2, 3, 5, 23, 100] {
            drawn(&mut screen, width, height);
            press(&mut screen, KeyCode::PageDown);
        }
    }
}

#[test]
fn keys_scroll_within_the_page() {
    let mut screen = Screen::new(Path::new("/run/srdma/n6.sock"));
    screen.take(Ok(snapshot(90, 200)));
    let top = |screen: &mut Screen, code| {
        assert_eq!(press(screen, code), Next::GoOn);
        drawn(screen, 80, 24);
        screen.scrolled
    };
    drawn(&mut screen, 80, 24);
    let codes = [KeyCode::Up, KeyCode::Down, KeyCode::Down, KeyCode::PageDown, KeyCode::PageUp, KeyCode::Home];
    assert_eq!(codes.map(|code| top(&mut screen, code)), [0, 1, 2, 21, 2, 0]);
    let sections = screen.sections.clone();
    let codes = [KeyCode::Tab; 4];
    assert_eq!(codes.map(|code| top(&mut screen, code)), [sections[1], sections[2], sections[3], 0]);
    assert_eq!(top(&mut screen, KeyCode::BackTab), sections[3]);
    let end = top(&mut screen, KeyCode::End);
    assert_eq!(end, sections[3]);
    assert_eq!(top(&mut screen, KeyCode::Down), end);
    assert!(drawn(&mut screen, 80, 24).contains(&format!("{end} lines above, 0 below")));
}

#[test]
fn keys_quit() {
    let mut screen = screen();
    assert_eq!([KeyCode::Char('q'), KeyCode::Esc].map(|code| press(&mut screen, code)), [Next::End; 2]);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.event(&Event::Key(interrupt)), Next::End);
    assert_eq!(screen.event(&Event::Resize(10, 10)), Next::GoOn);
}

#[test]
fn the_last_snapshot_stays_when_the_node_is_gone() {
    let mut screen = screen();
    screen.take(read_status(Path::new("/nonexistent/n6.sock")));
    let text = drawn(&mut screen, 100, 30);
    assert!(text.starts_with("n6  2001:db8:ff:6::1"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("/nonexistent/n6.sock: no node answers"), "{text}");
}

#[test]
fn a_restarted_node_has_no_negative_rates() {
    let mut screen = screen();
    screen.take(Ok(snapshot(1, 4)));
    assert!(!drawn(&mut screen, 140, 30).contains("frame/s"));
}

#[test]
fn tables_without_a_terminal() {
    insta::assert_snapshot!(Page::new(&Seen::first(snapshot(90, 3)), 160).to_string());
}

/// Sections about congestion are shown when they are not empty.
#[test]
fn classes_and_fast_cnp_are_shown_where_there_are_any() {
    let mut with = snapshot(90, 1);
    let used = ClassSnapshot {
        class: 3,
        waiting_octets: 70_000,
        peak_octets: 90_000,
        sent: traffic(1_234, 5_000_000),
        marks: 17,
        pfc: PfcSnapshot { is_paused: true, pauses_received: 5, pauses_sent: 2, ..PfcSnapshot::default() },
        ..ClassSnapshot::default()
    };
    with.ports[0].classes = vec![used];
    with.fast_cnp = Some(BTreeMap::from([("sent".to_owned(), 12), ("refusals".to_owned(), 0)]));
    with.backpressure = Some(BackpressureSnapshot {
        counters: BTreeMap::from([("pauses_received".to_owned(), 7), ("expired".to_owned(), 0)]),
        received: vec![PauseSnapshot { address: address(2), traffic_class: 3 }],
        sent: Vec::new(),
    });
    let page = Page::new(&Seen::first(with), 100).to_string();
    let (_, page) = page.split_once("Classes").expect("a section");
    let words: Vec<&str> = page.lines().nth(2).expect("a class").split_whitespace().collect();
    assert_eq!(words, ["s1", "3", "70,000", "90,000", "1,234", "17", "0", "5", "2", "0", "paused"]);
    assert!(page.contains("Fast CNP\n  12 sent\n\n"), "{page}");
    assert!(
        page.contains("Backpressure\n  pause received from 2001:db8:ff:2::1, class 3\n  7 pauses received\n\n"),
        "{page}"
    );
    let without = Page::new(&Seen::first(snapshot(90, 1)), 100).to_string();
    let absent = ["Classes", "Fast CNP", "Backpressure"];
    assert!(absent.iter().all(|section| !without.contains(section)), "{without}");
}
