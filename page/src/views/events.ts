import type { ControllerEvent } from "../api/types.ts";
import { clock, duration } from "../format.ts";
import type { Store } from "../state/store.ts";
import { h, List, text } from "../ui/dom.ts";
import { nameOf } from "./group.ts";

/** Events, the newest first. */
export function events(store: Store): HTMLElement {
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events" });
  const items = h("ol", { class: "events" });
  const none = h("p", { class: "soft" }, "No events yet.");
  // Numbers begin again at each start of the controller.
  const list = new List<ControllerEvent>(items, ({ number, unix_ms, kind }) => `${unix_ms} ${number} ${kind}`,
    (event) => eventItem(store, event));
  const element = h("section", { class: "panel events-panel" }, h("div", { class: "bar" }, filter), items, none);
  const show = (): void => {
    const wanted = filter.value.trim().toLowerCase();
    const seen = store.state.events.filter((event) => describe(store, event).toLowerCase().includes(wanted));
    list.show([...seen].reverse());
    none.hidden = seen.length > 0;
  };
  filter.addEventListener("input", show);
  store.on(["events"], show);
  return element;
}

type EventItem = { element: HTMLElement; update(event: ControllerEvent): void };

function eventItem(store: Store, event: ControllerEvent): EventItem {
  const isReplay = store.state.standing.kind === "replay";
  const when = isReplay ? duration(Math.round(event.unix_ms * 1e6)) : clock(event.unix_ms);
  const words = h("span", {});
  const open = event.group !== undefined
    ? link(`group ${event.group}`, () => openGroup(store, event.group ?? 0))
    : event.node !== undefined
      ? link(event.node, () => store.set({ nodeName: event.node ?? null, node: null }))
      : null;
  const element = h("li", { class: event.kind }, h("time", { class: "soft" }, when), open, words);
  return { element, update: (now) => text(words, describe(store, now)) };
}

function link(name: string, open: () => void): HTMLElement {
  return h("button", { type: "button", class: "link", onclick: open }, name);
}

function openGroup(store: Store, id: number): void {
  const isOther = id !== store.state.groupId;
  store.set({ groupId: id, tab: "groups", flow: null, ...(isOther ? { group: null } : {}) });
}

/** The text of an event, without its subject. */
export function describe(store: Store, event: ControllerEvent): string {
  const receiver = event.receiver === undefined ? "" : nameOf(store, event.receiver);
  switch (event.kind) {
    case "group-created": return "created, open for receivers";
    case "receiver-joining": return `${receiver} has requested to join`;
    case "group-changed": return `every node has committed epoch ${event.epoch}`;
    case "change-aborted": return `change aborted: ${event.reason}`;
    case "receiver-removed": return `${receiver} was removed at every node`;
    case "eviction-requested": {
      const answer = event.refusal === undefined ? "granted" : `refused: ${event.refusal}`;
      return `an edge has requested the eviction of ${receiver} (${event.cause}): ${answer}`;
    }
    case "group-closed": return "closed, removed at every node";
    case "node-up": return "has registered";
    case "node-down": return "is dead: its timeout has passed";
    case "node-drained": return event.drained ? "is drained: new trees avoid it" : "is admitted to trees again";
    case "node-unconfirmed": return "has registered what is not confirmed";
    case "node-confirmed": return "is confirmed";
    case "node-renamed": return `is now ${event.name}`;
    case "node-removed": return "was removed";
    case "job-placed": return `job ${event.job} was placed`;
    case "job-removed": return `job ${event.job} was removed`;
    case "events-missed":
      return event.missed === undefined ? "the controller was restarted" : `${event.missed} events were missed`;
    default: return event.kind.replaceAll("-", " ");
  }
}
