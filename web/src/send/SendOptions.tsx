// Options of a message: worktree, model, effort and permissions.

import type { Agent } from "../hub/types.ts";

export interface Options {
  worktree: boolean;
  model: string;
  effort: string;
  permissions: string;
}

export const NO_OPTIONS: Options = { worktree: false, model: "", effort: "", permissions: "" };

const PERMISSIONS = ["read-only", "ask", "edit", "full"];

interface Props {
  agent: Agent | undefined;
  options: Options;
  setOptions: (options: Options) => void;
  hasDirectory: boolean;
}

export function SendOptions({ agent, options, setOptions, hasDirectory }: Props) {
  const most = PERMISSIONS.indexOf(agent?.permissions ?? "");
  return (
    <div class="send-options">
      <label class="check">
        <input
          type="checkbox"
          checked={options.worktree}
          disabled={!hasDirectory}
          onChange={(event) => setOptions({ ...options, worktree: event.currentTarget.checked })}
        />
        <span>
          In a worktree <span class="muted">(a copy of the git repository; you take over the changes you like)</span>
        </span>
      </label>
      {most >= 0 && (
        <Choice
          name="Permissions"
          value={options.permissions}
          values={PERMISSIONS.slice(0, most + 1)}
          initial={agent?.permissions}
          onChange={(permissions) => setOptions({ ...options, permissions })}
        />
      )}
      {(agent?.models?.values?.length ?? 0) > 0 && (
        <Choice
          name="Model"
          value={options.model}
          values={agent!.models!.values!}
          initial={agent!.models!.default}
          onChange={(model) => setOptions({ ...options, model })}
        />
      )}
      {(agent?.efforts?.values?.length ?? 0) > 0 && (
        <Choice
          name="Effort"
          value={options.effort}
          values={agent!.efforts!.values!}
          initial={agent!.efforts!.default}
          onChange={(effort) => setOptions({ ...options, effort })}
        />
      )}
    </div>
  );
}

interface ChoiceProps {
  name: string;
  value: string;
  values: readonly string[];
  initial: string | undefined;
  onChange: (value: string) => void;
}

function Choice({ name, value, values, initial, onChange }: ChoiceProps) {
  return (
    <label class="choice">
      {name}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{initial === undefined ? "as configured" : `as configured (${initial})`}</option>
        {values.map((it) => (
          <option key={it} value={it}>
            {it}
          </option>
        ))}
      </select>
    </label>
  );
}
