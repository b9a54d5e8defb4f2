// Markdown of agents: tokens of `marked` as elements, never as HTML. The only path for Markdown.

import { type ComponentChildren, Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { type Token, type Tokens, lexer } from "marked";
import { decodeEntities } from "../text/entities.ts";
import { isDiff } from "../text/diff.ts";
import { Code } from "./Code.tsx";
import { Diff } from "./Diff.tsx";
import { OutsideLink } from "./OutsideLink.tsx";
import { Exact, Prose } from "./Text.tsx";

/** Longest text that is parsed; a longer one is shown as it is. */
const MAX_TEXT = 120_000;
const MAX_DEPTH = 24;

export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => {
    if (text.length > MAX_TEXT) return undefined;
    try {
      return lexer(text, { gfm: true, breaks: false });
    } catch {
      // Nesting that is too deep for the parser.
      return undefined;
    }
  }, [text]);
  if (!tokens) {
    return (
      <div class="plain-text" dir="auto">
        <Prose text={text} />
      </div>
    );
  }
  return (
    <div class="markdown" dir="auto">
      {renderMarkdown(tokens)}
    </div>
  );
}

/** Elements of parsed Markdown. */
export function renderMarkdown(tokens: readonly Token[]): ComponentChildren {
  const levels = headingLevels(tokens);
  return tokens.map((token, at) => (
    <Fragment key={at}>
      {token.type === "heading" ? heading(token as Tokens.Heading, levels.get(token)) : renderToken(token, 1)}
    </Fragment>
  ));
}

/** Levels below the screen's h1 and the conversation's h2, without a gap between them. */
export function headingLevels(tokens: readonly Token[]): Map<Token, number> {
  const headings = tokens.filter((token): token is Tokens.Heading => token.type === "heading");
  const depths = [...new Set(headings.map((it) => it.depth))].sort();
  const levels = new Map<Token, number>();
  let last = 2;
  for (const token of headings) {
    last = Math.min(6, last + 1, 3 + depths.indexOf(token.depth));
    levels.set(token, last);
  }
  return levels;
}

function renderAll(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token, at) => <Fragment key={at}>{renderToken(token, depth + 1)}</Fragment>);
}

function inner(token: { tokens?: Token[]; text?: string }, depth: number): ComponentChildren {
  return token.tokens ? renderAll(token.tokens, depth) : <Prose text={decodeEntities(token.text ?? "")} />;
}

function renderToken(token: Token, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return <Prose text={token.raw} />;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token as Tokens.Heading, undefined);
    case "paragraph":
      return <p>{inner(token as Tokens.Paragraph, depth)}</p>;
    case "text":
      return inner(token as Tokens.Text, depth);
    case "escape":
      return <Prose text={(token as Tokens.Escape).text} />;
    case "strong":
      return <strong>{inner(token as Tokens.Strong, depth)}</strong>;
    case "em":
      return <em>{inner(token as Tokens.Em, depth)}</em>;
    case "del":
      return <del>{inner(token as Tokens.Del, depth)}</del>;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "codespan":
      return (
        <code class="inline-code">
          <Exact text={(token as Tokens.Codespan).text} />
        </code>
      );
    case "code":
      return code(token as Tokens.Code);
    case "blockquote":
      return <blockquote>{renderAll((token as Tokens.Blockquote).tokens, depth)}</blockquote>;
    case "list":
      return list(token as Tokens.List, depth);
    case "table":
      return table(token as Tokens.Table, depth);
    case "link":
      return link(token as Tokens.Link, depth);
    case "image": {
      // Nothing is loaded from elsewhere: an image is a link.
      const image = token as Tokens.Image;
      return <OutsideLink href={decodeEntities(image.href)} text={`Image: ${decodeEntities(image.text) || "without a name"}`} />;
    }
    case "checkbox":
      return null;
    default:
      // HTML, and whatever a later version may add: as text.
      return <Prose text={token.raw} />;
  }
}

function heading(token: Tokens.Heading, level: number | undefined): ComponentChildren {
  const Level = level === undefined ? "p" : (`h${level}` as "h3");
  return <Level class={`heading heading-${token.depth}`}>{inner(token, 1)}</Level>;
}

function code(token: Tokens.Code): ComponentChildren {
  const language = token.lang?.split(/\s/)[0] ?? "";
  if ((language === "diff" || language === "patch" || language === "") && isDiff(token.text)) return <Diff text={token.text} />;
  return <Code text={token.text} label={language === "" ? "Code" : `Code in ${language}`} />;
}

function list(token: Tokens.List, depth: number): ComponentChildren {
  const items = token.items.map((item, at) => (
    <li key={at} class={item.task ? "task-item" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label={item.checked ? "done" : "to do"} />}
      {renderAll(item.tokens, depth)}
    </li>
  ));
  return token.ordered ? <ol start={token.start === "" ? 1 : token.start}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table, depth: number): ComponentChildren {
  const align = (at: number) => (token.align[at] ? `align-${token.align[at]}` : undefined);
  return (
    <div class="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, at) => (
              <th key={at} scope="col" class={align(at)}>
                {renderAll(cell.tokens, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, line) => (
            <tr key={line}>
              {row.map((cell, at) => (
                <td key={at} class={align(at)}>
                  {renderAll(cell.tokens, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function link(token: Tokens.Link, depth: number): ComponentChildren {
  const href = token.autolink ? token.href : decodeEntities(token.href);
  return (
    <OutsideLink href={href} text={decodeEntities(token.text)}>
      {inner(token, depth)}
    </OutsideLink>
  );
}
