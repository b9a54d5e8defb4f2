"""Exceptions for the contract's variants of `failure`."""

from __future__ import annotations

import os
from typing import Callable, TypeVar

T = TypeVar("T")


class Failure(Exception):
    """Refusal or error of the hub. An agent can raise one to end its task as failed.

    The text has the request, the rule, and the way out.
    """

    kind = "internal"

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.text = text


class Invalid(Failure):
    """The request is invalid for any caller."""

    kind = "invalid"


class Unsupported(Failure):
    """The hub or the agent does not support the request."""

    kind = "unsupported"


class Denied(Failure):
    """The operator did not grant it."""

    kind = "denied"


class Cancelled(Failure):
    """The task was cancelled: clean up, and let the exception propagate."""

    kind = "cancelled"

    def __init__(self, text: str = "the task was cancelled") -> None:
        super().__init__(text)


class TimedOut(Failure):
    """The timeout has passed."""

    kind = "timeout"

    def __init__(self, text: str = "it took longer than it was given") -> None:
        super().__init__(text)


class Unavailable(Failure):
    """Temporarily unavailable; a retry may succeed."""

    kind = "unavailable"


class Exhausted(Failure):
    """A limit of this agent is used up."""

    kind = "exhausted"


class AgentError(Failure):
    """Internal error of the agent or the hub."""

    kind = "internal"


KINDS: dict[str, type[Failure]] = {
    cls.kind: cls for cls in (Invalid, Unsupported, Denied, Cancelled, TimedOut, Unavailable, Exhausted, AgentError)
}


def asking(call: Callable[..., T], *args: object) -> T:
    """Calls the host, and raises a `Failure` if the host returns one."""
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
    """Position of the error in the agent's own files, such as `agent.py:12`."""
    position = None
    trace = raised.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_own(file):
            position = f"{file.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return position


_LIBRARY_PREFIXES = (os.path.dirname(os.__file__), os.path.dirname(__file__), "<")


def is_own(file: str) -> bool:
    """True if a file belongs to the agent, not to the SDK or Python."""
    names = ("a2a_hub_entry", "wit_world", "componentize_py", "site-packages")
    return not file.startswith(_LIBRARY_PREFIXES) and not any(name in file for name in names)
