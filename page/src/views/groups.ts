import { ask as request } from "../api/client.ts";
import type { Group, GroupSummary, NewGroup } from "../api/types.ts";
import { count } from "../format.ts";
import type { Live } from "../state/live.ts";
import type { Store } from "../state/store.ts";
import { ask, type Field, type Values } from "../ui/dialog.ts";
import { cells, h, List, row, table, text } from "../ui/dom.ts";
import { attempt } from "../ui/notice.ts";
import { foreignGroups } from "./foreign.ts";
import { groupView } from "./group.ts";

const COLUMNS = ["#Id", "Name", "State", "#Receivers", "#Epoch"];
const MORE = 400;

/** The list of groups, or the selected group. */
export function groups(store: Store, live: () => Live | null): HTMLElement {
  const hint = "Filter by name, id or state";
  const filter = h("input", { type: "search", placeholder: hint, "aria-label": "Filter groups" });
  const create = h("button", { type: "button", class: "main", onclick: () => createGroup(store) }, "Create a group…");
  const { element: rows, body } = table("Groups", COLUMNS);
  const list = new List<GroupSummary>(body, ({ id }) => String(id), (group) => groupRow(store, group));
  const none = h("p", { class: "soft" });
  const more = h("button", {
    type: "button",
    onclick: () => {
      store.set({ groupsWanted: store.state.groupsWanted + MORE });
      void live()?.groups();
    },
  });
  const all = h("div", { class: "list" }, h("div", { class: "bar" }, filter, create), rows, none, more,
    foreignGroups(store));
  const one = groupView(store);
  const element = h("section", { class: "panel groups" }, all, one);

  const show = (): void => {
    const { groups, groupsTotal, canChange, groupId } = store.state;
    all.hidden = groupId !== null;
    one.hidden = groupId === null;
    create.disabled = !canChange;
    const wanted = filter.value.trim().toLowerCase();
    const seen = groups.filter(({ id, name, state, tenant }) =>
      [String(id), name.toLowerCase(), state, tenant.toLowerCase()].some((word) => word.includes(wanted)));
    list.show(seen);
    rows.hidden = seen.length === 0;
    none.hidden = seen.length > 0;
    text(none, groups.length === 0 ? "No groups." : "No group has this name, id or state.");
    more.hidden = groups.length >= groupsTotal;
    text(more, `More (${count(groups.length)} of ${count(groupsTotal)})`);
  };
  filter.addEventListener("input", show);
  store.on(["groups", "groupsTotal", "canChange", "groupId"], show);
  return element;
}

function groupRow(store: Store, group: GroupSummary): ReturnType<typeof row<GroupSummary>> {
  const open = (): void => store.set({ groupId: group.id, group: null, flow: null });
  const columns = cells(COLUMNS);
  const name = h("button", { type: "button", class: "link", onclick: open });
  columns[1]?.append(name);
  return row<GroupSummary>(
    columns,
    ({ id, name, state, receivers, epoch }) =>
      [String(id), name || `group ${id}`, state, count(receivers), String(epoch)],
    columns.map((cell, at) => (at === 1 ? name : cell)),
  );
}

const FIELDS: Field[] = [
  { name: "name", label: "Name", hint: "Display name; optional." },
  { name: "address", label: "Source address", isNeeded: true },
  { name: "qpn", label: "Source QPN", kind: "number", isNeeded: true },
  { name: "designated_qpn", label: "Designated QPN", kind: "number", isNeeded: true, value: "0x123" },
  { name: "initial_psn", label: "Initial PSN", kind: "number", isNeeded: true, value: "0" },
  { name: "path_mtu", label: "Path MTU", choices: ["256", "512", "1024", "2048", "4096"], value: "4096" },
  { name: "proxy", label: "Proxy Address", hint: "Optional: default from the tenant's pool." },
  { name: "base", label: "Region: virtual address", kind: "number", hint: "Optional: without a region SEND only." },
  { name: "length", label: "Region: length, octets", kind: "number" },
  { name: "rkey", label: "Region: R_Key", kind: "number" },
];

function createGroup(store: Store): void {
  const lead = "Receivers may join before and after it is committed.";
  ask("Create a group", lead, FIELDS, "Create", async (values) => {
    let id: number | null = null;
    const isDone = await attempt("Group created", async () => {
      id = (await request<Group>("POST", "/v1/groups", newGroup(values))).id;
    });
    if (id !== null) {
      store.set({ groupId: id, group: null });
    }
    return isDone;
  });
}

/** The request of a form. */
export function newGroup(values: Values): NewGroup {
  const value = (name: string): string => values[name] ?? "";
  const group: NewGroup = {
    source: { address: value("address"), qpn: Number(value("qpn")) },
    designated_qpn: Number(value("designated_qpn")),
    initial_psn: Number(value("initial_psn")),
    path_mtu: Number(value("path_mtu")),
  };
  if (value("name")) {
    group.name = value("name");
  }
  if (value("proxy")) {
    group.proxy = value("proxy");
  }
  if (value("base") || value("length") || value("rkey")) {
    group.region = { base: Number(value("base")), length: Number(value("length")), rkey: Number(value("rkey")) };
  }
  return group;
}
