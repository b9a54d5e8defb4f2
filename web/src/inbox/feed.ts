// Open questions of all tasks, shared by the inbox, the number beside its name, and the screen
// of a task.

import { batch, signal } from "@preact/signals";
import { announce } from "../app/announce.ts";
import { call } from "../hub/call.ts";
import type { HubError } from "../hub/request.ts";
import type { AnswerResult, PastQuestion, Question } from "../hub/types.ts";
import { outcomeText, ownOutcome } from "./outcome.ts";

export interface Row {
  question: Question;
  /** Text of a row that is closed and leaves soon: who answered, and how. */
  closed?: string;
}

/** Time for which a closed question stays visible, in milliseconds. */
const CLOSED_FOR = 5_000;

export const rows = signal<Row[]>([]);
export const total = signal(0);
export const loaded = signal(false);
export const failure = signal<HubError | undefined>(undefined);

const known = new Set<string>();
const closing = new Map<string, string>();

/** Reads the open questions; the limit grows on demand. */
export const limit = signal(200);

export async function readQuestions(abort: AbortSignal): Promise<void> {
  const result = await call<{ questions: Question[]; total: number }>("hub/questions/list", { limit: limit.value }, abort);
  await take(result.questions, result.total);
}

async function take(questions: Question[], newTotal: number): Promise<void> {
  const open = new Set(questions.map((it) => it.id));
  const gone = rows.value.filter((row) => !open.has(row.question.id) && row.closed === undefined);
  const unexplained = gone.filter((row) => !closing.has(row.question.id));
  if (unexplained.length > 0 && newTotal <= questions.length) await explain(unexplained);
  const fresh = questions.filter((it) => !known.has(it.id));
  const kept: Row[] = rows.value
    .filter((row) => !open.has(row.question.id))
    .flatMap((row) => {
      const closed = row.closed ?? closing.get(row.question.id);
      return closed === undefined ? [] : [{ question: row.question, closed }];
    });
  batch(() => {
    rows.value = merge(questions.map((question) => withNote(question)), kept);
    total.value = newTotal;
    failure.value = undefined;
    if (loaded.value && fresh.length > 0) {
      const first = fresh[0]!;
      announce(
        fresh.length === 1
          ? `New question from ${first.agentId}. ${newTotal} open.`
          : `${fresh.length} new questions. ${newTotal} open.`,
      );
    }
    loaded.value = true;
  });
  for (const question of fresh) known.add(question.id);
}

function withNote(question: Question): Row {
  const closed = closing.get(question.id);
  return closed === undefined ? { question } : { question, closed };
}

/** Puts closed rows where they were, so that nothing jumps below the pointer. */
function merge(open: Row[], kept: Row[]): Row[] {
  const before = rows.value.map((row) => row.question.id);
  const result = [...open];
  for (const row of kept) {
    const at = before.indexOf(row.question.id);
    result.splice(Math.min(at, result.length), 0, row);
  }
  return result;
}

/** Finds out who answered questions that are open no longer. */
async function explain(gone: Row[]): Promise<void> {
  let past: PastQuestion[] = [];
  try {
    past = (await call<{ questions: PastQuestion[] }>("hub/questions/history", { limit: 100 })).questions;
  } catch {
    // The rows leave without an explanation.
  }
  for (const row of gone) {
    const found = past.find((it) => it.id === row.question.id);
    close(row.question.id, found ? outcomeText(found) : "Closed");
  }
}

/** Marks a question as closed; its row leaves after a while. */
export function close(id: string, text: string): void {
  closing.set(id, text);
  rows.value = rows.value.map((row) => (row.question.id === id ? { ...row, closed: text } : row));
  setTimeout(() => {
    closing.delete(id);
    rows.value = rows.value.filter((row) => row.question.id !== id || row.closed === undefined);
  }, CLOSED_FOR);
}

/** Answers questions, and closes the rows of those that are answered. */
export async function answerQuestions(
  ids: string[],
  answer: string,
  always?: { trustsWorkspace?: boolean; forMs?: number },
): Promise<AnswerResult[]> {
  // Before the call: a row may leave during it.
  const kinds = new Map(rows.value.map((row) => [row.question.id, row.question.kind]));
  const results = await call<AnswerResult[]>("hub/questions/answer", { ids, answer, ...(always ? { always } : {}) });
  for (const result of results) {
    if (result.answered) {
      const name = ownOutcome(kinds.get(result.id) ?? "permission", answer);
      close(result.id, result.rules?.length ? `${name}, with a rule from now on` : name);
      for (const id of result.alsoAllowed ?? []) close(id, "Allowed by your new rule");
    } else if (result.earlier) {
      close(result.id, outcomeText(result.earlier));
    }
  }
  total.value = rows.value.filter((row) => row.closed === undefined).length;
  return results;
}
