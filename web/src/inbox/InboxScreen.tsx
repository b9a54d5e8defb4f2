// Start page: the open questions of all tasks, the most urgent first, and what failed lately.

import { useEffect, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../app/keys.ts";
import { Link } from "../app/Link.tsx";
import { isWide } from "../app/media.ts";
import { address, go, taskPath } from "../app/router.ts";
import { Empty } from "../parts/Empty.tsx";
import { Failure } from "../parts/Failure.tsx";
import { count } from "../text/words.ts";
import type { AnswersHandle } from "./Answers.tsx";
import { BatchBar } from "./BatchBar.tsx";
import { failure, limit, loaded, rows, total } from "./feed.ts";
import { History } from "./History.tsx";
import { Notices } from "./Notices.tsx";
import { QuestionCard } from "./QuestionCard.tsx";
import { QuestionRow } from "./QuestionRow.tsx";

/** Time after an unasked change of the selection in which keys answer nothing, in milliseconds. */
const SETTLE = 900;

export function InboxScreen() {
  const view = address.value.query.get("view");
  return (
    <div class="screen inbox">
      <header class="screen-head">
        <h1>Inbox</h1>
        <nav class="tabs" aria-label="Questions">
          <Link to="" current={view !== "history"}>
            Open{total.value > 0 ? ` ${total.value}` : ""}
          </Link>
          <Link to="?view=history" current={view === "history"}>
            History
          </Link>
        </nav>
      </header>
      {view === "history" ? <History /> : <OpenQuestions />}
    </div>
  );
}

/** Question that was selected last: on the way back from its task, it still is. */
let latestId = "";

function OpenQuestions() {
  const [selectedId, setSelectedId] = useState(latestId);
  latestId = selectedId;
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [batch, setBatch] = useState<"allow" | "deny">();
  const handle = useRef<AnswersHandle | null>(null);
  const settledAt = useRef(0);
  const lastAt = useRef(0);
  const list = rows.value;
  const found = list.findIndex((row) => row.question.id === selectedId);
  const at = found >= 0 ? found : Math.min(lastAt.current, list.length - 1);
  const selected = found >= 0 || isWide.value ? list[at] : undefined;
  const shownId = selected?.question.id ?? "";

  useEffect(() => {
    if (found >= 0) lastAt.current = found;
    // The row left, and the next one is shown: a key for the old one must not answer it.
    if (shownId !== "" && shownId !== selectedId) {
      if (selectedId !== "") settledAt.current = Date.now() + SETTLE;
      setSelectedId(shownId);
      // The focus went with the row or its buttons.
      if (selectedId !== "" && document.activeElement === document.body) {
        document.getElementById(`row-${shownId}`)?.focus({ preventScroll: true });
      }
    }
  }, [shownId, selectedId, found]);

  const select = (to: number) => {
    const row = list[Math.max(0, Math.min(list.length - 1, to))];
    if (!row) return;
    setSelectedId(row.question.id);
    const button = document.getElementById(`row-${row.question.id}`);
    button?.focus({ preventScroll: true });
    button?.closest("li")?.scrollIntoView({ block: "nearest" });
  };
  const toggle = (id: string) =>
    setMarked((old) => {
      const next = new Set(old);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  const settled = (run: (to: AnswersHandle) => void) => () => {
    if (handle.current && Date.now() >= settledAt.current) run(handle.current);
  };
  const markedQuestions = list.filter((row) => row.closed === undefined && marked.has(row.question.id)).map((row) => row.question);
  useShortcuts("Inbox", [
    { key: "j", text: "Next question", run: () => select(selected ? at + 1 : 0) },
    { key: "k", text: "Previous question", run: () => select(selected ? at - 1 : 0) },
    { key: "y", text: "Allow once", run: settled((it) => it.allow()) },
    { key: "n", text: "Deny", run: settled((it) => it.deny()) },
    { key: "r", text: "Write the answer, or the reason to deny", run: settled((it) => it.denyWithReason()) },
    { key: "a", text: "Allow always: make a rule", run: settled((it) => it.always()) },
    { key: "l", text: "Later: choose for how long", run: settled((it) => it.later()) },
    { key: "x", text: "Mark for an answer to several", run: () => shownId !== "" && toggle(shownId) },
    { key: "Y", text: "Allow all marked", run: () => markedQuestions.length > 0 && setBatch("allow") },
    { key: "N", text: "Deny all marked", run: () => markedQuestions.length > 0 && setBatch("deny") },
    { key: "Enter", text: "Open its task", run: () => selected && go(taskPath(selected.question.rootTaskId)) },
  ]);

  const card = selected && (
    <QuestionCard key={shownId} question={selected.question} closed={selected.closed} handle={handle} />
  );
  return (
    <>
      {failure.value && <Failure error={failure.value} />}
      <div class={list.length > 0 ? "inbox-body" : "inbox-body is-empty"}>
        <div class="inbox-list">
          <BatchBar questions={markedQuestions} asked={batch} ask={setBatch} clear={() => setMarked(new Set())} />
          {list.length > 0 ? (
            <ul class="rows" aria-label="Open questions">
              {list.map((row, index) => (
                <li key={row.question.id} class={row.question.id === shownId ? "is-selected" : ""}>
                  <QuestionRow
                    row={row}
                    isSelected={row.question.id === shownId}
                    isMarked={marked.has(row.question.id)}
                    onSelect={() => {
                      if (!isWide.value && row.question.id === shownId) setSelectedId("");
                      else select(index);
                    }}
                    onMark={() => toggle(row.question.id)}
                  />
                  {!isWide.value && row.question.id === shownId && card}
                </li>
              ))}
            </ul>
          ) : (
            loaded.value && (
              <Empty title="No agent waits for you.">
                <p>
                  <Link to="send">Send a message to an agent</Link>, or in a terminal: <code>a2a-hub send AGENT "TEXT"</code>
                </p>
              </Empty>
            )
          )}
          {total.value > list.length && (
            <button type="button" class="link-button more-questions" onClick={() => (limit.value = 1_000)}>
              Show {count(total.value - list.length, "more question")}
            </button>
          )}
          <Notices />
        </div>
        {isWide.value && list.length > 0 && <div class="inbox-detail">{card}</div>}
      </div>
    </>
  );
}
