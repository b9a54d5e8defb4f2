// Health of an agent as a mark and a word.

import type { Agent } from "../hub/types.ts";

const NAMES: Record<string, string> = { healthy: "Healthy", degraded: "Degraded", unhealthy: "Unhealthy", unknown: "Unknown" };

export function Health({ health }: { health: Agent["health"] }) {
  const status = health?.status ?? "unknown";
  return (
    <span class={`health health-${status}`}>
      <span class="health-mark" aria-hidden="true" />
      {NAMES[status] ?? status}
    </span>
  );
}
