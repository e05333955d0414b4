// The value under the pointer, or at the cursor that the arrow keys move, of every plot with data.
"use strict";
for (const svg of document.querySelectorAll("svg[data-x]")) {
  const axis = (text) => {
    const [kind, least, greatest, from, to, ...unit] = text.split(" ");
    return { log: kind === "log", least: +least, greatest: +greatest, from: +from, to: +to, unit: unit.join(" ") };
  };
  const value = (axis, at) => {
    const share = (at - axis.from) / (axis.to - axis.from);
    return axis.log ? axis.least * Math.pow(axis.greatest / axis.least, share)
      : axis.least + share * (axis.greatest - axis.least);
  };
  const shown = (axis, at) => {
    const text = Number(value(axis, at).toPrecision(3)).toLocaleString("en");
    return axis.unit ? text + "\u00a0" + axis.unit : text;
  };
  const x = axis(svg.dataset.x), y = axis(svg.dataset.y);
  const lines = Array.from(svg.querySelectorAll("path[data-name]"), (path) => ({
    name: path.dataset.name,
    points: (path.getAttribute("d").match(/-?[\d.]+ -?[\d.]+/g) || []).map((pair) => pair.split(" ").map(Number)),
  }));
  const cursor = svg.querySelector(".cursor"), readout = svg.parentElement.querySelector(".readout");
  let place = (x.from + x.to) / 2;
  const show = (at) => {
    place = Math.min(Math.max(at, x.from), x.to);
    cursor.setAttribute("d", `M${place} ${y.to}V${y.from}`);
    const told = lines.map(({ name, points }) => {
      const before = points.filter((point) => point[0] <= place + 0.05).pop();
      return before ? `${name} ${shown(y, before[1])}` : `${name} –`;
    });
    readout.textContent = `${svg.dataset.xname} ${shown(x, place)}: ${told.join(", ")}`;
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    show((event.clientX - box.left) / box.width * svg.viewBox.baseVal.width);
  });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2, PageDown: -20, PageUp: 20 }[event.key];
    if (step) {
      event.preventDefault();
      show(place + step);
    }
  });
}
