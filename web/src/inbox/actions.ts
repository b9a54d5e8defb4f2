// Answers to questions, with a note about what went wrong.

import { notify } from "../app/announce.ts";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import type { Question } from "../hub/types.ts";
import { untilTomorrow } from "../text/time.ts";
import { count } from "../text/words.ts";
import { answerQuestions, rows } from "./feed.ts";

const HOUR = 3_600_000;

export const LATER: { label: string; ms: () => number }[] = [
  { label: "1 h", ms: () => HOUR },
  { label: "4 h", ms: () => 4 * HOUR },
  // A day is the default limit of the hub (`answer_timeout_ms`).
  { label: "Tomorrow", ms: () => Math.min(24 * HOUR, untilTomorrow(new Date())) },
];

function messageOf(error: unknown): string {
  return error instanceof HubError ? error.message : String(error);
}

/** Answers one question. Returns why it was refused, if it was. */
export async function answerOne(
  question: Question,
  answer: string,
  always?: { trustsWorkspace?: boolean; forMs?: number },
): Promise<string | undefined> {
  try {
    const [result] = await answerQuestions([question.id], answer, always);
    if (!result) return "The hub gave no answer.";
    if (result.answered) return undefined;
    return result.error ?? "The question is not open any more.";
  } catch (error) {
    return messageOf(error);
  }
}

/** Answers several permissions at once. */
export async function answerMany(questions: Question[], answer: "allow" | "deny"): Promise<void> {
  try {
    for (let at = 0; at < questions.length; at += 100) {
      const part = questions.slice(at, at + 100);
      const results = await answerQuestions(part.map((it) => it.id), answer);
      const refused = results.filter((it) => !it.answered);
      if (refused.length > 0) {
        notify(`${count(refused.length, "question")} not answered: ${refused[0]?.error ?? ""}`, true);
      }
    }
  } catch (error) {
    notify(`Not answered: ${messageOf(error)}`, true);
  }
}

/** Sets a question aside. */
export async function setAside(question: Question, forMs: number): Promise<void> {
  try {
    const changed = await call<Question>("hub/questions/later", { id: question.id, forMs });
    rows.value = rows.value.map((row) =>
      row.question.id === question.id ? { ...row, question: { ...question, ...changed, setAside: true } } : row,
    );
    notify("Set aside. The deadline moved, and the question is listed last.");
  } catch (error) {
    notify(`Not set aside: ${messageOf(error)}`, true);
  }
}
