// Steps between two messages: tool calls and reports of progress, folded.

import { useState } from "preact/hooks";
import { Code } from "../parts/Code.tsx";
import { Diff } from "../parts/Diff.tsx";
import { Markdown } from "../parts/Markdown.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { isDiff } from "../text/diff.ts";
import { count, cut, textOf } from "../text/words.ts";
import type { Json } from "../hub/types.ts";
import type { Entry, ToolCall } from "./log.ts";

/** Steps that are drawn at first; the latest ones. */
const SHOWN = 200;

const STATUS: Record<string, string> = {
  pending: "waits",
  in_progress: "runs",
  completed: "done",
  failed: "failed",
};

function titleOf(step: Entry): string {
  if (step.kind === "tool") return step.tool.title ?? step.tool.name ?? "Tool";
  if (step.kind === "message") return cut(textOf(step.message.parts).replace(/\s+/g, " ").trim(), 160);
  return step.artifact.name ?? "";
}

export function Steps({ steps, isLive }: { steps: Entry[]; isLive: boolean }) {
  const [open, setOpen] = useState<boolean>();
  const [limit, setLimit] = useState(SHOWN);
  const isOpen = open ?? false;
  const tools = steps.filter((step) => step.kind === "tool").length;
  const last = steps.at(-1);
  const what = tools === steps.length ? count(tools, "tool call") : count(steps.length, "step");
  const hidden = Math.max(0, steps.length - limit);
  return (
    <details class={isLive ? "steps is-live" : "steps"} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="steps-count">{what}</span>
        {last && (
          <span class="steps-last">
            <Prose text={titleOf(last)} />
          </span>
        )}
      </summary>
      {isOpen && (
        <div class="steps-body">
          {hidden > 0 && (
            <button type="button" class="link-button" onClick={() => setLimit(limit + 1_000)}>
              Show {count(hidden, "earlier step")}
            </button>
          )}
          {steps.slice(hidden).map((step, at) => (
            <Step key={`${step.seq} ${at}`} step={step} />
          ))}
        </div>
      )}
    </details>
  );
}

function Step({ step }: { step: Entry }) {
  if (step.kind === "tool") return <ToolView tool={step.tool} />;
  if (step.kind !== "message") return null;
  return (
    <div class="step-text">
      <Markdown text={textOf(step.message.parts)} />
    </div>
  );
}

function ToolView({ tool }: { tool: ToolCall }) {
  const [isOpen, setOpen] = useState(false);
  const status = tool.status ?? "";
  return (
    <details class="tool" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="tool-title">
          <Exact text={cut(tool.title ?? tool.name ?? "Tool", 400)} />
        </span>
        {tool.name !== undefined && tool.name !== tool.title && (
          <span class="tag">
            <Exact text={tool.name} />
          </span>
        )}
        <span class={STATUS[status] === undefined ? "tool-status" : `tool-status tool-${status}`}>
          {STATUS[status] ?? <Exact text={cut(status, 40)} />}
        </span>
      </summary>
      {isOpen && (
        <div class="tool-body">
          {tool.locations !== undefined && tool.locations.length > 0 && (
            <p class="muted">
              {tool.locations.slice(0, 20).map((place, at) => (
                <code key={at}>
                  <Exact text={`${place.path}${place.line === undefined ? "" : `:${place.line}`}`} />{" "}
                </code>
              ))}
            </p>
          )}
          {tool.input !== undefined && tool.input !== null && <Content title="Input" value={tool.input} />}
          {tool.output !== undefined && tool.output !== null && <Content title="Output" value={tool.output} />}
        </div>
      )}
    </details>
  );
}

function Content({ title, value }: { title: string; value: Json }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <div>
      <p class="tool-part">{title}</p>
      {isDiff(text) ? <Diff text={text} /> : <Code text={text} label={title} />}
    </div>
  );
}
