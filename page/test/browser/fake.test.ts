import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { fatTree, host } from "../fabric.ts";
import { FakeController } from "../fake.ts";
import { builtPage, errorsOf, launch, picture } from "./browser.ts";

const fabric = fatTree(4, 4, 2, 2);
const PATIENCE_MS = 10_000;
/** Written by `srdma demo --size 2MiB --record page/test/figure1.jsonl --record-every 5us`. */
const RECORDING = new URL("../../../test/figure1.jsonl", import.meta.url);
/** Written by `srdma sim page/test/permutation.toml --record page/test/permutation.jsonl`. */
const SCENARIO = new URL("../../../test/permutation.jsonl", import.meta.url);

let browser: Browser;
let controller: FakeController;
let url: string;

before(async () => {
  browser = await launch();
  controller = new FakeController(fabric, await builtPage());
  controller.flows = [{
    job: "training",
    collective: "allreduce",
    from: "h1.1",
    to: "h3.2",
    rate_bits_per_s: 100e9,
    path: ["h1.1", "edge1.1", "agg1.1", "core1.2", "agg3.1", "edge3.2", "h3.2"],
    program: ["5f00:0:101:4901:9102:4b01:302:f001"],
  }];
  url = await controller.listen();
});

after(async () => {
  await browser.close();
  controller.close();
});

async function open(options: Parameters<Browser["newPage"]>[0] = {}): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  page.setDefaultTimeout(PATIENCE_MS);
  const errors = errorsOf(page);
  await page.goto(`${url}/?interval=200`);
  await page.getByText("live", { exact: true }).waitFor();
  return { page, errors };
}

test("a group is created, watched and changed, and a node is drained", async () => {
  const { page, errors } = await open();
  await page.getByText("28 nodes · 48 links").waitFor();
  await page.getByRole("button", { name: "Create a group…" }).click();
  await page.getByLabel("Name", { exact: true }).fill("weights");
  await page.getByLabel("Source address").fill(host(fabric, "edge1.1", 1));
  await page.getByLabel("Source QPN").fill("0x11");
  await page.getByLabel("Designated QPN").fill("0x1000000");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("a QPN has 24 bits").waitFor();
  await page.getByLabel("Designated QPN").fill("0x123");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("heading", { name: "weights" }).waitFor();

  for (const [edge, number] of [["edge2.1", 1], ["edge2.3", 2], ["edge3.2", 3], ["edge4.4", 4]] as const) {
    await page.getByRole("button", { name: "Add a receiver…" }).click();
    await page.getByLabel("Address", { exact: true }).fill(host(fabric, edge, number));
    await page.getByLabel("QPN", { exact: true }).fill(String(0x100 + number));
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("heading", { name: `Receivers (${number})` }).waitFor();
  }
  await page.getByRole("button", { name: "Commit" }).click();
  await page.locator(".badge.ready").waitFor();

  const receivers = page.getByRole("table", { name: "Receivers" }).locator("tbody tr");
  const psn = receivers.first().locator("td").nth(3);
  const first = await number(psn);
  await page.waitForTimeout(2500);
  assert.ok((await number(psn)) > first + 10_000, "the expected PSN rises");
  await picture(page, "group");

  await page.getByRole("button", { name: `Evict ${host(fabric, "edge2.3", 2)}` }).click();
  await page.getByRole("button", { name: "Evict", exact: true }).last().click();
  await page.getByRole("heading", { name: "Receivers (3)" }).waitFor();
  assert.equal(await receivers.count(), 3);

  const transit = page.locator(".indent button", { hasText: /^agg/ }).first();
  const name = (await transit.textContent()) ?? "";
  await transit.click();
  await page.getByRole("button", { name: "Drain…" }).click();
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByText("drained: new trees avoid it").first().waitFor();
  await page.locator(".indent").getByRole("button", { name, exact: true }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "End the drain" }).waitFor();
  await picture(page, "drain");

  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByText("was removed at every node").waitFor();
  await page.getByText("is drained: new trees avoid it").waitFor();
  assert.deepEqual(errors, ["Failed to load resource: the server responded with a status of 422 (Unprocessable Entity) "
    + `${url}/v1/groups`]);
  await page.close();
});

test("nodes that are not confirmed or being removed, and foreign groups, are shown", async () => {
  const { page, errors } = await open();
  controller.removing.add("agg1.1");
  controller.unconfirmed.set("edge1.1", { loopback: "2001:db8::1", hosts: ["2001:db8:66::/64"] });
  controller.unconfirmed.set("new1", { loopback: "2001:db8::77", end_mt: "2001:db8::77:e", hosts: [] });
  const find = async (name: string): Promise<void> => {
    await page.getByLabel("Find a node").fill(name);
    await page.getByLabel("Find a node").press("Enter");
  };
  await find("agg1.1");
  await page.getByText("Alive; being removed: it is deleted when no group has it.").waitFor();
  assert.equal(await page.locator("button.drain").isVisible(), false);
  await find("edge1.1");
  await page.getByText("Not confirmed: loopback 2001:db8::1, hosts 2001:db8:66::/64.").waitFor();
  await picture(page, "unconfirmed");
  // A node without a session is not in the topology, but in the events.
  controller.emit({ kind: "node-unconfirmed", node: "new1" });
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByText("has registered what is not confirmed").waitFor();
  await page.getByRole("button", { name: "new1" }).click();
  await page.getByText("It has no session, since its registration is not confirmed.").waitFor();
  await page.getByText("End.MT SID 2001:db8::77:e. Confirm it by srdma controller node confirm new1.").waitFor();
  await picture(page, "no-session");
  const group = { store: "2".repeat(16), proxy: "2001:db8:cc::9", epoch: 4, nodes: ["edge1.1"] };
  controller.foreign = [
    { ...group, group: 7, is_adoptable: false, is_removing: true },
    { ...group, store: "1".repeat(16), group: 8, is_adoptable: true },
  ];
  await page.getByRole("tab", { name: "Groups" }).click();
  await page.getByRole("heading", { name: "Foreign groups (2)" }).waitFor();
  const states = page.getByRole("table", { name: "Foreign groups" }).locator("tbody tr td:nth-child(2)");
  assert.deepEqual(await states.allTextContents(), ["being removed", "adoptable"]);
  await picture(page, "foreign");
  assert.deepEqual(errors, []);
  controller.foreign = [];
  controller.removing.clear();
  controller.unconfirmed.clear();
  await page.close();
});

test("a program is decoded, drops are counted by reason", async () => {
  const { page, errors } = await open({ colorScheme: "dark" });
  await page.keyboard.press("3");
  await page.getByRole("button", { name: "h1.1" }).click();
  await page.getByText("uN: to core1.2 by the shortest path").waitFor();
  await page.getByText("edge3.2 removes the outer header: tenant 1").waitFor();
  await picture(page, "flow-dark");
  await page.getByLabel("Destination address").fill("5f00:0:100:0:300::");
  await page.getByText("0x0000 is the end of a container").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("tab", { name: "Drops" }).click();
  await page.getByRole("button", { name: "queue_full" }).waitFor();
  assert.deepEqual(errors, []);
  await page.close();
});

test("a drop reason is described in its row, by keyboard and on a narrow window", async () => {
  const { page, errors } = await open({ viewport: { width: 375, height: 720 } });
  await page.getByRole("tab", { name: "Drops" }).click();
  const reason = page.getByRole("button", { name: "no_route" });
  const meaning = page.getByText("No route to the destination.");
  await reason.focus();
  assert.equal(await meaning.count(), 0);
  await page.keyboard.press("Enter");
  await meaning.waitFor();
  await page.getByText("Check: [[route]], or with IS-IS srdma isis show routes.").waitFor();
  assert.equal(await reason.getAttribute("aria-expanded"), "true");
  assert.equal(await page.locator(`#${await reason.getAttribute("aria-controls")}`).count(), 1);
  // What was opened stays open, and keeps the focus, while numbers change.
  await page.waitForTimeout(600);
  assert.ok(await meaning.isVisible() && await reason.evaluate((button) => button === document.activeElement));
  const wide = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll(".drops .scroll")]
    .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth));
  assert.ok(wide.every((more) => more <= 0), `nothing is wider than the window: ${wide.join(", ")}`);
  await picture(page, "narrow-drops");
  await page.keyboard.press("Enter");
  assert.equal(await meaning.count(), 0);
  assert.deepEqual(errors, []);
  await page.close();
});

test("every view is usable on a narrow window and by keyboard", async () => {
  const { page, errors } = await open({ viewport: { width: 375, height: 720 }, hasTouch: true });
  await page.getByRole("tab", { name: "Network" }).click();
  // The panel is shown in the next frame; an element that is not shown takes no focus.
  await page.locator(".graph").waitFor();
  await page.locator(".graph").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await page.locator(".card.open h2").first().waitFor();
  await picture(page, "narrow-network");
  for (const tab of ["Network", "Groups", "Flows", "Drops", "Events"]) {
    await page.getByRole("tab", { name: tab }).click();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 375, `${tab} is ${wide} pixels wide`);
    const small = await page.evaluate(() => [...document.querySelectorAll(".tabs button")]
      .filter((button) => button.getBoundingClientRect().height < 44).length);
    assert.equal(small, 0, "tabs are large enough for a finger");
  }
  await page.getByRole("tab", { name: "Groups" }).click();
  await page.getByRole("button", { name: "weights" }).click();
  await page.getByRole("heading", { name: "Receivers (3)" }).waitFor();
  await picture(page, "narrow-group");
  assert.deepEqual(errors, []);
  await page.close();
});

test("a recording is replayed forwards and backwards", async () => {
  controller.serve("/run.jsonl", await readFile(RECORDING, "utf8"));
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE_MS);
  const errors = errorsOf(page);
  await page.goto(`${url}/?replay=/run.jsonl`);
  await page.getByText("replay: srdma demo, 5 receivers, seed 1").waitFor();
  await page.getByText("12 nodes · 11 links").waitFor();
  const lag = page.getByRole("table", { name: "Receivers" }).locator("tbody tr").first().locator("td").nth(3);
  const slider = page.getByLabel("Time", { exact: true });
  await slider.fill("1000");
  await page.waitForTimeout(200);
  const end = await number(lag);
  await slider.fill("300");
  await page.waitForTimeout(200);
  const early = await number(lag);
  assert.ok(early < end, `${early} is before ${end}`);
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await page.waitForTimeout(2500);
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  const later = await number(lag);
  assert.ok(early < later && later < end, `${early} < ${later} < ${end}`);
  await page.keyboard.press("Escape");
  assert.ok(await page.getByRole("button", { name: "Add a receiver…" }).isDisabled());
  await picture(page, "page-replay");
  await page.getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByText("live", { exact: true }).waitFor();
  assert.deepEqual(errors, []);
  await page.close();
});

test("a scenario's recording is replayed on a narrow window", async () => {
  controller.serve("/scenario.jsonl", await readFile(SCENARIO, "utf8"));
  const page = await browser.newPage({ viewport: { width: 375, height: 720 } });
  page.setDefaultTimeout(PATIENCE_MS);
  const errors = errorsOf(page);
  await page.goto(`${url}/?replay=/scenario.jsonl`);
  await page.getByText("replay: A permutation: No congestion control, PFC, seed 1").waitFor();
  await page.getByText("11 nodes · 12 links · 0 groups").waitFor();
  await page.getByRole("tab", { name: "Network" }).click();
  await page.getByLabel("Time", { exact: true }).fill("500");
  await page.getByText("100 Gbit/s").waitFor();
  const time = page.locator(".replay-bar output");
  const cut = await time.evaluate((output) => output.scrollWidth - output.clientWidth);
  assert.ok(cut <= 0, `the time is ${cut} pixels wider than its place`);
  await picture(page, "narrow-scenario");
  assert.deepEqual(errors, []);
  await page.close();
});

test("an invalid recording is named with its line, and the page stays live", async () => {
  const [head, ...samples] = (await readFile(RECORDING, "utf8")).split("\n");
  controller.serve("/wrong.jsonl", [head?.replace('"links":[', '"links":[{},'), ...samples].join("\n"));
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE_MS);
  const errors = errorsOf(page);
  await page.goto(`${url}/?replay=/wrong.jsonl`);
  await page.getByText("Invalid recording", { exact: true }).waitFor();
  await page.getByText("line 1: topology.links.0.ends: missing").waitFor();
  await picture(page, "invalid-recording");
  await page.getByText("live", { exact: true }).waitFor();
  assert.deepEqual(errors, []);
  await page.close();
});

test("a required token and an unreachable controller are shown", async () => {
  const own = new FakeController(fabric, await builtPage());
  own.token = "secret";
  const address = await own.listen();
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(address);
  await page.getByText("a bearer token is required").waitFor();
  await page.getByRole("button", { name: "Token" }).click();
  await page.getByLabel("Bearer token").fill("secret");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("live", { exact: true }).waitFor();
  own.close();
  await page.getByText("The controller is unreachable").waitFor();
  await page.close();
});

async function number(cell: ReturnType<Page["locator"]>): Promise<number> {
  return Number(((await cell.textContent()) ?? "").replaceAll(",", ""));
}
