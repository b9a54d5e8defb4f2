"""Write an agent for a2a-hub: subclass `Agent`, or decorate a function.

    from a2a_hub import Card, Context, Task, agent

    @agent(Card("today", "Tells the date", "0.1.0").skill("date", "Date", "Today's date"))
    def run(ctx: Context, task: Task):
        ctx.say("looking at the calendar")
        return "".join(ctx.lines("date", "+%F"))

An agent reaches everything outside through `Context`. In a component this is the hub; in a test it is
`a2a_hub.testing.ScriptedHost`, so plain Python tests an agent.
"""

from ._agent import Agent, Health, agent
from ._card import Card
from ._context import Context
from ._errors import AgentError, Cancelled, Denied, Exhausted, Failure, Invalid, TimedOut, Unavailable, Unsupported
from ._memory import Memory
from ._streams import Call, Child, Exit, Response, ServerEvent, TextStream
from ._types import Artifact, End, Event, Message, Outcome, Part, Permission, Task

__all__ = [
    "Agent",
    "AgentError",
    "Artifact",
    "Call",
    "Cancelled",
    "Card",
    "Child",
    "Context",
    "Denied",
    "End",
    "Event",
    "Exhausted",
    "Exit",
    "Failure",
    "Health",
    "Invalid",
    "Memory",
    "Message",
    "Outcome",
    "Part",
    "Permission",
    "Response",
    "ServerEvent",
    "Task",
    "TextStream",
    "TimedOut",
    "Unavailable",
    "Unsupported",
    "agent",
]
