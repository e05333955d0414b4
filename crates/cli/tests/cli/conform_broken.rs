//! `srdma conform` and devices that do one thing wrong: our own node, whose output is spoilt. Each defect is found, and
//! reported under the requirement that it violates.

use srdma_conform::{CommandDevice, Device, DeviceError, Frame, ProfileName, Report, Step, Verdict, run};
use srdma_testkit::checksums;
use std::collections::BTreeMap;
use std::time::Duration;

const SRDMA: &str = env!("CARGO_BIN_EXE_srdma");

/// Offsets of headers in frames.
const IPV6: usize = 14;
const BEHIND_IPV6: usize = IPV6 + 40;
const BTH: usize = BEHIND_IPV6 + 8;

/// The defect of a device: changes the frames that it sends in one step, given those received.
type Defect = fn(&[Frame], &mut Vec<Frame>);

/// Our node, with a defect.
struct Broken {
    node: CommandDevice,
    defect: Defect,
}

impl Device for Broken {
    fn name(&self) -> String {
        "a broken node".to_owned()
    }

    fn put(&mut self, steps: &[Step]) -> Result<Vec<Vec<Frame>>, DeviceError> {
        let mut observed = self.node.put(steps)?;
        for (step, frames) in steps.iter().zip(&mut observed) {
            (self.defect)(&step.sent, frames);
        }
        Ok(observed)
    }
}

fn report(profile: &str, defect: Defect) -> Report {
    let profile = ProfileName::of(profile).expect("a profile").load(None).expect("no parameters");
    let ports: Vec<&'static str> = profile.ports.iter().map(|(name, _)| *name).collect();
    let inputs: String = ports.iter().map(|port| format!(" --in {port}={{in}}/{port}.pcapng")).collect();
    let command = format!("{SRDMA} process --config {{config}}{inputs} --out {{out}}");
    let node = CommandDevice::new(&command, &ports, &profile.configuration, Duration::from_secs(60));
    run(&profile, "", &mut Broken { node, defect }, &mut |_| {}).expect("the device is there")
}

/// Runs a profile against our node with a defect: this requirement is violated, and these ones, which the defect does
/// not touch, are met. Returns the report.
fn caught(profile: &str, defect: Defect, violated: &str, met: &[&str]) -> Report {
    let report = report(profile, defect);
    let verdicts: BTreeMap<&str, Verdict> = report
        .requirements
        .iter()
        .map(|requirement| (requirement.requirement.id.as_str(), requirement.verdict))
        .collect();
    assert_eq!(verdicts.get(violated), Some(&Verdict::Fail), "{violated}");
    for id in met {
        assert_eq!(verdicts.get(id), Some(&Verdict::Pass), "{id}");
    }
    assert!(!report.is_pass());
    report
}

/// Whether a frame is RoCEv2 right behind its IPv6 header.
fn is_rocev2(frame: &Frame) -> bool {
    frame.octets.len() > BTH + 12
        && frame.octets[IPV6 + 6] == 17
        && frame.octets[BEHIND_IPV6 + 2..][..2] == [0x12, 0xB7]
}

/// Changes the RoCEv2 frames of a port, and makes their ICRC good again.
fn change(frames: &mut [Frame], port: &str, change: impl Fn(&mut Vec<u8>)) {
    for frame in frames.iter_mut().filter(|frame| frame.port == port && is_rocev2(frame)) {
        change(&mut frame.octets);
        let end = frame.octets.len() - 4;
        let icrc = checksums::icrc(&frame.octets[IPV6..end]);
        frame.octets[end..].copy_from_slice(&icrc);
    }
}

/// The frames of a port are others.
fn each(frames: &mut [Frame], port: &str, change: impl Fn(&mut Vec<u8>)) {
    frames.iter_mut().filter(|frame| frame.port == port).for_each(|frame| change(&mut frame.octets));
}

const REVERSE_PATH: &[&str] = &["MT-5.3.1-3", "MT-5.3.2-4", "MT-5.3.3-2"];
const FORWARD_PATH: &[&str] = &["MT-5.2-3", "MT-6.2-1", "MT-7.2-1"];

/// MT-5.2-3: the ICRC of a copy is not updated.
#[test]
fn an_icrc_that_is_not_updated() {
    caught(
        "end-mt",
        |_, frames| each(frames, "down", |octets| *octets.last_mut().unwrap() ^= 1),
        "MT-5.2-3",
        &["MT-6.2-1"],
    );
}

/// MT-5.2-3: copies go to the Designated QPN.
#[test]
fn a_queue_pair_that_is_not_replaced() {
    let defect: Defect =
        |_, frames| change(frames, "down", |octets| octets[BTH + 5..][..3].copy_from_slice(&[0xD0, 0, 0]));
    caught("end-mt", defect, "MT-5.2-3", &["MT-6.2-1"]);
}

/// MT-5.2-3, D11: copies keep the source's address.
#[test]
fn a_source_address_that_is_not_replaced() {
    let defect: Defect = |sent, frames| {
        let Some(source) = sent.first().and_then(|frame| frame.octets.get(IPV6 + 64 + 8..IPV6 + 64 + 24)) else {
            return;
        };
        let source = source.to_vec();
        change(frames, "down", |octets| octets[IPV6 + 8..IPV6 + 24].copy_from_slice(&source));
    };
    caught("end-mt", defect, "MT-5.2-3", &["MT-6.2-1"]);
}

/// MT-5.2-3, D5: the hop limit of a copy stays.
#[test]
fn a_hop_limit_that_is_not_decremented() {
    caught("end-mt", |_, frames| each(frames, "down", |octets| octets[IPV6 + 7] += 1), "MT-5.2-3", &["MT-6.2-1"]);
}

/// MT-5.2-3, D27: a WRITE keeps the virtual address of the group.
#[test]
fn a_virtual_address_that_is_not_rewritten() {
    let defect: Defect = |_, frames| {
        change(frames, "down", |octets| {
            if octets[BTH] == 0x0A {
                octets[BTH + 12..][..8].copy_from_slice(&0x7F00_0000_0040_u64.to_be_bytes());
            }
        });
    };
    caught("end-mt", defect, "MT-5.2-3", &[REVERSE_PATH, &["MT-7.2-3", "MT-9-1"]].concat());
}

/// MT-5.2-3: a UDP checksum that is not zero is left as it was.
#[test]
fn a_udp_checksum_that_is_not_updated() {
    let defect: Defect = |_, frames| {
        each(frames, "down", |octets| {
            if octets[BEHIND_IPV6 + 6..][..2] != [0, 0] {
                octets[BEHIND_IPV6 + 6] ^= 0x40;
            }
        });
    };
    caught("end-mt", defect, "MT-5.2-3", &[REVERSE_PATH, &["MT-7.2-3"]].concat());
}

/// MT-5.2-4: copies go to another UDP port.
#[test]
fn a_wrong_udp_port() {
    let defect: Defect = |_, frames| change(frames, "down", |octets| octets[BEHIND_IPV6 + 3] = 0xB8);
    caught("end-mt", defect, "MT-5.2-4", &["MT-6.2-1"]);
}

/// MT-6.2-3: the last receiver of a list gets nothing.
#[test]
fn a_copy_that_is_missing() {
    let defect: Defect = |_, frames| {
        let last = frames.iter().rposition(|frame| frame.port == "down");
        last.map(|at| frames.remove(at));
    };
    caught("end-mt", defect, "MT-6.2-3", &["MT-6.2-1"]);
}

/// MT-5.2-3: a receiver gets its copy twice.
#[test]
fn a_copy_too_many() {
    let defect: Defect = |_, frames| {
        let first = frames.iter().find(|frame| frame.port == "down").cloned();
        frames.extend(first);
    };
    caught("end-mt", defect, "MT-5.2-3", &["MT-6.2-1"]);
}

/// RFC 6040, D5: a congestion mark of the tunnel is lost.
#[test]
fn a_congestion_mark_that_is_lost() {
    let defect: Defect = |_, frames| {
        each(frames, "down", |octets| {
            if octets[IPV6 + 1] & 0x30 == 0x30 {
                octets[IPV6 + 1] ^= 0x10;
            }
        });
    };
    caught("end-mt", defect, "RFC 6040 4.2", &[FORWARD_PATH, REVERSE_PATH].concat());
    caught("usid", defect, "RFC 6040 4.2", &["RFC 8986 4.2", "PP-5.2-3"]);
}

/// MT-5.3.1-3: ACKs pass as they come.
#[test]
fn acks_that_are_not_aggregated() {
    let defect: Defect = |sent, frames| {
        let responses =
            sent.iter().filter(|frame| frame.port == "down" && is_rocev2(frame) && frame.octets[BTH] == 0x11);
        frames.extend(responses.map(|frame| Frame { port: "up", octets: frame.octets.clone() }));
    };
    caught("end-mt", defect, "MT-5.3.1-3", FORWARD_PATH);
}

/// MT-5.3.1-1: the PSN of an ACK is one too high.
#[test]
fn a_psn_that_is_too_high() {
    let defect: Defect = |_, frames| change(frames, "up", |octets| octets[BTH + 11] = octets[BTH + 11].wrapping_add(1));
    caught("end-mt", defect, "MT-5.3.1-1", FORWARD_PATH);
}

/// MT-5.3.2-4: a NAK is forwarded as an ACK.
#[test]
fn a_nak_that_becomes_an_ack() {
    let defect: Defect = |_, frames| {
        change(frames, "up", |octets| {
            if octets[BTH] == 0x11 {
                octets[BTH + 12] = 0x1F;
            }
        });
    };
    caught("end-mt", defect, "MT-5.3.2-4", &[FORWARD_PATH, &["MT-5.3.1-3", "MT-5.3.3-2"]].concat());
}

/// MT-5.3.3-2: each CNP is forwarded.
#[test]
fn cnps_that_are_not_aggregated() {
    let defect: Defect = |_, frames| {
        let cnps = frames.iter().filter(|frame| is_rocev2(frame) && frame.octets[BTH] == 0x81 && frame.port == "up");
        let cnps: Vec<Frame> = cnps.cloned().collect();
        frames.extend(cnps);
    };
    caught("end-mt", defect, "MT-5.3.3-2", &[FORWARD_PATH, &["MT-5.3.1-3", "MT-5.3.2-4"]].concat());
}

/// MT-5.3.1-4, MT-5.3.3-4: the root answers the Designated QPN, and leaves its count in CNPs.
#[test]
fn a_root_that_responds_like_a_transit_node() {
    let designated: Defect =
        |_, frames| change(frames, "up", |octets| octets[BTH + 5..][..3].copy_from_slice(&[0xD0, 0, 0]));
    caught("end-replicate", designated, "MT-5.3.1-4", &["MT-5.2-2", "MT-3-2"]);
    let count: Defect = |_, frames| {
        change(frames, "up", |octets| {
            if octets[BTH] == 0x81 {
                octets[BTH + 15] = 2;
            }
        });
    };
    caught("end-replicate", count, "MT-5.3.3-4", &["MT-5.3.1-4", "MT-3-2"]);
}

/// MT-5.2-2, RFC 9524: copies keep their destination, or the Segments Left of the SRH changes.
#[test]
fn a_replicator_that_changes_too_little_or_too_much() {
    let destination: Defect = |_, frames| each(frames, "right", |octets| octets[IPV6 + 39] ^= 1);
    caught("end-replicate", destination, "MT-5.2-2", &[]);
    let segments_left: Defect = |_, frames| each(frames, "left", |octets| octets[BEHIND_IPV6 + 3] = 0);
    caught("end-replicate", segments_left, "RFC 9524 2.2", &[]);
}

/// RFC 8986: Segments Left is not decremented; a uSID is not shifted; an adjacency is ignored.
#[test]
fn segments_that_are_not_processed() {
    let segments_left: Defect = |_, frames| {
        each(frames, "down", |octets| {
            if octets[IPV6 + 6] == 43 {
                octets[BEHIND_IPV6 + 3] += 1;
            }
        });
    };
    caught("usid", segments_left, "RFC 8986 4.1", &["PP-5.2-2", "RFC 8986 4.6"]);
    let shift: Defect = |sent, frames| {
        let Some(came) = sent.first() else { return };
        let destination = came.octets[IPV6 + 24..IPV6 + 40].to_vec();
        each(frames, "down", |octets| {
            if octets[IPV6 + 24..IPV6 + 26] == [0x5F, 0] {
                octets[IPV6 + 24..IPV6 + 40].copy_from_slice(&destination);
            }
        });
    };
    caught("usid", shift, "RFC 9800 4.1", &["RFC 8986 4.6", "RFC 8986 4.1.1"]);
    let adjacency: Defect = |_, frames| {
        for frame in frames.iter_mut().filter(|frame| frame.octets[IPV6 + 28..IPV6 + 30] == [3, 0]) {
            frame.port = "up";
        }
    };
    caught("usid", adjacency, "PP-5.2-3", &["RFC 8986 4.6", "RFC 8986 4.1.1"]);
}

/// RFC 8986 sections 4.2 and 4.16.1: End.X with PSP leaves the SRH where it is, or removes it too early.
#[test]
fn an_srh_that_end_x_does_not_remove_in_time() {
    /// What the device received for its End.X with PSP, as End.X without a flavor forwards it.
    fn without_flavor(sent: &[Frame]) -> Option<Vec<u8>> {
        const END_X_PSP: [u8; 16] = [0x20, 1, 0xD, 0xB8, 0, 0xFF, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x1A];
        let mut octets = sent.first()?.octets.clone();
        let left = usize::from(*octets.get(BEHIND_IPV6 + 3)?);
        if octets[IPV6 + 24..BEHIND_IPV6] != END_X_PSP || octets[IPV6 + 6] != 43 || left == 0 {
            return None;
        }
        octets[..12].copy_from_slice(&[2, 0, 0, 0, 2, 2, 2, 0, 0, 0, 2, 1]);
        octets[IPV6 + 7] -= 1;
        octets[BEHIND_IPV6 + 3] -= 1;
        let segment = BEHIND_IPV6 + 8 + 16 * (left - 1);
        octets.copy_within(segment..segment + 16, IPV6 + 24);
        Some(octets)
    }
    let never: Defect = |sent, frames| {
        if let Some(octets) = without_flavor(sent) {
            *frames = vec![Frame { port: "down", octets }];
        }
    };
    let always: Defect = |sent, frames| {
        let Some(mut octets) = without_flavor(sent) else { return };
        let srh = 8 + 8 * usize::from(octets[BEHIND_IPV6 + 1]);
        octets[IPV6 + 6] = octets[BEHIND_IPV6];
        octets.drain(BEHIND_IPV6..BEHIND_IPV6 + srh);
        let payload_length = (octets.len() - BEHIND_IPV6) as u16;
        octets[IPV6 + 4..IPV6 + 6].copy_from_slice(&payload_length.to_be_bytes());
        *frames = vec![Frame { port: "down", octets }];
    };
    for (defect, failed) in [(never, "end-x-psp"), (always, "end-x-psp-too-early")] {
        let report = caught("usid", defect, "RFC 8986 4.16.1", &["RFC 8986 4.1", "RFC 9800 4.1", "RFC 8754 4.3.1.1"]);
        let fails = report.cases.iter().filter(|case| case.verdict == Verdict::Fail);
        assert_eq!(fails.map(|case| case.name).collect::<Vec<_>>(), [failed]);
    }
}

/// RFC 8986: errors point elsewhere, or are not sent.
#[test]
fn errors_that_are_wrong_or_missing() {
    let pointer: Defect = |_, frames| {
        each(frames, "up", |octets| {
            if octets[IPV6 + 6] == 58 && octets[BEHIND_IPV6] == 4 {
                octets[BEHIND_IPV6 + 7] ^= 1;
            }
        });
    };
    caught("usid", pointer, "RFC 8986 4.1.1", &["RFC 8200 3", "PP-5.2-2"]);
    let silent: Defect = |_, frames| frames.retain(|frame| frame.octets[IPV6 + 6] != 58);
    caught("usid", silent, "RFC 8200 3", &["PP-5.2-2", "PP-5.2-3"]);
}

/// FC-4-2, FC-4-3, FC-4-6, FC-5-1: the option names another address, has a type that hosts pass over, the packet is
/// marked as well, and a border lets Fast CNPs through.
#[test]
fn fast_cnps_that_are_wrong() {
    const OPTION: usize = BEHIND_IPV6 + 2;
    let address: Defect = |_, frames| {
        each(frames, "hosts", |octets| {
            if octets[IPV6 + 6] == 60 {
                octets[OPTION + 17] ^= 1;
            }
        });
    };
    caught("fast-cnp", address, "FC-4-2", &["FC-5-1", "FC-O-1"]);
    let kind: Defect = |_, frames| {
        each(frames, "hosts", |octets| {
            if octets[IPV6 + 6] == 60 {
                octets[OPTION] = 0x1E;
            }
        });
    };
    caught("fast-cnp", kind, "FC-4-3", &["FC-5-1", "FC-O-1"]);
    let marked: Defect = |_, frames| each(frames, "core", |octets| octets[IPV6 + 1] |= 0x30);
    caught("fast-cnp", marked, "FC-4-6", &["FC-5-1", "FC-O-1"]);
    let open: Defect = |sent, frames| {
        let passed = sent.iter().filter(|frame| frame.port == "outside" && frame.octets[IPV6 + 6] == 60);
        frames.extend(passed.map(|frame| Frame { port: "hosts", octets: frame.octets.clone() }));
    };
    caught("fast-cnp", open, "FC-5-1", &["FC-4-2", "FC-O-1"]);
}

/// CN-4.1-1, CN-4.2-2: another priority is paused; a Fast CNP is not passed on.
#[test]
fn provider_edges_that_are_wrong() {
    let priority: Defect = |_, frames| each(frames, "gateway", |octets| octets[17] = 1 << 4);
    caught("end-c", priority, "CN-4.1-1", &["RFC 8986 4.1.1"]);
    let lost: Defect = |_, frames| frames.retain(|frame| frame.octets[IPV6 + 6] != 60);
    caught("end-e", lost, "CN-4.2-2", &["RFC 8986 4.1.1"]);
}
