import "./style.css";
import { Live } from "./state/live.ts";
import { NoRecording, Recording } from "./state/recording.ts";
import { Replay } from "./state/replay.ts";
import { Store, TABS } from "./state/store.ts";
import { h } from "./ui/dom.ts";
import { noticeBoard, notify } from "./ui/notice.ts";
import { beginTheme } from "./ui/theme.ts";
import { drops } from "./views/drops.ts";
import { events } from "./views/events.ts";
import { flows } from "./views/flows.ts";
import { header, tabs } from "./views/frame.ts";
import { groups } from "./views/groups.ts";
import { network } from "./views/network.ts";
import { replayBar, toggle } from "./views/replay.ts";

const USUAL_INTERVAL_MS = 500;
const LEAST_INTERVAL_MS = 50;

const parameters = new URLSearchParams(location.search);
const interval = Math.max(Number(parameters.get("interval")) || USUAL_INTERVAL_MS, LEAST_INTERVAL_MS);
const store = new Store();
let live: Live | null = null;
let replay: Replay | null = null;
let bar: HTMLElement | null = null;

beginTheme();
const panels = {
  network: network(store, () => replay?.recording.root),
  groups: groups(store, () => live),
  flows: flows(store),
  drops: drops(store),
  events: events(store),
};
const page = document.getElementById("page") ?? document.body;
const side = h("div", { class: "side" }, panels.groups, panels.flows, panels.drops, panels.events);
page.append(
  header(store, { openRecording: (file) => void file.text().then(openText), renew: goLive }),
  h("main", {}, panels.network, side),
  tabs(store, panels),
  noticeBoard(),
);

/** Connects to the controller. */
function goLive(): void {
  leave();
  store.set({
    standing: { kind: "waiting", text: "connecting" },
    canChange: true,
    groupId: null,
    group: null,
    nodeName: null,
    node: null,
    flow: null,
    events: [],
    groups: [],
    groupsTotal: 0,
    drops: new Map(),
  });
  live = new Live(store, interval);
  live.start();
}

function leave(): void {
  live?.stop();
  replay?.stop();
  bar?.remove();
  document.body.classList.remove("replaying");
  [live, replay, bar] = [null, null, null];
}

/** Shows why there is no replay; a page that shows nothing else goes live. */
function refuse(title: string, reason: string): void {
  notify(title, reason, true);
  if (!live && !replay) {
    goLive();
  }
}

/** Replays a recording, given as text. */
function openText(text: string): void {
  let recording;
  try {
    recording = new Recording(text);
  } catch (error) {
    if (!(error instanceof NoRecording)) {
      throw error;
    }
    refuse("Invalid recording", error.message);
    return;
  }
  leave();
  replay = new Replay(store, recording);
  bar = replayBar(store, replay, goLive);
  page.append(bar);
  document.body.classList.add("replaying");
}

// A replay depends on the selection; a live view requests it from the controller.
store.on(["groupId", "nodeName"], () => {
  const { groupId, group, nodeName, node } = store.state;
  if (groupId !== (group?.id ?? null) || nodeName !== (node?.name ?? null)) {
    replay?.show();
  }
});

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (target.closest("input, select, textarea, dialog") && event.key !== "Escape") {
    return;
  }
  const tab = TABS[Number(event.key) - 1];
  if (event.altKey || event.ctrlKey || event.metaKey) {
    return;
  }
  if (tab) {
    store.set({ tab });
  } else if (event.key === "/") {
    document.querySelector<HTMLInputElement>(".find")?.focus();
    event.preventDefault();
  } else if (event.key === " " && replay && !target.closest("button, summary")) {
    toggle(replay);
    event.preventDefault();
  }
});

document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  const file = event.dataTransfer?.files[0];
  if (file) {
    void file.text().then(openText);
  }
});

const wanted = parameters.get("replay");
if (wanted === null) {
  goLive();
} else {
  fetch(wanted).then(async (response) => {
    if (!response.ok) {
      throw new Error(`status ${response.status}`);
    }
    openText(await response.text());
  }).catch((error: unknown) => refuse("The recording cannot be loaded", `${wanted}: ${String(error)}`));
}
