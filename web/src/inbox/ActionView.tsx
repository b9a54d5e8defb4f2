// What would be done if the user allows it: command, files with their changes, directory, sandbox.

import { Diff } from "../parts/Diff.tsx";
import { Exact } from "../parts/Text.tsx";
import { shellText } from "../text/words.ts";
import type { Action, Question } from "../hub/types.ts";
import type { Details } from "./summary.ts";
import { Fields } from "./Fields.tsx";

export function ActionView({ question, details }: { question: Question; details: Details | undefined }) {
  const request = question.permission;
  const input = details?.input;
  const hasAction = request !== undefined && request.action.kind !== "other";
  return (
    <div class="action">
      {hasAction && <ActionBody action={request.action} hasChanges={(details?.changes.length ?? 0) > 0} />}
      {request?.outsideSandbox && (
        <p class="warning-line">Runs outside of the sandbox of the program: it may reach files and the network that the sandbox denies.</p>
      )}
      {details?.changes.map((change) => <Diff key={change.path} text={change.diff} />)}
      {request?.action.kind === "other" && (
        <p class="muted">
          The hub cannot read this request exactly: <Exact text={request.action.reason} />
        </p>
      )}
      {input !== undefined &&
        (hasAction || (details?.changes.length ?? 0) > 0 ? (
          <details class="more">
            <summary>Request of the program{details?.tool ? ` (${details.tool})` : ""}</summary>
            <Fields value={input} />
          </details>
        ) : (
          <Fields value={input} />
        ))}
    </div>
  );
}

function ActionBody({ action, hasChanges }: { action: Action; hasChanges: boolean }) {
  if (action.kind === "run") {
    return (
      <>
        <pre class="action-command" tabIndex={0} role="group" aria-label="Command">
          {action.commands.map((words, at) => (
            <code key={at}>
              <span class="prompt" aria-hidden="true">
                {at === 0 ? "$ " : "&& "}
              </span>
              <Exact text={shellText(words)} />
            </code>
          ))}
        </pre>
        <p class="action-place">
          <span class="muted">in</span>{" "}
          <code>
            <Exact text={action.directory} />
          </code>
        </p>
      </>
    );
  }
  if (action.kind === "other") return null;
  return (
    <>
      <p class="action-verb">{action.kind === "edit" ? "Change, create or delete" : "Read"}</p>
      {!(hasChanges && action.paths.length === 1) && (
        <ul class="paths">
          {action.paths.slice(0, 100).map((path) => (
            <li key={path}>
              <code>
                <Exact text={path} />
              </code>
            </li>
          ))}
          {action.paths.length > 100 && <li>and {action.paths.length - 100} more</li>}
        </ul>
      )}
      {hasChanges && action.paths.length === 1 && (
        <p class="action-place">
          <code>
            <Exact text={action.paths[0] ?? ""} />
          </code>
        </p>
      )}
    </>
  );
}
