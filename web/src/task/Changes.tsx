// Changes that a task made in its worktree, and the command that takes them over.

import { call } from "../hub/call.ts";
import { useQuery } from "../hub/use-query.ts";
import type { TaskDiff } from "../hub/types.ts";
import { Command } from "../parts/Command.tsx";
import { Diff } from "../parts/Diff.tsx";
import { Empty } from "../parts/Empty.tsx";
import { Failure } from "../parts/Failure.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { count } from "../text/words.ts";

export function Changes({ id }: { id: string }) {
  const diff = useQuery(`diff ${id}`, (abort) => call<TaskDiff>("hub/tasks/diff", { taskId: id }, abort), {
    concerns: (changes) => changes.tasks.has(id),
  });
  if (diff.error && !diff.data) {
    if (diff.error.data.reason === "no_worktree") {
      return (
        <Empty title="This task has no changes of its own.">
          <p>Only a task with a worktree keeps its changes apart. “Send” has a box for it.</p>
        </Empty>
      );
    }
    return <Failure error={diff.error} onRetry={diff.refresh} />;
  }
  if (!diff.data) return null;
  const { text, files = 0, insertions = 0, deletions = 0, commits = 0, leftOut = [] } = diff.data;
  if (text.trim() === "") return <Empty title="The worktree has no changes yet." />;
  return (
    <div class="changes">
      <p class="changes-counts">
        {count(files, "file")}, <span class="added">+{insertions}</span> <span class="removed">−{deletions}</span>
        {commits > 0 && <>, {count(commits, "commit")}</>}
      </p>
      <div class="changes-apply">
        <p>Take the changes over in a terminal:</p>
        <Command text={`a2a-hub task apply ${id}`} />
      </div>
      {leftOut.length > 0 && (
        <div class="warning-line">
          <p>Left out:</p>
          <ul>
            {leftOut.map((it) => (
              <li key={it.name}>
                <code>
                  <Exact text={it.name} />
                </code>{" "}
                <Prose text={it.reason} />
              </li>
            ))}
          </ul>
        </div>
      )}
      <Diff text={text} />
    </div>
  );
}
