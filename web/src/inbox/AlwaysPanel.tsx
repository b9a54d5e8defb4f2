// Shows the rule that `always` would make, and makes it.

import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import { Exact, Prose } from "../parts/Text.tsx";
import { Failure } from "../parts/Failure.tsx";
import { shellText } from "../text/words.ts";
import type { JsonObject, Question } from "../hub/types.ts";

const DAY = 86_400_000;

interface Pattern {
  kind: string;
  words?: string[];
  path?: string;
  directory?: string;
}

interface Preview {
  patterns: Pattern[];
  reason?: string;
  /** Says that the program runs code of the repository. */
  warning?: string;
}

async function preview(question: Question): Promise<Preview> {
  const request = question.permission;
  if (!request || request.action.kind === "other") return { patterns: [], reason: "The hub cannot read the request exactly." };
  const { action } = request;
  const tests: JsonObject[] =
    action.kind === "run"
      ? [{ run: action.commands.map(shellText).join(" && "), directory: action.directory }]
      : action.paths.slice(0, 20).map((path) => ({ [action.kind]: path, directory: question.directory ?? "/" }));
  const results = await Promise.all(
    tests.map((test) =>
      call<Preview>("hub/permissions/test", {
        agentId: question.agentId,
        vendor: request.vendor,
        ...(question.path.length > 1 ? { through: question.path.slice(0, -1) } : {}),
        ...test,
      }),
    ),
  );
  const reason = results.find((it) => it.reason !== undefined)?.reason;
  const warning = results.find((it) => it.warning !== undefined)?.warning;
  return {
    patterns: results.flatMap((it) => it.patterns ?? []),
    ...(reason === undefined ? {} : { reason }),
    ...(warning === undefined ? {} : { warning }),
  };
}

interface Props {
  question: Question;
  onAllow: (always: { trustsWorkspace?: boolean; forMs?: number }) => Promise<string | undefined>;
  onClose: () => void;
}

export function AlwaysPanel({ question, onAllow, onClose }: Props) {
  const [rule, setRule] = useState<Preview>();
  const [failure, setFailure] = useState<HubError>();
  const [days, setDays] = useState("30");
  const [trusts, setTrusts] = useState(false);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    let gone = false;
    preview(question)
      .then((it) => !gone && setRule(it))
      .catch((it) => !gone && setFailure(it instanceof HubError ? it : new HubError("http", String(it))));
    return () => {
      gone = true;
    };
  }, [question.id]);
  const isReady = rule !== undefined || failure !== undefined;
  useEffect(() => button.current?.focus(), [isReady]);
  const allow = async () => {
    setBusy(true);
    const refused = await onAllow({ forMs: Number(days) * DAY, ...(trusts ? { trustsWorkspace: true } : {}) });
    setBusy(false);
    if (refused === undefined) onClose();
    else setError(refused);
  };
  return (
    <section class="always" aria-label="Rule for the same request" onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <h3>Allow, and from now on without asking</h3>
      {rule && rule.patterns.length > 0 && (
        <ul class="paths">
          {rule.patterns.map((pattern, at) => (
            <li key={at}>
              <PatternText pattern={pattern} />
            </li>
          ))}
        </ul>
      )}
      {rule?.reason !== undefined && (
        <p class="warning-line">
          <Prose text={rule.reason} />
        </p>
      )}
      {rule?.warning !== undefined && (
        <p class="warning-line">
          <Prose text={rule.warning} />
        </p>
      )}
      {failure && <Failure error={failure} />}
      <p class="muted">
        Exactly this, for the agent <Exact text={question.agentId} />
        {question.permission && (
          <>
            {" "}
            with its program <Exact text={question.permission.vendor} />
          </>
        )}
        {question.path.length > 1 && (
          <>
            , asked through <Exact text={question.path.slice(0, -1).join(" › ")} />
          </>
        )}
        , in this repository, for tasks that you begin. <code>a2a-hub permissions list</code> shows the rules.
      </p>
      <div class="always-row">
        <label>
          Ends after{" "}
          <select value={days} onChange={(event) => setDays(event.currentTarget.value)}>
            <option value="1">1 day</option>
            <option value="7">7 days</option>
            <option value="30">30 days</option>
            <option value="0">never</option>
          </select>
        </label>
        {(rule?.warning !== undefined || error !== "") && (
        <label class="check">
          <input type="checkbox" checked={trusts} onChange={(event) => setTrusts(event.currentTarget.checked)} />
          I trust this workspace: the program may run code of the repository, which the agent may change
        </label>
        )}
      </div>
      {error !== "" && (
        <p class="error-line" role="alert">
          <Prose text={error} />
        </p>
      )}
      <div class="buttons">
        <button ref={button} type="button" class="primary" disabled={busy || !isReady} onClick={() => void allow()}>
          Allow and make the rule
        </button>
        <button type="button" onClick={onClose}>
          Back
        </button>
      </div>
    </section>
  );
}

function PatternText({ pattern }: { pattern: Pattern }) {
  const what = pattern.kind === "run" ? shellText(pattern.words ?? []) : (pattern.path ?? "");
  return (
    <code>
      {pattern.kind} <Exact text={what} />
      {pattern.directory ? (
        <>
          {" "}
          in <Exact text={pattern.directory} />
        </>
      ) : null}
    </code>
  );
}
