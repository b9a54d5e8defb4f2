"""Why something was not done, as exceptions. Each is what the contract calls a `failure`."""

from __future__ import annotations

import os
from typing import Callable, TypeVar

T = TypeVar("T")


class Failure(Exception):
    """What the hub refused or could not do; also what an agent raises to end its task as failed.

    The text says what was asked, the rule, and what would allow it.
    """

    kind = "internal"

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.text = text


class Invalid(Failure):
    """The request makes no sense, whoever asks."""

    kind = "invalid"


class Unsupported(Failure):
    """This side cannot do that."""

    kind = "unsupported"


class Denied(Failure):
    """The operator did not grant it."""

    kind = "denied"


class Cancelled(Failure):
    """The task was cancelled: clean up, and let the exception pass."""

    kind = "cancelled"

    def __init__(self, text: str = "the task was cancelled") -> None:
        super().__init__(text)


class TimedOut(Failure):
    """It took longer than it was given."""

    kind = "timeout"

    def __init__(self, text: str = "it took longer than it was given") -> None:
        super().__init__(text)


class Unavailable(Failure):
    """Not now; trying again later may work."""

    kind = "unavailable"


class Exhausted(Failure):
    """A limit of this agent is used up."""

    kind = "exhausted"


class AgentError(Failure):
    """A fault of this side."""

    kind = "internal"


KINDS: dict[str, type[Failure]] = {
    each.kind: each for each in (Invalid, Unsupported, Denied, Cancelled, TimedOut, Unavailable, Exhausted, AgentError)
}


def asking(call: Callable[..., T], *args: object) -> T:
    """Calls the host, and raises a `Failure` where the host says one."""
    try:
        return call(*args)
    except Failure:
        raise
    except Exception as raised:
        # The bindings raise `Err(Failure_Denied("..."))`.
        variant = getattr(raised, "value", None)
        kind = type(variant).__name__
        if not kind.startswith("Failure_"):
            raise
        failure = KINDS[kind.removeprefix("Failure_").lower()]
        text = getattr(variant, "value", "")
        raise (failure(text) if text else failure()) from None


def place(raised: BaseException) -> str | None:
    """Where it was raised, in the agent's own files: `agent.py:12`."""
    own = None
    trace = raised.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_own(file):
            own = f"{file.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return own


_NOT_OWN = (os.path.dirname(os.__file__), os.path.dirname(__file__), "<")


def is_own(file: str) -> bool:
    """Whether a file is the agent's own, and not the SDK's or Python's."""
    names = ("a2a_hub_entry", "wit_world", "componentize_py", "site-packages")
    return not file.startswith(_NOT_OWN) and not any(name in file for name in names)
