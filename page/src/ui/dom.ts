/** Helpers for elements. */

type Child = Node | string | null | undefined;
type Attributes = Record<string, string | boolean | number | ((event: never) => void)>;

/** An element; attributes whose value is a function are listeners, such as `onclick`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(key.slice(2), value as unknown as EventListener);
    } else if (value === true) {
      element.setAttribute(key, "");
    } else if (value !== false) {
      element.setAttribute(key, String(value));
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets a text if it differs, so that a selection of the user stays. */
export function text(element: HTMLElement, value: string): void {
  if (element.textContent !== value) {
    element.textContent = value;
  }
}

/** An item of a list, and its update. */
export interface Item<T> {
  element: HTMLElement;
  update(value: T): void;
}

/** A list of items by key; items that stay keep their elements and the focus. */
export class List<T> {
  readonly #parent: HTMLElement;
  readonly #key: (value: T) => string;
  readonly #make: (value: T) => Item<T>;
  #items = new Map<string, Item<T>>();

  constructor(parent: HTMLElement, key: (value: T) => string, make: (value: T) => Item<T>) {
    this.#parent = parent;
    this.#key = key;
    this.#make = make;
  }

  show(values: T[]): void {
    const items = new Map<string, Item<T>>();
    let before: Element | null = null;
    for (const value of values) {
      const key = this.#key(value);
      const item = this.#items.get(key) ?? this.#make(value);
      item.update(value);
      items.set(key, item);
      const wanted: Element | null = before ? before.nextElementSibling : this.#parent.firstElementChild;
      if (wanted !== item.element) {
        this.#parent.insertBefore(item.element, wanted);
      }
      before = item.element;
    }
    for (const [key, item] of this.#items) {
      if (!items.has(key)) {
        item.element.remove();
      }
    }
    this.#items = items;
  }
}

/** A table; names of numeric columns begin with `#`. */
export function table(caption: string, columns: string[]): { element: HTMLElement; body: HTMLElement } {
  const heads = columns.map((column) =>
    h("th", { scope: "col", class: column.startsWith("#") ? "number" : "" }, column.replace(/^#/, "")));
  const body = h("tbody");
  const element = h("div", { class: "scroll" },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, ...heads)), body));
  return { element, body };
}

/** A row of cells. `parts`: the elements that receive the texts [default: the cells]. */
export function row<T>(
  cells: HTMLElement[],
  texts: (value: T) => string[],
  parts: HTMLElement[] = cells,
  attributes: Attributes = {},
): Item<T> {
  const element = h("tr", attributes, ...cells);
  return {
    element,
    update: (value) => texts(value).forEach((value, at) => {
      const part = parts[at];
      if (part) {
        text(part, value);
      }
    }),
  };
}

/** Cells of the columns of `table`. */
export function cells(columns: string[]): HTMLElement[] {
  return columns.map((column) => h("td", { class: column.startsWith("#") ? "number" : "" }));
}
