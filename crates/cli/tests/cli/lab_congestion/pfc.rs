//! The lab `pfc`: one node pauses a traffic class of the other, on real wires.

use crate::lab_congestion::lab::class;
use crate::own_lab::Lab;

/// The MAC addresses of N1 and N2 on their link.
const N1: &str = "02:5d:00:00:01:01";
const N2: &str = "02:5d:00:00:01:02";

/// A pause: 4000 times 512 bits of 200 Mbit/s.
const PAUSE_S: f64 = 4000.0 * 512.0 / 200e6;

/// tshark decodes PAUSE and RESUME, and N1 honours them: the packets that N2 would lose arrive.
#[test]
#[ignore = "needs root"]
fn a_node_pauses_the_class_of_another() {
    let lab = Lab::new("pfc", &[]);
    lab.transfer();
    let quanta: Vec<String> = (0..8).map(|class| format!("macc.cbfc.pause_time.c{class}")).collect();
    let mut fields = vec!["frame.time_epoch", "eth.src", "eth.dst", "frame.len", "macc.opcode", "macc.cbfc.enbv"];
    fields.extend(quanta.iter().map(String::as_str));
    let frames = lab.tshark("N1-N2", "eth.type == 0x8808 || udp.port == 4791", &fields);

    let (mut pauses, mut resumes, mut paused_at, mut since_pause, mut most_after_pause) = (0, 0, 0.0, None, 0);
    for frame in &frames {
        let time: f64 = frame["frame.time_epoch"].parse().expect("seconds");
        if time - paused_at > PAUSE_S {
            // Its quanta have expired without another pause.
            since_pause = None;
        }
        if frame["macc.opcode"].is_empty() {
            // Octets that N1 sends before the pause takes effect, and those on the wire.
            if let Some(octets) = since_pause.as_mut().filter(|_| frame["eth.src"] == N1) {
                *octets += frame["frame.len"].parse::<u64>().expect("a number");
                most_after_pause = most_after_pause.max(*octets);
            }
            continue;
        }
        let head = ["eth.src", "eth.dst", "frame.len", "macc.opcode", "macc.cbfc.enbv"].map(|field| &frame[field]);
        assert_eq!(head, [N2, "01:80:c2:00:00:01", "60", "0x0101", "0x0008"], "{frame:?}");
        for (number, field) in quanta.iter().enumerate().filter(|(number, _)| *number != 3) {
            assert_eq!(frame[field], "0", "class {number} is not enabled");
        }
        match frame["macc.cbfc.pause_time.c3"].as_str() {
            "4000" => {
                (pauses, paused_at) = (pauses + 1, time);
                since_pause.get_or_insert(0);
            }
            "0" => {
                resumes += 1;
                since_pause = None;
            }
            other => panic!("a pause of {other} quanta"),
        }
    }
    let (a, b) = (lab.status("N1"), lab.status("N2"));
    let (heard, told) = (&class(&a, "n2", 3)["pfc"], &class(&b, "n1", 3)["pfc"]);
    assert!(pauses > 0 && resumes > 0, "{pauses} {resumes}");
    assert_eq!((told["pauses_sent"].as_u64(), told["resumes_sent"].as_u64()), (Some(pauses), Some(resumes)));
    assert_eq!((heard["pauses_received"].as_u64(), heard["resumes_received"].as_u64()), (Some(pauses), Some(resumes)));
    assert!(heard["paused_ns"].as_u64() > Some(0), "{a}");
    assert_eq!(class(&b, "n1", 3)["drops"]["headroom_exceeded"], 0, "{b}");
    // XOFF and headroom bound what waits at N2, and the headroom what N1 sends after a pause.
    assert!(class(&b, "r", 3)["peak_octets"].as_u64().expect("a peak") <= 1_050_000, "{b}");
    assert!(most_after_pause <= 1_000_000, "{most_after_pause}");
}

/// The opposite: N1 ignores pauses, and N2 drops the packets that exceed its headroom.
#[test]
#[ignore = "needs root"]
fn an_ignored_pause_costs_packets() {
    let honouring =
        "class = [{ class = 3, pfc = { xoff_octets = 200_000, xon_octets = 100_000, headroom_octets = 100_000 } }]";
    let lab = Lab::new("pfc", &[(honouring, ""), ("headroom_octets = 1_000_000", "headroom_octets = 200_000")]);
    lab.transfer();
    let (a, b) = (lab.status("N1"), lab.status("N2"));
    assert!(class(&b, "n1", 3)["pfc"]["pauses_sent"].as_u64() > Some(0), "{b}");
    assert_eq!(class(&a, "n2", 3)["pfc"]["pauses_received"], 0, "{a}");
    assert!(class(&b, "n1", 3)["drops"]["headroom_exceeded"].as_u64() > Some(0), "{b}");
    assert!(lab.tshark("N1-N2", "eth.type == 0x8808", &["eth.dst"]).len() > 1);
}
