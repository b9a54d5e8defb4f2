// Questions of the past, the latest first: answers, and who gave them.

import { useState } from "preact/hooks";
import { Link } from "../app/Link.tsx";
import { taskPath } from "../app/router.ts";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import { useQuery } from "../hub/use-query.ts";
import type { PastQuestion } from "../hub/types.ts";
import { Empty } from "../parts/Empty.tsx";
import { Failure } from "../parts/Failure.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { cut } from "../text/words.ts";
import { outcomeText, verdict } from "./outcome.ts";
import { questionLine } from "./summary.ts";

interface Page {
  questions: PastQuestion[];
  next?: number;
}

export function History() {
  const first = useQuery("history", (abort) => call<Page>("hub/questions/history", { limit: 100 }, abort));
  const [more, setMore] = useState<Page[]>([]);
  const [failure, setFailure] = useState<HubError>();
  if (first.error && !first.data) return <Failure error={first.error} onRetry={first.refresh} />;
  if (!first.data) return null;
  const seen = new Set<string>();
  const questions = [first.data, ...more].flatMap((page) => page.questions).filter((it) => !seen.has(it.id) && seen.add(it.id));
  const next = (more.at(-1) ?? first.data).next;
  const load = async () => {
    try {
      const page = await call<Page>("hub/questions/history", { limit: 100, before: next });
      setMore([...more, page]);
      setFailure(undefined);
    } catch (error) {
      setFailure(error instanceof HubError ? error : new HubError("http", String(error)));
    }
  };
  if (questions.length === 0) {
    return (
      <Empty title="No question was answered yet.">
        <p>Answered, expired and withdrawn questions are listed here, with who answered them.</p>
      </Empty>
    );
  }
  return (
    <>
      <ul class="history" aria-label="Earlier questions">
        {questions.map((question) => (
          <li key={question.id}>
            <span class={`verdict verdict-${verdict(question)}`}>
              <Prose text={outcomeText(question)} />
            </span>
            <Link to={taskPath(question.taskId)} class="history-text">
              <Prose text={cut(questionLine(question.text), 300)} />
            </Link>
            <span class="muted history-agent">
              <Exact text={question.agentId} />
            </span>
            <span class="muted history-time">
              <Time time={question.closedAt} />
            </span>
          </li>
        ))}
      </ul>
      {failure && <Failure error={failure} />}
      {next !== undefined && next !== null && (
        <button type="button" class="link-button" onClick={() => void load()}>
          Show earlier questions
        </button>
      )}
    </>
  );
}
