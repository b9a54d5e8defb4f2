// Choice of the agent, with its health and what it does.

import type { Agent } from "../hub/types.ts";
import { Command } from "../parts/Command.tsx";
import { Health } from "../agents/Health.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { cut } from "../text/words.ts";

interface Props {
  agents: Agent[];
  chosen: string;
  onChoose: (id: string) => void;
}

function isUsable(agent: Agent): boolean {
  return agent.health?.status !== "unhealthy";
}

/** Agents for people, those that work first. */
export function offered(agents: readonly Agent[]): Agent[] {
  return agents
    .filter((agent) => !agent.unlisted)
    .sort((a, b) => Number(isUsable(b)) - Number(isUsable(a)) || a.id.localeCompare(b.id));
}

export function AgentPicker({ agents, chosen, onChoose }: Props) {
  return (
    <fieldset class="agent-picker">
      <legend>Agent</legend>
      <div class="agent-choices">
        {offered(agents).map((agent) => (
          <label key={agent.id} class={agent.id === chosen ? "agent-choice is-chosen" : "agent-choice"}>
            <input
              type="radio"
              name="agent"
              value={agent.id}
              checked={agent.id === chosen}
              onChange={() => onChoose(agent.id)}
            />
            <span class="agent-choice-name">
              <Exact text={agent.name} />
              {agent.name !== agent.id && (
                <span class="muted">
                  {" "}
                  <Exact text={agent.id} />
                </span>
              )}
            </span>
            <Health health={agent.health} />
            <span class="agent-choice-text muted">
              <Prose text={cut(agent.card.description ?? "", 180)} />
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** How to repair the chosen agent, if it does not work. */
export function Repair({ agent }: { agent: Agent | undefined }) {
  if (!agent || agent.health?.status !== "unhealthy") return null;
  return (
    <div class="warning-line repair">
      <p>
        <Prose text={agent.health.errorMessage ?? "This agent does not work now."} />
      </p>
      {agent.health.fix !== undefined && (
        <>
          <p>To repair it:</p>
          <Command text={agent.health.fix} />
        </>
      )}
    </div>
  );
}
