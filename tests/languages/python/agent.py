"""Agent with many behaviours, good and bad, selected by the message. The one in JavaScript has the
same.
"""

import random
import sys

from a2a_hub import Card, Context, Failure, Health, Task, agent
from helper import boom

print("what is printed while it is built goes nowhere")


@agent(Card("guest", "Behaves as told", "0.1.0", input_modes=["*/*"]).skill("any", "Any", "Does what it is told", tags=["test"]))
def run(ctx: Context, task: Task):
    word, _, rest = task.text.partition(" ")
    match word:
        case "stream":
            with ctx.stream("out", name="Out") as out:
                for number in range(int(rest)):
                    out.write(f"{number} ")
                    out.flush()
            return f"{rest} pieces"
        case "yield":
            return pieces(int(rest))
        case "ask":
            return f"you said {ctx.ask(rest).text}"
        case "read":
            return f"heard {ctx.next_message(timeout=60).text}"
        case "fetch":
            answer = ctx.fetch(rest, headers={"X-Own": "1"})
            return f"{answer.status} {answer.text}"
        case "remember":
            ctx.remember("word", rest)
            return "kept"
        case "recall":
            return str(ctx.recall("word"))
        case "lines":
            lines = [line for line in ctx.lines("sh", "-c", rest)]
            return "|".join(lines)
        case "call":
            calls = [ctx.start("echo", text) for text in rest.split()]
            return "+".join(call.completed().text for call in calls)
        case "denied":
            try:
                ctx.run("rm", "-rf", "/")
            except Failure as failed:
                return f"{failed.kind}: {failed.text}"
        case "tell":
            ctx.say("one")
            ctx.progress(40, "two")
            print("printed")
            print("complained", file=sys.stderr)
            return ctx.done("told", metadata={"pieces": 2})
        case "sleep":
            try:
                ctx.say("asleep")
                ctx.sleep(600)
            finally:
                ctx.log("woken")
        case "spin":
            ctx.say("spinning")
            while True:
                ctx.check_cancelled()
        case "spin-deaf":
            while True:
                pass
        case "boom":
            boom({"foo": 2})
        case "random":
            return str(random.random())
        case "size":
            return str(len(task.text))
        case "data":
            return repr(task.message.data)
        case "deep":
            return str(deep(0))
        case "hog":
            hoard = []
            while True:
                hoard.append(b"x" * (1 << 20))
        case "surrogate":
            return "\ud800"
        case "exit":
            sys.exit("bye")
        case "nothing":
            return 7
    return task.text


@run.on_health
def health(ctx: Context) -> Health:
    return Health("healthy", version="3")


def pieces(count: int):
    for number in range(count):
        yield f"{number} "
    return "yielded"


def deep(depth: int) -> int:
    return deep(depth + 1) + 1
