/** Light, dark, or what the system says. Kept in this browser. */

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const KEY = "srdma-theme";

function current(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === kept) ?? "system";
}

function apply(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  // What draws on canvases asks for the colours anew.
  window.dispatchEvent(new Event("colours"));
}

/** The name of the theme that is in effect. */
export function themeName(): string {
  return current();
}

/** Goes on to the next one. */
export function nextTheme(): string {
  const theme = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length] ?? "system";
  localStorage.setItem(KEY, theme);
  apply(theme);
  return theme;
}

/** Puts the kept theme into effect, and follows the system's. */
export function beginTheme(): void {
  apply(current());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(current()));
}
