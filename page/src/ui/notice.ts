import { Refusal } from "../api/client.ts";
import { h } from "./dom.ts";

const notices = h("div", { class: "notices", role: "status", "aria-live": "polite" });
const STAYS_MS = 5000;
const MOST_NOTICES = 3;

/** The element of the notices. */
export function noticeBoard(): HTMLElement {
  return notices;
}

/** Shows a notice for some seconds. */
export function notify(title: string, detail = "", isBad = false): void {
  const notice = h("div", { class: isBad ? "notice bad" : "notice" },
    h("strong", {}, title),
    detail ? h("p", {}, detail) : null,
    h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: () => notice.remove() }, "×"));
  notices.append(notice);
  while (notices.childElementCount > MOST_NOTICES) {
    notices.firstElementChild?.remove();
  }
  setTimeout(() => notice.remove(), isBad ? STAYS_MS * 3 : STAYS_MS);
}

/** Runs a change, and shows its success or the controller's refusal. */
export async function attempt(done: string, change: () => Promise<unknown>): Promise<boolean> {
  try {
    await change();
    notify(done);
    return true;
  } catch (error) {
    if (error instanceof Refusal) {
      notify(error.problem.title, error.problem.detail, true);
    } else {
      notify("Failed", String(error), true);
    }
    return false;
  }
}
