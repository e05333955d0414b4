import { token } from "../api/client.ts";
import { TABS, type Store, type Tab } from "../state/store.ts";
import { ask } from "../ui/dialog.ts";
import { h, text } from "../ui/dom.ts";
import { count } from "../format.ts";
import { nextTheme, themeName } from "../ui/theme.ts";

const NAMES: Record<Tab, string> = {
  network: "Network",
  groups: "Groups",
  flows: "Flows",
  drops: "Drops",
  events: "Events",
};

/** Actions of the buttons in the header. */
export interface Actions {
  openRecording(file: File): void;
  renew(): void;
}

function of(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

/** The header: connection, counts, recording, token and theme. */
export function header(store: Store, actions: Actions): HTMLElement {
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  const standing = h("span", {});
  const facts = h("span", { class: "facts soft" });
  const file = h("input", {
    type: "file",
    accept: ".jsonl,.json,.ndjson",
    class: "hidden",
    tabindex: "-1",
    "aria-label": "Recording",
    onchange: () => {
      const chosen = file.files?.[0];
      if (chosen) {
        actions.openRecording(chosen);
      }
      file.value = "";
    },
  });
  const themeWords = h("span", { class: "theme-name" }, themeName());
  const theme = h("button", {
    type: "button",
    class: "quiet",
    "aria-label": "Theme",
    title: "System, light or dark",
    onclick: () => text(themeWords, nextTheme()),
  }, "◐ ", themeWords);
  const access = h("button", {
    type: "button",
    class: "quiet",
    onclick: () => ask("Access", "The bearer token for the controller, kept until this tab is closed.",
      [{ name: "token", label: "Bearer token", kind: "password", value: token.read() }], "Apply", async (values) => {
        token.write(values["token"] ?? "");
        actions.renew();
        return true;
      }),
  }, "Token");
  const element = h("header", {},
    h("h1", {}, "srdma"),
    h("p", { class: "standing", role: "status" }, dot, standing),
    facts,
    h("div", { class: "tools" },
      h("button", { type: "button", class: "quiet", onclick: () => file.click() }, "Replay…"), file, access, theme));
  store.on(["standing"], () => {
    const { kind, text: words } = store.state.standing;
    dot.className = `dot ${kind}`;
    text(standing, words);
    standing.title = words;
  });
  store.on(["topology", "groupsTotal"], () => {
    const { topology: { nodes, links }, groupsTotal } = store.state;
    const dead = nodes.filter((node) => !node.is_alive).length;
    const parts = [of(nodes.length, "node"), of(links.length, "link"), of(groupsTotal, "group")];
    text(facts, [...parts, ...(dead > 0 ? [`${count(dead)} dead`] : [])].join(" · "));
  });
  return element;
}

/** The tabs and their panels. A wide window always shows the network. */
export function tabs(store: Store, panels: Record<Tab, HTMLElement>): HTMLElement {
  const buttons = TABS.map((tab, at) => h("button", {
    type: "button",
    role: "tab",
    id: `tab-${tab}`,
    "aria-controls": `panel-${tab}`,
    class: `tab-${tab}`,
    title: `${NAMES[tab]} (${at + 1})`,
    onclick: () => store.set({ tab }),
  }, NAMES[tab]));
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, ...buttons);
  list.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const seen = buttons.filter((button) => button.offsetParent !== null);
    const at = seen.indexOf(document.activeElement as HTMLButtonElement);
    if (move !== undefined && at >= 0) {
      const next = seen[(at + move + seen.length) % seen.length];
      next?.focus();
      next?.click();
      event.stopPropagation();
    }
  });
  for (const tab of TABS) {
    const panel = panels[tab];
    panel.id = `panel-${tab}`;
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
    panel.setAttribute("role", "tabpanel");
  }
  store.on(["tab"], () => {
    TABS.forEach((tab, at) => {
      const isChosen = tab === store.state.tab;
      buttons[at]?.setAttribute("aria-selected", String(isChosen));
      buttons[at]?.setAttribute("tabindex", isChosen ? "0" : "-1");
      panels[tab].classList.toggle("chosen", isChosen);
    });
  });
  return list;
}
