import type { TopologyLink } from "../api/types.ts";
import { clock, count, duration, rate } from "../format.ts";
import type { Store } from "../state/store.ts";
import { Chart, History } from "../ui/chart.ts";
import { h, text } from "../ui/dom.ts";

/** What time a chart of the store's data has, seconds. */
export function timeOf(store: Store): number {
  const { standing, replayNs, topology } = store.state;
  return standing.kind === "replay" ? replayNs / 1e9 : topology.unix_ms / 1e3;
}

/** A time of `timeOf`, as an axis has it. */
export function clockOf(store: Store): (time: number) => string {
  return (time) =>
    store.state.standing.kind === "replay" ? duration(Math.round(time * 1e9)) : clock(time * 1e3).slice(0, 8);
}

/** What shows a link. */
export interface LinkCard {
  element: HTMLElement;
  show(link: TopologyLink | null): void;
}

/** A link: what it carries, now and before. */
export function linkCard(store: Store, close: () => void): LinkCard {
  const title = h("h2", {});
  const facts = h("p", { class: "soft" });
  const history = new History();
  const chart = new Chart("Load, each way", (value) => rate(value), clockOf(store));
  const element = h("div", { class: "link" },
    h("div", { class: "card-head" }, title,
      h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: close }, "×")),
    facts, chart.element);
  element.hidden = true;
  let shown = "";
  return {
    element,
    show(link) {
      element.hidden = link === null;
      if (!link) {
        shown = "";
        return;
      }
      const [a, b] = link.ends;
      const name = `${a} – ${b}`;
      if (name !== shown) {
        history.clear();
        shown = name;
      }
      const [there, back] = link.octets_per_second;
      text(title, name);
      const groups = `${count(link.groups)} ${link.groups === 1 ? "group" : "groups"}`;
      text(facts, `${rate(there)} to ${b}, ${rate(back)} to ${a} · MTU ${link.mtu} · ${groups}`);
      history.push(timeOf(store), [there, back]);
      chart.show([{ label: `to ${b}`, colour: 0 }, { label: `to ${a}`, colour: 1 }], history);
    },
  };
}
