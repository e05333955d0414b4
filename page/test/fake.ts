/** A controller in memory: the requests of the page, with traffic that depends on time. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type {
  Branch, ControllerEvent, Flow, ForeignGroup, Group, NodeIdentity, NewGroup, NewReceiver, Problem, TreeNode,
} from "../src/api/types.ts";
import type { Fabric } from "./fabric.ts";

const PACKETS_PER_SECOND = 40_000;

interface FakeGroup extends Group {
  /** When the transfer began, milliseconds. */
  begunMs: number;
}

class Refused extends Error {
  readonly problem: Problem;
  constructor(status: number, title: string, detail: string) {
    super(detail);
    this.problem = { type: "/problems/fake", title, status, detail };
  }
}

export class FakeController {
  readonly #fabric: Fabric;
  readonly #page: string;
  readonly #drained = new Set<string>();
  readonly #groups = new Map<number, FakeGroup>();
  readonly #events: ControllerEvent[] = [];
  readonly #listeners = new Set<ServerResponse>();
  readonly #files = new Map<string, string>();
  readonly #begunMs = Date.now();
  readonly #server: Server;
  flows: Flow[] = [];
  /** Names of dead nodes. */
  readonly lost = new Set<string>();
  /** Nodes that are being removed. */
  readonly removing = new Set<string>();
  /** What nodes have registered and is not confirmed, by name. */
  readonly unconfirmed = new Map<string, NodeIdentity>();
  foreign: ForeignGroup[] = [];
  #kept: string[] = [];
  #next = 0;
  /** The bearer token that requests need, if it is set. */
  token = "";

  constructor(fabric: Fabric, page: string) {
    this.#fabric = fabric;
    this.#page = page;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#listeners.forEach((listener) => listener.end());
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Serves `count` prepared topologies from now on, so that computing them takes no time from the browser. */
  answerFrom(count: number): void {
    this.#kept = Array.from({ length: count }, (_, at) => JSON.stringify(this.topology(Date.now() + at * 100)));
  }

  /** Serves a file at a path. */
  serve(path: string, text: string): void {
    this.#files.set(path, text);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://fake");
    if (url.pathname === "/") {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.setHeader("content-security-policy", "frame-ancestors 'none'");
      response.end(this.#page);
      return;
    }
    const file = this.#files.get(url.pathname);
    if (file !== undefined) {
      response.end(file);
      return;
    }
    try {
      if (this.token && request.headers.authorization !== `Bearer ${this.token}`) {
        throw new Refused(401, "Not allowed", "a bearer token is required");
      }
      if (url.pathname === "/v1/events") {
        this.#listen(response, Number(request.headers["last-event-id"] ?? this.#events.length));
        return;
      }
      if (url.pathname === "/v1/topology" && this.#kept.length > 0) {
        this.#next = (this.#next + 1) % this.#kept.length;
        response.end(this.#kept[this.#next]);
        return;
      }
      const pieces: Buffer[] = [];
      for await (const piece of request) {
        pieces.push(piece as Buffer);
      }
      const text = Buffer.concat(pieces).toString();
      const body = (text ? JSON.parse(text) : null) as never;
      const parts = url.pathname.split("/").slice(2).map(decodeURIComponent);
      const value = this.#route(request.method ?? "GET", parts, body);
      response.setHeader("content-type", "application/json");
      response.end(value === undefined ? "" : JSON.stringify(value));
    } catch (error) {
      const problem = error instanceof Refused
        ? error.problem
        : { type: "", title: "The fake controller failed", status: 500, detail: String(error) };
      response.statusCode = problem.status;
      response.setHeader("content-type", "application/problem+json");
      response.end(JSON.stringify(problem));
    }
  }

  #route(method: string, [kind, name, part, which]: string[], body: never): unknown {
    const key = `${method} ${kind}${name === undefined ? "" : "/_"}${part === undefined ? "" : `/${part}`}`;
    switch (key) {
      case "GET topology": return this.topology();
      case "GET nodes": return { nodes: this.#fabric.nodes.map((node) => this.#node(node.name)) };
      case "GET nodes/_": return this.#node(name ?? "");
      case "PUT nodes/_/drain": return this.#drain(name ?? "", body);
      case "GET foreign-groups": return { store: "1".repeat(16), groups: this.foreign };
      case "GET groups": return { groups: [...this.#groups.values()], total: this.#groups.size };
      case "POST groups": return this.#create(body);
      case "GET groups/_": return this.#moved(this.#group(name));
      case "DELETE groups/_": return this.#close(this.#group(name));
      case "POST groups/_/commit": return this.#commit(this.#group(name));
      case "PUT groups/_/receivers": return this.#join(this.#group(name), which ?? "", body);
      case "DELETE groups/_/receivers": return this.#evict(this.#group(name), which ?? "");
      case "GET jobs": return { jobs: this.flows.slice(0, 1).map(({ job }) => ({ name: job, flows: [] })) };
      case "GET jobs/_": return { name, tenant: "a", flows: this.flows, version: 1 };
      default: throw new Refused(404, "Not found", key);
    }
  }

  /** The current topology; loads vary over time. */
  topology(nowMs = Date.now()): unknown {
    const seconds = (nowMs - this.#begunMs) / 1000;
    const treeLinks = this.#treeLinks();
    return {
      unix_ms: nowMs,
      version: 1,
      nodes: this.#fabric.nodes.map(({ name, loopback, isEdge }) => ({
        name,
        loopback,
        is_alive: !this.lost.has(name),
        is_drained: this.#drained.has(name),
        is_edge: isEdge,
        drops: this.#drops(name),
      })),
      links: this.#fabric.links.map((ends, at) => {
        const wave = (1 + Math.sin(seconds * (0.3 + (at % 7) / 10) + at)) / 2;
        const own = (at * 7919) % 10 < 4 ? wave * 4e9 : 0;
        const carried = treeLinks.has(ends.join(" ")) ? PACKETS_PER_SECOND * 4300 * 40 : 0;
        return { ends, octets_per_second: [own + carried, own / 10], mtu: 9000, groups: carried ? 1 : 0 };
      }),
    };
  }

  #treeLinks(): Set<string> {
    const links = new Set<string>();
    for (const { tree, state } of this.#groups.values()) {
      for (const { name, parent } of state === "ready" ? (tree?.nodes ?? []) : []) {
        links.add([name, parent ?? ""].sort().join(" "));
      }
    }
    return links;
  }

  #drops(name: string): number {
    return name.length % 3 === 0 ? Math.floor((Date.now() - this.#begunMs) / 700) : 0;
  }

  #node(name: string): unknown {
    const node = this.#fabric.nodes.find((node) => node.name === name);
    const unconfirmed = this.unconfirmed.get(name);
    if (!node && unconfirmed) {
      const state = { is_alive: false, is_drained: false, is_removing: false, hosts: [], links: [], groups: 0 };
      return { name, loopback: unconfirmed.loopback, unconfirmed, ...state };
    }
    if (!node) {
      throw new Refused(404, "No such node", name);
    }
    const drops = this.#drops(name);
    return {
      name,
      loopback: node.loopback,
      is_alive: !this.lost.has(name),
      is_drained: this.#drained.has(name),
      is_removing: this.removing.has(name),
      unconfirmed,
      protocol: 2,
      end_mt: node.isEdge ? `${node.loopback}:100` : undefined,
      replication: `${node.loopback}:0/112`,
      hosts: node.isEdge ? [`${node.hosts}/64`] : [],
      links: [],
      groups: [...this.#groups.values()].filter(({ tree }) => tree?.nodes.some((other) => other.name === name)).length,
      status: {
        ports: [{ name: "p0", is_up: true, received_octets: 1, sent_octets: 1 }],
        groups: [],
        drops: drops > 0 ? { queue_full: drops, no_route: 3 } : {},
        programs: [],
      },
    };
  }

  emit(change: Omit<ControllerEvent, "number" | "unix_ms">): void {
    const event = { ...change, number: this.#events.length + 1, unix_ms: Date.now() };
    this.#events.push(event);
    this.#listeners.forEach((listener) => listener.write(this.#message(event)));
  }

  #message(event: ControllerEvent): string {
    return `id: ${event.number}\ndata: ${JSON.stringify(event)}\n\n`;
  }

  #listen(response: ServerResponse, after: number): void {
    response.setHeader("content-type", "text/event-stream");
    response.write(this.#events.slice(after).map((event) => this.#message(event)).join("") || ": begins\n\n");
    this.#listeners.add(response);
    response.on("close", () => this.#listeners.delete(response));
  }

  #drain(name: string, { drained }: { drained: boolean }): unknown {
    if (drained) {
      this.#drained.add(name);
    } else {
      this.#drained.delete(name);
    }
    this.emit({ kind: "node-drained", node: name, drained });
    this.#groups.forEach((group) => {
      if (group.tree) {
        group.tree = this.#treeOf(group);
      }
    });
    return this.#node(name);
  }

  #group(name: string | undefined): FakeGroup {
    const group = this.#groups.get(Number(name));
    if (!group) {
      throw new Refused(404, "No such group", `group ${name} does not exist`);
    }
    return group;
  }

  #create(body: NewGroup): Group {
    if (body.designated_qpn > 0xffffff) {
      throw new Refused(422, "Not a group", "designated_qpn: a QPN has 24 bits");
    }
    const id = this.#groups.size + 1;
    const group: FakeGroup = {
      ...body,
      id,
      name: body.name ?? `group ${id}`,
      tenant: "a",
      state: "open",
      proxy: body.proxy ?? `2001:db8:ffff::${id}`,
      receivers: 0,
      epoch: 0,
      version: 1,
      members: [],
      awaited: [],
      begunMs: 0,
    };
    this.#groups.set(id, group);
    this.emit({ kind: "group-created", group: id });
    return group;
  }

  #join(group: FakeGroup, address: string, { qpn }: NewReceiver): unknown {
    if (!this.#edgeOf(address)) {
      throw new Refused(422, "No edge has this receiver", `${address} is behind no edge node`);
    }
    group.members.push({ address, qpn, state: group.state === "open" ? "joining" : "member" });
    group.receivers = group.members.length;
    this.emit({ kind: "receiver-joining", group: group.id, receiver: address });
    if (group.state === "ready") {
      this.#change(group);
    }
    return group;
  }

  #commit(group: FakeGroup): unknown {
    if (group.members.length === 0) {
      throw new Refused(409, "The group has no receiver", "add one before it is committed");
    }
    group.state = "ready";
    group.begunMs = Date.now();
    group.members.forEach((member) => { member.state = "member"; });
    this.#change(group);
    return group;
  }

  #change(group: FakeGroup): void {
    group.epoch += 1;
    group.tree = this.#treeOf(group);
    this.emit({ kind: "group-changed", group: group.id, epoch: group.epoch });
  }

  #evict(group: FakeGroup, address: string): unknown {
    group.members = group.members.filter((member) => member.address !== address);
    group.receivers = group.members.length;
    this.#change(group);
    this.emit({ kind: "receiver-removed", group: group.id, receiver: address });
    return group;
  }

  #close(group: FakeGroup): unknown {
    this.#groups.delete(group.id);
    this.emit({ kind: "group-closed", group: group.id });
    return undefined;
  }

  #edgeOf(address: string): string | undefined {
    return this.#fabric.nodes.find(({ hosts, isEdge }) => isEdge && address.startsWith(hosts))?.name;
  }

  /** The nodes of shortest ways from the source's edge, round what is drained. */
  #treeOf(group: FakeGroup): NonNullable<Group["tree"]> {
    const root = this.#edgeOf(group.source.address) ?? this.#fabric.nodes.at(-1)?.name ?? "";
    const edges = new Set(group.members.map(({ address }) => this.#edgeOf(address) ?? root));
    const parent = new Map<string, string>();
    const queue = [root];
    for (let at = 0; at < queue.length; at += 1) {
      const name = queue[at] ?? "";
      for (const [a, b] of this.#fabric.links) {
        const next = a === name ? b : b === name ? a : null;
        if (next !== null && next !== root && !parent.has(next) && !this.#drained.has(next)) {
          parent.set(next, name);
          queue.push(next);
        }
      }
    }
    const used = new Set([root]);
    for (const edge of edges) {
      for (let name: string | undefined = edge; name !== undefined && !used.has(name); name = parent.get(name)) {
        used.add(name);
      }
    }
    const nodes = queue.filter((name) => used.has(name)).map((name): TreeNode => {
      const node = this.#fabric.nodes.find((other) => other.name === name);
      const children = queue.filter((other) => used.has(other) && parent.get(other) === name);
      const loopbackOf = (child: string): string =>
        this.#fabric.nodes.find((other) => other.name === child)?.loopback ?? "";
      const loopbacks = children.map(loopbackOf);
      const own = group.members.filter(({ address }) => this.#edgeOf(address) === name).map(({ address }) => address);
      const above = parent.get(name);
      return {
        name,
        loopback: node?.loopback ?? "",
        sid: `${node?.loopback}:${group.id}`,
        role: name === root ? "headend" : edges.has(name) ? "edge" : "transit",
        branches: [...loopbacks, ...own].map((address) => ({ address, cnps: 0 })),
        ...(above === undefined ? {} : { parent: above }),
      };
    });
    return {
      nodes,
      links: nodes.length - 1,
      links_of_unicast: edges.size * 4,
      explanation: [`from ${root}, by the fewest links`, `${edges.size} edges`],
      overhead: { lists_in_packets: true, octets: 376, longest_packet_octets: 4532, link_mtu: 9000 },
    };
  }

  /** Expected PSNs and lags at the current time. */
  #moved(group: FakeGroup): Group {
    if (group.state !== "ready" || !group.tree) {
      return group;
    }
    const seconds = (Date.now() - group.begunMs) / 1000;
    let number = 0;
    const branch = ({ address }: Branch): Branch => {
      number += 1;
      const slow = number % 5 === 4 ? 30 * Math.abs(Math.sin(seconds)) : 0;
      const lag = Math.round(20 + 15 * Math.sin(seconds * 1.3 + number) + slow);
      const expected_psn = (group.initial_psn + Math.round(seconds * PACKETS_PER_SECOND) - lag) & 0xffffff;
      return { address, expected_psn, lag, cnps: number % 5 === 4 ? Math.floor(seconds * 3) : 0 };
    };
    const nodes = group.tree.nodes.map((node) => ({ ...node, branches: node.branches.map(branch) }));
    return { ...group, tree: { ...group.tree, nodes } };
  }
}
