import type { Problem } from "./types.ts";

/** A refusal of the controller, or a failed connection (status 0). */
export class Refusal extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

const TOKEN = "srdma-token";

/** The bearer token, kept until the tab is closed. */
export const token = {
  read: (): string => sessionStorage.getItem(TOKEN) ?? "",
  write: (text: string): void => (text ? sessionStorage.setItem(TOKEN, text) : sessionStorage.removeItem(TOKEN)),
};

/** Sends a request to the controller; `body` is sent as JSON. */
export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await open(method, path, body);
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}

/** The same; returns the response before its body is read. */
export async function open(method: string, path: string, body?: unknown, more: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = { ...(more.headers as Record<string, string> | undefined) };
  const bearer = token.read();
  if (bearer) {
    headers["authorization"] = `Bearer ${bearer}`;
  }
  if (body !== undefined) {
    headers["content-type"] = "application/json";
  }
  if (method === "POST") {
    headers["idempotency-key"] = randomKey();
  }
  const init: RequestInit = { ...more, method, headers, cache: "no-store" };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    throw new Refusal({ type: "", title: "The controller is unreachable", status: 0, detail: String(error) });
  }
  if (!response.ok) {
    throw new Refusal(await problemOf(response));
  }
  return response;
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Partial<Problem>;
    if (typeof problem.title === "string") {
      return { type: problem.type ?? "", title: problem.title, status: response.status, detail: problem.detail ?? "" };
    }
  } catch {
    // Not JSON: shown as text below.
  }
  return { type: "", title: `Status ${response.status}`, status: response.status, detail: text.slice(0, 200) };
}

/** Works on plain HTTP too, where `crypto.randomUUID` does not. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((octet) => octet.toString(16).padStart(2, "0")).join("");
}
