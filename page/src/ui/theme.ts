/** The theme: light, dark, or the system's. Stored in the browser. */

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const KEY = "srdma-theme";

function current(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === kept) ?? "system";
}

function apply(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  // Canvases read the colours again.
  window.dispatchEvent(new Event("colours"));
}

/** The name of the current theme. */
export function themeName(): string {
  return current();
}

/** Selects the next theme. */
export function nextTheme(): string {
  const theme = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length] ?? "system";
  localStorage.setItem(KEY, theme);
  apply(theme);
  return theme;
}

/** Applies the stored theme, and follows changes of the system's. */
export function beginTheme(): void {
  apply(current());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(current()));
}
