/** Recordings: JSON lines, a `Header` and then `Sample`s (docs/page.md). */

import type { GenericSchema, InferOutput } from "valibot";
import type { Branch, Group, ControllerEvent, Topology } from "../api/types.ts";
import { Header, Sample, mistake } from "./recording_format.ts";
import type { Drops } from "./store.ts";

/** The reason for which a file is not a recording. */
export class NoRecording extends Error {}

/** The state at a time. */
export interface Moment {
  topology: Topology;
  groups: Group[];
  drops: Drops;
  events: ControllerEvent[];
}

/** The format of recordings that this page replays. */
const VERSION = 2;

const KEYFRAME = 64;

/** The state that samples change. */
interface Values {
  rates: Float64Array;
  branches: Map<string, Branch>;
  drops: Map<string, Map<string, number>>;
}

export class Recording {
  readonly title: string;
  readonly root: string | undefined;
  readonly times: number[];
  readonly #header: Header;
  readonly #samples: Sample[];
  readonly #events: ControllerEvent[];
  readonly #keyframes: Values[] = [];

  /** Reads a file's text. */
  constructor(text: string) {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    const head = parse(lines[0] ?? "", 1);
    if (!isObject(head) || head["recording"] !== "srdma") {
      throw new NoRecording("line 1: expected the header of a recording of srdma");
    }
    if (head["version"] !== VERSION) {
      throw new NoRecording(
        `line 1: a recording of format ${JSON.stringify(head["version"])}: expected format ${VERSION}; record it again`,
      );
    }
    const header = checked(Header, head, 1);
    this.#header = header;
    this.title = header.title;
    this.root = header.root;
    this.#samples = lines.slice(1).map((line, at) => checked(Sample, parse(line, at + 2), at + 2));
    if (this.#samples.length === 0) {
      throw new NoRecording("the recording has no sample");
    }
    this.times = this.#samples.map(({ t_ns }) => t_ns);
    const unordered = this.times.findIndex((time, at) => !(time > (this.times[at - 1] ?? -1)));
    if (unordered >= 0) {
      throw new NoRecording(`line ${unordered + 2}: expected a later time than that of the previous sample`);
    }
    this.#events = this.#samples
      .flatMap(({ events, t_ns }) => (events ?? []).map((event) => ({ ...event, unix_ms: t_ns / 1e6 })))
      .map((event, at) => ({ ...event, number: at + 1 }));
    const values = this.#begin();
    this.#samples.forEach((sample, at) => {
      if (at % KEYFRAME === 0) {
        this.#keyframes.push(copy(values));
      }
      this.#apply(sample, values, at + 2);
    });
  }

  /** The last sample at or before a time; the first before all. */
  indexAt(ns: number): number {
    let [low, high] = [0, this.times.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.times[middle] ?? 0) <= ns) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  get endNs(): number {
    return this.times.at(-1) ?? 0;
  }

  /** The state at a sample. */
  at(index: number): Moment {
    const keyframe = Math.floor(index / KEYFRAME);
    const values = copy(this.#keyframes[keyframe] ?? this.#begin());
    for (let at = keyframe * KEYFRAME; at <= index; at += 1) {
      this.#apply(this.#samples[at] ?? { t_ns: 0 }, values, at + 2);
    }
    const { topology, groups } = this.#header;
    const now = this.times[index] ?? 0;
    const dropsOf = new Map<string, number>();
    for (const nodes of values.drops.values()) {
      nodes.forEach((packets, node) => dropsOf.set(node, (dropsOf.get(node) ?? 0) + packets));
    }
    return {
      topology: {
        ...topology,
        unix_ms: now / 1e6,
        nodes: topology.nodes.map((node) => ({ ...node, drops: dropsOf.get(node.name) ?? 0 })),
        links: topology.links.map((link, at) => ({
          ...link,
          octets_per_second: [values.rates[at * 2] ?? 0, values.rates[at * 2 + 1] ?? 0],
        })),
      },
      groups: groups.map((group) => withBranches(group, values.branches)),
      drops: values.drops,
      events: this.#events.filter(({ unix_ms }) => unix_ms * 1e6 <= now + 0.5).slice(-500),
    };
  }

  #begin(): Values {
    const { topology, groups } = this.#header;
    const branches = new Map<string, Branch>();
    for (const group of groups) {
      group.tree?.nodes.forEach((node, n) =>
        node.branches.forEach((branch, b) => branches.set(key(group.id, n, b), branch)));
    }
    return { rates: new Float64Array(topology.links.length * 2), branches, drops: new Map() };
  }

  #apply({ links, branches, drops }: Sample, values: Values, line: number): void {
    for (const [link, there, back] of links ?? []) {
      if (!(link >= 0 && link * 2 < values.rates.length)) {
        throw new NoRecording(`line ${line}: link ${link} does not exist`);
      }
      values.rates.set([there, back], link * 2);
    }
    for (const [group, node, branch, expected, lag, cnps] of branches ?? []) {
      const before = values.branches.get(key(group, node, branch));
      if (!before) {
        throw new NoRecording(`line ${line}: branch ${branch} of node ${node} of group ${group} does not exist`);
      }
      const now: Branch = { address: before.address, cnps };
      if (expected !== null) {
        now.expected_psn = expected;
      }
      if (lag !== null) {
        now.lag = lag;
      }
      values.branches.set(key(group, node, branch), now);
    }
    for (const [node, reason, packets] of drops ?? []) {
      const nodes = values.drops.get(reason) ?? new Map<string, number>();
      values.drops.set(reason, nodes.set(node, packets));
    }
  }
}

function parse(line: string, number: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new NoRecording(`line ${number}: expected JSON`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function checked<F extends GenericSchema>(format: F, value: unknown, number: number): InferOutput<F> {
  const found = mistake(format, value);
  if (found !== undefined) {
    throw new NoRecording(`line ${number}: ${found}`);
  }
  return value as InferOutput<F>;
}

function copy({ rates, branches, drops }: Values): Values {
  return {
    rates: rates.slice(),
    branches: new Map(branches),
    drops: new Map([...drops].map(([reason, nodes]) => [reason, new Map(nodes)])),
  };
}

function key(group: number, node: number, branch: number): string {
  return `${group} ${node} ${branch}`;
}

function withBranches(group: Group, branches: Map<string, Branch>): Group {
  if (!group.tree) {
    return group;
  }
  const nodes = group.tree.nodes.map((node, n) => ({
    ...node,
    branches: node.branches.map((branch, b) => branches.get(key(group.id, n, b)) ?? branch),
  }));
  return { ...group, tree: { ...group.tree, nodes } };
}
