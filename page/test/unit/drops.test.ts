import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { explanations } from "../../src/drops/document.ts";

const DOCUMENT = readFileSync(new URL("../../../../docs/drops.md", import.meta.url), "utf8");

test("every row of the document is a complete description", () => {
  const found = explanations(DOCUMENT);
  const rows = DOCUMENT.split("\n").filter((line) => line.startsWith("| `"));
  assert.equal(Object.keys(found).length, rows.length);
  for (const [reason, { what, look }] of Object.entries(found)) {
    assert.match(what, /\.$/, reason);
    assert.match(look, /[.?]$/, reason);
    assert.doesNotMatch(`${what} ${look}`, /As above|\]\(|\.md/, reason);
    assert.equal(what.split("`").length % 2 + look.split("`").length % 2, 2, `${reason}: backticks come in pairs`);
  }
});

test("links lose their targets, and 'As above.' repeats the text of the row above", () => {
  const found = explanations([
    "| reason | cause | check |",
    "| `a_b` | Not [known](x.md#y). | [`[[route]]`](configuration.md#route), or [`[domain]`](c.md). |",
    "| `c` | Neither. | As above. |",
  ].join("\n"));
  const look = "`[[route]]`, or `[domain]`.";
  assert.deepEqual(found, { a_b: { what: "Not known.", look }, c: { what: "Neither.", look } });
});
