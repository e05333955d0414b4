//! Traces in GOAL (D218): the language, and when operations begin and end, compared with a slow evaluation of the longest paths.

use proptest::prelude::*;
use srdma_fabric::{HostId, LeafSpine, NodeId, Speeds, Topology};
use srdma_placement::{
    GoalTrace, ListedFlow, Message, Replay, flows_from_goal, jobs_from_toml, jobs_with_traces_from_toml,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every word of the language, with labels that come later.
const ALL: &str = "/* two ranks,
with all words */ num_ranks 3
rank 0 { // the first
  l1: calc 1500 cpu 2 nic 1
  later requires l1
  later: send 4096b to 1 tag 7 cpu 0 nic 0
  send 10 b to 2
}
rank 1 {
  a:recv 4096b from -1 tag -1
  b : calc 100 /* at once */ cpu 3
  b irequires a
}
rank 2 { l1: recv 10b from 0 }
";

fn parse(text: &str) -> GoalTrace {
    GoalTrace::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    GoalTrace::parse(text).expect_err("it is wrong").to_string()
}

#[test]
fn all_words_are_read() {
    let trace = parse(ALL);
    assert_eq!((trace.ranks(), trace.operations()), (3, 6));
    assert_eq!(trace.octets(), BTreeMap::from([((0, 1), 4096), ((0, 2), 10)]));
    assert_eq!(parse("num_ranks 4").operations(), 0);
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let in_rank = |lines: &str| refused(&format!("num_ranks 2\nrank 0 {{\n{lines}\n}}\n"));
    assert_eq!(in_rank("a: sent 8b to 1"), "line 3: \"sent\": expected send, recv or calc");
    let octets = "line 3: \"8\": expected octets of a message, such as 8b, up to 1073741824b";
    assert_eq!(in_rank("a: send 8 to 1"), octets);
    assert_eq!(in_rank("a: send 8b to 2"), "line 3: \"2\": expected the number of a rank, 0 to 1");
    assert_eq!(in_rank("a: send 8b to -1"), "line 3: \"-1\": expected the number of a rank, 0 to 1");
    assert_eq!(in_rank("a: send 8b from 1"), "line 3: \"from\": expected to");
    assert_eq!(in_rank("a: calc 9999999999999"), "line 3: \"9999999999999\": expected nanoseconds, 0 to 3600000000000");
    assert_eq!(in_rank("calc 1 tag 2"), "line 3: a tag of calc: expected cpu, or the next line");
    assert_eq!(in_rank("calc 1 cpu 2 cpu 3"), "line 3: a second cpu: expected one");
    assert_eq!(in_rank("a: calc 1\na: calc 2"), "line 4: rank 0 has a second label a");
    assert_eq!(in_rank("a: calc 1\nb requires a"), "line 4: rank 0 has no label b");
    assert_eq!(in_rank("a: calc 1\na requires"), "line 4: expected the label that a waits for");
    assert_eq!(in_rank("a after b"), "line 3: \"after\" after a: expected `:`, requires or irequires");
    assert_eq!(in_rank("7: calc 1"), "line 3: \"7\": expected a label, send, recv, calc or }");
    assert_eq!(refused(""), "line 1: nothing is in the file: expected num_ranks N, then rank N { ... }");
    assert_eq!(refused("rank 0 {"), "line 1: \"rank\": expected num_ranks");
    assert_eq!(refused("num_ranks 9999999"), "line 1: \"9999999\": expected a number of ranks, 1 to 1048576");
    assert_eq!(refused("num_ranks 2\nrank 0 {\ncalc 1\n"), "line 3: the file ends in rank 0: expected }");
    assert_eq!(refused("num_ranks 2\n/* rank 0 {\n"), "line 2: the file ends in a comment: expected */");
    assert_eq!(refused("num_ranks 2\nrank 0 { }\nrank 0 { }\n"), "line 3: rank 0 has a second section: expected one");
}

/// What would be simulated for ever is refused when it is read.
#[test]
fn a_trace_that_does_not_end_is_refused() {
    let alone = "num_ranks 2\nrank 1 {\na: recv 8b from 0 tag 5\n}\n";
    assert_eq!(refused(alone), "line 3: rank 1 waits here for a message that no rank sends before");
    let other_tag = format!("{alone}rank 0 {{\nsend 8b to 1 tag 6\n}}\n");
    assert_eq!(refused(&other_tag), "line 3: rank 1 waits here for a message that no rank sends before");
    let unread =
        "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 5\nsend 8b to 1 tag 5\n}\nrank 1 {\nrecv 8b from 0 tag 5\n}\n";
    assert_eq!(refused(unread), "line 4: rank 1 has no recv for each message from rank 0 with tag 5");
    let circle = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb irequires a\n}\n";
    assert_eq!(refused(circle), "line 3: rank 0 never begins this: what it requires waits for it in turn");
    let each_first = "num_ranks 2\nrank 0 {\na: recv 8b from 1\nb: send 8b to 1\nb requires a\n}\n\
                      rank 1 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\n";
    assert_eq!(refused(each_first), "line 3: rank 0 waits here for a message that no rank sends before");
}

/// A network in which every message takes as long, whatever its size, and its acknowledgement too. Returns when each
/// message was sent, by rank and operation, and when the iteration ended.
fn carry_out(replay: &mut Replay, ranks: u32, from_ns: u64, latency_ns: u64) -> (BTreeMap<(u32, u32), u64>, u64) {
    let mut sent = BTreeMap::new();
    let mut events: BTreeMap<(u64, u64), (Message, bool)> = BTreeMap::new();
    let (mut sends, mut number, mut now_ns) = (Vec::new(), 0, from_ns);
    replay.begin(now_ns, &mut sends);
    let mut ended = !replay.is_running();
    loop {
        for message in sends.drain(..) {
            sent.insert((message.from, message.step), now_ns);
            events.insert((now_ns + latency_ns, number), (message, false));
            number += 1;
        }
        if ended {
            assert!(!replay.is_running() && events.values().all(|(_, is_answer)| *is_answer));
            return (sent, now_ns);
        }
        let computed = (0..ranks).filter_map(|rank| Some((replay.deadline_ns(rank)?, rank))).min();
        let event = events.first_key_value().map(|((at, _), _)| *at);
        if let Some((at, rank)) = computed.filter(|(at, _)| event.is_none_or(|event| *at <= event)) {
            now_ns = at;
            ended |= replay.advance(rank, now_ns, &mut sends);
        } else {
            let ((at, _), (message, is_answer)) = events.pop_first().expect("it has not ended");
            now_ns = at;
            if is_answer {
                ended |= replay.acknowledged(&message, now_ns, &mut sends);
            } else {
                ended |= replay.arrived(&message, now_ns, &mut sends);
                events.insert((now_ns + latency_ns, number), (message, true));
                number += 1;
            }
        }
    }
}

/// By hand. Processor 0: the first calc to 100, the second to 250; the send of l3 waits for it, though it needs only
/// l1. Processor 5 is free: its calc ends at 130. The receive takes the message at 250 + 40; the send ends 40 later.
#[test]
fn processors_compute_one_after_the_other() {
    let text = "num_ranks 2\nrank 0 {\nl1: calc 100\nl2: calc 150\nl3: send 8b to 1\nl3 requires l1\n\
                l4: calc 130 cpu 5\nl5: calc 7 cpu 5\nl5 requires l3\n}\nrank 1 {\na: recv 8b from 0\n\
                b: calc 3\nb requires a\nc: calc 1000 cpu 1\nc irequires b\n}\n";
    let mut replay = Replay::new(Arc::new(parse(text)));
    let (sent, ended_ns) = carry_out(&mut replay, 2, 0, 40);
    assert_eq!(sent, BTreeMap::from([((0, 2), 250)]));
    assert_eq!(ended_ns, 250 + 40 + 1000);
    assert_eq!(replay.iterations(), 1);
}

/// Messages to the same rank and tag are received in the order in which they were sent; -1 takes the first of all.
#[test]
fn receives_match_by_sender_and_tag() {
    let text = "num_ranks 3\nrank 0 {\na: send 1b to 2 tag 1\nb: calc 10\nc: send 1b to 2 tag 2\nc requires b\n}\n\
                rank 1 {\nb: calc 5\na: send 1b to 2 tag 1\na requires b\n}\n\
                rank 2 {\nfirst: recv 1b from -1 tag -1\nof2: recv 1b from 0 tag 2\nsecond: recv 1b from -1 tag 1\n\
                x: calc 1000\nx requires second\ny: calc 1 cpu 1\ny requires of2\n}\n";
    let mut replay = Replay::new(Arc::new(parse(text)));
    // The second message with tag 1 arrives at 5 + 3; from then on 1000.
    assert_eq!(carry_out(&mut replay, 3, 0, 3).1, 1008);
    assert_eq!(carry_out(&mut replay, 3, 5000, 3).1, 6008);
}

/// A rank that sends to itself takes no time; more messages than may be in flight wait for room.
#[test]
fn messages_to_itself_and_very_many_messages() {
    let own = "num_ranks 1\nrank 0 {\na: send 8b to 0 tag 3\nb: recv 8b from 0 tag 3\nc: calc 9\nc requires b\n}\n";
    assert_eq!(carry_out(&mut Replay::new(Arc::new(parse(own))), 1, 0, 50).1, 9);
    let many = |word: &str| format!("{word}\n").repeat(600);
    let text = format!("num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n", many("send 1b to 1"), many("recv 1b from 0"));
    let (sent, ended_ns) = carry_out(&mut Replay::new(Arc::new(parse(&text))), 2, 0, 50);
    // 256 in flight: three round trips of 100.
    assert_eq!((sent.len(), ended_ns), (600, 300));
    assert_eq!(sent.values().filter(|at| **at == 200).count(), 600 - 2 * 256);
}

/// An operation of a random trace, in an order in which all can be done.
#[derive(Clone, Copy, Debug)]
enum Work {
    Compute(u64),
    Send { to: usize, tag: usize },
    Receive { from: usize, tag: usize },
}

#[derive(Clone, Debug)]
struct Own {
    rank: usize,
    work: Work,
    /// Earlier operations of the rank that it waits for, and whether for their begin.
    after: Vec<(usize, bool)>,
}

/// Random traces: each operation depends on earlier ones; every calc has a processor of its own, every message a tag.
fn random_trace() -> impl Strategy<Value = (usize, Vec<Own>)> {
    let step = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u64..500, 0..3_u8);
    let links = proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..3);
    (2_usize..6, proptest::collection::vec((step, links.clone(), links), 1..40)).prop_map(|(ranks, steps)| {
        let mut all: Vec<Own> = Vec::new();
        let add = |all: &mut Vec<Own>, rank: usize, work, links: &[(prop::sample::Index, bool)]| {
            let earlier: Vec<usize> = (0..all.len()).filter(|at| all[*at].rank == rank).collect();
            let after = links.iter().filter(|_| !earlier.is_empty());
            let after = after.map(|(index, for_begin)| (earlier[index.index(earlier.len())], *for_begin)).collect();
            all.push(Own { rank, work, after });
        };
        for (tag, ((one, other, ns, kind), links, more)) in steps.iter().enumerate() {
            let (from, to) = (one.index(ranks), other.index(ranks));
            if *kind == 0 || from == to {
                add(&mut all, from, Work::Compute(*ns), links);
            } else {
                add(&mut all, from, Work::Send { to, tag }, links);
                add(&mut all, to, Work::Receive { from, tag }, more);
            }
        }
        (ranks, all)
    })
}

fn text_of(ranks: usize, all: &[Own]) -> String {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        text.push_str(&format!("rank {rank} {{\n"));
        for (at, own) in all.iter().enumerate().filter(|(_, own)| own.rank == rank) {
            text.push_str(&match own.work {
                Work::Compute(ns) => format!("l{at}: calc {ns} cpu {at}\n"),
                // With a processor of its own, a send waits for no calc.
                Work::Send { to, tag } => format!("l{at}: send {}b to {to} tag {tag} cpu {at}\n", at + 1),
                Work::Receive { from, tag } => format!("l{at}: recv 1b from {from} tag {tag}\n"),
            });
            for (other, for_begin) in &own.after {
                text.push_str(&format!("l{at} {} l{other}\n", if *for_begin { "irequires" } else { "requires" }));
            }
        }
        text.push_str("}\n");
    }
    text
}

proptest! {
    /// The time of each message, and that of the end, are those of the longest paths.
    #[test]
    fn times_are_those_of_the_longest_paths((ranks, all) in random_trace(), latency_ns in 1_u64..300) {
        let mut times: Vec<(u64, u64)> = Vec::new();
        let mut arrivals: BTreeMap<usize, u64> = BTreeMap::new();
        let mut expected = BTreeMap::new();
        let mut counted = vec![0; ranks];
        for own in &all {
            let waits = own.after.iter().map(|(other, for_begin)| if *for_begin { times[*other].0 } else { times[*other].1 });
            let begin = waits.max().unwrap_or(0);
            let end = match own.work {
                Work::Compute(ns) => begin + ns,
                Work::Send { tag, .. } => {
                    arrivals.insert(tag, begin + latency_ns);
                    expected.insert((own.rank as u32, counted[own.rank]), begin);
                    begin + 2 * latency_ns
                }
                Work::Receive { tag, .. } => begin.max(arrivals[&tag]),
            };
            counted[own.rank] += 1;
            times.push((begin, end));
        }
        let last = times.iter().map(|(_, end)| *end).max().unwrap_or(0);
        let mut replay = Replay::new(Arc::new(parse(&text_of(ranks, &all))));
        prop_assert_eq!(carry_out(&mut replay, ranks as u32, 0, latency_ns), (expected.clone(), last));
        let later = expected.into_iter().map(|(key, at)| (key, at + 777)).collect();
        prop_assert_eq!(carry_out(&mut replay, ranks as u32, 777, latency_ns), (later, last + 777));
    }

    #[test]
    fn no_text_makes_reading_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..8),
        words in proptest::collection::vec(
            prop_oneof![
                "(num_ranks|rank|send|recv|calc|requires|irequires|to|from|tag|cpu|nic)",
                "(-1|[0-9]{1,3}b?|[a-c]:?|\\{|\\}|//|/\\*|\\*/|\n)",
            ],
            0..60,
        ),
        junk in "\\PC{0,200}",
    ) {
        let mut text: Vec<char> = ALL.chars().collect();
        for (index, character) in damage {
            let at = index.index(text.len());
            text[at] = character;
        }
        for text in [text.into_iter().collect::<String>(), words.join(" "), junk] {
            match GoalTrace::parse(&text) {
                Ok(trace) => {
                    let ranks = trace.ranks() as u32;
                    carry_out(&mut Replay::new(Arc::new(trace)), ranks, 0, 10);
                }
                Err(error) => prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1)),
            }
        }
    }
}

fn leaf_spine() -> Topology {
    LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, speeds: Speeds::DEFAULT }.topology().unwrap()
}

/// Rank 0 sends 400 octets to each of two, rank 1 half as much: of 100 Gbit/s a half each, and a quarter twice.
const FLOWS: &str = "num_ranks 3\nrank 0 {\nsend 300b to 1\nsend 100b to 1\nsend 400b to 2\n}\n\
                     rank 1 {\nsend 200b to 0\nsend 200b to 2\nrecv 1b from 0\nrecv 1b from 0\n}\n\
                     rank 2 {\nrecv 1b from -1\nrecv 1b from -1\n}\n";

fn lines(topology: &Topology, flows: &[ListedFlow]) -> Vec<String> {
    let name = |host: HostId| topology.name(NodeId::Host(host)).to_owned();
    let line = |own: &ListedFlow| {
        let rate = own.flow.rate_bits_per_s / 1_000_000_000;
        format!("{} {} {rate} {} {}", name(own.flow.from), name(own.flow.to), own.job, own.part)
    };
    flows.iter().map(line).collect()
}

#[test]
fn flows_have_rates_by_their_octets() {
    let topology = leaf_spine();
    let text = FLOWS.replace("rank 0 {\n", "rank 0 {\nrecv 1b from 1\n");
    let flows = flows_from_goal(&text, &topology).unwrap();
    let expected =
        ["h1.1 h1.2 50 goal trace", "h1.1 h2.1 50 goal trace", "h1.2 h1.1 25 goal trace", "h1.2 h2.1 25 goal trace"];
    assert_eq!(lines(&topology, &flows), expected);
    let five = flows_from_goal("num_ranks 5", &topology).unwrap_err().to_string();
    assert_eq!(five, "line 1: 5 ranks, but the fabric has 4 NICs: expected one for each");
}

#[test]
fn a_job_has_a_trace_or_collectives() {
    let topology = leaf_spine();
    let text = FLOWS.replace("rank 0 {\n", "rank 0 {\nrecv 1b from 1\n");
    let read = |name: &str| if name == "t.goal" { Ok(text.clone()) } else { Err("no such file".to_owned()) };
    let job = |keys: &str| format!("[[job]]\nname = \"j\"\nnics = [\"h2.2\", \"h2.1\", \"h1.1\"]\n{keys}\n");
    let jobs = jobs_with_traces_from_toml(&job("trace = \"t.goal\""), &topology, &read).unwrap();
    assert_eq!(jobs[0].parts().collect::<Vec<_>>(), ["trace"]);
    let flows = jobs[0].wanted(&topology, |part| part == "trace");
    assert_eq!(lines(&topology, &flows)[1], "h2.2 h1.1 50 j trace");
    assert_eq!(jobs[0].wanted(&topology, |_| false), []);
    let refused = |keys: &str| jobs_with_traces_from_toml(&job(keys), &topology, &read).unwrap_err().to_string();
    assert_eq!(refused("trace = \"u.goal\""), "line 4: trace u.goal: no such file");
    assert_eq!(
        refused("trace = \"t.goal\"\n[[job.collective]]\nkind = \"all-to-all\""),
        "line 5: a job with a trace and a collective: expected one of them"
    );
    let two = job("trace = \"t.goal\"").replace(", \"h1.1\"", "");
    let error = jobs_with_traces_from_toml(&two, &topology, &read).unwrap_err().to_string();
    assert_eq!(error, "line 4: trace t.goal has 3 ranks, but the job has 2 NICs");
    assert_eq!(
        jobs_from_toml(&job("trace = \"t.goal\""), &topology).unwrap_err().to_string(),
        "line 4: trace t.goal: only jobs of files have traces: expected [[job.collective]]"
    );
}
