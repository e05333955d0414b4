import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { tiers } from "../../src/graph/layout.ts";
import { NoRecording, Recording } from "../../src/state/recording.ts";
import { HEAD, SAMPLES, openMutated, text } from "../recordings.ts";

test("seeking and playing have the same states", () => {
  const recording = new Recording(text(HEAD, SAMPLES));
  for (const index of [199, 0, 64, 63, 128, 150, 1]) {
    const { topology, groups, drops, events } = recording.at(index);
    const even = index - (index % 2);
    assert.deepEqual(topology.links[0]?.octets_per_second, [even, 2 * even]);
    const branch = groups[0]?.tree?.nodes[0]?.branches[0];
    assert.deepEqual(branch, { address: "2001:db8::2", expected_psn: index, lag: 3, cnps: index });
    const last = index - (index % 50);
    assert.equal(drops.get("no route")?.get("B"), last + 1);
    assert.equal(topology.nodes[1]?.drops, last + 1);
    assert.equal(events.length, last / 50 + 1);
    assert.equal(events.at(-1)?.unix_ms, (last + 1) / 1000);
  }
});

test("the state at a time is that of the sample at or before it", () => {
  const recording = new Recording(text(HEAD, SAMPLES));
  assert.deepEqual([0, 999, 1000, 1999, 2000, 1e9].map((ns) => recording.indexAt(ns)), [0, 0, 0, 0, 1, 199]);
  assert.equal(recording.endNs, 200_000);
});

test("invalid recordings are rejected with the line", () => {
  const cases: [string, RegExp][] = [
    ["", /line 1: expected JSON/],
    ["{}", /line 1: expected the header/],
    [text({ ...HEAD, version: 1 }, SAMPLES), /format 1: expected format 2/],
    [text(HEAD, []), /has no sample/],
    [text(HEAD, [{ t_ns: 5 }, { t_ns: 5 }]), /line 3: expected a later time/],
    [text(HEAD, [{ t_ns: 5, links: [[1, 0, 0]] }]), /line 2: link 1 does not exist/],
    [text(HEAD, [{ t_ns: 5, branches: [[1, 0, 1, 0, 0, 0]] }]), /line 2: branch 1 of node 0 of group 1 does not exist/],
    [`${JSON.stringify(HEAD)}\nx`, /line 2: expected JSON/],
    ["null", /line 1: expected the header/],
    [text({ ...HEAD, version: { toString: 0 } }, SAMPLES), /format {"toString":0}: expected format 2/],
    [text({ ...HEAD, groups: undefined }, SAMPLES), /line 1: groups: missing/],
    [
      text({ ...HEAD, topology: { ...HEAD.topology, links: [{}] } }, SAMPLES),
      /line 1: topology.links.0.ends: missing/,
    ],
    [text(HEAD, [null]), /line 2: expected Object, found null/],
    [text(HEAD, [{ t_ns: 5, links: [[0, "1", 0]] }]), /line 2: links.0.1: expected number, found "1"/],
    [text(HEAD, [{ t_ns: -5 }]), /line 2: t_ns: expected >=0, found -5/],
  ];
  for (const [wrong, reason] of cases) {
    assert.throws(() => new Recording(wrong), (error) => error instanceof NoRecording && reason.test(error.message));
  }
});

test("mutated recordings are refused with a line, or have a state at each sample", () => {
  const opened = openMutated(1, 5000);
  assert.ok(opened > 250 && opened < 4750, `${opened} of 5000 were opened`);
});

test("a scenario's recording has the tiers of the fabric and the load of each link", () => {
  const recording = new Recording(readFileSync(new URL("../../../test/permutation.jsonl", import.meta.url), "utf8"));
  assert.equal(recording.title, "A permutation: No congestion control, PFC, seed 1");
  const { nodes, links } = recording.at(0).topology;
  const hosts = nodes.filter(({ is_host }) => is_host).map(({ name }) => name);
  assert.deepEqual(hosts, ["h1.1", "h1.2", "h2.1", "h2.2", "h3.1", "h3.2"]);
  const places = tiers({
    names: nodes.map(({ name }) => name),
    links: links.map(({ ends }) => ends),
    bottom: hosts,
  });
  const heights = ["h1.1", "leaf1", "spine1"].map((name) => places?.get(name)?.y ?? NaN);
  assert.ok(heights.every((y, at) => at === 0 || y < (heights[at - 1] ?? 0)), `rows at ${heights.join(", ")}`);
  // Every host sends a million octets and receives as many, with headers and answers.
  const octets = new Map<string, [number, number]>();
  recording.times.forEach((time, at) => {
    const seconds = (time - (recording.times[at - 1] ?? 0)) / 1e9;
    for (const { ends, octets_per_second: [there, back] } of recording.at(at).topology.links) {
      const [before, after] = octets.get(ends[0]) ?? [0, 0];
      octets.set(ends[0], [before + there * seconds, after + back * seconds]);
    }
  });
  for (const host of hosts) {
    const carried = octets.get(host) ?? [0, 0];
    assert.ok(carried.every((sum) => sum > 1e6 && sum < 1.05e6), `${host}: ${carried.join(" and ")}`);
  }
});
