/**
 * `TextDecoder` with support for chunks (`stream`): fast-text-encoding decodes only whole texts.
 */

import "fast-text-encoding";

const BaseTextDecoder = globalThis.TextDecoder;

globalThis.TextDecoder = class TextDecoder extends BaseTextDecoder {
  #rest = new Uint8Array();

  decode(bytes = new Uint8Array(), { stream = false } = {}) {
    const piece = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
    const combined = new Uint8Array(this.#rest.length + piece.length);
    combined.set(this.#rest);
    combined.set(piece, this.#rest.length);
    const end = stream ? combined.length - unfinished(combined) : combined.length;
    this.#rest = combined.slice(end);
    return super.decode(combined.subarray(0, end));
  }
};

/** Number of bytes at the end that begin an incomplete UTF-8 character. */
export function unfinished(bytes) {
  for (let count = 1; count <= Math.min(3, bytes.length); count++) {
    const byte = bytes[bytes.length - count];
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return count < length ? count : 0;
  }
  return 0;
}
