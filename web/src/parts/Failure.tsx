// Failure of a call, in the hub's own words.

import { connection } from "../hub/session.ts";
import type { HubError } from "../hub/request.ts";
import { Command } from "./Command.tsx";
import { Prose } from "./Text.tsx";

export function Failure({ error, onRetry }: { error: HubError; onRetry?: () => void }) {
  if (error.kind === "unpaired") return null;
  const fix = error.data.fix;
  return (
    <div class="failure" role="alert">
      <p>
        {error.kind === "network" && connection.value === "online" ? (
          "The hub did not answer. It does again now: try again."
        ) : (
          <Prose text={error.message} />
        )}
      </p>
      {typeof fix === "string" && <Command text={fix} />}
      {onRetry && (
        <button type="button" class="small-button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
