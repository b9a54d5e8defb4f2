// Times as people read them.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function span(ms: number): string {
  if (ms < MINUTE) return `${Math.max(1, Math.floor(ms / 1000))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** `2 min ago`, `in 3 h`, `just now`. */
export function relative(time: string, now: number): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  const past = now - at;
  if (past >= 0) return past < 10_000 ? "just now" : `${span(past)} ago`;
  return -past < 1_000 ? "now" : `in ${span(-past)}`;
}

/** Rest until a deadline: `3 h left`, or `overdue`. */
export function remaining(time: string, now: number): string {
  const rest = Date.parse(time) - now;
  if (Number.isNaN(rest)) return time;
  return rest <= 0 ? "overdue" : `${span(rest)} left`;
}

/** True if a deadline is within an hour. */
export function isUrgent(time: string | undefined, now: number): boolean {
  return time !== undefined && Date.parse(time) - now < HOUR;
}

/** Length of a stretch of time: `1 min 20 s`. */
export function duration(from: string, to: string): string {
  const ms = Date.parse(to) - Date.parse(from);
  if (Number.isNaN(ms)) return "";
  if (ms < 1000) return `${Math.max(0, ms)} ms`;
  if (ms < MINUTE) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / 1000)} s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

/** Milliseconds until nine o'clock of the next morning. */
export function untilTomorrow(now: Date): number {
  const morning = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1, 9, 0, 0, 0);
  return morning.getTime() - now.getTime();
}
