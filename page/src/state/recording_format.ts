/** The format of recordings, as far as the page reads them: a header and samples (docs/page.md). */

import * as v from "valibot";

/** Whole, and not below 0. */
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const rate = v.pipe(v.number(), v.finite(), v.minValue(0));

const Branch = v.looseObject({
  address: v.string(),
  expected_psn: v.exactOptional(count),
  lag: v.exactOptional(count),
  cnps: count,
});

const Tree = v.looseObject({
  nodes: v.array(v.looseObject({
    name: v.string(),
    loopback: v.string(),
    sid: v.string(),
    role: v.string(),
    parent: v.exactOptional(v.string()),
    branches: v.array(Branch),
  })),
  links: count,
  links_of_unicast: count,
  explanation: v.array(v.string()),
});

const states = ["open", "creating", "ready", "changing", "verifying", "stopped", "closing", "closed"] as const;

const Group = v.looseObject({
  id: count,
  name: v.string(),
  tenant: v.string(),
  state: v.picklist(states),
  proxy: v.string(),
  receivers: count,
  epoch: count,
  version: count,
  source: v.looseObject({ address: v.string(), qpn: count }),
  designated_qpn: count,
  initial_psn: count,
  path_mtu: count,
  members: v.array(v.looseObject({
    address: v.string(),
    qpn: count,
    state: v.picklist(["joining", "member", "unverified", "leaving"]),
    joined_psn: v.exactOptional(count),
  })),
  tree: v.exactOptional(Tree),
  awaited: v.array(v.string()),
  failure: v.exactOptional(v.string()),
});

const text = v.exactOptional(v.string());
const Event = v.looseObject({
  kind: v.string(),
  tenant: text,
  group: v.exactOptional(count),
  epoch: v.exactOptional(count),
  receiver: text,
  node: text,
  drained: v.exactOptional(v.boolean()),
  name: text,
  job: text,
  cause: text,
  reason: text,
  refusal: text,
  missed: v.exactOptional(count),
});

export const Header = v.looseObject({
  recording: v.literal("srdma"),
  title: v.string(),
  /** The root of a tree layout. */
  root: v.exactOptional(v.string()),
  topology: v.looseObject({
    unix_ms: v.number(),
    version: count,
    nodes: v.array(v.looseObject({
      name: v.string(),
      loopback: v.string(),
      is_alive: v.boolean(),
      is_drained: v.boolean(),
      is_edge: v.boolean(),
      drops: count,
      is_host: v.exactOptional(v.boolean()),
    })),
    links: v.array(v.looseObject({
      ends: v.tuple([v.string(), v.string()]),
      octets_per_second: v.tuple([rate, rate]),
      mtu: count,
      groups: count,
    })),
  }),
  groups: v.array(Group),
});
export type Header = v.InferOutput<typeof Header>;

/** Changes since the previous sample. */
export const Sample = v.looseObject({
  t_ns: count,
  /** Index of the link, octets per second from its first end, and to it. */
  links: v.exactOptional(v.array(v.tuple([count, rate, rate]))),
  /** Group, index of the tree's node, index of its branch, expected PSN, lag, CNPs. */
  branches: v.exactOptional(v.array(v.tuple([count, count, count, v.nullable(count), v.nullable(count), count]))),
  /** Node, reason, packets. */
  drops: v.exactOptional(v.array(v.tuple([v.string(), v.string(), count]))),
  events: v.exactOptional(v.array(Event)),
});
export type Sample = v.InferOutput<typeof Sample>;

/** The first key of a value that is not as in the format, with what was expected there; none if all are. */
export function mistake(format: v.GenericSchema, value: unknown): string | undefined {
  const result = v.safeParse(format, value, { abortEarly: true, abortPipeEarly: true });
  const [issue] = result.issues ?? [];
  if (!issue) {
    return undefined;
  }
  const place = v.getDotPath(issue);
  const isMissing = issue.received === "undefined";
  const what = isMissing ? "missing" : `expected ${issue.expected ?? "another value"}, found ${issue.received}`;
  return place ? `${place}: ${what}` : what;
}
