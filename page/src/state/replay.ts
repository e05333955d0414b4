import type { Recording } from "./recording.ts";
import type { Store } from "./store.ts";

/** Plays a recording into the store. */
export class Replay {
  readonly recording: Recording;
  readonly #store: Store;
  #ns = 0;
  #index = -1;
  #isPlaying = false;
  #isOver = false;
  /** Recorded time per second of the replay, nanoseconds. */
  paceNs: number;
  /** Called when playing starts or stops. */
  onPlaying: (isPlaying: boolean) => void = () => undefined;

  constructor(store: Store, recording: Recording) {
    this.#store = store;
    this.recording = recording;
    this.paceNs = recording.endNs / 20 || 1;
    const first = recording.at(0);
    const groupId = first.groups[0]?.id ?? null;
    store.set({
      standing: { kind: "replay", text: `replay: ${recording.title}` },
      canChange: false,
      groupId,
      group: null,
      nodeName: null,
      node: null,
      flow: null,
      flows: [],
      jobs: [],
      jobName: null,
    });
    this.seek(recording.times[0] ?? 0);
  }

  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  get ns(): number {
    return this.#ns;
  }

  /** Seeks to a time. */
  seek(ns: number): void {
    const { recording } = this;
    this.#ns = Math.min(Math.max(ns, recording.times[0] ?? 0), recording.endNs);
    const index = recording.indexAt(this.#ns);
    if (index === this.#index) {
      this.#store.set({ replayNs: this.#ns });
      return;
    }
    this.#index = index;
    this.show();
  }

  /** Updates the store's selected group and node. */
  show(): void {
    const { topology, groups, drops, events } = this.recording.at(this.#index);
    const { groupId, nodeName } = this.#store.state;
    const counts = nodeName === null ? [] : [...drops].map(([reason, nodes]) => [reason, nodes.get(nodeName) ?? 0]);
    const brief = topology.nodes.find(({ name }) => name === nodeName);
    const ofNode = groups.filter(({ tree }) => tree?.nodes.some(({ name }) => name === nodeName));
    this.#store.set({
      topology,
      groups,
      groupsTotal: groups.length,
      group: groups.find(({ id }) => id === groupId) ?? null,
      drops,
      events,
      replayNs: this.#ns,
      node: brief
        ? {
          ...brief,
          hosts: [],
          groups: ofNode.length,
          status: { ports: [], programs: [], drops: Object.fromEntries(counts) as Record<string, number> },
        }
        : null,
    });
  }

  play(): void {
    if (this.#isPlaying) {
      return;
    }
    if (this.#ns >= this.recording.endNs) {
      this.seek(0);
    }
    this.#isPlaying = true;
    this.onPlaying(true);
    let before = performance.now();
    const frame = (now: number): void => {
      if (!this.#isPlaying || this.#isOver) {
        return;
      }
      this.seek(this.#ns + (Math.max(0, now - before) / 1e3) * this.paceNs);
      before = now;
      if (this.#ns >= this.recording.endNs) {
        this.pause();
      } else {
        requestAnimationFrame(frame);
      }
    };
    requestAnimationFrame(frame);
  }

  pause(): void {
    this.#isPlaying = false;
    this.onPlaying(false);
  }

  stop(): void {
    this.#isOver = true;
    this.pause();
  }
}
