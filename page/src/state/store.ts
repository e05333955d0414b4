import type { Flow, Group, GroupSummary, Job, ControllerEvent, Node, Topology } from "../api/types.ts";

/** How the page stands to where its data come from. */
export interface Standing {
  kind: "waiting" | "live" | "lost" | "refused" | "replay";
  text: string;
}

/** Drops of one reason: how many at which node. */
export type Drops = Map<string, Map<string, number>>;

/** Everything that the page shows. */
export interface State {
  standing: Standing;
  topology: Topology;
  groups: GroupSummary[];
  groupsTotal: number;
  groupsWanted: number;
  /** The group that is looked at. */
  groupId: number | null;
  group: Group | null;
  /** The node that is looked at. */
  nodeName: string | null;
  node: Node | null;
  jobs: Job[];
  jobName: string | null;
  flows: Flow[];
  flow: Flow | null;
  events: ControllerEvent[];
  drops: Drops;
  /** Where in a recording, nanoseconds. */
  replayNs: number;
  /** Whether changes can be asked for. */
  canChange: boolean;
  tab: Tab;
}

export const TABS = ["network", "groups", "flows", "drops", "events"] as const;
export type Tab = (typeof TABS)[number];

export const NOTHING: Topology = { unix_ms: 0, version: 0, nodes: [], links: [] };

type Key = keyof State;

/** Holds the state; who listens is told of all changes of a frame at once. */
export class Store {
  readonly state: State = {
    standing: { kind: "waiting", text: "connecting" },
    topology: NOTHING,
    groups: [],
    groupsTotal: 0,
    groupsWanted: 100,
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
  readonly #listeners: { keys: Key[]; tell: () => void }[] = [];
  readonly #changed = new Set<Key>();
  #isScheduled = false;

  /** Calls `tell` now, and in every frame in which one of the keys was set. */
  on(keys: Key[], tell: () => void): void {
    this.#listeners.push({ keys, tell });
    tell();
  }

  set(patch: Partial<State>): void {
    Object.assign(this.state, patch);
    for (const key of Object.keys(patch) as Key[]) {
      this.#changed.add(key);
    }
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      requestAnimationFrame(() => this.#tell());
    }
  }

  #tell(): void {
    this.#isScheduled = false;
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const { keys, tell } of this.#listeners) {
      if (keys.some((key) => changed.includes(key))) {
        tell();
      }
    }
  }
}
