import assert from "node:assert/strict";
import { test } from "node:test";
import { LineBuffer } from "../src/streams.js";

const linesOf = (pieces, options) => {
  const buffer = new LineBuffer(options);
  for (const piece of pieces) buffer.push(new TextEncoder().encode(piece));
  return buffer.lines;
};

test("event lines end with any line ending", () => {
  const text = "\ufeffdata: a\rdata: b\r\n\r\ndata: c\n\r\r";
  const expected = ["data: a", "data: b", "", "data: c", "", ""];
  for (let cut = 0; cut <= text.length; cut++) {
    const told = linesOf([text.slice(0, cut), text.slice(cut)], { ofEvents: true });
    assert.deepEqual(told, expected, `cut at ${cut}`);
  }
  assert.deepEqual(linesOf(["50%\r100%\n"]), ["50%\r100%"], "a program's line may hold a return");
});
