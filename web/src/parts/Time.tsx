// A time relative to now, with the exact local time as title.

import { now } from "../app/clock.ts";
import { relative } from "../text/time.ts";

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Exact local time. */
export function localTime(time: string): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? time : exact.format(at);
}

export function Time({ time }: { time: string }) {
  return (
    <time dateTime={time} title={localTime(time)}>
      {relative(time, now.value)}
    </time>
  );
}
