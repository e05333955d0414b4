import { ask as request } from "../api/client.ts";
import type { Branch, Group, NewReceiver, Receiver } from "../api/types.ts";
import { count, psnDistance } from "../format.ts";
import type { Store } from "../state/store.ts";
import { Chart, History, type Curve } from "../ui/chart.ts";
import { ask, confirm } from "../ui/dialog.ts";
import { cells, h, List, row, table, text, type Item } from "../ui/dom.ts";
import { attempt } from "../ui/notice.ts";
import { clockOf, timeOf } from "./link.ts";
import { treeView } from "./tree.ts";

const COLUMNS = ["Receiver", "State", "#QPN", "#Expected PSN", "#Lag", "#CNPs", ""];
const MAX_ROWS = 200;
const MAX_CURVES = 6;

/** The selected group: state, receivers, tree and operations. */
export function groupView(store: Store): HTMLElement {
  const title = h("h2", {});
  const state = h("span", { class: "badge" });
  const facts = h("dl", { class: "facts-list" });
  const waits = h("p", { class: "soft" });
  const failure = h("p", { class: "bad-text" });
  const action = (name: string, act: (group: Group) => void): HTMLButtonElement =>
    h("button", { type: "button", onclick: () => {
      if (store.state.group) {
        act(store.state.group);
      }
    } }, name);
  const buttons = [action("Add a receiver…", addReceiver), action("Commit", commit), action("Close…", close)];
  const { element: memberTable, body } = table("Receivers", COLUMNS);
  const members = new List<Line>(body, ({ receiver }) => receiver.address, ({ receiver }) =>
    memberRow(store, receiver.address));
  const hidden = h("p", { class: "soft" });
  const progress = new Progress(store);
  const tree = treeView(store);
  const heading = h("h3", {});
  const content = h("div", {},
    h("div", { class: "buttons" }, ...buttons), failure, waits,
    h("details", {}, h("summary", {}, "Source, addresses and numbers"), facts), progress.element,
    heading, memberTable, hidden, tree.element);
  const waiting = h("p", { class: "soft" }, "Waiting for the controller.");
  const element = h("div", { class: "group" },
    h("div", { class: "card-head" },
      h("button", {
        type: "button",
        class: "quiet back",
        onclick: () => store.set({ groupId: null, group: null }),
      }, "‹ Groups"),
      title, state),
    waiting, content);

  store.on(["group", "groupId", "canChange"], () => {
    const { group, groupId, canChange } = store.state;
    content.hidden = !group;
    waiting.hidden = group !== null;
    text(title, group?.name || `Group ${groupId ?? ""}`);
    text(state, group?.state ?? "");
    state.className = `badge ${group?.state ?? ""}`;
    buttons.forEach((button) => { button.disabled = !canChange; });
    const [, commitButton] = buttons;
    if (commitButton) {
      commitButton.hidden = group?.state !== "open";
    }
    if (!group) {
      progress.clear();
      return;
    }
    showFacts(facts, group);
    text(failure, group.failure ? `The last change was aborted: ${group.failure}` : "");
    text(waits, group.awaited.length > 0 ? `Waiting for ${group.awaited.join(", ")}.` : "");
    text(heading, `Receivers (${count(group.members.length)})`);
    const all = group.tree?.nodes.flatMap((node) => node.branches) ?? [];
    const branches = new Map(all.map((branch) => [branch.address, branch]));
    const lines = group.members.map((receiver): Line =>
      ({ receiver, branch: branches.get(receiver.address), canChange }));
    members.show(lines.slice(0, MAX_ROWS));
    memberTable.hidden = lines.length === 0;
    text(hidden, lines.length > MAX_ROWS ? `and ${count(lines.length - MAX_ROWS)} more` : "");
    progress.show(group);
    tree.show(group);
  });
  return element;
}

/** A receiver, with the branch to it if it is in the tree. */
interface Line {
  receiver: Receiver;
  branch: Branch | undefined;
  canChange: boolean;
}

/** The name of a receiver in the topology, or its address. */
export function nameOf(store: Store, address: string): string {
  return store.state.topology.nodes.find((node) => node.loopback === address)?.name ?? address;
}

function memberRow(store: Store, address: string): Item<Line> {
  const evict = h("button", {
    type: "button",
    class: "small",
    "aria-label": `Evict ${address}`,
    onclick: () => {
      const id = store.state.groupId;
      const path = `/v1/groups/${id}/receivers/${encodeURIComponent(address)}`;
      const lead = "The group continues without it, and no longer waits for its acknowledgements.";
      confirm(`Evict ${nameOf(store, address)}?`, lead, "Evict", () =>
        attempt(`${nameOf(store, address)} is being removed`, () => request("DELETE", path)));
    },
  }, "Evict");
  const columns = cells(COLUMNS);
  columns.at(-1)?.append(evict);
  const item = row<Line>(columns, ({ receiver, branch }) => [
    nameOf(store, address),
    receiver.state,
    `0x${receiver.qpn.toString(16)}`,
    branch?.expected_psn === undefined ? "" : count(branch.expected_psn),
    branch?.lag === undefined ? "" : count(branch.lag),
    branch ? count(branch.cnps) : "",
  ]);
  return {
    element: item.element,
    update(line) {
      item.update(line);
      evict.disabled = !line.canChange || line.receiver.state === "leaving";
    },
  };
}

function addReceiver(group: Group): void {
  ask("Add a receiver", "", [
    { name: "address", label: "Address", isNeeded: true },
    { name: "qpn", label: "QPN", kind: "number", isNeeded: true },
    ...(group.region ? [
      { name: "virtual_address", label: "Memory region: virtual address", kind: "number" as const, isNeeded: true },
      { name: "rkey", label: "Memory region: R_Key", kind: "number" as const, isNeeded: true },
    ] : []),
  ], "Add", (values) => {
    const receiver: NewReceiver = { qpn: Number(values["qpn"]), path_mtu: group.path_mtu };
    if (group.region) {
      receiver.region = { virtual_address: Number(values["virtual_address"]), rkey: Number(values["rkey"]) };
    }
    const path = `/v1/groups/${group.id}/receivers/${encodeURIComponent(values["address"] ?? "")}`;
    return attempt("The receiver is joining", () => request("PUT", path, receiver));
  });
}

function commit(group: Group): void {
  void attempt(`${group.name || `Group ${group.id}`} is being committed`, () =>
    request("POST", `/v1/groups/${group.id}/commit`, { wait_ms: 0 }));
}

function close(group: Group): void {
  const lead = "The nodes remove the group, and its source cannot send any more.";
  confirm(`Close ${group.name || `group ${group.id}`}?`, lead, "Close group", () =>
    attempt("The group is being closed", () => request("DELETE", `/v1/groups/${group.id}`)));
}

function showFacts(facts: HTMLElement, group: Group): void {
  const pairs: [string, string][] = [
    ["Source", `${group.source.address}, QPN 0x${group.source.qpn.toString(16)}`],
    ["Proxy Address", group.proxy],
    ["Designated QPN", `0x${group.designated_qpn.toString(16)}`],
    ["Initial PSN", count(group.initial_psn)],
    ["Path MTU", `${count(group.path_mtu)} octets`],
    ["Epoch", String(group.epoch)],
    ["Carries", group.region ? `WRITE to ${count(group.region.length)} octets, and SEND` : "SEND"],
  ];
  const line = JSON.stringify(pairs);
  if (facts.dataset["shown"] !== line) {
    facts.dataset["shown"] = line;
    facts.replaceChildren(...pairs.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
  }
}

/** The rate of acknowledged data, and the lag of each receiver. */
class Progress {
  readonly element: HTMLElement;
  readonly #store: Store;
  readonly #lags = new History();
  readonly #rates = new History();
  readonly #lagChart: Chart;
  readonly #rateChart: Chart;
  #group: number | null = null;
  #before: { time: number; psn: number } | null = null;

  constructor(store: Store) {
    this.#store = store;
    this.#lagChart = new Chart("Lag, packets", count, clockOf(store));
    this.#rateChart = new Chart("Acknowledged by all, packets/s", compact, clockOf(store));
    this.element = h("div", { class: "charts" }, this.#rateChart.element, this.#lagChart.element);
  }

  clear(): void {
    this.#group = null;
    this.#before = null;
    this.#lags.clear();
    this.#rates.clear();
  }

  show(group: Group): void {
    if (this.#group !== group.id) {
      this.clear();
      this.#group = group.id;
    }
    const time = this.#store.state.standing.kind === "replay" ? timeOf(this.#store) : Date.now() / 1e3;
    const receivers = new Set(group.members.map(({ address }) => address));
    const branches = (group.tree?.nodes ?? []).flatMap((node) => node.branches);
    const last = branches.filter(({ address }) => receivers.has(address));
    const curves = this.#curves(last);
    this.element.hidden = last.length === 0;
    if (last.length === 0) {
      return;
    }
    const lags = last.map(({ lag }) => lag ?? null);
    const most = lags.reduce<number>((most, lag) => Math.max(most, lag ?? 0), 0);
    this.#lags.push(time, last.length <= MAX_CURVES ? lags : [most, mean(lags)]);
    this.#lagChart.show(curves, this.#lags);
    this.#rates.push(time, [this.#rate(time, group)]);
    this.#rateChart.show([{ label: "packets a second", colour: 0 }], this.#rates);
  }

  #curves(last: Branch[]): Curve[] {
    return last.length <= MAX_CURVES
      ? last.map(({ address }, colour) => ({ label: nameOf(this.#store, address), colour }))
      : [{ label: "largest", colour: 0 }, { label: "mean", colour: 1 }];
  }

  /** The rate of the minimum PSN at the headend, which the source receives. */
  #rate(time: number, group: Group): number | null {
    const psns = group.tree?.nodes[0]?.branches.map(({ expected_psn }) => expected_psn) ?? [];
    if (psns.length === 0 || psns.some((psn) => psn === undefined)) {
      return null;
    }
    const done = Math.min(...psns.map((psn) => psnDistance(group.initial_psn, psn ?? 0)));
    const before = this.#before;
    this.#before = { time, psn: done };
    if (!before || before.time >= time) {
      return null;
    }
    return psnDistance(before.psn, done) >= 1 << 23 ? 0 : psnDistance(before.psn, done) / (time - before.time);
  }
}

function mean(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function compact(value: number): string {
  return value >= 1e6 ? `${(value / 1e6).toFixed(1)} M` : value >= 1e4 ? `${Math.round(value / 1e3)} k` : count(value);
}
