/** {{title}}: keeps short notes, and tells them again. */

import { defineAgent } from "a2a-hub-sdk";

export default defineAgent({
  card: {
    name: "{{name}}",
    description: "Keeps short notes, and tells them again",
    version: "0.1.0",
    skills: [
      {
        id: "notes",
        name: "Notes",
        description: "Keeps a note, lists all of them, or forgets them once you agree",
        tags: ["notes"],
        examples: ["note buy milk", "list", "forget"],
      },
    ],
  },

  async run(ctx, task) {
    const [, word, text] = /^\s*(\S*)\s*(.*?)\s*$/s.exec(task.text) ?? [];
    /** @type {string[]} */
    const notes = (await ctx.recall("notes")) ?? [];
    if (word === "note" && text) {
      await ctx.remember("notes", [...notes, text]);
      return `kept; that makes ${notes.length + 1}`;
    }
    if (word === "list") {
      const stream = ctx.stream("notes", { name: "Notes" });
      for (const [index, note] of notes.entries()) {
        await ctx.progress((100 * (index + 1)) / notes.length);
        await stream.write(`${index + 1}. ${note}\n`);
      }
      await stream.finish();
      return `${notes.length} notes`;
    }
    if (word === "forget") {
      const answer = await ctx.ask(`Forget ${notes.length} notes?`);
      if (answer.text.trim().toLowerCase() !== "yes") return "kept them all";
      await ctx.forget("notes");
      return "forgotten";
    }
    return ctx.reject("Say `note TEXT`, `list` or `forget`.");
  },
});
