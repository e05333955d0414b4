import { ReasonRows } from "../drops/rows.ts";
import { count } from "../format.ts";
import type { Store } from "../state/store.ts";
import { h, table, text } from "../ui/dom.ts";

const COLUMNS = ["Reason", "#Packets", "#Since shown", "Most at"];

/** A reason, over all nodes. */
interface Line {
  reason: string;
  total: number;
  since: number;
  most: string;
}

/** Why packets were dropped, and where. */
export function drops(store: Store): HTMLElement {
  const { element: rows, body } = table("Drops by reason", COLUMNS);
  const list = new ReasonRows<Line>(body, "why", COLUMNS, ({ reason, total, since, most }) =>
    [reason, count(total), since > 0 ? `+${count(since)}` : "", most]);
  const none = h("p", { class: "soft" });
  const first = new Map<string, number>();
  const element = h("section", { class: "panel drops" },
    h("p", { class: "soft" }, "What the nodes have dropped since they started. A reason opens what it means."),
    rows, none);
  store.on(["drops", "standing"], () => {
    const lines = [...store.state.drops].map(([reason, nodes]): Line => {
      const total = [...nodes.values()].reduce((sum, packets) => sum + packets, 0);
      // A node that has started anew counts from nothing.
      first.set(reason, Math.min(first.get(reason) ?? total, total));
      const most = [...nodes].filter(([, packets]) => packets > 0).sort(([, a], [, b]) => b - a).slice(0, 3);
      const names = most.map(([name, packets]) => `${name} ${count(packets)}`).join(", ");
      return { reason, total, since: total - (first.get(reason) ?? total), most: names };
    }).filter(({ total }) => total > 0);
    list.show(lines.sort((a, b) => b.since - a.since || b.total - a.total));
    rows.hidden = lines.length === 0;
    none.hidden = lines.length > 0;
    text(none, "Nothing was dropped.");
  });
  return element;
}
