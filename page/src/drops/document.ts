/** The explanations of drop reasons in docs/drops.md, read when the page is built. */

export interface Explanation {
  /** The cause, a sentence of Markdown without links. */
  what: string;
  /** What to check. */
  look: string;
}

const ROW = /^\| `([a-z0-9_]+)` \| (.+?) \| (.+?) \|$/;
const LINK = /\[((?:[^\[\]]|\[[^\[\]]*\]|\[\[[^\[\]]*\]\])+)\]\([^()]*\)/g;

/** The rows of the document's tables, by reason. */
export function explanations(document: string): Record<string, Explanation> {
  const found: Record<string, Explanation> = {};
  let above = "";
  for (const line of document.split("\n")) {
    const [, reason, what, look] = ROW.exec(line) ?? [];
    if (reason !== undefined && what !== undefined && look !== undefined) {
      above = look === "As above." ? above : look;
      found[reason] = { what: withoutLinks(what), look: withoutLinks(above) };
    }
  }
  return found;
}

/** The text of links without their targets, which are documents that the page does not have. */
function withoutLinks(text: string): string {
  return text.replaceAll(LINK, "$1");
}
