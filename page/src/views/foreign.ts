import type { ForeignGroup } from "../api/types.ts";
import { count } from "../format.ts";
import type { Store } from "../state/store.ts";
import { cells, h, List, row, table, text } from "../ui/dom.ts";

const COLUMNS = ["#Id", "State", "Proxy Address", "Store"];

/** Groups that nodes have and the controller's store does not. */
export function foreignGroups(store: Store): HTMLElement {
  const heading = h("h3", {});
  const { element: rows, body } = table("Foreign groups", COLUMNS);
  const list = new List<ForeignGroup>(body, ({ store, group }) => `${store} ${group}`, () =>
    row<ForeignGroup>(cells(COLUMNS), ({ store, group, proxy, ...standing }) =>
      [String(group), stateOf(standing), proxy, store]));
  const lead = h("p", { class: "soft" },
    "Nodes have them, the controller's store does not: srdma group foreign adopts or removes them.");
  const element = h("div", { class: "foreign" }, heading, lead, rows);
  store.on(["foreign"], () => {
    const { foreign } = store.state;
    element.hidden = foreign.length === 0;
    text(heading, `Foreign groups (${count(foreign.length)})`);
    list.show(foreign);
  });
  return element;
}

function stateOf({ is_removing, is_adoptable }: Pick<ForeignGroup, "is_removing" | "is_adoptable">): string {
  return is_removing ? "being removed" : is_adoptable ? "adoptable" : "of another store";
}
