import { duration } from "../format.ts";
import type { Replay } from "../state/replay.ts";
import type { Store } from "../state/store.ts";
import { h, text } from "../ui/dom.ts";

/** Durations of a replay, seconds. */
const LENGTHS = [60, 20, 10, 5];
const DEFAULT_LENGTH = 20;
const STEPS = 1000;

/** The bar below the page while a recording is replayed. */
export function replayBar(store: Store, replay: Replay, close: () => void): HTMLElement {
  const begin = replay.recording.times[0] ?? 0;
  const length = Math.max(replay.recording.endNs - begin, 1);
  const play = h("button", { type: "button", class: "play", title: "Space" }, "Play");
  play.addEventListener("click", () => toggle(replay));
  const slider = h("input", {
    type: "range",
    min: 0,
    max: STEPS,
    value: 0,
    "aria-label": "Time",
    oninput: () => {
      replay.pause();
      replay.seek(begin + (Number(slider.value) / STEPS) * length);
    },
  });
  const time = h("output", {});
  const pace = h("select", {
    "aria-label": "Speed",
    onchange: () => { replay.paceNs = length / Number(pace.value); },
  }, ...LENGTHS.map((seconds) => {
    return h("option", { value: seconds, selected: seconds === DEFAULT_LENGTH }, `all in ${seconds} s`);
  }));
  replay.paceNs = length / DEFAULT_LENGTH;
  replay.onPlaying = (isPlaying) => text(play, isPlaying ? "Pause" : "Play");
  store.on(["replayNs"], () => {
    const { replayNs } = store.state;
    slider.value = String(Math.round(((replayNs - begin) / length) * STEPS));
    const words = `${duration(Math.round(replayNs))} of ${duration(replay.recording.endNs)}`;
    text(time, words);
    slider.setAttribute("aria-valuetext", words);
  });
  return h("div", { class: "replay-bar", role: "group", "aria-label": "Replay" },
    play, slider, time, pace, h("button", { type: "button", class: "quiet", onclick: close }, "Close"));
}

export function toggle(replay: Replay): void {
  if (replay.isPlaying) {
    replay.pause();
  } else {
    replay.play();
  }
}
