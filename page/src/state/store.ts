import type { Flow, ForeignGroup, Group, GroupSummary, Job, ControllerEvent, Node, Topology } from "../api/types.ts";

/** The connection to the source of the data. */
export interface Standing {
  kind: "waiting" | "live" | "lost" | "refused" | "replay";
  text: string;
}

/** Drops of a reason, by node. */
export type Drops = Map<string, Map<string, number>>;

/** The state of the page. */
export interface State {
  standing: Standing;
  topology: Topology;
  groups: GroupSummary[];
  groupsTotal: number;
  groupsWanted: number;
  foreign: ForeignGroup[];
  /** The selected group. */
  groupId: number | null;
  group: Group | null;
  /** The selected node. */
  nodeName: string | null;
  node: Node | null;
  jobs: Job[];
  jobName: string | null;
  flows: Flow[];
  flow: Flow | null;
  events: ControllerEvent[];
  drops: Drops;
  /** Time in the recording, nanoseconds. */
  replayNs: number;
  /** Whether operations are available. */
  canChange: boolean;
  tab: Tab;
}

export const TABS = ["network", "groups", "flows", "drops", "events"] as const;
export type Tab = (typeof TABS)[number];

export const NOTHING: Topology = { unix_ms: 0, version: 0, nodes: [], links: [] };

type Key = keyof State;

/** Holds the state; listeners are called once for all changes of a frame. */
export class Store {
  readonly state: State = {
    standing: { kind: "waiting", text: "connecting" },
    topology: NOTHING,
    groups: [],
    groupsTotal: 0,
    groupsWanted: 100,
    foreign: [],
    groupId: null,
    group: null,
    nodeName: null,
    node: null,
    jobs: [],
    jobName: null,
    flows: [],
    flow: null,
    events: [],
    drops: new Map(),
    replayNs: 0,
    canChange: true,
    tab: "groups",
  };
  readonly #listeners: { keys: Key[]; listener: () => void }[] = [];
  readonly #changed = new Set<Key>();
  #isScheduled = false;

  /** Calls `listener` now, and in every frame in which one of the keys was set. */
  on(keys: Key[], listener: () => void): void {
    this.#listeners.push({ keys, listener });
    listener();
  }

  set(patch: Partial<State>): void {
    Object.assign(this.state, patch);
    for (const key of Object.keys(patch) as Key[]) {
      this.#changed.add(key);
    }
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      requestAnimationFrame(() => this.#listener());
    }
  }

  #listener(): void {
    this.#isScheduled = false;
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const { keys, listener } of this.#listeners) {
      if (keys.some((key) => changed.includes(key))) {
        listener();
      }
    }
  }
}
