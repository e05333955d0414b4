/** `npm run fuzz -- EXECUTIONS`: opens so many mutated recordings; prints libFuzzer's two lines of statistics. */

import { openMutated } from "./recordings.ts";

const executions = Number(process.argv[2]);
if (!Number.isSafeInteger(executions) || executions < 1) {
  console.error("usage: npm run fuzz -- EXECUTIONS");
  process.exit(2);
}
const begin = performance.now();
const opened = openMutated(1, executions);
const seconds = (performance.now() - begin) / 1000;
if (opened === 0) {
  throw new Error("no recording was opened: nothing was checked");
}
console.error(`stat::number_of_executed_units: ${executions}`);
console.error(`stat::average_exec_per_sec:     ${Math.floor(executions / seconds)}`);
