//! VPP: its packet generator, and the clocks that it counts at each node of its graph.
//!
//! Ours begins with an Ethernet frame in memory and ends with the finished frame in an egress queue. So the clocks of
//! all nodes from `ethernet-input` to the output of the interface count, but not those of the generator, nor of the
//! driver that takes the frame.

use super::frames;
use super::ours::{Srdma, find};
use super::row::{Figures, Missing, Outcome, Row};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const INSTALL: &str = "  git clone --branch v26.10 https://github.com/FDio/vpp && make -C vpp install-dep
  cmake -G Ninja -S vpp/src -B vpp/build -DCMAKE_BUILD_TYPE=release -DVPP_BUILD_NATIVE_ONLY=ON -DVPP_PLUGINS=none
  ninja -C vpp/build vpp vppctl
  cargo xtask peers --vpp vpp/build/bin/vpp";

/// Packets of each measurement, and the frames that they repeat.
const PACKETS: u32 = 2_000_000;
const FRAMES: u32 = 512;

const SMALL: usize = 128;
const LONGER: usize = 192;

/// The next hop's interface and address.
const NEXT_HOP: &str = "2001:db8:e1::2";

/// Commands before the first case. The routes are ten, the number of `srdma bench dataplane --quick`.
fn configuration() -> Vec<String> {
    let mut commands: Vec<String> = [
        "create packet-generator interface pg0",
        "create packet-generator interface pg1",
        "set interface mac address pg0 02:00:00:00:00:00",
        "set interface ip address pg0 2001:db8:e0::1/64",
        "set interface ip address pg1 2001:db8:e1::1/64",
        "set interface state pg0 up",
        "set interface state pg1 up",
        "set ip neighbor pg1 2001:db8:e1::2 02:00:00:00:00:02",
        "set sr encaps source addr 2001:db8:e0::1",
        "sr localsid address 2001:db8:0:1::100 behavior end",
        "sr localsid address 2001:db8:0:1::200 behavior end.x pg1 2001:db8:e1::2",
        "sr localsid address 2001:db8:0:1::300 behavior end.dt6 0",
        "sr localsid prefix 5f00:0:100::/48 behavior un 16",
        "sr localsid prefix 5f00:0:200::/48 behavior ua 16 pg1 2001:db8:e1::2",
        "sr policy add bsid 2001:db8:0:1::400 next 2001:db8:1000::1 next 2001:db8:1001::1 encap",
        "sr steer l3 fd00:aa::/32 via bsid 2001:db8:0:1::400",
        "ip route add 5f00::/32 via 2001:db8:e1::2 pg1",
    ]
    .map(str::to_owned)
    .to_vec();
    commands.extend((0..9).map(|number| format!("ip route add 2001:db8:{}::/48 via {NEXT_HOP} pg1", 1000 + number)));
    commands
}

/// The cases of `srdma bench dataplane` that VPP has as well.
const CASES: [&str; 7] = ["IPv6", "End", "End.X", "uN", "uA", "End.DT6", "H.Encaps"];

/// The frame of a case with this number; destinations differ from frame to frame.
fn frame(case: &str, number: u32) -> Vec<u8> {
    let routed = |number: u32| {
        let route = 0x1000 + (number % 9) as u16;
        Ipv6Addr::new(0x2001, 0xdb8, route, 0, 0, 0, (number >> 16) as u16, number as u16 + 1)
    };
    let sid = |last: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last);
    let compressed = |own: u16| Ipv6Addr::new(0x5f00, 0, own, 0x1000 + number as u16, 0, 0, 0, 0);
    match case {
        "End" => frames::with_srh(sid(0x100), routed(number), 1, routed(0), LONGER),
        "End.X" => frames::with_srh(sid(0x200), routed(number), 1, routed(0), LONGER),
        "uN" => frames::without_srh(compressed(0x100), routed(0), LONGER),
        "uA" => frames::without_srh(compressed(0x200), routed(0), LONGER),
        "End.DT6" => frames::with_srh(sid(0x300), sid(0x300), 0, routed(number), LONGER),
        "H.Encaps" => {
            let destination = Ipv6Addr::new(0xfd00, 0xaa, 0, 0, 0, 0, 0, number as u16);
            frames::unencapsulated(destination, SMALL)
        }
        _ => frames::unencapsulated(routed(number), SMALL),
    }
}

pub(super) fn measure(program: &Path, srdma: &Srdma, rounds: u32) -> Result<Outcome> {
    let control = program.with_file_name("vppctl");
    let (program, control) = match (find(program), find(&control).or_else(|_| find(Path::new("vppctl")))) {
        (Ok(program), Ok(control)) => (program, control),
        (Err(why), _) | (_, Err(why)) => return Ok(Outcome::Missing(Missing { peer: "VPP", why, install: INSTALL })),
    };
    let directory = std::env::temp_dir().join(format!("srdma-peers-vpp-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let measured = run(&program, control, srdma, rounds, &directory);
    if measured.is_ok() {
        fs::remove_dir_all(&directory)?;
    }
    measured.map(Outcome::Measured).with_context(|| format!("the log of VPP is in {}", directory.display()))
}

fn run(program: &Path, control: PathBuf, srdma: &Srdma, rounds: u32, directory: &Path) -> Result<Vec<Row>> {
    let vpp = Vpp::start(program, control, srdma, directory)?;
    let version = vpp.command("show version")?;
    let version = version.split_whitespace().nth(1).unwrap_or("of unknown version").to_owned();
    for command in configuration() {
        let answer = vpp.command(&command)?;
        // The first interfaces print their names.
        if !answer.trim().is_empty() && !answer.trim().starts_with("pg") {
            bail!("VPP refuses `{command}`: {}", answer.trim());
        }
    }
    for case in CASES {
        let frames: Vec<Vec<u8>> = (0..FRAMES).map(|number| frame(case, number)).collect();
        fs::write(directory.join(format!("{case}.pcap")), frames::pcap(&frames))?;
    }
    let mut samples = vec![(Vec::new(), Vec::new(), Vec::new()); CASES.len()];
    for _ in 0..rounds {
        for (case, (least, median, theirs)) in CASES.into_iter().zip(&mut samples) {
            let ours = srdma.clocks(case)?;
            least.push(ours.least);
            median.push(ours.median);
            theirs.push(vpp.clocks(case, &directory.join(format!("{case}.pcap")))?);
        }
    }
    let rows = CASES.into_iter().zip(samples).map(|(case, (least, median, theirs))| Row {
        peer: format!("VPP {version}"),
        case: case.to_owned(),
        unit: "clocks",
        ours: Figures { least: Figures::of(least).least, median: Figures::of(median).median },
        theirs: Figures::of(theirs),
        rounds: rounds.into(),
    });
    Ok(rows.collect())
}

/// A running VPP, which ends with this value.
struct Vpp {
    process: Child,
    control: PathBuf,
    socket: PathBuf,
}

impl Drop for Vpp {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Vpp {
    fn start(program: &Path, control: PathBuf, srdma: &Srdma, directory: &Path) -> Result<Self> {
        let socket = directory.join("cli.sock");
        let text = |path: &Path| path.display().to_string();
        let log = File::create(directory.join("vpp.log"))?;
        let words = format!(
            "unix {{ nodaemon nosyslog runtime-dir {0} cli-listen {1} }} cpu {{ main-core {2} }} api-segment {{ prefix \
             srdma-peers-{3} }} statseg {{ socket-name {0}/stats.sock }} plugins {{ plugin default {{ disable }} }}",
            text(directory),
            text(&socket),
            srdma.cpu(),
            std::process::id()
        );
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).stdin(Stdio::null());
        let process = command.stdout(log.try_clone()?).stderr(log).spawn().context("VPP does not start")?;
        let mut vpp = Vpp { process, control, socket };
        let begin = Instant::now();
        while vpp.command("show version").is_err() {
            if let Some(status) = vpp.process.try_wait()? {
                bail!("VPP has ended: {status}");
            }
            ensure!(begin.elapsed() < Duration::from_secs(30), "VPP does not answer at {}", vpp.socket.display());
            thread::sleep(Duration::from_millis(100));
        }
        Ok(vpp)
    }

    fn command(&self, words: &str) -> Result<String> {
        let mut command = Command::new(&self.control);
        let output = command.arg("-s").arg(&self.socket).args(words.split_whitespace()).output()?;
        ensure!(output.status.success(), "vppctl {words}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Clocks a packet of the frames of a file.
    fn clocks(&self, case: &str, frames: &Path) -> Result<f64> {
        let stream = "peers";
        let frames = frames.display();
        let new = format!(
            "packet-generator new {{ name {stream} limit {PACKETS} source pg0 node ethernet-input pcap {frames} }}"
        );
        let answer = self.command(&new)?;
        ensure!(answer.trim().is_empty(), "VPP refuses `{new}`: {}", answer.trim());
        self.command("clear runtime")?;
        self.command(&format!("packet-generator enable-stream {stream}"))?;
        let begin = Instant::now();
        while is_enabled(&self.command("show packet-generator")?, stream) {
            ensure!(begin.elapsed() < Duration::from_secs(60), "the packet generator does not end");
            thread::sleep(Duration::from_millis(20));
        }
        let runtime = self.command("show runtime")?;
        self.command(&format!("packet-generator delete {stream}"))?;
        clocks_of(&runtime).with_context(|| format!("{case}: {runtime}"))
    }
}

/// Whether a stream of `show packet-generator` still runs: its line has the name, and `Yes` or `No`.
fn is_enabled(text: &str, stream: &str) -> bool {
    text.lines().any(|line| line.split_whitespace().take(2).eq([stream, "Yes"]))
}

/// Clocks a packet of all nodes of `show runtime` that packets pass but the generator and the driver's. Its columns are
/// name, state, calls, vectors, suspends, clocks a packet, vectors a call.
fn clocks_of(runtime: &str) -> Result<f64> {
    let (mut clocks, mut sent) = (0.0, 0.0);
    for line in runtime.lines() {
        let [name, "active", _, vectors, _, clocks_each, _] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            continue;
        };
        let (vectors, clocks_each): (f64, f64) = (vectors.parse()?, clocks_each.parse()?);
        if name.contains("drop") && vectors > 0.0 {
            bail!("VPP has dropped {vectors} packets at {name}");
        }
        if name == "pg-input" || name.ends_with("-tx") {
            continue;
        }
        if name == "pg1-output" {
            sent = vectors;
        }
        clocks += clocks_each * vectors;
    }
    let packets = f64::from(PACKETS);
    ensure!(sent >= packets, "VPP has sent {sent} of {packets} packets");
    Ok(clocks / packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form that `format_vlib_node_stats` of VPP 26.10 writes.
    const RUNTIME: &str = "\
Time 1.2, 10 sec internal node vector rate 0.00 loops/sec 4519.21
  vector rates in 1.6e6, out 1.6e6, drop 0.0000e0, punt 0.0000e0
          Name                State           Calls        Vectors       Suspends          Clocks   Vectors/Call
ethernet-input               active             7813        2000000              0          2.05e1         255.98
ip6-input                    active             7813        2000000              0          1.50e1         255.98
ip6-lookup                   active             7813        2000000              0          4.00e1         255.98
ip6-rewrite                  active             7813        2000000              0          2.00e1         255.98
pg-input                     polling         3300123        2000000              0          1.10e2           0.61
pg1-output                   active             7813        2000000              0          4.50e0         255.98
pg1-tx                       active             7813        2000000              0          2.90e1         255.98
unix-epoll-input             polling            3222              0              0          1.10e4           0.00
";

    #[test]
    fn clocks_are_those_of_the_nodes_between_generator_and_driver() {
        assert_eq!(clocks_of(RUNTIME).unwrap(), 100.0);
        let lost = RUNTIME.replace("pg1-output ", "pg2-output ");
        assert!(clocks_of(&lost).unwrap_err().to_string().contains("sent 0 of 2000000"));
        let dropped = RUNTIME.replace("ip6-rewrite ", "ip6-drop    ");
        assert!(clocks_of(&dropped).unwrap_err().to_string().contains("at ip6-drop"));
    }

    #[test]
    fn a_stream_runs_until_its_line_says_no() {
        let text = "Name               Enabled        Count     Parameters\n\
                    peers                Yes          1000        limit 2000000\n";
        assert!(is_enabled(text, "peers"));
        assert!(!is_enabled(&text.replace("Yes", "No "), "peers"));
        assert!(!is_enabled(text, "other"));
    }

    #[test]
    fn a_case_has_frames_of_its_length_that_differ() {
        for case in CASES {
            let octets = if ["IPv6", "H.Encaps"].contains(&case) { SMALL } else { LONGER };
            assert_eq!((frame(case, 0).len(), frame(case, 300).len()), (octets, octets), "{case}");
            assert_ne!(frame(case, 0), frame(case, 300), "{case}");
        }
    }
}
