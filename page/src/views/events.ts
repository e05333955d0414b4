import type { News } from "../api/types.ts";
import { clock, duration } from "../format.ts";
import type { Store } from "../state/store.ts";
import { h, List, text } from "../ui/dom.ts";
import { nameOf } from "./group.ts";

/** What has happened, the newest first. */
export function events(store: Store): HTMLElement {
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events" });
  const items = h("ol", { class: "events" });
  const none = h("p", { class: "soft" }, "Nothing has happened yet.");
  // Another start of the controller counts anew.
  const list = new List<News>(items, ({ number, unix_ms, what }) => `${unix_ms} ${number} ${what}`,
    (news) => eventItem(store, news));
  const element = h("section", { class: "panel events-panel" }, h("div", { class: "bar" }, filter), items, none);
  const show = (): void => {
    const wanted = filter.value.trim().toLowerCase();
    const seen = store.state.events.filter((news) => describe(store, news).toLowerCase().includes(wanted));
    list.show([...seen].reverse());
    none.hidden = seen.length > 0;
  };
  filter.addEventListener("input", show);
  store.on(["events"], show);
  return element;
}

function eventItem(store: Store, news: News): { element: HTMLElement; update(news: News): void } {
  const isReplay = store.state.standing.kind === "replay";
  const when = isReplay ? duration(Math.round(news.unix_ms * 1e6)) : clock(news.unix_ms);
  const words = h("span", {});
  const open = news.group !== undefined
    ? link(`group ${news.group}`, () => openGroup(store, news.group ?? 0))
    : news.node !== undefined
      ? link(news.node, () => store.set({ nodeName: news.node ?? null, node: null }))
      : null;
  const element = h("li", { class: news.what }, h("time", { class: "soft" }, when), open, words);
  return { element, update: (now) => text(words, describe(store, now)) };
}

function link(name: string, open: () => void): HTMLElement {
  return h("button", { type: "button", class: "link", onclick: open }, name);
}

function openGroup(store: Store, id: number): void {
  const isOther = id !== store.state.groupId;
  store.set({ groupId: id, tab: "groups", flow: null, ...(isOther ? { group: null } : {}) });
}

/** An event in words; what it is about stands before them. */
export function describe(store: Store, news: News): string {
  const receiver = news.receiver === undefined ? "" : nameOf(store, news.receiver);
  switch (news.what) {
    case "group-created": return "created; it takes receivers";
    case "receiver-joining": return `${receiver} asks to join`;
    case "group-changed": return `every node has epoch ${news.epoch}`;
    case "change-given-up": return `change given up: ${news.reason}`;
    case "receiver-gone": return `${receiver} is out, at every node`;
    case "eviction-wanted": {
      const answer = news.refusal === undefined ? "granted" : `refused: ${news.refusal}`;
      return `an edge asks to evict ${receiver} (${news.cause}): ${answer}`;
    }
    case "group-closed": return "closed; no node has it any more";
    case "node-up": return "is heard";
    case "node-lost": return "was silent for too long";
    case "node-drained": return news.drained ? "is drained: new trees go round it" : "takes trees again";
    case "job-placed": return `job ${news.job} was placed`;
    case "job-removed": return `job ${news.job} was removed`;
    case "events-missed":
      return news.missed === undefined ? "the controller was started anew" : `${news.missed} events were missed`;
    default: return news.what.replaceAll("-", " ");
  }
}
