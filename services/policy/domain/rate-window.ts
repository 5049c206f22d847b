/** A window that requests are counted in: what is left of it, and when there is room again. */

/** What a caller has used in its present window and in the one before; seconds since the present one began. */
export interface RateWindow {
  readonly used: number;
  readonly previous: number;
  readonly elapsed: number;
}

export interface RateLimit {
  readonly limit: number;
  /** Seconds. */
  readonly window: number;
}

/** The window before counts by the part of it that still lies within a window's length. */
function counted({ used, previous, elapsed }: RateWindow, window: number): number {
  return used + Math.floor(previous * Math.min(1, Math.max(0, 1 - elapsed / window)));
}

/** How many requests there is room for. */
export function roomOf(present: RateWindow, { limit, window }: RateLimit): number {
  return Math.max(0, limit - counted(present, window));
}

/** Seconds after which there is room for one request, when no other is counted meanwhile; 0 when there is. */
export function waitOf(present: RateWindow, limits: RateLimit): number {
  if (roomOf(present, limits) > 0) return 0;
  const { used, previous, elapsed } = present;
  const { limit, window } = limits;
  // The rest of the present window may free enough of what the one before used; if not, the next window looks back at this one.
  if (used < limit) return window * (1 - (limit - used) / previous) - elapsed;
  return window - elapsed + Math.max(0, window * (1 - limit / used));
}
