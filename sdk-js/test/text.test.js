import assert from "node:assert/strict";
import { test } from "node:test";

test("text is decoded piece by piece, wherever it is cut", async () => {
  const { TextDecoder: native } = globalThis;
  globalThis.TextDecoder = class {
    decode(bytes) {
      return new native().decode(bytes);
    }
  };
  const library = await import("../component/text.js").catch((missing) => missing);
  const Decoder = globalThis.TextDecoder;
  globalThis.TextDecoder = native;
  if (library instanceof Error) return assert.equal(library.code, "ERR_MODULE_NOT_FOUND", "run npm install for this test");
  const text = "a\u00e4\u20ac\u{1f600}z";
  const bytes = new TextEncoder().encode(text);
  for (let first = 0; first <= bytes.length; first++) {
    for (let second = first; second <= bytes.length; second++) {
      const decoder = new Decoder();
      const pieces = [bytes.slice(0, first), bytes.slice(first, second), bytes.slice(second)];
      const told = pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") + decoder.decode();
      assert.equal(told, text, `cut at ${first} and ${second}`);
    }
  }
  assert.equal(new Decoder().decode(new Uint8Array([0x61, 0xe2, 0x82])), "a\ufffd");
});
