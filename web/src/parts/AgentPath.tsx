// The agents from the root task to the one that asks or works.

import { Exact } from "./Text.tsx";

export function AgentPath({ path, agent }: { path?: readonly string[] | undefined; agent: string }) {
  const agents = path && path.length > 0 ? path : [agent];
  return (
    <span class="agent-path">
      {agents.map((name, at) => (
        <span key={at} class={at === agents.length - 1 ? "agent-name" : "agent-name via"}>
          {at > 0 && (
            <span class="path-arrow" aria-label=" asked ">
              ›
            </span>
          )}
          <Exact text={name} />
        </span>
      ))}
    </span>
  );
}
