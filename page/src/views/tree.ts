import type { Branch, Group, TreeNode } from "../api/types.ts";
import { count } from "../format.ts";
import type { Store } from "../state/store.ts";
import { cells, h, List, row, table, text } from "../ui/dom.ts";
import { nameOf } from "./group.ts";

const COLUMNS = ["Node and branch", "#Expected PSN", "#Lag", "#CNPs", "#Sent again"];
const MAX_ROWS = 400;

/** A row: a node, or one of its branches. */
interface Line {
  key: string;
  depth: number;
  node: TreeNode;
  branch: Branch | null;
}

/** The tree of a group: nodes, branches, and the explanation. */
export function treeView(store: Store): { element: HTMLElement; show(group: Group): void } {
  const { element: rows, body } = table("Tree", COLUMNS);
  const list = new List<Line>(body, ({ key }) => key, (line) => lineOf(store, line));
  const lead = h("p", { class: "soft" });
  const why = h("ul", { class: "soft" });
  const hidden = h("p", { class: "soft" });
  const element = h("div", {}, h("h3", {}, "Tree"), lead, rows, hidden,
    h("details", {}, h("summary", {}, "Explanation"), why));
  return {
    element,
    show({ tree }) {
      element.hidden = !tree;
      if (!tree) {
        return;
      }
      text(lead, leadOf(tree));
      const lines = linesOf(tree.nodes);
      list.show(lines.slice(0, MAX_ROWS));
      text(hidden, lines.length > MAX_ROWS ? `and ${count(lines.length - MAX_ROWS)} more rows` : "");
      const reasons = tree.explanation.join("\n");
      if (why.dataset["shown"] !== reasons) {
        why.dataset["shown"] = reasons;
        why.replaceChildren(...tree.explanation.map((reason) => h("li", {}, reason)));
      }
    },
  };
}

function leadOf({ links, links_of_unicast: unicast, overhead }: NonNullable<Group["tree"]>): string {
  const saved = `${count(links)} links carry a copy of each packet; `
    + `separate unicast paths would use ${count(unicast)}.`;
  if (!overhead) {
    return saved;
  }
  const lists = overhead.lists_in_packets ? "receiver lists in packets" : "provisioned lists";
  return `${saved} ${count(overhead.octets)} octets of overhead per packet, ${lists}; the longest packet has `
    + `${count(overhead.longest_packet_octets)} octets, the smallest MTU is ${count(overhead.link_mtu)}.`;
}

/** The rows in the order of the tree: a node, its branches to receivers, then its children. */
function linesOf(nodes: TreeNode[]): Line[] {
  const children = new Map<string | undefined, TreeNode[]>();
  const names = new Set(nodes.map(({ name }) => name));
  for (const node of nodes) {
    const parent = node.parent !== undefined && names.has(node.parent) ? node.parent : undefined;
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const lines: Line[] = [];
  const add = (node: TreeNode, depth: number, above: Branch | null): void => {
    lines.push({ key: node.name, depth, node, branch: above });
    const below = children.get(node.name) ?? [];
    const loopbacks = new Map(node.branches.map((branch) => [branch.address, branch]));
    below.forEach((child) => add(child, depth + 1, loopbacks.get(child.loopback) ?? null));
    const ofNodes = new Set(below.map(({ loopback }) => loopback));
    node.branches.filter(({ address }) => !ofNodes.has(address)).forEach((branch) =>
      lines.push({ key: `${node.name} ${branch.address}`, depth: depth + 1, node, branch }));
  };
  (children.get(undefined) ?? []).forEach((node) => add(node, 0, null));
  return lines;
}

/** Packets sent again to a branch, and whether that goes on. */
function repairs(branch: Branch | null): string {
  if (branch?.packets_resent === undefined) {
    return "";
  }
  return branch.is_repairing ? `${count(branch.packets_resent)} repairing` : count(branch.packets_resent);
}

function lineOf(store: Store, { node, branch, key, depth }: Line): ReturnType<typeof row<Line>> {
  const isNode = key === node.name;
  const columns = cells(COLUMNS);
  if (isNode) {
    const open = (): void => store.set({ nodeName: node.name, node: null });
    columns[0]?.append(
      h("button", { type: "button", class: "link", onclick: open }, node.name),
      h("small", {}, ` ${node.role} `),
      h("code", {}, node.sid),
    );
  } else {
    columns[0]?.append(h("span", {}, nameOf(store, branch?.address ?? "")));
  }
  columns[0]?.style.setProperty("--depth", String(depth));
  columns[0]?.classList.add("indent");
  return row<Line>(columns, ({ branch }) => [
    branch?.expected_psn === undefined ? "" : count(branch.expected_psn),
    branch?.lag === undefined ? "" : count(branch.lag),
    branch ? count(branch.cnps) : "",
    repairs(branch),
  ], columns.slice(1));
}
