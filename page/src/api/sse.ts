/** A server-sent event. */
export interface Message {
  id: string;
  data: string;
}

/**
 * Parses server-sent events from a stream in chunks. `EventSource` cannot send a token, so the stream is read by
 * `fetch`.
 */
export class Messages {
  #rest = "";
  #id = "";
  #data: string[] = [];

  /** Adds a chunk; returns the complete events. */
  take(piece: string): Message[] {
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    const messages: Message[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) {
          messages.push({ id: this.#id, data: this.#data.join("\n") });
        }
        this.#data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") {
        this.#data.push(value);
      } else if (field === "id") {
        this.#id = value;
      }
    }
    return messages;
  }
}
