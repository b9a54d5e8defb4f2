/**
 * `TextDecoder` with support for chunks (`stream`): fast-text-encoding decodes only whole texts.
 */

import "fast-text-encoding";

const Whole = globalThis.TextDecoder;

globalThis.TextDecoder = class TextDecoder extends Whole {
  #rest = new Uint8Array();

  decode(bytes = new Uint8Array(), { stream = false } = {}) {
    const piece = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
    const whole = new Uint8Array(this.#rest.length + piece.length);
    whole.set(this.#rest);
    whole.set(piece, this.#rest.length);
    const end = stream ? whole.length - unfinished(whole) : whole.length;
    this.#rest = whole.slice(end);
    return super.decode(whole.subarray(0, end));
  }
};

/** Number of bytes at the end that begin an incomplete UTF-8 character. */
export function unfinished(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back];
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return back < length ? back : 0;
  }
  return 0;
}
