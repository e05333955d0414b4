/** Nodes that a real controller believes: they say hello, take orders, and report a transfer that time makes. */

import type { Fabric, FabricNode } from "./fabric.ts";

const PACKETS_PER_SECOND = 40_000;
const OCTETS_PER_PACKET = 4500;
const WAIT_MS = 200;

interface GroupEntry {
  id: number;
  epoch: number;
  initial_psn: number;
  branches: { responder: string }[];
}

interface Order {
  order: string;
  group?: number;
  epoch?: number;
  /** The controller's store, a number of 64 bits, as text: those of JavaScript have 53. */
  store?: string;
  /** The entry's name, which answers repeat. */
  name?: unknown;
  entry?: GroupEntry;
}

/** All nodes of a fabric. */
export class Fleet {
  readonly #url: string;
  readonly #fabric: Fabric;
  readonly #begun = new Map<number, number>();
  #isOver = false;
  #running: Promise<void>[] = [];

  constructor(url: string, fabric: Fabric) {
    this.#url = url;
    this.#fabric = fabric;
  }

  start(): void {
    this.#running = this.#fabric.nodes.map((node) => this.#run(node));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  async #run(node: FabricNode): Promise<void> {
    const entries = new Map<number, GroupEntry>();
    const prepared = new Map<number, GroupEntry>();
    const sent = new Map<string, number>();
    let answers: unknown[] = [];
    let session = await this.#hello(node);
    let before = Date.now();
    while (!this.#isOver) {
      const now = Date.now();
      this.#carry(node, entries, sent, (now - before) / 1000);
      before = now;
      const status = this.#status(node, entries, sent);
      const path = `/v1/nodes/${node.name}/sync`;
      const report = { session, answers, eviction_requests: [], status, wait_ms: WAIT_MS };
      const reply = await this.#send("POST", path, report);
      if (reply.status === 409) {
        session = await this.#hello(node);
        continue;
      }
      const text = (await reply.text()).replace(/"store":(\d+)/g, '"store":"$1"');
      const { orders } = JSON.parse(text) as { orders: Order[] };
      answers = orders.flatMap((order) => this.#execute(order, entries, prepared));
    }
  }

  async #hello(node: FabricNode): Promise<number> {
    const next = this.#fabric.links.flatMap(([a, b]) => (a === node.name ? [b] : b === node.name ? [a] : []));
    const hello = {
      name: node.name,
      loopback: node.loopback,
      ...(node.isEdge ? { end_mt: sid(node, "e::") } : { replication: `${sid(node, "f::")}/80` }),
      links: next.map((name) => ({ to: this.#find(name).loopback, mtu: 9000, cost: 1 })),
      hosts: node.hasHosts ? [`${node.hosts}/64`] : [],
      groups: [],
    };
    const reply = await this.#send("POST", "/v1/nodes", hello);
    if (!reply.ok) {
      throw new Error(`${node.name}: ${await reply.text()}`);
    }
    return ((await reply.json()) as { session: number }).session;
  }

  #execute(
    { order, entry, group, epoch, name, store }: Order,
    entries: Map<number, GroupEntry>,
    prepared: Map<number, GroupEntry>,
  ): unknown[] {
    const id = entry?.id ?? group ?? 0;
    if (order === "prepare" && entry) {
      prepared.set(id, entry);
      return [{ answer: "prepared", group: id, name }];
    }
    if (order === "commit" || order === "restore") {
      entries.set(id, entry ?? prepared.get(id) ?? { id, epoch: 0, initial_psn: 0, branches: [] });
      this.#begun.set(id, this.#begun.get(id) ?? Date.now());
      return [{ answer: "committed", group: id, name }];
    }
    if (order === "remove") {
      entries.delete(id);
      return [{ answer: "removed", store, group: id, epoch }];
    }
    prepared.delete(id);
    return [];
  }

  /** What goes to each child, on the link to it. */
  #carry(node: FabricNode, entries: Map<number, GroupEntry>, sent: Map<string, number>, seconds: number): void {
    for (const { branches } of entries.values()) {
      for (const { responder } of branches) {
        sent.set(responder, (sent.get(responder) ?? 0) + seconds * PACKETS_PER_SECOND * OCTETS_PER_PACKET);
      }
    }
    this.#neighbours(node).forEach(({ loopback, name }, at) => {
      const share = (name.length * 7 + at * 3 + node.name.length) % 5;
      sent.set(loopback, (sent.get(loopback) ?? 0) + seconds * share * 4e7);
    });
  }

  #status(node: FabricNode, entries: Map<number, GroupEntry>, sent: Map<string, number>): unknown {
    const seconds = Date.now() / 1000;
    return {
      ports: this.#neighbours(node).map(({ loopback }, at) => ({
        name: `p${at}`,
        to: loopback,
        is_up: true,
        received_octets: 0,
        sent_octets: Math.round(sent.get(loopback) ?? 0),
      })),
      groups: [...entries.values()].map(({ id, initial_psn: initial, branches }) => {
        const done = Math.round(((Date.now() - (this.#begun.get(id) ?? 0)) / 1000) * PACKETS_PER_SECOND);
        return {
          group: id,
          highest_psn: (initial + done) & 0xffffff,
          branches: branches.map(({ responder }) => {
            const seed = [...responder].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
            const lag = Math.min(done, Math.round(24 + 14 * Math.sin(seconds * 1.1 + seed)));
            const cnps = seed % 4 === 0 ? Math.floor(done / 20_000) : 0;
            return { address: responder, expected_psn: (initial + done - lag) & 0xffffff, lag, cnps };
          }),
        };
      }),
      drops: node.isEdge && node.name.endsWith("1") ? { no_route: 3 } : {},
      programs: [],
    };
  }

  #neighbours(node: FabricNode): FabricNode[] {
    return this.#fabric.links
      .flatMap(([a, b]) => (a === node.name ? [b] : b === node.name ? [a] : []))
      .map((name) => this.#find(name));
  }

  #find(name: string): FabricNode {
    const found = this.#fabric.nodes.find((node) => node.name === name);
    if (!found) {
      throw new Error(`no node ${name}`);
    }
    return found;
  }

  #send(method: string, path: string, body: unknown): Promise<Response> {
    const headers = { "content-type": "application/json" };
    const text = JSON.stringify(body).replace(/"store":"(\d+)"/g, '"store":$1');
    return fetch(this.#url + path, { method, headers, body: text });
  }
}

/** A SID, or the beginning of some, of a node's own 64 bits. */
function sid(node: FabricNode, rest: string): string {
  return `2001:db8:ff:${node.loopback.split("::")[1]}:${rest}`;
}
