/**
 * Agent with many behaviours, good and bad, selected by the message. The one in Python has the
 * same.
 */

import { Failure, defineAgent } from "a2a-hub-sdk";
import { boom } from "./helper.js";

export default defineAgent({
  card: {
    name: "guest",
    description: "Behaves as told",
    version: "0.1.0",
    defaultInputModes: ["*/*"],
    skills: [{ id: "any", name: "Any", description: "Does what it is told", tags: ["test"] }],
  },

  health: async () => ({ status: "healthy", version: "3" }),

  async run(ctx, task) {
    const [word] = task.text.split(" ", 1);
    const rest = task.text.slice(word.length + 1);
    switch (word) {
      case "stream": {
        const out = ctx.stream("out", { name: "Out" });
        for (let number = 0; number < Number(rest); number++) {
          await out.write(`${number} `);
          await out.flush();
        }
        await out.finish();
        return `${rest} pieces`;
      }
      case "yield": {
        const stream = ctx.stream("answer");
        for await (const piece of pieces(Number(rest))) await stream.write(piece);
        await stream.finish();
        return "yielded";
      }
      case "ask":
        return `you said ${(await ctx.ask(rest)).text}`;
      case "read":
        return `heard ${(await ctx.nextMessage({ timeout: 60_000 })).text}`;
      case "fetch": {
        const answer = await ctx.fetch(new URL(rest), { headers: { "X-Own": "1" } });
        return `${answer.status} ${await answer.text()}`;
      }
      case "remember":
        await ctx.remember("word", rest);
        return "kept";
      case "recall":
        return String(await ctx.recall("word"));
      case "lines": {
        const lines = [];
        await ctx.run("sh", ["-c", rest], { onLine: (line) => lines.push(line) });
        return lines.join("|");
      }
      case "call": {
        const ends = await Promise.all(rest.split(" ").map((text) => ctx.call("echo", text)));
        return ends.map(({ text }) => text).join("+");
      }
      case "denied":
        try {
          await ctx.run("rm", ["-rf", "/"]);
        } catch (failed) {
          if (failed instanceof Failure) return `${failed.kind}: ${failed.message}`;
          throw failed;
        }
        break;
      case "tell":
        await ctx.say("one");
        await ctx.progress(40, "two");
        console.log("printed");
        console.error("complained");
        return ctx.done("told", { metadata: { pieces: 2 } });
      case "sleep":
        try {
          await ctx.say("asleep");
          await ctx.sleep(600_000);
        } finally {
          ctx.log("info", "woken");
        }
        break;
      case "spin":
        await ctx.say("spinning");
        for (;;) ctx.checkCancelled();
      case "spin-deaf":
        for (;;);
      case "boom":
        await Promise.resolve();
        boom({ foo: 2 });
        break;
      case "random":
        return String(Math.random());
      case "size":
        return String(task.text.length);
      case "data":
        return JSON.stringify(task.message.data) ?? "None";
      case "deep":
        return String(deep(0));
      case "hog": {
        const hoard = [];
        for (;;) hoard.push(new Uint8Array(1 << 20).fill(1));
      }
      case "surrogate":
        return "\ud800";
      case "race":
        return Promise.race([ctx.ask(rest).then(({ text }) => text), ctx.sleep(300).then(() => "nobody said anything")]);
      case "forever":
        await new Promise(() => {});
        break;
      case "interval": {
        const ticks = [];
        await new Promise((resolve) => {
          const timer = setInterval(() => {
            if (ticks.push(ticks.length) < 3) return;
            clearInterval(timer);
            setTimeout(resolve, 5);
          }, 5);
        });
        return ticks.join();
      }
      case "nothing":
        return 7;
    }
    return task.text;
  },
});

async function* pieces(count) {
  for (let number = 0; number < count; number++) yield `${number} `;
}

function deep(depth) {
  return deep(depth + 1) + 1;
}
