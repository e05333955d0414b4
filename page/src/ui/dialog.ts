import { h } from "./dom.ts";

/** A field of a form. */
export interface Field {
  name: string;
  label: string;
  value?: string;
  hint?: string;
  /** Choices; without them a text input. */
  choices?: string[];
  isNeeded?: boolean;
  kind?: "text" | "number" | "password";
}

export type Values = Record<string, string>;

/** A form in a dialog; it closes if `done` returns true. */
export function ask(
  title: string,
  lead: string,
  fields: Field[],
  go: string,
  done: (values: Values) => Promise<boolean>,
): void {
  const inputs = fields.map((field) => input(field));
  const submit = h("button", { type: "submit", class: "main" }, go);
  const form = h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, title),
    lead ? h("p", { class: "soft" }, lead) : null,
    h("div", { class: "fields" }, ...inputs.map(({ element }) => element)),
    h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit));
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", onclose: () => dialog.remove() }, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit.disabled = true;
    const values = Object.fromEntries(inputs.map(({ name, control }) => [name, control.value.trim()]));
    void done(values).then((isDone) => {
      submit.disabled = false;
      if (isDone) {
        dialog.close();
      }
    });
  });
  document.body.append(dialog);
  dialog.showModal();
}

function input(field: Field): { name: string; element: HTMLElement; control: HTMLInputElement | HTMLSelectElement } {
  const id = `field-${field.name}`;
  const isNumber = field.kind === "number";
  const control = field.choices
    ? h("select", { id, name: field.name },
      ...field.choices.map((choice) => h("option", { selected: choice === field.value }, choice)))
    : h("input", {
      id,
      name: field.name,
      type: field.kind === "password" ? "password" : "text",
      inputmode: isNumber ? "numeric" : "text",
      pattern: isNumber ? "\\s*(0x[0-9a-fA-F]+|[0-9]+)\\s*" : false,
      title: isNumber ? "a number, decimal or 0x…" : false,
      required: field.isNeeded ?? false,
      value: field.value ?? "",
      autocomplete: "off",
      spellcheck: "false",
    });
  const element = h("div", { class: "field" },
    h("label", { for: id }, field.label),
    control,
    field.hint ? h("small", { class: "soft" }, field.hint) : null);
  return { name: field.name, element, control };
}

/** Asks for confirmation. */
export function confirm(title: string, lead: string, go: string, done: () => Promise<boolean>): void {
  ask(title, lead, [], go, done);
}
