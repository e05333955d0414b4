/**
 * Draws links below the nodes. The loads of a fabric change with every sample, and without a GPU thousands of lines
 * take longer than a frame has: so a picture is drawn a slice in each frame, out of sight, and shown when it is whole.
 */

import type { Point } from "./layout.ts";

/** A link and its appearance. */
export interface Line {
  ends: [string, string];
  /** Index of its colour by load, 0 for none. */
  load: number;
  /** Whether the selected tree or path contains it. */
  isMarked: boolean;
}

export interface Colours {
  loads: string[];
  marked: string;
  selected: string;
}

/** Scale and offset of the view. */
export interface View {
  zoom: number;
  pan: Point;
}

/** Lines of one style that are drawn together. */
interface Stroke {
  colour: string;
  /** Width, pixels of the screen. */
  width: number;
  alpha: number;
  lines: number[];
}

/** A drawing in progress. */
interface Job {
  view: View;
  strokes: Stroke[];
  /** The next stroke, and its next line. */
  stroke: number;
  line: number;
}

/** Above so many links only full ones are wider than a pixel: wide lines take four times as long. */
const DENSE = 500;
const WIDE_COSTS = 4;
/** Thin lines of one path; wide ones have a path each, as large paths of lines that cross are slow to fill. */
const LINES_OF_A_PATH = 16;
const LEAST_SLICE = 60;
const MOST_SLICE = 2000;
/** A frame that took longer had too large a slice, milliseconds. */
const LONG_FRAME_MS = 22;

export class Links {
  /** The visible canvas, and the one that is drawn on. */
  #shown: HTMLCanvasElement;
  #hidden: HTMLCanvasElement;
  #lines: Line[] = [];
  /** Four numbers for each line. */
  #places = new Float64Array(0);
  #width = 0;
  #height = 0;
  #job: Job | null = null;
  #isWanted = false;
  #view: View = { zoom: 1, pan: { x: 0, y: 0 } };
  #drawn: View = this.#view;
  #colours: Colours;
  #selected = -1;
  #slice = 400;
  #frameMs = 0;

  constructor(box: HTMLElement, colours: Colours) {
    this.#colours = colours;
    [this.#shown, this.#hidden] = [document.createElement("canvas"), document.createElement("canvas")];
    this.#hidden.style.visibility = "hidden";
    box.append(this.#shown, this.#hidden);
  }

  get size(): [number, number] {
    return [this.#width, this.#height];
  }

  resize(width: number, height: number): void {
    const ratio = window.devicePixelRatio || 1;
    [this.#width, this.#height] = [width, height];
    for (const canvas of [this.#shown, this.#hidden]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.#job = null;
    this.draw();
  }

  /** Sets the lines and their positions. */
  set(lines: Line[], place: (name: string) => Point | undefined): void {
    this.#lines = lines;
    const places = new Float64Array(lines.length * 4);
    lines.forEach(({ ends }, at) => {
      const [a, b] = [place(ends[0]), place(ends[1])];
      places.set([a?.x ?? NaN, a?.y ?? NaN, b?.x ?? NaN, b?.y ?? NaN], at * 4);
    });
    this.#places = places;
    this.#job = null;
    this.draw();
  }

  look(view: View): void {
    this.#view = view;
    this.#align();
    this.draw();
  }

  paint(colours: Colours): void {
    this.#colours = colours;
    this.draw();
  }

  select(line: number): void {
    this.#selected = line;
    this.draw();
  }

  /** Redraws after the drawing in progress. */
  draw(): void {
    if (!this.#isWanted && !this.#job) {
      this.#frameMs = 0;
      requestAnimationFrame((now) => this.#frame(now));
    }
    this.#isWanted = true;
  }

  #frame(now: number): void {
    if (this.#frameMs > 0) {
      const isLong = now - this.#frameMs > LONG_FRAME_MS;
      this.#slice = isLong ? Math.max(LEAST_SLICE, this.#slice * 0.7) : Math.min(MOST_SLICE, this.#slice * 1.05);
    }
    this.#frameMs = now;
    if (!this.#job) {
      this.#isWanted = false;
      this.#job = { view: this.#view, strokes: this.#strokes(), stroke: 0, line: 0 };
      this.#context().resetTransform();
      this.#context().clearRect(0, 0, this.#hidden.width, this.#hidden.height);
    }
    if (this.#isDone(this.#job)) {
      this.#show(this.#job.view);
      this.#job = null;
    }
    if (this.#job || this.#isWanted) {
      requestAnimationFrame((next) => this.#frame(next));
    }
  }

  #context(): CanvasRenderingContext2D {
    const context = this.#hidden.getContext("2d");
    if (!context) {
      throw new Error("this browser has no canvas");
    }
    return context;
  }

  /** Links with more load are drawn later and wider. */
  #strokes(): Stroke[] {
    const { loads, marked, selected } = this.#colours;
    const thin = Math.max(0.6, Math.min(this.#view.zoom, 1));
    const isDense = this.#lines.length > DENSE;
    const widthOf = (load: number): number => {
      const dense = load < loads.length - 1 ? 1 : 1.6;
      return isDense ? dense : thin * (0.8 + load * 0.6);
    };
    const strokes = loads.map((colour, load): Stroke => ({ colour, width: widthOf(load), alpha: 1, lines: [] }));
    const tree: Stroke = { colour: marked, width: thin * 8, alpha: 0.5, lines: [] };
    this.#lines.forEach(({ load, isMarked }, at) => {
      strokes[load]?.lines.push(at);
      if (isMarked) {
        tree.lines.push(at);
      }
    });
    const chosen = this.#selected < 0 ? [] : [this.#selected];
    const one: Stroke = { colour: selected, width: thin * 4, alpha: 1, lines: chosen };
    return [tree, ...strokes, one];
  }

  /** Draws a slice; returns whether it was the last. */
  #isDone(job: Job): boolean {
    const context = this.#context();
    const ratio = window.devicePixelRatio || 1;
    const { zoom, pan } = job.view;
    context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * pan.x, ratio * pan.y);
    let left = this.#slice;
    while (job.stroke < job.strokes.length) {
      const { colour, width, alpha, lines } = job.strokes[job.stroke] as Stroke;
      [context.strokeStyle, context.lineWidth, context.globalAlpha] = [colour, width / zoom, alpha];
      const isThin = width * ratio <= 1;
      while (job.line < lines.length) {
        if (left <= 0) {
          return false;
        }
        const together = lines.slice(job.line, job.line + (isThin ? LINES_OF_A_PATH : 1));
        context.beginPath();
        for (const at of together) {
          context.moveTo(this.#places[at * 4] ?? 0, this.#places[at * 4 + 1] ?? 0);
          context.lineTo(this.#places[at * 4 + 2] ?? 0, this.#places[at * 4 + 3] ?? 0);
        }
        context.stroke();
        job.line += together.length;
        left -= together.length * (isThin ? 1 : WIDE_COSTS);
      }
      job.stroke += 1;
      job.line = 0;
    }
    return true;
  }

  #show(view: View): void {
    [this.#shown, this.#hidden] = [this.#hidden, this.#shown];
    this.#drawn = view;
    this.#align();
    this.#shown.style.visibility = "inherit";
    this.#hidden.style.visibility = "hidden";
  }

  /** Transforms the visible canvas to the view; a drawing for the view follows. */
  #align(): void {
    const { zoom, pan } = this.#drawn;
    const scale = this.#view.zoom / zoom;
    const [x, y] = [this.#view.pan.x - pan.x * scale, this.#view.pan.y - pan.y * scale];
    this.#shown.style.transform = scale === 1 && x === 0 && y === 0 ? "" : `translate(${x}px, ${y}px) scale(${scale})`;
  }

  /** The nearest line to a point within `reach`; -1 for none. */
  at(point: Point, reach: number): number {
    let [best, least] = [-1, reach];
    for (let at = 0; at < this.#lines.length; at += 1) {
      const [ax, ay, bx, by] = this.#places.subarray(at * 4, at * 4 + 4) as unknown as [number, number, number, number];
      const [dx, dy] = [bx - ax, by - ay];
      const along = ((point.x - ax) * dx + (point.y - ay) * dy) / (dx * dx + dy * dy || 1);
      const share = Math.min(1, Math.max(0, along));
      const away = Math.hypot(point.x - ax - share * dx, point.y - ay - share * dy);
      if (away < least) {
        [best, least] = [at, away];
      }
    }
    return best;
  }
}
