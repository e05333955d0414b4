import assert from "node:assert/strict";
import { test } from "node:test";
import { Messages } from "../../src/api/sse.ts";

const STREAM = ": hello\n\nid: 1\ndata: {\"a\":1}\n\nid:2\r\ndata: one\r\ndata: two\r\n\r\nevent: x\ndata\n\n";
const EXPECTED = [{ id: "1", data: "{\"a\":1}" }, { id: "2", data: "one\ntwo" }, { id: "2", data: "" }];

test("events do not depend on the chunks of the stream", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const messages = new Messages();
    const taken = [];
    for (let at = 0; at < STREAM.length; at += size) {
      taken.push(...messages.take(STREAM.slice(at, at + size)));
    }
    assert.deepEqual(taken, EXPECTED, `pieces of ${size}`);
  }
});

test("an event is returned when it is complete", () => {
  const messages = new Messages();
  assert.deepEqual(messages.take("id: 7\ndata: x\n"), []);
  assert.deepEqual(messages.take("\n"), [{ id: "7", data: "x" }]);
});
