// A part of a message or an artifact: text, data or a file.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Code } from "../parts/Code.tsx";
import { Diff } from "../parts/Diff.tsx";
import { LongText } from "../parts/LongText.tsx";
import { Markdown } from "../parts/Markdown.tsx";
import { OutsideLink } from "../parts/OutsideLink.tsx";
import { Exact, Prose } from "../parts/Text.tsx";
import { isDiff } from "../text/diff.ts";
import type { FilePart, Part } from "../hub/types.ts";
import { byteCount, decodeBase64, downloadName, isImage } from "./files.ts";

function metadataText(part: Part, name: string): string | undefined {
  const value = part.metadata?.[name];
  return typeof value === "string" ? value : undefined;
}

export function PartView({ part, isUser = false }: { part: Part; isUser?: boolean }) {
  if (part.kind === "text") return <TextPart part={part} isUser={isUser} />;
  if (part.kind === "data") {
    return (
      <details class="more">
        <summary>Data</summary>
        <Code text={JSON.stringify(part.data, null, 2)} label="Data" />
      </details>
    );
  }
  if (part.kind === "file") return <FileView part={part} />;
  return null;
}

function TextPart({ part, isUser }: { part: Part & { kind: "text" }; isUser: boolean }) {
  const type = metadataText(part, "mediaType") ?? "";
  const name = metadataText(part, "filename");
  if (part.text === "") return null;
  if (type === "text/x-diff" || type === "text/x-patch" || (!isUser && isDiff(part.text) && !part.text.includes("```"))) {
    return <Diff text={part.text} />;
  }
  if (name !== undefined || (type !== "" && type !== "text/plain" && type !== "text/markdown")) {
    return (
      <figure>
        <figcaption class="muted">
          <Exact text={name ?? type} />
        </figcaption>
        <Code text={part.text} label={name ?? "Text"} />
      </figure>
    );
  }
  return (
    <LongText text={part.text} limit={20_000} lines={300}>
      {(shown) =>
        isUser ? (
          <p class="plain-text" dir="auto">
            <Prose text={shown} />
          </p>
        ) : (
          <Markdown text={shown} />
        )
      }
    </LongText>
  );
}

function FileView({ part }: { part: FilePart }) {
  const { bytes, uri } = part.file;
  const name = part.file.name ?? metadataText(part, "filename");
  const type = part.file.mimeType ?? metadataText(part, "mediaType");
  const content = useMemo(() => (bytes === undefined ? undefined : decodeBase64(bytes)), [bytes]);
  const shows = isImage(type);
  const [url, setUrl] = useState("");
  useEffect(() => {
    if (!content) return;
    // Only images keep their type: a browser must never take a file of an agent for a page.
    const blob = URL.createObjectURL(new Blob([content], { type: shows ? type!.toLowerCase() : "application/octet-stream" }));
    setUrl(blob);
    return () => URL.revokeObjectURL(blob);
  }, [content, type, shows]);
  if (uri !== undefined) {
    return (
      <p class="file">
        <span class="muted">File</span> {name !== undefined && <Exact text={name} />} <OutsideLink href={uri} text={uri} />
      </p>
    );
  }
  if (!content) {
    return (
      <p class="file muted">
        File <Exact text={name ?? ""} /> cannot be read: its bytes are not base64.
      </p>
    );
  }
  const shownName = name ?? (shows ? "Image" : "File");
  return (
    <figure class="file">
      {shows && url !== "" && <img src={url} alt={`Image of the agent: ${shownName}`} />}
      <figcaption>
        <Exact text={shownName} />{" "}
        <span class="muted">
          {type !== undefined && (
            <>
              <Exact text={type} />,{" "}
            </>
          )}
          {byteCount(content.length)}
        </span>{" "}
        {url !== "" && (
          <a href={url} download={downloadName(name)}>
            Save
          </a>
        )}
      </figcaption>
    </figure>
  );
}
