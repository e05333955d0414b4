/** What docs/drops.md says of each reason for a drop: read when the page is built. */

export interface Explanation {
  /** What happened, a sentence of Markdown without links. */
  what: string;
  /** What to look at. */
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

/** A link's words alone: they lead to other documents, which the page does not have. */
function withoutLinks(text: string): string {
  return text.replaceAll(LINK, "$1");
}
