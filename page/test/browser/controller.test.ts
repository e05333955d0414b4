import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { addFirstHop, fatTree, host } from "../fabric.ts";
import { Fleet } from "../fleet.ts";
import { errorsOf, launch, picture } from "./browser.ts";

// `srdma controller` with the page, and nodes of the test that use its API.
const PROGRAM = process.env["SRDMA"] ?? new URL("../../../../target/debug/srdma", import.meta.url).pathname;
const PATIENCE_MS = 20_000;

const fabric = fatTree(4, 4, 2, 2);
addFirstHop(fabric, "store1", ["agg1.1", "agg1.2"]);
let browser: Browser;
let controller: ChildProcess;
let fleet: Fleet;
let url: string;
let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "srdma-page-"));
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const config = join(folder, "controller.toml");
  await writeFile(config, `listen = ["127.0.0.1:${port}"]\n`);
  const options = ["controller", "run", "--config", config, "--store", join(folder, "store")];
  controller = spawn(PROGRAM, options, { stdio: ["ignore", "inherit", "inherit"] });
  await reached(`${url}/v1/topology`);
  fleet = new Fleet(url, fabric);
  fleet.start();
  browser = await launch();
});

after(async () => {
  await browser.close();
  await fleet.stop();
  controller.kill();
  await rm(folder, { recursive: true });
});

test("the page creates a group, shows a transfer, evicts a receiver and drains a node", async () => {
  const { page, errors } = await open();
  await page.getByText("29 nodes · 50 links").waitFor();
  await page.getByRole("button", { name: "Create a group…" }).click();
  await page.getByLabel("Name", { exact: true }).fill("weights");
  await page.getByLabel("Source address").fill(host(fabric, "store1", 1));
  await page.getByLabel("Source QPN").fill("0x11");
  await page.getByLabel("Proxy Address").fill("2001:db8:cc::1");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("heading", { name: "weights" }).waitFor();

  const joining = [["edge1.2", 1], ["edge2.1", 2], ["edge2.3", 3], ["edge3.2", 4], ["edge4.4", 5]] as const;
  for (const [edge, number] of joining) {
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
  await page.waitForFunction(() => document.querySelector(".group tbody tr td:nth-child(4)")?.textContent !== "");
  const first = await number(psn);
  await page.waitForTimeout(8000);
  assert.ok((await number(psn)) > first + 100_000, "the expected PSN rises");
  await picture(page, "page-group");

  await page.getByRole("button", { name: `Evict ${host(fabric, "edge2.3", 3)}` }).click();
  await page.getByRole("button", { name: "Evict", exact: true }).last().click();
  await page.getByRole("heading", { name: "Receivers (4)" }).waitFor();
  assert.equal(await receivers.count(), 4);

  const core = page.locator(".indent").getByRole("button", { name: /^core/ }).first();
  const name = (await core.textContent()) ?? "";
  await core.click();
  await page.getByRole("button", { name: "Drain…" }).click();
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByRole("button", { name: "End the drain" }).waitFor();
  await page.locator(".indent").getByRole("button", { name, exact: true }).waitFor({ state: "detached" });

  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByText("was removed at every node").waitFor();
  await page.getByText("is drained: new trees avoid it").first().waitFor();
  await page.waitForTimeout(3000);
  await picture(page, "page-drain");
  assert.deepEqual(errors, []);
  await page.close();
});

test("a refusal of the controller is shown with its detail", async () => {
  const { page } = await open();
  await page.getByRole("button", { name: "Create a group…" }).click();
  await page.getByLabel("Source address").fill(host(fabric, "store1", 9));
  await page.getByLabel("Source QPN").fill("0x12");
  await page.getByLabel("Proxy Address").fill("2001:db8:cc::1");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.locator(".notice.bad strong").waitFor();
  assert.notEqual(await page.locator(".notice.bad p").textContent(), "");
  await page.close();
});

test("the page has a dark theme and a narrow layout", async () => {
  const { page, errors } = await open({ colorScheme: "dark", viewport: { width: 375, height: 720 }, hasTouch: true });
  await page.getByRole("tab", { name: "Groups" }).click();
  await page.getByRole("button", { name: "weights" }).click();
  await page.getByRole("heading", { name: "Receivers (4)" }).waitFor();
  await page.waitForTimeout(4000);
  await picture(page, "page-narrow");
  assert.deepEqual(errors, []);
  await page.close();
});

async function open(options: Parameters<Browser["newPage"]>[0] = {}): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  page.setDefaultTimeout(PATIENCE_MS);
  const errors = errorsOf(page);
  await page.goto(`${url}/`);
  await page.getByText("live", { exact: true }).waitFor();
  return { page, errors };
}

async function number(cell: ReturnType<Page["locator"]>): Promise<number> {
  return Number(((await cell.textContent()) ?? "").replaceAll(",", ""));
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

async function reached(address: string): Promise<void> {
  for (let left = 100; ; left -= 1) {
    try {
      await fetch(address);
      return;
    } catch (error) {
      if (left === 0) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
