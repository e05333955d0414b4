import type { Flow } from "../api/types.ts";
import type { Store } from "../state/store.ts";
import { h, text } from "../ui/dom.ts";
import { decode, hex, NoProgram, wayOf, type Container, type Step } from "../usid.ts";

const BLOCK_BITS = 32;

/** A decoded uSID program: of the selected flow, or of a typed address. */
export function programView(store: Store): HTMLElement {
  const input = h("input", {
    type: "text",
    class: "program-input",
    placeholder: "5f00:0:100:500:300::",
    "aria-label": "Destination address, and segments of the SRH",
    spellcheck: "false",
    autocomplete: "off",
  });
  const lead = h("p", { class: "soft" });
  const result = h("div", { class: "program", "aria-live": "polite" });
  const element = h("div", { class: "program-view" },
    h("h3", {}, "uSID program"), h("div", { class: "bar" }, input), lead, result);
  let ofFlow: Flow | null = null;

  const show = (): void => {
    const addresses = input.value.split(/[\s,]+/).filter((word) => word !== "");
    const isOfFlow = ofFlow !== null && addresses.join(" ") === ofFlow.program.join(" ");
    text(lead, isOfFlow && ofFlow ? `${ofFlow.path.join(" → ")}` : "");
    if (addresses.length === 0) {
      result.replaceChildren(h("p", { class: "soft" }, "Select a flow, or enter a destination address."));
      return;
    }
    try {
      const containers = decode(addresses, BLOCK_BITS, isOfFlow && ofFlow ? wayOf(ofFlow) : { switches: [] });
      result.replaceChildren(...containers.flatMap((container, at) => shown(container, at)));
    } catch (error) {
      if (!(error instanceof NoProgram)) {
        throw error;
      }
      result.replaceChildren(h("p", { class: "bad-text" }, error.message));
    }
  };
  input.addEventListener("input", show);
  store.on(["flow"], () => {
    if (store.state.flow !== ofFlow) {
      ofFlow = store.state.flow;
      input.value = ofFlow?.program.join(" ") ?? "";
    }
    show();
  });
  return element;
}

function shown({ block, steps, free, address }: Container, at: number): HTMLElement[] {
  const cell = (value: string, kind: string, name: string): HTMLElement =>
    h("span", { class: `usid ${kind}` }, h("code", {}, value), h("small", {}, name));
  const strip = h("div", { class: "usids", role: "img", "aria-label": address },
    ...block.map((group) => cell(group, "block", "block")),
    ...steps.map((step) => cell(hex(step.id), step.behavior.replace(".", "").toLowerCase(), step.behavior)),
    ...Array.from({ length: free }, () => cell("0000", "free", "free")));
  const list = h("ol", {}, ...steps.map((step: Step) =>
    h("li", {}, h("code", {}, hex(step.id)), ` ${step.behavior}: ${step.meaning}`)));
  const where = at === 0 ? "Destination address" : `Segment ${at} of the SRH`;
  return [h("p", { class: "soft" }, where), strip, list];
}
