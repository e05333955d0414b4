import type { StylesheetJson } from "cytoscape";
import type { Colours } from "./links.ts";
import { LOADS } from "./loads.ts";

function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Colours of links in the style sheet. */
export function colours(): Colours {
  return {
    loads: Array.from({ length: LOADS }, (_, load) => variable(`--load${load}`)),
    marked: variable("--accent"),
    selected: variable("--text"),
  };
}

/** Styles of nodes. Shape and outline carry the same information as the colour. */
export function styles(): StylesheetJson {
  const accent = variable("--accent");
  return [
    {
      selector: "node",
      style: {
        label: "data(id)",
        width: 18,
        height: 18,
        shape: "round-rectangle",
        "background-color": variable("--node"),
        "border-width": 1.5,
        "border-color": variable("--soft"),
        color: variable("--text"),
        "font-family": "system-ui, sans-serif",
        "font-size": 12,
        "min-zoomed-font-size": 8,
        "text-background-color": variable("--back"),
        "text-background-opacity": 0.75,
        "text-valign": "bottom",
        "text-margin-y": 3,
        "overlay-opacity": 0,
      },
    },
    { selector: ".edge", style: { shape: "ellipse" } },
    { selector: ".host", style: { shape: "diamond", width: 14, height: 14 } },
    { selector: ".marked", style: { "border-color": accent, "border-width": 3 } },
    {
      selector: ".drained",
      style: { "background-color": variable("--back"), "border-style": "dashed", "border-color": variable("--warn") },
    },
    { selector: ".dead", style: { "background-color": variable("--bad"), "border-color": variable("--bad") } },
    { selector: ".selected", style: { "background-color": accent, "border-color": variable("--text"), "z-index": 10 } },
  ];
}
