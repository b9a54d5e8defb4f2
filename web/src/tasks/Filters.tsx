// Filters above the list of tasks; the address keeps them.

import { setQuery } from "../app/router.ts";
import { call } from "../hub/call.ts";
import { useQuery } from "../hub/use-query.ts";
import type { Agent } from "../hub/types.ts";
import { recentDirectories } from "../send/directories.ts";
import { FILTER_STATES, stateName } from "../text/words.ts";
import type { Filter } from "./filter.ts";

export function Filters({ filter }: { filter: Filter }) {
  const agents = useQuery("agents", (abort) => call<Agent[]>("hub/agents/list", {}, abort), {
    concerns: (changes) => changes.agents,
  });
  const directories = useQuery("directories", recentDirectories, { concerns: () => false });
  const isFiltered = Object.values(filter).some((it) => it !== "");
  return (
    <form class="filters" role="search" aria-label="Tasks" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        data-search
        aria-label="Search the text, agent, directory or id"
        placeholder="Search"
        value={filter.text}
        onInput={(event) => setQuery({ q: event.currentTarget.value })}
      />
      <select aria-label="State" value={filter.state} onChange={(event) => setQuery({ state: event.currentTarget.value })}>
        <option value="">Any state</option>
        {FILTER_STATES.map((state) => (
          <option key={state} value={state} selected={state === filter.state}>
            {stateName(state)}
          </option>
        ))}
      </select>
      <select aria-label="Agent" value={filter.agent} onChange={(event) => setQuery({ agent: event.currentTarget.value })}>
        <option value="">Any agent</option>
        {withChosen((agents.data ?? []).map((it) => it.id), filter.agent).map((id) => (
          <option key={id} value={id} selected={id === filter.agent}>
            {id}
          </option>
        ))}
      </select>
      <select
        aria-label="Directory"
        value={filter.directory}
        onChange={(event) => setQuery({ directory: event.currentTarget.value })}
      >
        <option value="">Anywhere</option>
        {withChosen(directories.data ?? [], filter.directory).map((directory) => (
          <option key={directory} value={directory} selected={directory === filter.directory}>
            {directory}
          </option>
        ))}
      </select>
      {isFiltered && (
        <button type="button" class="small-button" onClick={() => setQuery({ q: "", state: "", agent: "", directory: "" })}>
          Clear
        </button>
      )}
    </form>
  );
}

function withChosen(values: string[], chosen: string): string[] {
  return chosen === "" || values.includes(chosen) ? values : [chosen, ...values];
}
