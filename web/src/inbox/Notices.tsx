// Notices below the questions: what happened and needs no answer, until it is read, and warnings of
// the hub.

import { useState } from "preact/hooks";
import { Link } from "../app/Link.tsx";
import { taskPath } from "../app/router.ts";
import { call } from "../hub/call.ts";
import { HubError } from "../hub/request.ts";
import { useQuery } from "../hub/use-query.ts";
import type { HubStatus, Notice, NoticeKind } from "../hub/types.ts";
import { Command } from "../parts/Command.tsx";
import { Failure } from "../parts/Failure.tsx";
import { StateMark } from "../parts/State.tsx";
import { Exact, Line, Prose } from "../parts/Text.tsx";
import { Time } from "../parts/Time.tsx";
import { count, cut } from "../text/words.ts";

/** Words before a notice's text, and the mark of a task's state beside them. */
const KINDS: Record<NoticeKind, { word: string; state: "failed" | "completed" | "input-required" }> = {
  failed: { word: "Failed", state: "failed" },
  quota: { word: "Quota used up", state: "failed" },
  finished: { word: "Finished", state: "completed" },
  conflict: { word: "Changes in conflict", state: "input-required" },
};

export function Notices() {
  const list = useQuery(
    "notices",
    (abort) => call<{ notices: Notice[]; unread: number }>("hub/notices/list", { limit: 20 }, abort),
    { concerns: (changes) => changes.notices },
  );
  const [failure, setFailure] = useState<HubError>();
  const status = useQuery("status", (abort) => call<HubStatus>("hub/status", {}, abort), {
    concerns: (changes) => changes.agents,
    every: 60_000,
  });
  const { notices, unread } = list.data ?? { notices: [], unread: 0 };
  const warnings = warningsOf(status.data);
  if (notices.length === 0 && warnings.length === 0) return null;
  const markRead = async (which: { ids: number[] } | { all: true; until: number }) => {
    try {
      await call("hub/notices/read", which);
      setFailure(undefined);
      list.refresh();
    } catch (error) {
      setFailure(error instanceof HubError ? error : new HubError("http", String(error)));
    }
  };
  return (
    <>
      {warnings.length > 0 && (
        <section class="notices" aria-label="Warnings of the hub">
          <h2>The hub warns</h2>
          <ul>
            {warnings.map((warning) => (
              <li key={warning.text} class="notice-warning">
                <p>
                  <Prose text={warning.text} />
                </p>
                {warning.fix !== undefined && <Command text={warning.fix} />}
              </li>
            ))}
          </ul>
        </section>
      )}
      {failure && <Failure error={failure} />}
      {notices.length > 0 && (
        <section class="notices" aria-label="Notices">
          <div class="notices-head">
            <h2>{count(unread, "notice")}</h2>
            <button type="button" class="small-button" onClick={() => void markRead({ all: true, until: notices[0]!.id })}>
              Mark all read
            </button>
          </div>
          <ul>
            {notices.map((notice) => (
              <li key={notice.id} class="notice-row">
                <Link to={taskPath(notice.taskId)} class="notice">
                  <StateMark state={KINDS[notice.kind]?.state ?? "failed"} />
                  <span class="notice-title">
                    <Line text={notice.title} />
                  </span>
                  <span class="notice-reason muted">
                    {KINDS[notice.kind]?.word ?? notice.kind}
                    {" · "}
                    <Exact text={notice.agentId} />
                    {notice.text !== "" && " · "}
                    <Line text={cut(notice.text, 140)} />
                  </span>
                  <span class="muted notice-time">
                    <Time time={notice.at} />
                  </span>
                </Link>
                <button
                  type="button"
                  class="small-button"
                  aria-label={`Mark read: ${notice.title}`}
                  onClick={() => void markRead({ ids: [notice.id] })}
                >
                  Mark read
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function warningsOf(status: HubStatus | undefined): { text: string; fix?: string }[] {
  if (!status) return [];
  const warnings = (status.warnings ?? []).map((it) => ({ text: typeof it === "string" ? it : JSON.stringify(it) }));
  const storage =
    status.storage && status.storage.status !== "ok"
      ? [{ text: `The store cannot be written: ${status.storage.error ?? ""}`, ...(status.storage.fix ? { fix: status.storage.fix } : {}) }]
      : [];
  const rejected = (status.rejectedPlugins ?? []).map((it) => ({ text: `${it.file} cannot join: ${it.error}` }));
  return [...storage, ...warnings, ...rejected];
}
