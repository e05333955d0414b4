/** Formats of numbers. */

const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** A rate in octets per second, as bit/s. */
export function rate(octetsPerSecond: number): string {
  return `${prefixed(octetsPerSecond * 8)}bit/s`;
}

function prefixed(value: number): string {
  let power = 0;
  while (value >= 999.5 && power < PREFIXES.length - 1) {
    value /= 1000;
    power += 1;
  }
  const digits = value >= 100 || power === 0 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${PREFIXES[power] ?? ""}`;
}

/** A count with thousands separators. */
export function count(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** A time of day, with milliseconds. */
export function clock(unixMs: number): string {
  const date = new Date(unixMs);
  const two = (value: number): string => String(value).padStart(2, "0");
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** A duration in nanoseconds. */
export function duration(ns: number): string {
  if (ns < 1e3) {
    return `${ns} ns`;
  }
  const [value, unit] = ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`;
}

/** How far one PSN is behind another, modulo 2^24. */
export function psnDistance(from: number, to: number): number {
  return (to - from) & 0xffffff;
}
