/** Chromium for the tests: Debian's, without a window, drawing by software. */

import { mkdir, readFile } from "node:fs/promises";
import { chromium, type Browser, type Page } from "playwright-core";

export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** The page as it is built and shipped. */
export async function builtPage(): Promise<string> {
  return readFile(new URL("../../../dist/index.html", import.meta.url), "utf8");
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
}

/** Errors of a page: what it throws, what it logs as an error, what its policy refuses. */
export function errorsOf(page: Page): string[] {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") {
      errors.push(`${message.text()} ${message.location().url}`);
    }
  });
  return errors;
}

/** Writes a picture where PICTURES says; without that nothing is written. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env["PICTURES"];
  if (folder) {
    await mkdir(folder, { recursive: true });
    await page.screenshot({ path: `${folder}/${name}.jpg`, type: "jpeg", quality: 82 });
  }
}
