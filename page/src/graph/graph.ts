import cytoscape, { type Core, type NodeSingular } from "cytoscape";
import type { Topology, TopologyLink, TopologyNode } from "../api/types.ts";
import { Forces, tiers, type Network, type Point } from "./layout.ts";
import { Links, type Line, type View } from "./links.ts";
import { loadOf, yardstick } from "./loads.ts";
import { colours, styles } from "./style.ts";

/** The marked nodes and links of a tree, path or selection. */
export interface Marks {
  /** Names of nodes. */
  nodes: Set<string>;
  /** Pairs of names, in any order. */
  links: Set<string>;
}

export const NO_MARKS: Marks = { nodes: new Set(), links: new Set() };

/** The name of a link in `Marks`. */
export function pair(a: string, b: string): string {
  return a < b ? `${a}\0${b}` : `${b}\0${a}`;
}

export interface Callbacks {
  node(name: string | null): void;
  link(link: TopologyLink | null): void;
}

/** Limit of a slice of the layout, milliseconds. */
const SLICE_MS = 8;

/** The graph of the network: cytoscape handles nodes, pointer and view; links are drawn below them. */
export class Graph {
  readonly #cy: Core;
  readonly #links: Links;
  readonly #box: HTMLElement;
  readonly #callbacks: Callbacks;
  #topology: Topology | null = null;
  #root: string | undefined;
  #shape = "";
  #layout = 0;
  #marks: Marks = NO_MARKS;
  #most = 0;
  #lines: Line[] = [];
  /** The names of links in `Marks`, in the order of the topology. */
  #pairs: string[] = [];
  #selectedNode: string | null = null;
  /** The view that fits all; kept when the window changes, until the user moves it. */
  #fitted: View = { zoom: 1, pan: { x: 0, y: 0 } };
  #looks = new Map<string, string>();

  constructor(box: HTMLElement, callbacks: Callbacks) {
    this.#box = box;
    this.#callbacks = callbacks;
    const nodes = document.createElement("div");
    nodes.className = "nodes";
    this.#links = new Links(box, colours());
    box.append(nodes);
    this.#cy = cytoscape({
      container: nodes,
      style: styles(),
      minZoom: 0.03,
      maxZoom: 4,
      layout: { name: "preset" },
      autounselectify: true,
      boxSelectionEnabled: false,
      pixelRatio: "auto",
    });
    this.#cy.on("viewport", () => this.#links.look(this.#view()));
    this.#cy.on("position", "node", () => {
      this.#moveLinks();
    });
    this.#cy.on("tap", "node", (event) => this.#callbacks.node((event.target as NodeSingular).id()));
    this.#cy.on("tap", (event) => {
      if (event.target === this.#cy) {
        const at = this.#links.at(event.position, 8 / this.#cy.zoom());
        this.#callbacks.link(this.#topology?.links[at] ?? null);
        if (at < 0) {
          this.#callbacks.node(null);
        }
      }
    });
    new ResizeObserver(() => this.#resize()).observe(box);
    this.#resize();
  }

  /** Shows the network with its load. `root`: the root of a tree layout. */
  show(topology: Topology, root?: string): void {
    this.#topology = topology;
    this.#root = root;
    const shape = `${root ?? ""}\0${topology.version}\0${topology.nodes.length}\0${topology.links.length}`;
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#rebuild(topology);
    }
    this.#paintNodes(topology.nodes);
    this.#paintLinks(topology.links);
  }

  /** Marks a tree or a path. */
  mark(marks: Marks): void {
    this.#marks = marks;
    if (this.#topology) {
      this.show(this.#topology, this.#root);
    }
  }

  select(node: string | null, link: TopologyLink | null): void {
    this.#selectedNode = node;
    this.#links.select(link ? this.#pairs.indexOf(pair(...link.ends)) : -1);
    if (this.#topology) {
      this.show(this.#topology, this.#root);
    }
  }

  /** Colours have changed. */
  restyle(): void {
    this.#cy.style(styles());
    this.#links.paint(colours());
  }

  fit(): void {
    this.#cy.fit(undefined, 30);
    this.#fitted = this.#view();
  }

  zoom(factor: number): void {
    const [width, height] = this.#links.size;
    this.#cy.zoom({ level: this.#cy.zoom() * factor, renderedPosition: { x: width / 2, y: height / 2 } });
  }

  /** Brings a node into view. */
  reveal(name: string): void {
    const node = this.#cy.getElementById(name);
    if (node.empty()) {
      return;
    }
    const { x, y } = node.renderedPosition();
    const [width, height] = this.#links.size;
    if (x < 20 || y < 20 || x > width - 20 || y > height - 20) {
      this.#cy.center(node);
    }
  }

  /** The nearest node in a direction from the one that is selected. */
  next(direction: "left" | "right" | "up" | "down"): string | null {
    const from = this.#place(this.#selectedNode ?? "");
    if (!from) {
      return this.#topology?.nodes[0]?.name ?? null;
    }
    const [ux, uy] = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] }[direction] as [number, number];
    let [best, least] = [null as string | null, Infinity];
    this.#cy.nodes().forEach((node) => {
      const [dx, dy] = [node.position().x - from.x, node.position().y - from.y];
      const [ahead, aside] = [dx * ux + dy * uy, Math.abs(dx * uy - dy * ux)];
      const cost = ahead + 2 * aside;
      if (ahead > 1 && cost < least) {
        [best, least] = [node.id(), cost];
      }
    });
    return best;
  }

  #place(name: string): Point | undefined {
    const node = this.#cy.getElementById(name);
    return node.empty() ? undefined : node.position();
  }

  #resize(): void {
    const { clientWidth, clientHeight } = this.#box;
    const { zoom, pan } = this.#view();
    const isFitted = zoom === this.#fitted.zoom && pan.x === this.#fitted.pan.x && pan.y === this.#fitted.pan.y;
    this.#links.resize(clientWidth, clientHeight);
    this.#cy.resize();
    if (isFitted && clientWidth > 0) {
      this.fit();
    }
  }

  #view(): View {
    return { zoom: this.#cy.zoom(), pan: { ...this.#cy.pan() } };
  }

  #rebuild(topology: Topology): void {
    this.#looks.clear();
    const hosts = topology.nodes.filter((node) => node.is_host);
    const edges = topology.nodes.filter((node) => node.is_edge);
    const network: Network = {
      names: topology.nodes.map(({ name }) => name),
      links: topology.links.map(({ ends }) => ends),
      bottom: (hosts.length > 0 ? hosts : edges).map(({ name }) => name),
    };
    if (this.#root !== undefined) {
      network.root = this.#root;
    }
    this.#layout += 1;
    const regular = tiers(network);
    const forces = regular ? null : new Forces(network);
    const places = regular ?? forces?.places();
    this.#cy.batch(() => {
      this.#cy.elements().remove();
      this.#cy.add(topology.nodes.map(({ name }) => ({
        group: "nodes" as const,
        data: { id: name },
        position: { ...(places?.get(name) ?? { x: 0, y: 0 }) },
      })));
    });
    this.#pairs = topology.links.map(({ ends }) => pair(...ends));
    this.#lines = topology.links.map(({ ends }) => ({ ends, load: 0, isMarked: false }));
    this.#moveLinks();
    this.fit();
    if (forces) {
      this.#settle(forces, this.#layout);
    }
  }

  /** Takes steps within the time of a frame, then moves the nodes once. */
  #settle(forces: Forces, layout: number): void {
    const end = performance.now() + SLICE_MS;
    let goesOn = true;
    while (goesOn && performance.now() < end) {
      goesOn = forces.step();
    }
    if (layout !== this.#layout) {
      return;
    }
    if (goesOn) {
      requestAnimationFrame(() => this.#settle(forces, layout));
      return;
    }
    const places = forces.places();
    this.#cy.batch(() => this.#cy.nodes().forEach((node) => {
      node.position({ ...(places.get(node.id()) ?? { x: 0, y: 0 }) });
    }));
    this.fit();
    this.#moveLinks();
  }

  /** Updates only nodes whose style changes, since each update makes cytoscape draw. */
  #paintNodes(nodes: TopologyNode[]): void {
    const changed: [string, string][] = [];
    for (const node of nodes) {
      const look = [
        node.is_host ? "host" : node.is_edge ? "edge" : "",
        node.is_alive ? "" : "dead",
        node.is_drained ? "drained" : "",
        this.#marks.nodes.has(node.name) ? "marked" : "",
        node.name === this.#selectedNode ? "selected" : "",
      ].filter((name) => name !== "").join(" ");
      if (this.#looks.get(node.name) !== look) {
        changed.push([node.name, look]);
        this.#looks.set(node.name, look);
      }
    }
    if (changed.length > 0) {
      this.#cy.batch(() => changed.forEach(([name, look]) => this.#cy.getElementById(name).classes(look)));
    }
  }

  #paintLinks(links: TopologyLink[]): void {
    const loads = links.map(({ octets_per_second: [a, b] }) => Math.max(a, b));
    this.#most = yardstick(this.#most, loads.reduce((most, load) => Math.max(most, load), 0));
    let isSame = true;
    this.#lines.forEach((line, at) => {
      const load = loadOf(loads[at] ?? 0, this.#most);
      const isMarked = this.#marks.links.has(this.#pairs[at] ?? "");
      isSame &&= line.load === load && line.isMarked === isMarked;
      [line.load, line.isMarked] = [load, isMarked];
    });
    if (!isSame) {
      this.#links.draw();
    }
  }

  #moveLinks(): void {
    this.#links.set(this.#lines, (name) => this.#place(name));
  }

  /** The load of the most loaded link, octets per second. */
  get most(): number {
    return this.#most;
  }
}
