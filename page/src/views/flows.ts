import type { Flow } from "../api/types.ts";
import { count, rate } from "../format.ts";
import type { Store } from "../state/store.ts";
import { cells, h, List, row, table, text } from "../ui/dom.ts";
import { programView } from "./program.ts";

const COLUMNS = ["From", "To", "Collective", "#Rate"];
const MAX_ROWS = 200;

/** Placed flows, and the program of the selected one. */
export function flows(store: Store): HTMLElement {
  const jobs = h("select", {
    "aria-label": "Job",
    onchange: () => store.set({ jobName: jobs.value, flow: null, flows: [] }),
  });
  const hint = "Filter by NIC, node or collective";
  const filter = h("input", { type: "search", placeholder: hint, "aria-label": "Filter flows" });
  const { element: rows, body } = table("Flows", COLUMNS);
  const list = new List<Flow>(body, keyOf, (flow) => flowRow(store, flow));
  const none = h("p", { class: "soft" });
  const program = programView(store);
  const element = h("section", { class: "panel flows" },
    program, h("div", { class: "bar" }, jobs, filter), rows, none);

  const show = (): void => {
    const { jobs: known, jobName, flows, flow } = store.state;
    const names = known.map(({ name }) => name);
    if (jobs.dataset["names"] !== names.join("\0")) {
      jobs.dataset["names"] = names.join("\0");
      jobs.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    }
    jobs.value = jobName ?? "";
    jobs.hidden = names.length === 0;
    filter.hidden = flows.length === 0;
    const wanted = filter.value.trim().toLowerCase();
    const seen = flows.filter(({ from, to, collective, path }) =>
      [from, to, collective, ...path].some((name) => name.toLowerCase().includes(wanted)));
    list.show(seen.slice(0, MAX_ROWS));
    rows.hidden = seen.length === 0;
    const chosen = flow ? keyOf(flow) : "";
    body.querySelectorAll("tr").forEach((line) => line.classList.toggle("chosen", line.dataset["key"] === chosen));
    const beyond = seen.length > MAX_ROWS ? `and ${count(seen.length - MAX_ROWS)} more: use the filter` : "";
    text(none, names.length === 0 ? "No job is placed." : beyond);
  };
  filter.addEventListener("input", show);
  store.on(["jobs", "jobName", "flows", "flow"], show);
  return element;
}

function keyOf({ job, collective, from, to, program }: Flow): string {
  return [job, collective, from, to, ...program].join(" ");
}

function flowRow(store: Store, flow: Flow): ReturnType<typeof row<Flow>> {
  const columns = cells(COLUMNS);
  const name = h("button", { type: "button", class: "link", onclick: () => store.set({ flow }) });
  columns[0]?.append(name);
  return row<Flow>(
    columns,
    ({ from, to, collective, rate_bits_per_s: bits }) => [from, to, collective, rate(bits / 8)],
    [name, ...columns.slice(1)],
    { "data-key": keyOf(flow) },
  );
}
