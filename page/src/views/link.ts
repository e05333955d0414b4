import type { TopologyLink } from "../api/types.ts";
import { clock, count, duration, rate } from "../format.ts";
import type { Store } from "../state/store.ts";
import { Chart, History } from "../ui/chart.ts";
import { h, text } from "../ui/dom.ts";

/** The time of the store's data on charts, seconds. */
export function timeOf(store: Store): number {
  const { standing, replayNs, topology } = store.state;
  return standing.kind === "replay" ? replayNs / 1e9 : topology.unix_ms / 1e3;
}

/** A time of `timeOf` as text on an axis. */
export function clockOf(store: Store): (time: number) => string {
  return (time) =>
    store.state.standing.kind === "replay" ? duration(Math.round(time * 1e9)) : clock(time * 1e3).slice(0, 8);
}

export interface LinkCard {
  element: HTMLElement;
  show(link: TopologyLink | null): void;
}

/** The selected link: its load over time. */
export function linkCard(store: Store, close: () => void): LinkCard {
  const title = h("h2", {});
  const facts = h("p", { class: "soft" });
  const history = new History();
  const chart = new Chart("Load by direction", (value) => rate(value), clockOf(store));
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
