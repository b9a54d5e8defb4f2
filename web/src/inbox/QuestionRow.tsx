// A question in the list of the inbox.

import { now } from "../app/clock.ts";
import { AgentPath } from "../parts/AgentPath.tsx";
import { Exact, Line } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { plainLine } from "../text/plain.ts";
import { isUrgent, remaining } from "../text/time.ts";
import type { Row } from "./feed.ts";
import { summaryOf } from "./summary.ts";

const KINDS = { permission: "Permission", input: "Question", auth: "Login" } as const;
const MARKS = {
  permission: "M8 2.2l5 2v3.6c0 3-2.100 5-5 6-2.900-1-5-3-5-6V4.200z",
  input: "M2.500 3.500h11v7.500h-6l-3 2.500v-2.500h-2z",
  auth: "M4 7.500h8v5.500H4zM5.700 7.300V5.300a2.300 2.300 0 0 1 4.600 0v2",
} as const;

interface Props {
  row: Row;
  isSelected: boolean;
  isMarked: boolean;
  onSelect: () => void;
  onMark: () => void;
}

export function QuestionRow({ row, isSelected, isMarked, onSelect, onMark }: Props) {
  const { question, closed } = row;
  const summary = summaryOf(question);
  const urgent = question.expiring || isUrgent(question.expiresAt, now.value);
  return (
    <div class={`row kind-${question.kind}${closed === undefined ? "" : " is-closed"}`}>
      <label class="row-mark">
        <input type="checkbox" checked={isMarked} onChange={onMark} disabled={closed !== undefined} />
        <span class="visually-hidden">Mark the question of {question.agentId}</span>
      </label>
      <button
        type="button"
        class="row-button"
        id={`row-${question.id}`}
        data-row
        aria-current={isSelected ? "true" : undefined}
        onClick={onSelect}
      >
        <span class="row-top">
          <svg class="row-kind" width="16" height="16" viewBox="0 0 16 16" role="img" aria-label={KINDS[question.kind]}>
            <path d={MARKS[question.kind]} />
          </svg>
          <AgentPath path={question.path} agent={question.agentId} />
          <span class="row-time">
            {urgent && question.expiresAt !== undefined ? (
              <span class="urgent">{remaining(question.expiresAt, now.value)}</span>
            ) : (
              <Time time={question.openedAt} />
            )}
          </span>
        </span>
        <span class={summary.isCommand ? "row-text is-command" : "row-text"}>
          {summary.isCommand ? <Exact text={summary.text} /> : <Line text={summary.text} />}
        </span>
        <span class="row-note">
          {closed !== undefined && (
            <strong>
              <Line text={closed} />
            </strong>
          )}
          {closed !== undefined && question.request !== "" && " · "}
          <Line text={plainLine(question.request)} />
          {question.setAside && closed === undefined && <span class="tag">set aside</span>}
          {question.queued && <span class="tag">asked next</span>}
        </span>
      </button>
    </div>
  );
}
