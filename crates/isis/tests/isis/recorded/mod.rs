//! Recorded events: each file of `events` has the input of a speaker, step by step, and its expected state and output.
//!
//! The input consists of frames of other implementations: of captures in `testdata/golden`, or of scapy, in
//! hexadecimal. The expected results in the files follow from the RFCs; none is output of the speaker.

use serde::Deserialize;
use srdma_capture::Reader;
use srdma_isis::pdu::{Complete, Partial};
use srdma_isis::tlv::{AdjacencyState, LspEntry};
use srdma_isis::{
    Behaviors, CircuitConfig, CircuitId, Config, Hello, Key, LanHello, Level, Lsp, NotificationSids, Pdu, PduKind,
    Speaker, frame,
};
use srdma_wire::{Instant, MacAddress};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    #[expect(dead_code, reason = "for people")]
    about: String,
    system: System,
    step: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    id: String,
    /// The secret of HMAC-MD5.
    md5: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    about: String,
    /// Time that passes before.
    #[serde(default)]
    after_ms: u64,
    /// A capture, and the numbers of its frames from 1, which come one after another.
    capture: Option<String>,
    #[serde(default)]
    frames: Vec<usize>,
    /// A frame in hexadecimal.
    hex: Option<String>,
    /// Sets the link up or down.
    link: Option<bool>,
    /// All that is sent in the step, in its order; where it is missing, whatever is.
    sends: Option<Vec<String>>,
    /// State of the handshake.
    adjacency: Option<String>,
    /// The database: `ID NUMBER CHECKSUM`, and `purged` where the lifetime is zero.
    lsps: Option<Vec<String>>,
    /// Routes: `PREFIX DISTANCE`.
    routes: Option<Vec<String>>,
    /// Locators with END.C and END.E of their nodes.
    notifications: Option<Vec<String>>,
    /// All drops so far.
    drops: Option<BTreeMap<String, u64>>,
}

const CIRCUIT: CircuitId = CircuitId(0);

struct Player {
    speaker: Speaker,
    now: Instant,
    sent: Vec<String>,
    own: String,
}

impl Player {
    fn new(system: &System) -> Self {
        let mut config = Config::new(system.id.parse().expect("an id"), vec![vec![0x49, 0, 1]], "own");
        config.key = system.md5.as_ref().map(|secret| Key::Md5 { secret: secret.clone().into_bytes().into() });
        // The recordings have exact times, and no start whose database is incomplete.
        (config.timers.jitter_percent, config.timers.startup_s) = (0, 0);
        let mut speaker = Speaker::new(config, 1, 1);
        let now = Instant::from_ns(1_000_000_000);
        speaker.add_circuit(now, CircuitConfig::new(MacAddress([2, 0, 0, 0, 0, 1])));
        Player { speaker, now, sent: Vec::new(), own: system.id.clone() }
    }

    /// Lets time pass, with all that is due on the way.
    fn pass(&mut self, ms: u64) {
        let end = self.now.after_ns(ms * 1_000_000);
        while let Some(next) = self.speaker.next_deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.speaker.tick(self.now);
            self.collect();
        }
        self.now = end;
    }

    fn collect(&mut self) {
        while let Some((_, frame)) = self.speaker.poll_transmit() {
            self.sent.push(in_words(&frame));
        }
    }

    fn play(&mut self, step: &Step) {
        self.sent.clear();
        self.pass(step.after_ms);
        if let Some(is_up) = step.link {
            self.speaker.set_link(self.now, CIRCUIT, is_up);
        }
        let of_capture = step.capture.iter().flat_map(|name| {
            let frames = capture(name);
            step.frames.iter().map(move |number| frames[number - 1].clone())
        });
        let frames: Vec<Vec<u8>> = of_capture.chain(step.hex.iter().map(|digits| octets(digits))).collect();
        for frame in frames {
            self.speaker.receive(self.now, CIRCUIT, &frame);
            self.collect();
            self.pass(0);
        }
        self.pass(0);
    }

    /// Differences from the step.
    fn differences(&self, step: &Step) -> Vec<String> {
        let drops = self.speaker.drops().iter();
        let drops = drops.map(|(why, count)| (why.name().to_owned(), *count)).collect::<BTreeMap<_, _>>();
        let found = [
            ("sends", format!("{:?}", self.sent), step.sends.as_ref().map(|sends| format!("{sends:?}"))),
            ("adjacency", self.adjacency().to_owned(), step.adjacency.clone()),
            ("lsps", format!("{:?}", self.lsps()), step.lsps.as_ref().map(|lsps| format!("{lsps:?}"))),
            ("routes", format!("{:?}", self.routes()), step.routes.as_ref().map(|routes| format!("{routes:?}"))),
            ("drops", format!("{drops:?}"), step.drops.as_ref().map(|drops| format!("{drops:?}"))),
            (
                "notifications",
                format!("{:?}", self.notifications()),
                step.notifications.as_ref().map(|sids| format!("{sids:?}")),
            ),
        ];
        let is_other = |expected: &Option<String>, found: &String| expected.as_ref().is_some_and(|it| it != found);
        let others = found.into_iter().filter(|(_, found, expected)| is_other(expected, found));
        others
            .map(|(what, found, expected)| format!("{what} {found}, expected {}", expected.unwrap_or_default()))
            .collect()
    }

    fn lsps(&self) -> Vec<String> {
        let stored = self.speaker.database(Level::Two).iter().filter(|(id, _)| !id.to_string().starts_with(&self.own));
        stored.map(|(_, stored)| entry(&stored.entry(self.now))).collect()
    }

    fn routes(&self) -> Vec<String> {
        let prefixes = self.speaker.shortest_paths(self.now).prefixes;
        prefixes.iter().map(|(prefix, reached)| format!("{prefix} {}", reached.distance)).collect()
    }

    fn notifications(&self) -> Vec<String> {
        const BEHAVIORS: Behaviors = Behaviors { end_c: 0x8001, end_e: 0x8002 };
        let table = NotificationSids::new(self.speaker.learned(self.now).values(), BEHAVIORS);
        let sid = |sid: Option<Ipv6Addr>| sid.map_or_else(|| "-".to_owned(), |sid| sid.to_string());
        table.iter().map(|(locator, end_c, end_e)| format!("{locator} {} {}", sid(end_c), sid(end_e))).collect()
    }

    fn adjacency(&self) -> &'static str {
        match self.speaker.adjacency(Level::Two, CIRCUIT).map(|adjacency| adjacency.state) {
            None | Some(AdjacencyState::Down) => "down",
            Some(AdjacencyState::Initializing) => "initializing",
            Some(AdjacencyState::Up) => "up",
        }
    }
}

fn entry(entry: &LspEntry) -> String {
    let purged = if entry.lifetime_s == 0 { " purged" } else { "" };
    format!("{} {} {:#06x}{purged}", entry.id, entry.sequence, entry.checksum)
}

/// A frame in words: its type and main fields. The checksums of our own LSPs are left out, and their numbers count from
/// 1.
fn in_words(octets: &[u8]) -> String {
    let pdu = Pdu::parse(frame::unwrap(octets).expect("IS-IS")).expect("a PDU");
    let entries = |entries: &[LspEntry]| {
        let short = |known: &LspEntry| format!("{} {}", known.id, known.sequence);
        entries.iter().map(short).collect::<Vec<_>>().join(", ")
    };
    match pdu.kind {
        PduKind::Hello => {
            let three_way = Hello::parse(&pdu).expect("a hello").three_way.expect("a handshake");
            let neighbour = three_way.neighbour.map(|(system, circuit)| format!(" {system} {circuit}"));
            format!("hello {:?}{}", three_way.state, neighbour.unwrap_or_default()).to_lowercase()
        }
        PduKind::LanHello(level) => {
            let LanHello { heard, lan_id, .. } = LanHello::parse(&pdu).expect("a hello");
            let heard: Vec<String> = heard.iter().map(|mac| format!(" {mac}")).collect();
            format!("hello of level {} of {lan_id}, hears{}", level as u8 + 1, heard.concat())
        }
        PduKind::Lsp(level) => {
            let lsp = Lsp::parse(&pdu, level).expect("an LSP").entry;
            let purged = if lsp.lifetime_s == 0 { " purged" } else { "" };
            format!("lsp {} {}{purged}", lsp.id, lsp.sequence)
        }
        PduKind::Complete(_) => format!("csnp {}", entries(&Complete::parse(&pdu).expect("a CSNP").entries)),
        PduKind::Partial(_) => format!("psnp {}", entries(&Partial::parse(&pdu).expect("a PSNP").entries)),
    }
}

fn octets(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    hex::decode(digits).expect("digits")
}

fn capture(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(name);
    Reader::open(&path).expect("a capture").map(|packet| packet.expect("a packet").octets).collect()
}

/// CN-5.1-1, CN-5.1-2, D65.
#[test]
fn recorded_events_have_the_recorded_results() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/isis/recorded/events");
    let entries = std::fs::read_dir(directory).expect("recordings");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() >= 5);
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("it is read");
        let recording: Recording = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut player = Player::new(&recording.system);
        for step in &recording.step {
            player.play(step);
            player.differences(step).into_iter().for_each(|text| wrong.push(format!("{name}: {}: {text}", step.about)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
