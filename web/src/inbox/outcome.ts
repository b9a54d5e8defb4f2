// How a question ended, in words.

import type { PastQuestion, QuestionKind } from "../hub/types.ts";
import { cut } from "../text/words.ts";

const TIMED = new Map([
  ["expired", "Expired: not answered in time, or withdrawn"],
  ["replaced", "Replaced by another question of its task"],
  ["completed", "Closed: the task completed"],
  ["failed", "Closed: the task failed"],
  ["canceled", "Closed: the task was canceled"],
  ["rejected", "Closed: the task was rejected"],
]);

/** True if an answer allows a permission, by the rule of the hub: anything but a clear yes denies. */
export function isYes(answer: string): boolean {
  return /^(yes|y|allow|allow-session|always)[.!]*$/i.test(answer.trim());
}

/** Who answered in this browser, and how. */
export function ownOutcome(kind: QuestionKind, answer: string): string {
  if (kind !== "permission") return "Answered by you";
  return isYes(answer) ? "Allowed by you" : "Denied by you";
}

/** Verdict of an answer to a permission. */
export function verdict(question: PastQuestion): "allowed" | "denied" | "answered" | "closed" {
  if (question.outcome === "allowed-by-rule") return "allowed";
  if (question.outcome === "denied-by-rule") return "denied";
  if (question.outcome !== "answered") return "closed";
  if (question.kind !== "permission") return "answered";
  return isYes(question.answer ?? "") ? "allowed" : "denied";
}

/** Who answered, and how: `Denied by operator: use pnpm`. */
export function outcomeText(question: PastQuestion): string {
  if (question.outcome === "allowed-by-rule") return `Allowed by rule ${question.rule ?? ""}`.trim();
  if (question.outcome === "denied-by-rule") return `Denied by rule ${question.rule ?? ""}`.trim();
  if (question.outcome !== "answered") return TIMED.get(question.outcome) ?? question.outcome;
  const by = question.answeredBy === undefined ? "" : ` by ${question.answeredBy}`;
  const answer = question.answer ?? "";
  const kind = verdict(question);
  if (kind === "allowed") return `Allowed${by}`;
  if (kind === "denied") {
    const reason = answer.replace(/^(no|deny|denied)\b[,:.]?\s*/i, "");
    return reason === "" ? `Denied${by}` : `Denied${by}: ${cut(reason, 200)}`;
  }
  return `Answered${by}: ${cut(answer, 200)}`;
}
