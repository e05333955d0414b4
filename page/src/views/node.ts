import { ask } from "../api/client.ts";
import type { Node, NodeIdentity, TopologyLink, TopologyNode } from "../api/types.ts";
import { ReasonRows } from "../drops/rows.ts";
import { count, rate } from "../format.ts";
import type { Store } from "../state/store.ts";
import { Chart, History } from "../ui/chart.ts";
import { confirm } from "../ui/dialog.ts";
import { h, table, text } from "../ui/dom.ts";
import { attempt } from "../ui/notice.ts";
import { clockOf, timeOf } from "./link.ts";

const DROPS = ["Drop reason", "#Packets"];

/** The selected node: state, traffic, drops, and its drain. */
export function nodeCard(store: Store): { element: HTMLElement } {
  const title = h("h2", {});
  const state = h("p", {});
  const unconfirmed = h("p", { class: "bad-text" });
  const facts = h("dl", { class: "facts-list" });
  const history = new History();
  const chart = new Chart("Traffic on its links", (value) => rate(value), clockOf(store));
  const dropTable = table("Drops of this node", DROPS);
  const drops = new ReasonRows<{ reason: string; packets: number }>(dropTable.body, "why-here", DROPS,
    ({ reason, packets }) => [reason, count(packets)]);
  const noDrops = h("p", { class: "soft" }, "No drops.");
  const programs = h("details", {}, h("summary", {}, "Programs of its flows"));
  const drain = h("button", { type: "button", class: "drain" });
  const element = h("div", { class: "node" },
    h("div", { class: "card-head" }, title,
      h("button", {
        type: "button",
        class: "quiet",
        "aria-label": "Close",
        onclick: () => store.set({ nodeName: null, node: null }),
      }, "×")),
    state, unconfirmed, h("div", { class: "buttons" }, drain), facts,
    chart.element, dropTable.element, noDrops, programs);
  let shown: string | null = null;

  drain.addEventListener("click", () => {
    const name = store.state.nodeName ?? "";
    const isDrained = topologyNode(store, name)?.is_drained ?? false;
    const change = (): Promise<boolean> =>
      attempt(isDrained ? `${name} is admitted to trees again` : `${name} is drained`, () =>
        ask("PUT", `/v1/nodes/${encodeURIComponent(name)}/drain`, { drained: !isDrained }));
    if (isDrained) {
      void change();
    } else {
      const lead = "New trees avoid it; existing trees are rerouted where there is another path.";
      confirm(`Drain ${name}?`, lead, "Drain", change);
    }
  });

  store.on(["nodeName", "node", "topology", "canChange"], () => {
    const { nodeName, node, topology, canChange } = store.state;
    const isInTopology = nodeName !== null && topologyNode(store, nodeName) !== undefined;
    const brief = nodeName === null ? undefined : topologyNode(store, nodeName) ?? outside(node);
    element.hidden = !brief;
    if (!brief) {
      return;
    }
    if (shown !== brief.name) {
      shown = brief.name;
      history.clear();
    }
    text(title, brief.name);
    text(state, isInTopology ? words(brief, node) : "It has no session, since its registration is not confirmed.");
    unconfirmed.hidden = !node?.unconfirmed;
    text(unconfirmed, node?.unconfirmed
      ? `Not confirmed: ${identityWords(node.unconfirmed)}. Confirm it by srdma controller node confirm ${node.name}.`
      : "");
    text(drain, brief.is_drained ? "End the drain" : "Drain…");
    drain.disabled = !canChange;
    drain.hidden = !isInTopology || (brief.is_host ?? false) || (node?.is_removing ?? false);
    showFacts(facts, brief, node);
    const [out, back] = traffic(topology.links, brief.name);
    history.push(timeOf(store), [back, out]);
    chart.show([{ label: "to it", colour: 0 }, { label: "from it", colour: 1 }], history);
    const entries = Object.entries(node?.status?.drops ?? {}).filter(([, packets]) => packets > 0);
    drops.show(entries.sort(([, a], [, b]) => b - a).map(([reason, packets]) => ({ reason, packets })));
    dropTable.element.hidden = entries.length === 0;
    noDrops.hidden = entries.length > 0 || !node;
    const written = node?.status?.programs ?? [];
    programs.hidden = written.length === 0;
    const list = written.map((program) => h("code", {}, program));
    programs.replaceChildren(h("summary", {}, `Programs of its flows (${written.length})`), ...list);
  });
  return { element };
}

function topologyNode(store: Store, name: string): TopologyNode | undefined {
  return store.state.topology.nodes.find((node) => node.name === name);
}

/** A node that is not confirmed is not in the topology. */
function outside(node: Node | null): TopologyNode | undefined {
  return node ? { ...node, is_edge: false, drops: 0 } : undefined;
}

function words(brief: TopologyNode, node: Node | null): string {
  if (brief.is_host) {
    return "A host.";
  }
  const state = brief.is_alive ? "Alive" : "Dead";
  if (node?.is_removing) {
    return `${state}; being removed: it is deleted when no group has it.`;
  }
  const drained = brief.is_drained ? "; drained: new trees avoid it." : ".";
  return state + drained;
}

function identityWords({ loopback, end_mt, replication, hosts }: NodeIdentity): string {
  const parts: [string, string | undefined][] = [
    ["loopback", loopback],
    ["End.MT SID", end_mt],
    ["Replication SIDs", replication],
    ["hosts", hosts.length > 0 ? hosts.join(", ") : undefined],
  ];
  return parts.filter(([, value]) => value !== undefined).map(([term, value]) => `${term} ${value}`).join(", ");
}

function showFacts(facts: HTMLElement, brief: TopologyNode, node: Node | null): void {
  const pairs: [string, string | undefined][] = [
    ["Loopback", brief.loopback],
    ["End.MT SID", node?.end_mt],
    ["Replication SIDs", node?.replication],
    ["Hosts", node && node.hosts.length > 0 ? node.hosts.join(", ") : undefined],
    ["Protocol", node?.protocol === undefined ? undefined : String(node.protocol)],
    ["Groups", node ? count(node.groups) : undefined],
    ["Ports", node?.status ? portWords(node.status.ports) : undefined],
    ["Drops", count(brief.drops)],
  ];
  const shown = pairs.filter((pair): pair is [string, string] => pair[1] !== undefined);
  const line = JSON.stringify(shown);
  if (facts.dataset["shown"] !== line) {
    facts.dataset["shown"] = line;
    facts.replaceChildren(...shown.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
  }
}

function portWords(ports: { name: string; is_up: boolean }[]): string {
  const down = ports.filter((port) => !port.is_up).map((port) => port.name);
  return down.length === 0 ? `${ports.length}, all up` : `${ports.length}, down: ${down.join(", ")}`;
}

function traffic(links: TopologyLink[], name: string): [number, number] {
  let [out, back] = [0, 0];
  for (const { ends, octets_per_second: [there, here] } of links) {
    if (ends[0] === name) {
      out += there;
      back += here;
    } else if (ends[1] === name) {
      out += here;
      back += there;
    }
  }
  return [out, back];
}
