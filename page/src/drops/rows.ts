import reasons from "virtual:drop-reasons";
import { cells, h, List, row, type Item } from "../ui/dom.ts";

/** The row of a reason, or the row with its description. */
interface Shown<T> {
  line: T;
  explains: boolean;
}

/** Rows of a table by drop reason; the name of a reason opens and closes the row with its description. */
export class ReasonRows<T extends { reason: string }> {
  readonly #list: List<Shown<T>>;
  readonly #open = new Set<string>();
  #lines: T[] = [];

  /** `id`: prefix of the ids of descriptions; `texts`: of the cells of a row, beginning with the reason. */
  constructor(body: HTMLElement, id: string, columns: string[], texts: (line: T) => string[]) {
    const idOf = (reason: string): string => `${id}-${reason}`;
    this.#list = new List<Shown<T>>(body,
      ({ line, explains }) => `${line.reason} ${explains}`,
      ({ line: { reason }, explains }) =>
        (explains ? explained(reason, idOf(reason), columns.length) : this.#row(reason, idOf(reason), columns, texts)));
  }

  show(lines: T[]): void {
    this.#lines = lines;
    this.#list.show(lines.flatMap((line) =>
      [false, true].filter((explains) => !explains || this.#open.has(line.reason))
        .map((explains) => ({ line, explains }))));
  }

  #row(reason: string, id: string, columns: string[], texts: (line: T) => string[]): Item<Shown<T>> {
    const own = cells(columns);
    const name = reasons[reason] ? this.#opener(reason, id) : h("span", {});
    own[0]?.append(name);
    return row<Shown<T>>(own, ({ line }) => texts(line), [name, ...own.slice(1)]);
  }

  #opener(reason: string, id: string): HTMLElement {
    const button = h("button", {
      type: "button",
      class: "link why",
      "aria-expanded": String(this.#open.has(reason)),
      "aria-controls": id,
      onclick: () => {
        if (!this.#open.delete(reason)) {
          this.#open.add(reason);
        }
        button.setAttribute("aria-expanded", String(this.#open.has(reason)));
        this.show(this.#lines);
      },
    });
    return button;
  }
}

function explained<T>(reason: string, id: string, columns: number): Item<Shown<T>> {
  const { what, look } = reasons[reason] ?? { what: "", look: "" };
  const element = h("tr", { id, class: "why" },
    h("td", { colspan: columns }, paragraph("", what), paragraph("Check: ", look)));
  return { element, update: () => undefined };
}

/** Words between backticks are code. */
function paragraph(lead: string, markdown: string): HTMLElement {
  const parts = markdown.replaceAll(/\*([^*]+)\*/g, "$1").split("`");
  return h("p", {}, h("b", {}, lead), ...parts.map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part)));
}
