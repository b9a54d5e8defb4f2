// Files in messages: bytes as blobs, and names that are safe to offer.

import { visibleText } from "../text/visible.ts";

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** True if the file may be shown as an image. SVG is none: it may hold scripts and links. */
export function isImage(type: string | undefined): boolean {
  return IMAGES.has((type ?? "").toLowerCase().split(";")[0]!.trim());
}

/** Decodes base64, also the variant for URLs; undefined if it is none. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
    return bytes;
  } catch {
    return undefined;
  }
}

/** Name of a file for the download: without directories, controls and leading dots. */
export function downloadName(name: string | undefined): string {
  const last = visibleText(name ?? "").split(/[/\\]/).at(-1) ?? "";
  const plain = last.replace(/[<>:"|?*\u0000-\u001f]/g, "_").replace(/^\.+/, "").trim().slice(0, 120);
  return plain === "" ? "file" : plain;
}

/** `1.2 kB`. */
export function byteCount(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
