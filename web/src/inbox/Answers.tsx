// The answers to a question: allow, always, deny, text, choices, later.

import { useEffect, useImperativeHandle, useRef, useState } from "preact/hooks";
import { notify } from "../app/announce.ts";
import { Prose } from "../parts/Text.tsx";
import type { Question } from "../hub/types.ts";
import { LATER, answerOne, setAside } from "./actions.ts";
import { AlwaysPanel } from "./AlwaysPanel.tsx";
import { FormAnswer } from "./FormAnswer.tsx";
import type { Details } from "./summary.ts";

/** What keyboard shortcuts do with the shown question. */
export interface AnswersHandle {
  allow: () => void;
  deny: () => void;
  denyWithReason: () => void;
  always: () => void;
  later: () => void;
}

/** True if the whole element is in the window. */
function isInView(element: HTMLElement | null): boolean {
  if (!element) return false;
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && bottom <= window.innerHeight + 4;
}

interface Props {
  question: Question;
  details: Details | undefined;
  draft: string;
  setDraft: (text: string) => void;
  handle?: { current: AnswersHandle | null } | undefined;
}

export function Answers({ question, details, draft, setDraft, handle }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [isAlways, setAlways] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const firstLater = useRef<HTMLButtonElement>(null);
  const isPermission = question.kind === "permission";
  const canRule = isPermission && question.permission !== undefined && question.permission.action.kind !== "other";
  useEffect(() => {
    setError("");
    setAlways(false);
  }, [question.id]);

  const answer = async (text: string, always?: { trustsWorkspace?: boolean; forMs?: number }) => {
    if (busy) return "busy";
    setBusy(true);
    setError("");
    const refused = await answerOne(question, text, always);
    setBusy(false);
    if (refused === undefined) setDraft("");
    else if (!always) setError(refused);
    return refused;
  };
  const deny = () => void answer(draft.trim() === "" ? "deny" : `no, ${draft.trim()}`);
  const openAlways = () => {
    if (canRule) setAlways(true);
    else if (isPermission) setError("No rule can answer this: the hub cannot read the request exactly.");
  };
  useImperativeHandle(handle ?? { current: null }, () => ({
    allow: () => {
      if (isPermission && !isInView(root.current)) {
        // A key must not allow what nobody has scrolled to.
        root.current?.scrollIntoView({ block: "end" });
        notify("This is all of it. Press y again to allow it.");
      } else if (isPermission) void answer("allow");
      else field.current?.focus();
    },
    deny: () => {
      if (isPermission) deny();
      else field.current?.focus();
    },
    denyWithReason: () => field.current?.focus(),
    always: openAlways,
    later: () => firstLater.current?.focus(),
  }));

  const choices = [...new Set([...(question.choices ?? []), ...(details?.choices ?? [])])].filter(
    (choice) => !isPermission || !["allow", "deny", "yes", "no"].includes(choice),
  );
  const submit = (event: Event) => {
    event.preventDefault();
    if (isPermission) deny();
    else if (draft.trim() !== "") void answer(draft);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };

  if (isAlways) {
    return (
      <AlwaysPanel question={question} onAllow={(always) => answer("allow", always)} onClose={() => setAlways(false)} />
    );
  }
  const id = `answer-${question.id}`;
  return (
    <div class="answers" ref={root}>
      {choices.length > 0 && (
        <div class="buttons" role="group" aria-label="Choices of the agent">
          {choices.map((choice) => (
            <button key={choice} type="button" disabled={busy} onClick={() => void answer(choice)}>
              <Prose text={choice} />
            </button>
          ))}
        </div>
      )}
      {details?.form && !isPermission ? (
        <FormAnswer key={question.id} form={details.form} busy={busy} onAnswer={(text) => void answer(text)} />
      ) : (
        <form onSubmit={submit} class="answer-form">
          <label for={id}>
            {isPermission ? "Reason, if you deny" : question.kind === "auth" ? "Answer, after you logged in" : "Your answer"}
          </label>
          <textarea
            id={id}
            ref={field}
            rows={isPermission ? 1 : 3}
            value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={onKeyDown}
          />
          <div class="buttons">
            {isPermission ? (
              <>
                <button type="button" class="primary" disabled={busy} onClick={() => void answer("allow")}>
                  Allow once <kbd>y</kbd>
                </button>
                <button type="submit" class="danger" disabled={busy}>
                  {draft.trim() === "" ? "Deny" : "Deny with reason"} <kbd>n</kbd>
                </button>
                {canRule && (
                  <button type="button" disabled={busy} onClick={openAlways}>
                    Always… <kbd>a</kbd>
                  </button>
                )}
              </>
            ) : (
              <button type="submit" class="primary" disabled={busy || draft.trim() === ""}>
                Answer <kbd>Ctrl Enter</kbd>
              </button>
            )}
            <span class="later" role="group" aria-label="Set aside">
              <span class="muted" aria-hidden="true">
                Later <kbd>l</kbd>
              </span>
              {LATER.map((choice, at) => (
                <button
                  key={choice.label}
                  ref={at === 0 ? firstLater : null}
                  type="button"
                  class="small-button"
                  aria-label={`Set aside: ${choice.label}`}
                  onClick={() => void setAside(question, choice.ms())}
                >
                  {choice.label}
                </button>
              ))}
            </span>
          </div>
        </form>
      )}
      {error !== "" && (
        <p class="error-line" role="alert">
          <Prose text={error} />
        </p>
      )}
    </div>
  );
}
