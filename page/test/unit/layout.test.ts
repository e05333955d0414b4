import assert from "node:assert/strict";
import { test } from "node:test";
import { Forces, tiers, type Network, type Point } from "../../src/graph/layout.ts";
import { loadOf, yardstick } from "../../src/graph/loads.ts";
import { fatTree } from "../fabric.ts";

function network(pods: number): Network {
  const { nodes, links } = fatTree(pods, 4, 2, 2);
  const bottom = nodes.filter((node) => node.isEdge).map(({ name }) => name);
  return { names: nodes.map(({ name }) => name), links, bottom };
}

function nearest(places: Map<string, Point>): number {
  const all = [...places.values()];
  return Math.min(...all.flatMap((a, at) => all.slice(at + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y))));
}

test("a fabric has rows: cores on top, pods together", () => {
  const places = tiers(network(4));
  assert.ok(places);
  const y = (name: string): number => places.get(name)?.y ?? NaN;
  assert.ok(y("core1.1") < y("agg1.1") && y("agg1.1") < y("edge1.1"));
  assert.equal(y("edge1.1"), y("edge4.4"));
  const row = [...places].filter(([name]) => name.startsWith("edge")).sort(([, a], [, b]) => a.x - b.x);
  const pods = row.map(([name]) => name.split(".")[0]);
  assert.deepEqual(pods, [...pods].sort(), "edges of a pod are next to each other");
  assert.ok(nearest(places) > 30);
});

test("a wide fabric has rings", () => {
  const places = tiers(network(40));
  assert.ok(places);
  const radius = (name: string): number => Math.hypot(places.get(name)?.x ?? 0, places.get(name)?.y ?? 0);
  assert.ok(radius("core1.1") < radius("agg1.1") && radius("agg1.1") < radius("edge1.1"));
  assert.equal(places.size, 4 + 40 * 6);
  assert.ok(nearest(places) > 10);
});

test("a tree is below its root, or its middle", () => {
  const names = ["S1", "N6", "N4", "N5", "R1", "R2", "R3"];
  const links: [string, string][] =
    [["S1", "N6"], ["N6", "N4"], ["N6", "N5"], ["N4", "R1"], ["N4", "R2"], ["N5", "R3"]];
  const places = tiers({ names, links, bottom: [], root: "S1" });
  const x = (name: string): number => places?.get(name)?.x ?? NaN;
  const heights = ["S1", "N6", "N4", "R1"].map((name) => places?.get(name)?.y ?? NaN);
  assert.deepEqual(heights, [...new Set(heights)].sort((a, b) => a - b), "each below the one before");
  assert.ok(x("R1") < x("R2") && x("R2") < x("R3"), "branches do not cross");
  const without = tiers({ names, links, bottom: [] });
  const top = [...(without ?? [])].sort(([, a], [, b]) => a.y - b.y)[0]?.[0];
  assert.equal(top, "N6");
});

test("the same network has the same layout", () => {
  assert.deepEqual(tiers(network(4)), tiers(network(4)));
});

test("networks without tiers are placed by forces, with distances", () => {
  const names = Array.from({ length: 30 }, (_, at) => `n${at}`);
  const ring: Network = { names, links: names.map((name, at) => [name, names[(at + 1) % 30] ?? ""]), bottom: names };
  assert.equal(tiers(ring), null);
  const forces = new Forces(ring);
  let steps = 0;
  while (forces.step()) {
    steps += 1;
    assert.ok(steps < 1000);
  }
  assert.ok(nearest(forces.places()) > 10);
  const again = new Forces(ring);
  while (again.step());
  assert.deepEqual(again.places(), forces.places());
});

test("loads are shares of the most loaded link, which decays slowly", () => {
  assert.deepEqual([0, 1, 25, 26, 51, 76, 100].map((load) => loadOf(load, 100)), [0, 1, 1, 2, 3, 4, 4]);
  assert.equal(loadOf(5, 0), 0);
  assert.equal(yardstick(10, 20), 20);
  assert.equal(yardstick(100, 10), 98);
});
