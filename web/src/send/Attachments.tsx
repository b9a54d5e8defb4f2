// Files that go with a message.

import type { Part } from "../hub/types.ts";
import { byteCount } from "../task/files.ts";

/** Largest file: 4 MiB of base64, the hub's limit for one value. */
const MAX_FILE = 3 * 1024 * 1024;

/** Reads files as parts. */
export async function readFiles(files: readonly File[]): Promise<Part[]> {
  return Promise.all(
    files.map(async (file) => {
      const bytes = new Uint8Array(await file.arrayBuffer());
      let binary = "";
      for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
      const mimeType = file.type === "" ? "application/octet-stream" : file.type;
      return { kind: "file" as const, file: { bytes: btoa(binary), name: file.name, mimeType } };
    }),
  );
}

export function Attachments({ files, setFiles }: { files: File[]; setFiles: (files: File[]) => void }) {
  const tooLarge = files.filter((file) => file.size > MAX_FILE);
  return (
    <div class="field">
      <label for="send-files">Files (optional; chosen again after a restart)</label>
      <input
        id="send-files"
        type="file"
        multiple
        onChange={(event) => {
          setFiles([...files, ...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
      {files.length > 0 && (
        <ul class="attachments">
          {files.map((file, at) => (
            <li key={at}>
              {file.name} <span class="muted">{byteCount(file.size)}</span>{" "}
              <button
                type="button"
                class="small-button"
                aria-label={`Remove ${file.name}`}
                onClick={() => setFiles(files.filter((it) => it !== file))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      {tooLarge.length > 0 && (
        <p class="error-line" role="alert">
          {tooLarge[0]!.name} is larger than 3 MiB; the hub takes no larger file.
        </p>
      )}
    </div>
  );
}
