import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { h } from "./dom.ts";

/** A line of a chart. */
export interface Curve {
  label: string;
  /** Index into the colours of lines. */
  colour: number;
}

const HEIGHT = 130;
const MOST_POINTS = 600;

/** Values over time; each column has one value for each time. */
export class History {
  times: number[] = [];
  columns: (number | null)[][] = [];

  /** Adds values at a time; later values are removed. */
  push(time: number, values: (number | null)[]): void {
    const last = this.times.at(-1) ?? -Infinity;
    if (time === last) {
      return;
    }
    if (time < last) {
      const keep = this.times.findIndex((earlier) => earlier >= time);
      this.times.length = keep;
      this.columns.forEach((column) => { column.length = keep; });
    }
    while (this.columns.length < values.length) {
      this.columns.push(Array<number | null>(this.times.length).fill(null));
    }
    this.times.push(time);
    this.columns.forEach((column, at) => column.push(values[at] ?? null));
    if (this.times.length > MOST_POINTS) {
      this.times.shift();
      this.columns.forEach((column) => column.shift());
    }
  }

  clear(): void {
    this.times = [];
    this.columns = [];
  }
}

/** A chart over time. */
export class Chart {
  readonly element: HTMLElement;
  readonly #box: HTMLElement;
  readonly #format: (value: number) => string;
  readonly #clock: (time: number) => string;
  #plot: uPlot | null = null;
  #curves: Curve[] = [];
  #data: uPlot.AlignedData = [[]];

  constructor(title: string, format: (value: number) => string, clock: (time: number) => string) {
    this.#format = format;
    this.#clock = clock;
    this.#box = h("div", { class: "plot" });
    this.element = h("figure", { role: "img", "aria-label": title }, h("figcaption", {}, title), this.#box);
    new ResizeObserver(() => {
      const width = this.#box.clientWidth;
      if (this.#plot && width > 0 && width !== this.#plot.width) {
        this.#plot.setSize({ width, height: HEIGHT });
      }
    }).observe(this.#box);
    window.addEventListener("colours", () => this.#remake());
  }

  show(curves: Curve[], history: History): void {
    this.#data = [history.times, ...curves.map((_, at) => history.columns[at] ?? history.times.map(() => null))];
    const isSame = curves.length === this.#curves.length
      && curves.every(({ label }, at) => label === this.#curves[at]?.label);
    this.#curves = curves;
    if (isSame && this.#plot) {
      this.#plot.setData(this.#data);
    } else {
      this.#remake();
    }
  }

  #remake(): void {
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#curves.length === 0 || (this.#data[0]?.length ?? 0) < 2) {
      return;
    }
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--soft"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui, sans-serif",
    };
    this.#plot = new uPlot({
      width: this.#box.clientWidth || 320,
      height: HEIGHT,
      scales: { x: { time: false }, y: { range: (_, least, most) => [Math.min(0, least ?? 0), (most || 1) * 1.1] } },
      legend: { show: this.#curves.length > 1, live: false },
      cursor: { drag: { x: false, y: false }, points: { size: 5 } },
      axes: [
        { ...axis, size: 24, space: 80, values: (_, times) => times.map(this.#clock) },
        { ...axis, size: 74, space: 30, values: (_, values) => values.map(this.#format) },
      ],
      series: [
        {},
        ...this.#curves.map(({ label, colour: at }) => ({
          label,
          stroke: colour(`--line${at % 6}`),
          width: 1.5,
          points: { show: false },
        })),
      ],
    }, this.#data, this.#box);
  }
}
