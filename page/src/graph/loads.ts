/** Lower bounds of the colours, as shares of the most loaded link; the first colour is for links without load. */
const SHARES = [0, 0.25, 0.5, 0.75];

/** Number of colours. */
export const LOADS = SHARES.length + 1;

/** The colour of a load, 0 for none. */
export function loadOf(octetsPerSecond: number, most: number): number {
  if (octetsPerSecond <= 0 || most <= 0) {
    return 0;
  }
  const share = octetsPerSecond / most;
  return SHARES.filter((least) => share > least).length;
}

/**
 * What a most loaded link is held against: rises at once and falls slowly, so that colours do not change because one
 * link has less.
 */
export function yardstick(before: number, now: number): number {
  return now >= before ? now : Math.max(now, before * 0.98);
}
