/** uSID programs: paths encoded in destination addresses (RFC 9800). */

/** A decoded id. */
export interface Step {
  /** 16 bits. */
  id: number;
  behavior: "uN" | "uA" | "End.DT6" | "reserved";
  /** Its description, as far as the path is known. */
  meaning: string;
  /** The node or nodes that it names. */
  nodes: string[];
}

/** A container: an address, with the ids behind its block. */
export interface Container {
  address: string;
  /** The block, as hexadecimal groups of 16 bits. */
  block: string[];
  steps: Step[];
  /** Groups of zeros behind the last id. */
  free: number;
}

const PORTS = [0xe000, 0xe3ff] as const;
const TENANTS = [0xf000, 0xffff] as const;
const FIRST_LOCAL = 0xe000;

/** The eight groups of 16 bits of an IPv6 address; `null` when it is none. */
export function groups(address: string): number[] | null {
  const halves = address.trim().toLowerCase().split("::");
  if (halves.length > 2) {
    return null;
  }
  const parse = (half: string): number[] | null => {
    if (half === "") {
      return [];
    }
    const parts = half.split(":");
    return parts.every((part) => /^[0-9a-f]{1,4}$/.test(part)) ? parts.map((part) => parseInt(part, 16)) : null;
  };
  const [front, back] = [parse(halves[0] ?? ""), parse(halves[1] ?? "")];
  if (!front || !back) {
    return null;
  }
  if (halves.length === 1) {
    return front.length === 8 ? front : null;
  }
  const missing = 8 - front.length - back.length;
  return missing < 1 ? null : [...front, ...Array<number>(missing).fill(0), ...back];
}

/** An id in hexadecimal, four digits. */
export function hex(id: number): string {
  return id.toString(16).padStart(4, "0");
}

/** The reason for which addresses are not a program. */
export class NoProgram extends Error {}

/** The path of a program, as far as it is known. */
export interface Way {
  /** Names of the switches, in order. */
  switches: string[];
  /** The receiver behind the last switch. */
  to?: string;
}

/** The switches of a placed flow, whose path may begin and end with its NICs. */
export function wayOf(flow: { from: string; to: string; path: string[] }): Way {
  return { switches: flow.path.filter((name) => name !== flow.from && name !== flow.to), to: flow.to };
}

/**
 * Reads a program: the destination address, then the segments of the SRH. Without a way, ids are told apart by their
 * ranges alone.
 */
export function decode(addresses: string[], blockBits = 32, way: Way = { switches: [] }): Container[] {
  if (blockBits % 16 !== 0 || blockBits < 16 || blockBits > 112) {
    throw new NoProgram(`a block of ${blockBits} bits: expected 16, 32, ... 112`);
  }
  const walk = new Walk(way);
  let block: number[] | null = null;
  return addresses.map((address) => {
    const all = groups(address);
    if (!all) {
      throw new NoProgram(`${address} is not an IPv6 address`);
    }
    const own = all.slice(0, blockBits / 16);
    if (block && block.some((group, at) => group !== own[at])) {
      throw new NoProgram(`${address} is not in the block ${block.map(hex).join(":")}`);
    }
    block = own;
    const ids = all.slice(blockBits / 16);
    const used = ids.findLastIndex((id) => id !== 0) + 1;
    if (used === 0) {
      throw new NoProgram(`${address} is a block without an id`);
    }
    return {
      address,
      block: own.map(hex),
      steps: ids.slice(0, used).map((id) => walk.step(address, id)),
      free: ids.length - used,
    };
  });
}

/** Follows the ids along the path. */
class Walk {
  readonly #switches: string[];
  readonly #names: string[];
  /** The switch that the packet is at; -1 before the first. */
  #at = -1;
  /** A uA has moved it there, so that the uN of the same switch does not move it. */
  #arrived = false;
  #atEnd = false;

  constructor(way: Way) {
    this.#switches = way.switches;
    this.#names = way.to === undefined ? way.switches : [...way.switches, way.to];
  }

  step(address: string, id: number): Step {
    if (id === 0) {
      throw new NoProgram(`${address}: 0x0000 is the end of a container, but ids follow it`);
    }
    if (this.#atEnd) {
      throw new NoProgram(`${address} continues with 0x${hex(id)} behind the service of the tenant`);
    }
    if (id < FIRST_LOCAL) {
      return this.#node(id);
    }
    if (id >= PORTS[0] && id <= PORTS[1]) {
      return this.#link(id, id - PORTS[0]);
    }
    if (id >= TENANTS[0] && id <= TENANTS[1]) {
      return this.#tenant(id, id - TENANTS[0]);
    }
    return { id, behavior: "reserved", meaning: "neither a port nor a tenant", nodes: [] };
  }

  #node(id: number): Step {
    this.#at += this.#arrived ? 0 : 1;
    this.#arrived = false;
    const name = this.#switches[this.#at];
    const meaning = `to ${name ?? "the switch with this id"} by the shortest path`;
    return { id, behavior: "uN", meaning, nodes: name === undefined ? [] : [name] };
  }

  #link(id: number, port: number): Step {
    this.#at = Math.max(this.#at, 0);
    const [from, to] = [this.#switches[this.#at], this.#names[this.#at + 1]];
    this.#at += 1;
    this.#arrived = true;
    const meaning = `${from ?? "the current switch"} sends it by port ${port}${to ? ` to ${to}` : ""}`;
    return { id, behavior: "uA", meaning, nodes: [from, to].filter((name) => name !== undefined) };
  }

  #tenant(id: number, tenant: number): Step {
    this.#atEnd = true;
    const name = this.#switches[Math.max(this.#at, 0)];
    const meaning = `${name ?? "the current switch"} removes the outer header: tenant ${tenant}`;
    return { id, behavior: "End.DT6", meaning, nodes: name === undefined ? [] : [name] };
  }
}
