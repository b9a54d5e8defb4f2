// How a question ended, in words.

import type { PastQuestion } from "../hub/types.ts";
import { cut } from "../text/words.ts";

const TIMED = new Map([
  ["expired", "Expired: not answered in time, or withdrawn"],
  ["replaced", "Replaced by another question of its task"],
  ["completed", "Closed: the task completed"],
  ["failed", "Closed: the task failed"],
  ["canceled", "Closed: the task was canceled"],
  ["rejected", "Closed: the task was rejected"],
]);

/** Verdict of an answer to a permission. */
export function verdict(question: PastQuestion): "allowed" | "denied" | "answered" | "closed" {
  if (question.outcome === "allowed-by-rule") return "allowed";
  if (question.outcome === "denied-by-rule") return "denied";
  if (question.outcome !== "answered") return "closed";
  if (question.kind !== "permission") return "answered";
  return /^(allow|yes|y|ok)\b/i.test(question.answer ?? "") ? "allowed" : "denied";
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
