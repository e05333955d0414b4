/** A small recording for tests, and mutations of it. */

import { NoRecording, Recording } from "../src/state/recording.ts";

const node = (name: string, number: number): unknown =>
  ({ name, loopback: `2001:db8::${number}`, is_alive: true, is_drained: false, is_edge: false, drops: 0 });

export const HEAD = {
  recording: "srdma",
  version: 2,
  title: "a transfer",
  root: "A",
  topology: {
    unix_ms: 0,
    version: 1,
    nodes: [node("A", 1), node("B", 2)],
    links: [{ ends: ["A", "B"], octets_per_second: [0, 0], mtu: 4608, groups: 1 }],
  },
  groups: [{
    id: 1,
    name: "g",
    tenant: "default",
    state: "ready",
    proxy: "2001:db8:cc::1",
    receivers: 1,
    epoch: 1,
    version: 1,
    source: { address: "2001:db8:aa::1", qpn: 256 },
    designated_qpn: 0xd00000,
    initial_psn: 0,
    path_mtu: 4096,
    members: [{ address: "2001:db8::2", qpn: 17, state: "member" }],
    tree: {
      nodes: [{
        name: "A",
        loopback: "2001:db8::1",
        sid: "2001:db8::f",
        role: "edge",
        branches: [{ address: "2001:db8::2", cnps: 0 }],
      }],
      links: 1,
      links_of_unicast: 1,
      explanation: [],
    },
    awaited: [],
  }],
};

export const SAMPLES = Array.from({ length: 200 }, (_, at) => ({
  t_ns: (at + 1) * 1000,
  links: at % 2 === 0 ? [[0, at, 2 * at]] : [],
  branches: [[1, 0, 0, at, 3, at]],
  ...(at % 50 === 0 ? { drops: [["B", "no route", at + 1]], events: [{ kind: "node-up", node: "B" }] } : {}),
}));

export const text = (head: unknown, samples: unknown[]): string =>
  [head, ...samples].map((line) => JSON.stringify(line)).join("\n");

/** Whole numbers below an end, the same ones for a seed (a linear congruential generator modulo 2^32). */
function numbers(seed: number): (end: number) => number {
  let state = seed >>> 0;
  return (end) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
}

const VALUES: unknown[] =
  [null, true, 0, -1, 0.5, 1e300, 2 ** 53, "", "x", [], {}, [[]], [0, 0, 0], { toString: 0 }, { length: 3 }];
/** What is added to a number. */
const NUMBERS = [1, 2, 1000, 1e15, 2 ** 53, 1e300, 0.5, -1, -1e15];
const LETTERS = "{}[]:,\"\\0123456789.-+eEtrufalsn \n\u{0}é";

/** Replaces, changes, removes or repeats a value somewhere below a value. */
function changed(value: unknown, below: (end: number) => number): unknown {
  const isParent = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (typeof value === "number" && below(4) > 0) {
    return value + (NUMBERS[below(NUMBERS.length)] ?? 0);
  }
  if (!isParent || below(6) === 0) {
    return VALUES[below(VALUES.length)];
  }
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  const keys = Object.keys(copy);
  const at = keys[below(keys.length)] ?? "";
  switch (below(8)) {
    case 0:
      delete copy[at];
      break;
    case 1:
      copy[keys[below(keys.length)] ?? ""] = copy[at];
      break;
    default:
      copy[at] = changed(copy[at], below);
  }
  return copy;
}

/** The recording of a seed: with a few mistakes in its values, or in its letters. */
function mutated(seed: number): string {
  const below = numbers(seed);
  let lines: unknown[] = [HEAD, ...SAMPLES.slice(0, 4), ...SAMPLES.slice(50, 51)];
  const mistakes = 1 + below(3);
  if (below(2) === 0) {
    for (let count = 0; count < mistakes; count += 1) {
      const at = below(lines.length);
      lines = lines.map((line, own) => own === at ? changed(line, below) : line);
    }
    return lines.map((line) => JSON.stringify(line)).join("\n");
  }
  let letters = lines.map((line) => JSON.stringify(line)).join("\n");
  for (let count = 0; count < mistakes; count += 1) {
    const [at, removed] = [below(letters.length), below(3)];
    const inserted = LETTERS[below(LETTERS.length)] ?? "";
    letters = letters.slice(0, at) + inserted + letters.slice(at + removed);
  }
  return letters;
}

/** Opens mutated recordings: each is refused with its line, or has a state at each sample. Returns how many have. */
export function openMutated(first: number, count: number): number {
  let opened = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const letters = mutated(seed);
    try {
      const recording = new Recording(letters);
      for (const index of recording.times.keys()) {
        const { topology, groups, drops } = recording.at(index);
        const numbers = topology.links.flatMap(({ octets_per_second }) => octets_per_second);
        numbers.push(...topology.nodes.map((node) => node.drops));
        numbers.push(...[...drops.values()].flatMap((nodes) => [...nodes.values()]));
        if (!numbers.every((number) => Number.isFinite(number)) || !Array.isArray(groups)) {
          throw new Error("a state has a value that is no number");
        }
      }
      opened += 1;
    } catch (error) {
      if (!(error instanceof NoRecording && /^(line \d+: |the recording has no sample)/.test(error.message))) {
        throw new Error(`seed ${seed}: ${error}\n${letters}`, { cause: error });
      }
    }
  }
  return opened;
}
