// Answers several marked questions at once, after it showed what they would do.

import { useState } from "preact/hooks";
import { Dialog } from "../parts/Dialog.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { count } from "../text/words.ts";
import type { Question } from "../hub/types.ts";
import { answerMany } from "./actions.ts";
import { summaryOf } from "./summary.ts";

interface Props {
  questions: Question[];
  asked: "allow" | "deny" | undefined;
  ask: (answer: "allow" | "deny" | undefined) => void;
  clear: () => void;
}

export function BatchBar({ questions, asked, ask, clear }: Props) {
  const [busy, setBusy] = useState(false);
  if (questions.length === 0) return null;
  const permissions = questions.filter((it) => it.kind === "permission");
  const confirm = async () => {
    if (!asked) return;
    setBusy(true);
    await answerMany(permissions, asked);
    setBusy(false);
    ask(undefined);
    clear();
  };
  const verb = asked === "deny" ? "Deny" : "Allow";
  return (
    <div class="batch" role="group" aria-label="Marked questions">
      <span>{questions.length} marked</span>
      <button type="button" class="small-button" disabled={permissions.length === 0} onClick={() => ask("allow")}>
        Allow…
      </button>
      <button type="button" class="small-button" disabled={permissions.length === 0} onClick={() => ask("deny")}>
        Deny…
      </button>
      <button type="button" class="small-button" onClick={clear}>
        Clear
      </button>
      {permissions.length < questions.length && <span class="muted">only permissions can be answered together</span>}
      {asked && (
        <Dialog title={`${verb} ${count(permissions.length, "request")}?`} onClose={() => ask(undefined)}>
          {permissions.length < questions.length && (
            <p>
              {count(questions.length, "question")} {questions.length === 1 ? "is" : "are"} marked.{" "}
              {count(questions.length - permissions.length, "of them is no permission and stays", "of them are no permissions and stay")} open.
            </p>
          )}
          <ul class="batch-list">
            {permissions.map((question) => {
              const summary = summaryOf(question);
              return (
                <li key={question.id}>
                  <span class="muted">{question.agentId}</span>{" "}
                  {summary.isCommand ? (
                    <code>
                      <Exact text={summary.text} />
                    </code>
                  ) : (
                    <Prose text={summary.text} />
                  )}
                  {question.directory !== undefined && (
                    <span class="muted">
                      {" "}
                      in <Exact text={question.directory} />
                    </span>
                  )}
                </li>
              );
            })}
          </ul>
          <div class="buttons">
            <button type="button" class={asked === "deny" ? "danger" : "primary"} disabled={busy} onClick={() => void confirm()}>
              {verb} {count(permissions.length, "request")}
            </button>
            <button type="button" onClick={() => ask(undefined)}>
              Back
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
