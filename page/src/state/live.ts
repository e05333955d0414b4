import { ask, open, Refusal } from "../api/client.ts";
import { Messages } from "../api/sse.ts";
import type {
  ControllerEvent, ForeignGroups, Group, GroupPage, GroupSummary, Job, JobPage, Node, NodePage, Topology,
} from "../api/types.ts";
import type { Drops, State, Store } from "./store.ts";

/** Nodes and groups of a page of the API. */
const PAGE = 200;
const MOST_EVENTS = 500;
const SLOW_MS = 3000;
const AFTER_LOSS_MS = 1000;

/** Polls the controller and updates the store. */
export class Live {
  readonly #store: Store;
  readonly #end = new AbortController();
  /** Polling interval of the topology and the selection, milliseconds. */
  intervalMs: number;

  constructor(store: Store, intervalMs: number) {
    this.#store = store;
    this.intervalMs = intervalMs;
  }

  start(): void {
    void this.#repeat(() => this.#topology(), () => this.intervalMs, () => true);
    void this.#repeat(() => this.#group(), () => this.intervalMs, ({ groupId }) => groupId !== null);
    void this.#repeat(() => this.#node(), () => this.intervalMs, ({ nodeName }) => nodeName !== null);
    void this.#repeat(() => this.groups(), () => SLOW_MS, ({ tab }) => tab === "groups");
    void this.#repeat(() => this.#foreign(), () => SLOW_MS, ({ tab }) => tab === "groups");
    void this.#repeat(() => this.#drops(), () => SLOW_MS, ({ tab }) => tab === "drops");
    void this.#repeat(() => this.#jobs(), () => SLOW_MS, ({ tab }) => tab === "flows");
    void this.#listen();
  }

  stop(): void {
    this.#end.abort();
  }

  get #isOver(): boolean {
    return this.#end.signal.aborted;
  }

  async #repeat(look: () => Promise<void>, everyMs: () => number, isWanted: (state: State) => boolean): Promise<void> {
    while (!this.#isOver) {
      const begin = performance.now();
      if (isWanted(this.#store.state) && !document.hidden) {
        try {
          await look();
        } catch (error) {
          this.#lost(error);
          await pause(AFTER_LOSS_MS);
        }
      }
      // At least a fifth of the interval, however long the response took.
      const left = everyMs() - (performance.now() - begin);
      const idle = isWanted(this.#store.state) ? left : Math.min(left, 100);
      await pause(Math.max(idle, everyMs() / 5));
    }
  }

  #lost(error: unknown): void {
    if (this.#isOver || !(error instanceof Refusal)) {
      if (!this.#isOver) {
        this.#store.set({ standing: { kind: "lost", text: `invalid response: ${String(error)}` } });
      }
      return;
    }
    const { status, title, detail } = error.problem;
    if (status === 404) {
      return;
    }
    const kind = status === 401 || status === 403 ? "refused" : "lost";
    this.#store.set({ standing: { kind, text: detail ? `${title}: ${detail}` : title } });
  }

  /** Whether a response was received before the end. */
  #put(patch: Partial<State>): void {
    if (!this.#isOver) {
      this.#store.set(patch);
    }
  }

  async #topology(): Promise<void> {
    const topology = await ask<Topology>("GET", "/v1/topology");
    this.#put({ topology, standing: { kind: "live", text: "live" } });
  }

  /** Reads the list of groups. */
  async groups(): Promise<void> {
    const groups: GroupSummary[] = [];
    let total = 0;
    let after: number | undefined;
    do {
      const from: string = after === undefined ? "" : `&after=${after}`;
      const page: GroupPage = await ask("GET", `/v1/groups?limit=${PAGE}${from}`);
      groups.push(...page.groups);
      total = page.total;
      after = page.next;
    } while (after !== undefined && groups.length < this.#store.state.groupsWanted);
    this.#put({ groups, groupsTotal: total });
  }

  async #foreign(): Promise<void> {
    const { groups } = await ask<ForeignGroups>("GET", "/v1/foreign-groups");
    this.#put({ foreign: groups });
  }

  async #group(): Promise<void> {
    const { groupId } = this.#store.state;
    try {
      const group = await ask<Group>("GET", `/v1/groups/${groupId}`);
      if (this.#store.state.groupId === groupId) {
        this.#put({ group });
      }
    } catch (error) {
      if (error instanceof Refusal && error.problem.status === 404 && this.#store.state.groupId === groupId) {
        this.#put({ group: null, groupId: null });
      }
      throw error;
    }
  }

  async #node(): Promise<void> {
    const { nodeName } = this.#store.state;
    const node = await ask<Node>("GET", `/v1/nodes/${encodeURIComponent(nodeName ?? "")}`);
    if (this.#store.state.nodeName === nodeName) {
      this.#put({ node });
    }
  }

  async #drops(): Promise<void> {
    const drops: Drops = new Map();
    let after: string | undefined;
    do {
      const from: string = after === undefined ? "" : `&after=${encodeURIComponent(after)}`;
      const page: NodePage = await ask("GET", `/v1/nodes?limit=${PAGE}${from}`);
      for (const node of page.nodes) {
        for (const [reason, count] of Object.entries(node.status?.drops ?? {})) {
          const nodes = drops.get(reason) ?? new Map<string, number>();
          drops.set(reason, nodes.set(node.name, count));
        }
      }
      after = page.next;
    } while (after !== undefined && !this.#isOver);
    this.#put({ drops });
  }

  async #jobs(): Promise<void> {
    const { jobs } = await ask<JobPage>("GET", `/v1/jobs?limit=${PAGE}`);
    const { jobName } = this.#store.state;
    const name = jobs.some((job) => job.name === jobName) ? jobName : (jobs[0]?.name ?? null);
    const job = name === null ? null : await ask<Job>("GET", `/v1/jobs/${encodeURIComponent(name)}`);
    this.#put({ jobs, jobName: name, flows: job?.flows ?? [] });
  }

  /** Follows the event stream; reconnects behind the last event. */
  async #listen(): Promise<void> {
    // From the oldest event that the controller has kept.
    let last = "0";
    while (!this.#isOver) {
      try {
        const headers = { "last-event-id": last };
        const response = await open("GET", "/v1/events", undefined, { headers, signal: this.#end.signal });
        const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
        const messages = new Messages();
        for (;;) {
          const piece = await reader?.read();
          if (!piece || piece.done) {
            break;
          }
          const taken = messages.take(piece.value);
          last = taken.at(-1)?.id ?? last;
          this.#happened(taken.map(({ data }) => JSON.parse(data) as ControllerEvent));
        }
      } catch (error) {
        this.#lost(error);
      }
      await pause(AFTER_LOSS_MS);
    }
  }

  #happened(events: ControllerEvent[]): void {
    if (events.length === 0) {
      return;
    }
    this.#put({ events: [...this.#store.state.events, ...events].slice(-MOST_EVENTS) });
    if (events.some(({ kind }) => kind.startsWith("group-")) && this.#store.state.tab === "groups") {
      this.groups().catch((error: unknown) => this.#lost(error));
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
