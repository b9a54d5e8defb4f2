"""Types of A2A in Python."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from collections.abc import Iterable
from typing import Any, Literal, Union

State = Literal["submitted", "working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected"]


@dataclass
class Part:
    """Part of a message or an artifact: one of `text`, `data` (a JSON value), `raw` (bytes) and
    `url`.
    """

    text: str | None = None
    data: Any = None
    raw: bytes | None = None
    url: str | None = None
    filename: str | None = None
    media_type: str | None = None
    metadata: dict[str, Any] | None = None

    @classmethod
    def file(cls, filename: str, media_type: str, raw: bytes) -> Part:
        """Creates a part with a file."""
        return cls(raw=raw, filename=filename, media_type=media_type)


@dataclass
class Message:
    """Message of a client or an agent. The hub assigns an id if `id` is empty."""

    parts: list[Part]
    role: Literal["user", "agent"] = "agent"
    id: str = ""
    context_id: str | None = None
    task_id: str | None = None
    reference_task_ids: list[str] = field(default_factory=list)
    extensions: list[str] = field(default_factory=list)
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Text parts, joined."""
        return joined_text(self.parts)

    @property
    def data(self) -> Any:
        """Value of the first data part."""
        return next((part.data for part in self.parts if part.data is not None), None)


@dataclass
class Artifact:
    """Artifact of a task."""

    id: str
    parts: list[Part]
    name: str | None = None
    description: str | None = None
    extensions: list[str] = field(default_factory=list)
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Text parts, joined."""
        return joined_text(self.parts)


@dataclass
class Task:
    """Task. `history` has the earlier messages of its conversation, oldest first."""

    id: str
    context_id: str
    message: Message
    history: list[Message] = field(default_factory=list)
    working_directory: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Text of the client's message."""
        return self.message.text


@dataclass
class Event:
    """Event of a child task: a status (`state`, `message`), or a chunk of an `artifact`."""

    state: State | None = None
    message: Message | None = None
    artifact: Artifact | None = None
    append: bool = False
    last_chunk: bool = False


@dataclass
class Outcome:
    """End of a child task. Without a `state` it is a direct answer."""

    state: State | None
    message: Message | None
    metadata: dict[str, Any] | None = None
    artifacts: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Text of the final message."""
        return self.message.text if self.message else ""


Content = Union[str, Part, Message, Iterable[Union[str, Part]]]
"""Content of a message: a text, a part, several, or a whole message."""


@dataclass
class Permission:
    """Answer to a request for permission: exactly one of the members."""

    allowed_by: str | None = None
    """Rule of the operator that allows it, this time."""
    denied: str | None = None
    """Reason, if a rule of the operator denies it."""
    answer: Message | None = None
    """Answer of the client, if no rule decides it."""


@dataclass
class End:
    """End of a run, made by `Context.done`, `fail`, `reject` and `reply`. Without a `state` it is a
    direct answer.
    """

    state: State | None
    message: Message | None
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Text of the final message."""
        return self.message.text if self.message else ""


def joined_text(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if part.text is not None)


def parts_of(content: Content) -> list[Part]:
    """Parts of any content."""
    if isinstance(content, Message):
        return content.parts
    if isinstance(content, (str, Part)):
        content = [content]
    if not isinstance(content, Iterable):
        raise TypeError(f"what is said is a text, a Part, a Message or a list of texts and Parts, not {type(content).__name__}")
    parts = [Part(text=part) if isinstance(part, str) else part for part in content]
    for part in parts:
        if not isinstance(part, Part):
            raise TypeError(f"what is said is a text, a Part, a Message or a list of texts and Parts, not {type(part).__name__}")
    return parts


def message_of(content: Content, role: Literal["user", "agent"] = "agent") -> Message:
    return content if isinstance(content, Message) else Message(parts_of(content), role)


def end_of(returned: End | Outcome | Content | None) -> End:
    """Converts the returned value of a run to its end."""
    if isinstance(returned, End):
        return returned
    if isinstance(returned, Outcome):
        return End(returned.state, returned.message, returned.metadata)
    return End("completed", None if returned is None else message_of(returned))


def to_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def from_json(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
