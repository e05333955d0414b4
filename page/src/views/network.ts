import type { Topology, TopologyLink } from "../api/types.ts";
import { rate } from "../format.ts";
import { Graph, NO_MARKS, pair, type Marks } from "../graph/graph.ts";
import { LOADS } from "../graph/loads.ts";
import type { State, Store } from "../state/store.ts";
import { h, text } from "../ui/dom.ts";
import { linkCard } from "./link.ts";
import { nodeCard } from "./node.ts";

/** The network: graph, selection and navigation. */
export function network(store: Store, root: () => string | undefined): HTMLElement {
  const box = h("div", {
    class: "graph",
    tabindex: "0",
    role: "application",
    "aria-label": "Network. Arrow keys move from node to node, plus and minus zoom, 0 fits all.",
  });
  const most = h("span", {});
  const find = finder(store);
  let link: TopologyLink | null = null;
  const card = h("aside", { class: "card", "aria-label": "Selected" });
  const forNode = nodeCard(store);
  const forLink = linkCard(store, () => select(null, null));
  card.append(forNode.element, forLink.element);

  const graph = new Graph(box, {
    node: (name) => select(name, null),
    link: (chosen) => {
      if (chosen) {
        select(null, chosen);
      }
    },
  });
  const button = (label: string, name: string, act: () => void): HTMLElement =>
    h("button", { type: "button", class: "quiet", "aria-label": name, title: name, onclick: act }, label);
  const tools = h("div", { class: "graph-tools" },
    find,
    button("−", "Zoom out", () => graph.zoom(1 / 1.3)),
    button("+", "Zoom in", () => graph.zoom(1.3)),
    button("Fit", "Show all", () => graph.fit()));
  const element = h("section", { class: "panel network" }, box, tools, legend(most), card);

  function select(name: string | null, chosen: TopologyLink | null): void {
    link = chosen;
    store.set({ nodeName: name, ...(name !== store.state.nodeName ? { node: null } : {}) });
    forLink.show(chosen);
    graph.select(name, chosen);
    card.classList.toggle("open", name !== null || chosen !== null);
  }

  box.addEventListener("keydown", (event) => {
    const direction = ({ ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" } as const)[
      event.key as "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown"];
    if (direction) {
      const next = graph.next(direction);
      if (next !== null) {
        select(next, null);
        graph.reveal(next);
      }
    } else if (event.key === "+" || event.key === "=") {
      graph.zoom(1.3);
    } else if (event.key === "-") {
      graph.zoom(1 / 1.3);
    } else if (event.key === "0") {
      graph.fit();
    } else if (event.key === "Escape") {
      select(null, null);
    } else {
      return;
    }
    event.preventDefault();
  });
  window.addEventListener("colours", () => graph.restyle());

  store.on(["topology"], () => {
    const { topology } = store.state;
    graph.show(topology, root());
    text(most, graph.most > 0 ? rate(graph.most) : "no traffic");
    if (link) {
      const ends = pair(...link.ends);
      forLink.show(topology.links.find((other) => pair(...other.ends) === ends) ?? null);
    }
  });
  store.on(["group", "flow", "groupId"], () => graph.mark(marksOf(store.state)));
  store.on(["nodeName"], () => {
    const { nodeName } = store.state;
    if (nodeName !== null) {
      link = null;
      forLink.show(null);
      graph.select(nodeName, null);
      graph.reveal(nodeName);
      card.classList.add("open");
    } else if (!link) {
      graph.select(null, null);
      card.classList.remove("open");
    }
  });
  return element;
}

/** The nodes and links of the selected flow, or else of the selected group. */
function marksOf({ flow, group, topology, tab }: State): Marks {
  if (flow && tab !== "groups") {
    const known = new Set(topology.nodes.map(({ name }) => name));
    const names = flow.path.filter((name) => known.has(name));
    return { nodes: new Set(names), links: new Set(names.slice(1).map((name, at) => pair(names[at] ?? "", name))) };
  }
  if (!group?.tree) {
    return NO_MARKS;
  }
  const byAddress = new Map(topology.nodes.map(({ name, loopback }) => [loopback, name]));
  const marks: Marks = { nodes: new Set(), links: new Set() };
  const source = byAddress.get(group.source.address);
  for (const node of group.tree.nodes) {
    marks.nodes.add(node.name);
    const above = node.parent ?? source;
    if (above !== undefined && above !== node.name) {
      marks.links.add(pair(above, node.name));
      marks.nodes.add(above);
    }
    for (const branch of node.branches) {
      const name = byAddress.get(branch.address);
      if (name !== undefined) {
        marks.nodes.add(name);
        marks.links.add(pair(node.name, name));
      }
    }
  }
  return marks;
}

function legend(most: HTMLElement): HTMLElement {
  const colours = Array.from({ length: LOADS }, (_, load) => h("span", { class: `load load${load}` }));
  const strip = h("span", { class: "loads", "aria-hidden": "true" }, ...colours);
  return h("p", { class: "legend soft" }, "Link load 0", strip, most);
}

/** Finds a node by its name. */
function finder(store: Store): HTMLElement {
  const names = h("datalist", { id: "node-names" });
  const input = h("input", {
    type: "search",
    list: "node-names",
    placeholder: "Find a node  /",
    "aria-label": "Find a node",
    class: "find",
    onchange: () => {
      const name = matching(store.state.topology, input.value);
      if (name !== null) {
        store.set({ nodeName: name, ...(name !== store.state.nodeName ? { node: null } : {}) });
        input.value = "";
      }
    },
  });
  // The browser's list of suggestions, filled when the input gets the focus.
  input.addEventListener("focus", () => {
    names.replaceChildren(...store.state.topology.nodes.map(({ name }) => h("option", { value: name })));
  });
  return h("span", {}, input, names);
}

function matching({ nodes }: Topology, words: string): string | null {
  const wanted = words.trim().toLowerCase();
  const exact = nodes.find(({ name, loopback }) => name.toLowerCase() === wanted || loopback === wanted);
  return (exact ?? nodes.find(({ name }) => wanted !== "" && name.toLowerCase().startsWith(wanted)))?.name ?? null;
}
