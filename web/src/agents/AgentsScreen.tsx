// The agents of the hub with their health, read only.

import { Link } from "../app/Link.tsx";
import { call } from "../hub/call.ts";
import { useQuery } from "../hub/use-query.ts";
import type { Agent } from "../hub/types.ts";
import { Command } from "../parts/Command.tsx";
import { Empty } from "../parts/Empty.tsx";
import { Failure } from "../parts/Failure.tsx";
import { LongText } from "../parts/LongText.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { visibleText } from "../text/visible.ts";
import { count } from "../text/words.ts";
import { Health } from "./Health.tsx";

export function AgentsScreen() {
  const agents = useQuery("agents", (abort) => call<Agent[]>("hub/agents/list", { includeHealth: true }, abort), {
    concerns: (changes) => changes.agents,
  });
  return (
    <div class="screen agents">
      <header class="screen-head">
        <h1>Agents</h1>
      </header>
      {agents.error && <Failure error={agents.error} onRetry={agents.refresh} />}
      {agents.data?.length === 0 && (
        <Empty title="The hub has no agents.">
          <p>
            In a terminal: <code>a2a-hub plugin add FILE</code>
          </p>
        </Empty>
      )}
      <ul class="agent-list" aria-label="Agents">
        {[...(agents.data ?? [])].sort((a, b) => a.id.localeCompare(b.id)).map((agent) => (
          <li key={agent.id}>
            <AgentView agent={agent} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function AgentView({ agent }: { agent: Agent }) {
  const { health } = agent;
  const isWell = health?.status === "healthy";
  return (
    <article class="agent" aria-labelledby={`agent-${agent.id}`}>
      <div class="agent-head">
        <h2 id={`agent-${agent.id}`}>
          <Exact text={agent.name} />
          {agent.name !== agent.id && (
            <span class="agent-id muted">
              <Exact text={agent.id} />
            </span>
          )}
        </h2>
        <Health health={health} />
        {agent.permissions !== undefined && <span class="tag">permissions: {agent.permissions}</span>}
        {agent.tier !== undefined && <span class="tag">{agent.tier}</span>}
        {agent.heldBack !== undefined && <span class="tag tag-warning">an update waits for approval</span>}
        <span class="agent-links">
          <Link to={`send?agent=${encodeURIComponent(agent.id)}`} label={`Send to ${visibleText(agent.name)}`}>
            Send
          </Link>
          <Link to={`tasks?agent=${encodeURIComponent(agent.id)}`} label={`Tasks of ${visibleText(agent.name)}`}>
            Tasks
          </Link>
        </span>
      </div>
      <LongText text={agent.card.description ?? ""} limit={400}>
        {(shown) => (
          <p class="muted">
            <Prose text={shown} />
          </p>
        )}
      </LongText>
      {!isWell && health?.errorMessage !== undefined && (
        <p class="agent-error">
          <Prose text={health.errorMessage} />
          {health.lastCheck !== undefined && (
            <span class="muted">
              {" "}
              (checked <Time time={health.lastCheck} />)
            </span>
          )}
        </p>
      )}
      {!isWell && health?.fix !== undefined && <Command text={health.fix} />}
      {(agent.notGranted?.length ?? 0) > 0 && (
        <details class="more">
          <summary>{count(agent.notGranted!.length, "capability", "capabilities")} not granted</summary>
          <ul class="not-granted">
            {agent.notGranted!.map((it, at) => (
              <li key={at}>
                <p>
                  <Exact text={it.capability} />
                  {it.what !== undefined && (
                    <span class="muted">
                      {" "}
                      <Prose text={it.what} />
                    </span>
                  )}
                </p>
                {it.command !== undefined && <Command text={it.command} />}
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  );
}
