/** Positions of nodes: pure functions of names and links. */

export interface Point {
  x: number;
  y: number;
}

export interface Network {
  names: string[];
  links: [string, string][];
  /** The lowest row: hosts, or without hosts edges. */
  bottom: string[];
  /** The root of a tree. */
  root?: string;
}

/** Distance of neighbours in a row, and the least distance of rows, pixels. */
const STEP = 70;
const ROW = 120;
/** Height, as a share of the width. */
const ASPECT = 0.55;
/** Limit of a row's width; wider ones become rings. */
const WIDEST_ROW = 40;

/** Positions by rules; `null` for networks that need `forces`. */
export function tiers(network: Network): Map<string, Point> | null {
  const near = neighbours(network);
  const levels = isTree(network, near) ? levelsOfTree(network, near) : levelsOfFabric(network, near);
  if (!levels) {
    return null;
  }
  const ordered = inOrder(levels, near, isTree(network, near));
  const widest = Math.max(...ordered.map((level) => level.length));
  return widest > WIDEST_ROW ? rings(ordered) : rows(ordered, near);
}

type Near = Map<string, string[]>;

function neighbours({ names, links }: Network): Near {
  const near: Near = new Map(names.map((name) => [name, []]));
  for (const [a, b] of links) {
    near.get(a)?.push(b);
    near.get(b)?.push(a);
  }
  return near;
}

function isTree({ names, links }: Network, near: Near): boolean {
  const first = names[0];
  return first !== undefined && links.length === names.length - 1 && distances([first], near).size === names.length;
}

function distances(from: string[], near: Near): Map<string, number> {
  const found = new Map(from.map((name) => [name, 0]));
  const queue = [...from];
  for (let at = 0; at < queue.length; at += 1) {
    const name = queue[at] ?? "";
    for (const next of near.get(name) ?? []) {
      if (!found.has(next)) {
        found.set(next, (found.get(name) ?? 0) + 1);
        queue.push(next);
      }
    }
  }
  return found;
}

function byLevel(level: Map<string, number>): string[][] {
  const levels: string[][] = [];
  for (const [name, at] of level) {
    (levels[at] ??= []).push(name);
  }
  return levels;
}

/** Levels from the root; without a root from the middle of the longest path. */
function levelsOfTree({ names, root }: Network, near: Near): string[][] {
  if (root !== undefined && near.has(root)) {
    return byLevel(distances([root], near));
  }
  const farthest = (from: string): string => [...distances([from], near)].at(-1)?.[0] ?? from;
  const end = farthest(names[0] ?? "");
  const other = farthest(end);
  const fromEnd = distances([end], near);
  let middle = other;
  for (let left = Math.floor((fromEnd.get(other) ?? 0) / 2); left > 0; left -= 1) {
    const at = fromEnd.get(middle) ?? 0;
    middle = near.get(middle)?.find((next) => fromEnd.get(next) === at - 1) ?? middle;
  }
  return byLevel(distances([middle], near));
}

/** Tiers, if all links are between neighbouring tiers. */
function levelsOfFabric({ names, links, bottom }: Network, near: Near): string[][] | null {
  if (bottom.length === 0 || bottom.length === names.length) {
    return null;
  }
  const level = distances(bottom, near);
  const flat = links.filter(([a, b]) => level.get(a) === level.get(b)).length;
  if (level.size < names.length || flat > links.length / 5) {
    return null;
  }
  return byLevel(level).reverse();
}

/** Orders each level to reduce crossings: trees by branches, fabrics by the mean position of neighbours. */
function inOrder(levels: string[][], near: Near, isTree: boolean): string[][] {
  const names = new Intl.Collator("en", { numeric: true });
  const sorted = levels.map((level) => [...level].sort(names.compare));
  const share = new Map<string, number>();
  const set = (level: string[]): void => level.forEach((name, at) => share.set(name, (at + 0.5) / level.length));
  sorted.forEach(set);
  const middle = (name: string, of: Set<string>): number => {
    const there = (near.get(name) ?? []).filter((next) => of.has(next));
    return there.length === 0
      ? (share.get(name) ?? 0)
      : there.reduce((sum, next) => sum + (share.get(next) ?? 0), 0) / there.length;
  };
  const arrange = (level: string[], by: string[]): void => {
    const others = new Set(by);
    const keys = new Map(level.map((name) => [name, middle(name, others)]));
    level.sort((a, b) => (keys.get(a) ?? 0) - (keys.get(b) ?? 0) || names.compare(a, b));
    set(level);
  };
  for (let at = 1; isTree && at < sorted.length; at += 1) {
    arrange(sorted[at] ?? [], sorted[at - 1] ?? []);
  }
  for (let sweep = 0; !isTree && sweep < 4; sweep += 1) {
    for (let at = sorted.length - 2; at >= 0; at -= 1) {
      arrange(sorted[at] ?? [], sorted[at + 1] ?? []);
    }
    for (let at = 1; at < sorted.length && sweep > 0; at += 1) {
      arrange(sorted[at] ?? [], sorted[at - 1] ?? []);
    }
  }
  return sorted;
}

/** Levels from top to bottom; nodes are centred above their children if there is space. */
function rows(levels: string[][], near: Near): Map<string, Point> {
  const places = new Map<string, Point>();
  const widest = Math.max(...levels.map((level) => level.length));
  const gaps = Math.max(levels.length - 1, 1);
  const width = Math.max(widest * STEP, gaps * ROW * 1.2);
  const height = Math.max(ROW, (width * ASPECT) / gaps);
  for (let at = levels.length - 1; at >= 0; at -= 1) {
    const level = levels[at] ?? [];
    const step = width / level.length;
    const below = new Set(levels[at + 1] ?? []);
    const wanted = level.map((name, index) => {
      const children = (near.get(name) ?? []).filter((next) => below.has(next));
      const even = (index + 0.5) * step;
      const sum = children.reduce((sum, child) => sum + (places.get(child)?.x ?? 0), 0);
      return children.length === 0 ? even : sum / children.length;
    });
    const isApart = wanted.every((x, index) => index === 0 || x - (wanted[index - 1] ?? 0) >= STEP * 0.8);
    level.forEach((name, index) => {
      places.set(name, { x: isApart ? (wanted[index] ?? 0) : (index + 0.5) * step, y: at * height });
    });
  }
  return places;
}

/** Concentric rings, the top level innermost; wide levels take several rings. */
function rings(levels: string[][]): Map<string, Point> {
  const places = new Map<string, Point>();
  let radius = 0;
  for (const level of levels) {
    const gap = 26;
    const tracks = Math.max(1, Math.ceil(Math.sqrt((level.length * gap) / 2600)));
    const around = Math.ceil(level.length / tracks);
    const first = level.length === 1 && radius === 0 ? 0 : Math.max(radius + 110, (around * gap) / (2 * Math.PI));
    level.forEach((name, index) => {
      const angle = ((index + 0.5) / level.length) * 2 * Math.PI - Math.PI / 2;
      const r = first + (index % tracks) * gap;
      places.set(name, { x: r * Math.cos(angle), y: r * Math.sin(angle) });
    });
    radius = first + (tracks - 1) * gap;
  }
  return places;
}

/** Positions by forces, for irregular networks, computed in steps. */
export class Forces {
  readonly #names: string[];
  readonly #x: Float64Array;
  readonly #y: Float64Array;
  readonly #ends: [number, number][];
  #left = 120;
  readonly #ideal = 60;

  constructor({ names, links }: Network) {
    this.#names = names;
    const index = new Map(names.map((name, at) => [name, at]));
    this.#ends = links.map(([a, b]) => [index.get(a) ?? 0, index.get(b) ?? 0]);
    // A spiral: distinct positions without randomness.
    const golden = Math.PI * (3 - Math.sqrt(5));
    const radius = (at: number): number => this.#ideal * Math.sqrt(at + 0.5) * 0.9;
    this.#x = Float64Array.from(names, (_, at) => radius(at) * Math.cos(at * golden));
    this.#y = Float64Array.from(names, (_, at) => radius(at) * Math.sin(at * golden));
  }

  /** One step; returns whether more are needed. */
  step(): boolean {
    const [x, y, n, k] = [this.#x, this.#y, this.#names.length, this.#ideal];
    const [dx, dy] = [new Float64Array(n), new Float64Array(n)];
    for (let a = 0; a < n; a += 1) {
      const [ax, ay] = [x[a] as number, y[a] as number];
      for (let b = a + 1; b < n; b += 1) {
        const [ex, ey] = [ax - (x[b] as number), ay - (y[b] as number)];
        const force = (k * k) / (ex * ex + ey * ey + 1);
        dx[a] = (dx[a] as number) + ex * force;
        dy[a] = (dy[a] as number) + ey * force;
        dx[b] = (dx[b] as number) - ex * force;
        dy[b] = (dy[b] as number) - ey * force;
      }
    }
    for (const [a, b] of this.#ends) {
      const [ex, ey] = [(x[a] as number) - (x[b] as number), (y[a] as number) - (y[b] as number)];
      const pull = Math.hypot(ex, ey) / k;
      dx[a] = (dx[a] as number) - ex * pull;
      dy[a] = (dy[a] as number) - ey * pull;
      dx[b] = (dx[b] as number) + ex * pull;
      dy[b] = (dy[b] as number) + ey * pull;
    }
    const most = (this.#left / 120) * k * 1.5;
    for (let a = 0; a < n; a += 1) {
      const length = Math.hypot(dx[a] as number, dy[a] as number) || 1;
      const share = Math.min(length, most) / length;
      x[a] = (x[a] as number) + (dx[a] as number) * share;
      y[a] = (y[a] as number) + (dy[a] as number) * share;
    }
    this.#left -= 1;
    return this.#left > 0;
  }

  places(): Map<string, Point> {
    return new Map(this.#names.map((name, at) => [name, { x: this.#x[at] ?? 0, y: this.#y[at] ?? 0 }]));
  }
}
