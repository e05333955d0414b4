import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, groups, NoProgram, wayOf } from "../../src/usid.ts";

const way = { switches: ["leaf1", "spine5", "leaf3"], to: "nic3" };
const steps = (address: string, on = way): string[] =>
  decode([address], 32, on)
    .flatMap(({ steps }) => steps)
    .map(({ behavior, nodes }) => `${behavior} ${nodes.join(" ")}`);

// The addresses and what they mean are those of crates/fabric/tests/fabric/programs.rs and of `srdma plan decode`.
test("switches are named in the order of the path", () => {
  assert.deepEqual(steps("5f00:0:100:500:300::"), ["uN leaf1", "uN spine5", "uN leaf3"]);
});

test("links are named by their ports", () => {
  const [container] = decode(["5f00:0:e002:e002:e000::"], 32, way);
  assert.deepEqual(container?.steps.map(({ meaning }) => meaning), [
    "leaf1 sends it by port 2 to spine5",
    "spine5 sends it by port 2 to leaf3",
    "leaf3 sends it by port 0 to nic3",
  ]);
  assert.equal(container?.free, 3);
  assert.deepEqual(steps("5f00:0:100:e002:e002:e000::"), [
    "uN leaf1",
    "uA leaf1 spine5",
    "uA spine5 leaf3",
    "uA leaf3 nic3",
  ]);
});

test("a tenant's service ends the program", () => {
  assert.deepEqual(steps("5f00:0:100:500:300:f007::").at(-1), "End.DT6 leaf3");
  assert.deepEqual(steps("5f00:0:e002:e002:f007::").at(-1), "End.DT6 leaf3");
  assert.match(decode(["5f00:0:300:f007::"])[0]?.steps[1]?.meaning ?? "", /tenant 7$/);
  assert.throws(() => decode(["5f00:0:300:f007:100::"]), /behind the service of the tenant/);
});

test("a parallel link is named between two switches", () => {
  assert.deepEqual(steps("5f00:0:1:e002:2::", { switches: ["s", "t"], to: "b" }), ["uN s", "uA s t", "uN t"]);
});

test("the seventh id is in an SRH", () => {
  const switches = ["s1", "s2", "s3", "s4", "s5", "s6", "s7"];
  const containers = decode(["5f00:0:1:2:3:4:5:6", "5f00:0:7::"], 32, { switches });
  assert.equal(containers[0]?.free, 0);
  assert.deepEqual(containers.flatMap(({ steps }) => steps.flatMap(({ nodes }) => nodes)), switches);
});

test("without a path the range of an id determines its kind", () => {
  const [container] = decode(["5f00:0:100:e800:e001:f001::"]);
  assert.deepEqual(container?.steps.map(({ behavior }) => behavior), ["uN", "reserved", "uA", "End.DT6"]);
  assert.deepEqual(container?.steps.flatMap(({ nodes }) => nodes), []);
});

test("invalid programs are rejected with the reason", () => {
  const refused: [string[], number, RegExp][] = [
    [["5f00::"], 32, /a block without an id/],
    [["5f00:0:100:0:300::"], 32, /0x0000 is the end of a container/],
    [["5f00:0:1:2:3:4:5:6", "2001:db8:7::"], 32, /not in the block 5f00:0000/],
    [["5f00:0:zz::"], 32, /not an IPv6 address/],
    [["5f00:0:100::"], 33, /a block of 33 bits/],
  ];
  for (const [addresses, bits, reason] of refused) {
    assert.throws(() => decode(addresses, bits), (error) => error instanceof NoProgram && reason.test(error.message));
  }
});

test("a block of 48 bits leaves five ids", () => {
  const [container] = decode(["fcbb:bb00:1:100:200::"], 48);
  assert.deepEqual(container?.block, ["fcbb", "bb00", "0001"]);
  assert.deepEqual(container?.steps.map(({ id }) => id), [0x100, 0x200]);
});

test("addresses are read in all their forms", () => {
  assert.deepEqual(groups("::"), [0, 0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(groups("::1"), [0, 0, 0, 0, 0, 0, 0, 1]);
  assert.deepEqual(groups("1:2:3:4:5:6:7:8"), [1, 2, 3, 4, 5, 6, 7, 8]);
  for (const wrong of ["", "1:2", "1::2::3", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "12345::", ":1::", "x::"]) {
    assert.equal(groups(wrong), null, wrong);
  }
});

test("the NICs of a flow's path are not switches", () => {
  const flow = { from: "nic1", to: "nic3", path: ["nic1", "leaf1", "spine5", "leaf3", "nic3"] };
  assert.deepEqual(wayOf(flow), way);
  assert.deepEqual(wayOf({ ...flow, path: ["leaf1", "spine5", "leaf3"] }), way);
});
