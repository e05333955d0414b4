import { ReasonRows } from "../drops/rows.ts";
import { count } from "../format.ts";
import type { Store } from "../state/store.ts";
import { h, table, text } from "../ui/dom.ts";

const COLUMNS = ["Reason", "#Packets", "#Since opened", "Most at"];

/** A reason, summed over all nodes. */
interface Line {
  reason: string;
  total: number;
  since: number;
  most: string;
}

/** Drops by reason and node. */
export function drops(store: Store): HTMLElement {
  const { element: rows, body } = table("Drops by reason", COLUMNS);
  const list = new ReasonRows<Line>(body, "why", COLUMNS, ({ reason, total, since, most }) =>
    [reason, count(total), since > 0 ? `+${count(since)}` : "", most]);
  const none = h("p", { class: "soft" });
  const first = new Map<string, number>();
  const element = h("section", { class: "panel drops" },
    h("p", { class: "soft" }, "Drops since the start of each node. A reason opens its description."),
    rows, none);
  store.on(["drops", "standing"], () => {
    const lines = [...store.state.drops].map(([reason, nodes]): Line => {
      const total = [...nodes.values()].reduce((sum, packets) => sum + packets, 0);
      // A restarted node counts from zero.
      first.set(reason, Math.min(first.get(reason) ?? total, total));
      const most = [...nodes].filter(([, packets]) => packets > 0).sort(([, a], [, b]) => b - a).slice(0, 3);
      const names = most.map(([name, packets]) => `${name} ${count(packets)}`).join(", ");
      return { reason, total, since: total - (first.get(reason) ?? total), most: names };
    }).filter(({ total }) => total > 0);
    list.show(lines.sort((a, b) => b.since - a.since || b.total - a.total));
    rows.hidden = lines.length === 0;
    none.hidden = lines.length > 0;
    text(none, "No drops.");
  });
  return element;
}
