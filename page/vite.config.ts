import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { defineConfig, type Plugin } from "vite";
import { explanations } from "./src/drops/document.ts";

/** What each reason for a drop means, from the one document that says it. */
function dropReasons(): Plugin {
  const [name, document] = ["virtual:drop-reasons", new URL("../docs/drops.md", import.meta.url)];
  return {
    name: "drop-reasons",
    resolveId: (id) => (id === name ? `\0${name}` : null),
    async load(id) {
      if (id !== `\0${name}`) {
        return null;
      }
      return `export default ${JSON.stringify(explanations(await readFile(document, "utf8")))};`;
    },
  };
}

/** Puts script and style into the page, and says by their hashes that nothing else may run. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, item] of Object.entries(bundle)) {
        if (item.type === "chunk") {
          script += item.code.trim();
        } else if (name.endsWith(".css")) {
          style += String(item.source).trim();
        } else {
          continue;
        }
        delete bundle[name];
      }
      const page = bundle["index.html"];
      if (page?.type !== "asset") {
        throw new Error("there is no index.html to put script and style into");
      }
      script = script.replaceAll("</script", "<\\/script");
      const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
      const policy = [
        "default-src 'none'",
        `script-src ${hash(script)}`,
        `style-src ${hash(style)}`,
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
      ].join("; ");
      const html = String(page.source)
        .replaceAll(/\s*<link rel="stylesheet"[^>]*>/g, "")
        .replaceAll(/\s*<script type="module"[^>]*><\/script>/g, "")
        .replace("<meta charset=\"utf-8\">", (meta) =>
          `${meta}\n<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("</head>", () => `<style id="__________cytoscape_stylesheet">${style}</style>\n</head>`)
        .replace("</body>", () => `<script type="module">${script}</script>\n</body>`);
      page.source = `${html.trim()}\n`;
    },
  };
}

export default defineConfig({
  build: { target: "es2022", modulePreload: false, assetsInlineLimit: 0, cssCodeSplit: false },
  plugins: [dropReasons(), oneFile()],
});
