"""Definition of an agent, and its calls by the hub."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Literal

from . import _convert as convert
from ._card import Card
from ._context import Context
from ._errors import AgentError, Failure, is_own, place
from ._types import Content, End, Outcome, Task, end_of

Run = Callable[[Context, Task], "End | Outcome | Content | None | Iterator[str]"]


@dataclass
class Health:
    """Health report: the agent's ability to work now, and the command that repairs it."""

    status: Literal["healthy", "degraded", "unhealthy"] = "healthy"
    detail: str | None = None
    fix: str | None = None
    version: str | None = None


class Agent:
    """Base class of agents. A subclass sets `card` and defines `run`; `health` and `cancel` have
    defaults.
    """

    card: Card

    def run(self, ctx: Context, task: Task) -> Any:
        """Works on the task to its end.

        Returns the answer for the client: a text, parts, `ctx.done(…)`, `ctx.fail(…)` and the like,
        or None. A generator streams: each yielded text is sent at once, all of them form the
        artifact `answer`, and the returned value is the end.
        """
        raise NotImplementedError(f"{type(self).__name__}.run: write `def run(self, ctx, task)`")

    def health(self, ctx: Context) -> Health:
        """Reports whether work would succeed now. The hub calls this every health interval, with
        the agent's capabilities.
        """
        return Health()

    def cancel(self, ctx: Context, task_id: str) -> None:
        """Cleans up external effects of a cancelled task, in a fresh instance after the task's own
        has stopped.
        """


class _Function(Agent):
    def __init__(self, card: Card, run: Run) -> None:
        self.card, self._run = card, run

    def run(self, ctx: Context, task: Task) -> Any:
        return self._run(ctx, task)

    def __call__(self, ctx: Context, task: Task) -> Any:
        return self._run(ctx, task)

    def on_health(self, health: Callable[[Context], Health]) -> Callable[[Context], Health]:
        """Registers the decorated function as the health check."""
        self.health = health  # type: ignore[method-assign, assignment]
        return health

    def on_cancel(self, cancel: Callable[[Context, str], None]) -> Callable[[Context, str], None]:
        """Registers the decorated function as the clean-up after cancelled tasks."""
        self.cancel = cancel  # type: ignore[method-assign, assignment]
        return cancel


def agent(card: Card) -> Callable[[Run], _Function]:
    """Makes an agent of a function `run(ctx, task)`."""
    if not isinstance(card, Card):
        raise TypeError('agent: it takes a card: `@agent(Card("name", "what it does", "0.1.0"))`')
    return lambda run: _Function(card, run)


def find(module: Any) -> Agent:
    """Finds the agent of a module: its only `Agent` instance, or its only subclass of `Agent`."""
    instances = [value for value in vars(module).values() if isinstance(value, Agent)]
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Agent) and value.__module__ == module.__name__
    ]
    agents = instances or [cls() for cls in classes]
    if len(agents) != 1:
        raise TypeError(f"`{module.__name__}` has {len(agents)} agents; it needs one: a function under `@agent(Card(…))`, or a class of `Agent`")
    if not isinstance(getattr(agents[0], "card", None), Card):
        raise TypeError(f"the agent of `{module.__name__}` has no card; write `card = Card(\"name\", \"what it does\", \"0.1.0\")`")
    return agents[0]


def run_task(agent: Agent, host: Any, task: Any, live: bool) -> Any:
    """Runs a task of the contract to its end. Raises only `Failure`."""
    try:
        ctx = Context(host, live)
        returned = agent.run(ctx, convert.task_in(task))
        if hasattr(returned, "__next__"):
            returned = _streamed(ctx, returned)
        return convert.end_out(host.types, end_of(returned))
    except BaseException as raised:
        raise told(raised, host) from None


def _streamed(ctx: Context, pieces: Any) -> Any:
    with ctx.stream("answer") as stream:
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                full_text = stream.finish()
                return end.value if end.value is not None else full_text
            stream.write(piece)
            stream.flush()


def check_health(agent: Agent, host: Any) -> Health:
    try:
        return agent.health(Context(host, False))
    except BaseException as raised:
        return Health("unhealthy", told(raised, host).text)


def clean_up(agent: Agent, host: Any, task_id: str) -> None:
    try:
        agent.cancel(Context(host, False), task_id)
    except BaseException as raised:
        raise told(raised, host) from None


def told(raised: BaseException, host: Any) -> Failure:
    """Converts an exception to a failure that names its position."""
    if isinstance(raised, Failure):
        return raised
    text = str(raised)
    name = type(raised).__name__ + (f": {text}" if text else "")
    frames = [frame for frame in traceback.extract_tb(raised.__traceback__) if is_own(frame.filename)]
    stack = "".join(traceback.format_list(frames))
    host.log.log(host.log.Level.ERROR, convert.well_formed(f"uncaught {name}\n{stack}"))
    position = place(raised)
    return AgentError(f"{name} (at {position})" if position else name)
