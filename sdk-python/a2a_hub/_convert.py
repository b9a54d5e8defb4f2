"""Conversion between the contract's types and the SDK's. `t` is the module of the contract's types,
or its replacement in tests.
"""

from __future__ import annotations

import codecs
from typing import Any

from ._types import Artifact, End, Event, Message, Outcome, Part, State, Task, from_json, to_json


# Looked up while the component is built: a running one has no files to load an encoding from.
_UTF_16 = codecs.lookup("utf-16-le")


def state_name(state: Any) -> State:
    return state.name.lower().replace("_", "-")


def well_formed(text: str) -> str:
    """Joins surrogate pairs, and replaces lone surrogates, which the contract's strings cannot contain."""
    return _UTF_16.decode(_UTF_16.encode(text, "surrogatepass")[0], "replace")[0]


def part_out(t: Any, part: Part) -> Any:
    if part.text is not None:
        content = t.PartContent_Text(well_formed(part.text))
    elif part.raw is not None:
        content = t.PartContent_Raw(bytes(part.raw))
    elif part.url is not None:
        content = t.PartContent_Url(part.url)
    else:
        content = t.PartContent_Data(to_json(part.data) or "null")
    return t.Part(content, part.filename, part.media_type, to_json(part.metadata))


def part_in(part: Any) -> Part:
    name, value = type(part.content).__name__.removeprefix("PartContent_").lower(), part.content.value
    converted = Part(filename=part.filename, media_type=part.media_type, metadata=from_json(part.metadata))
    setattr(converted, name, from_json(value) if name == "data" else value)
    return converted


def message_out(t: Any, message: Message) -> Any:
    role = t.Role.USER if message.role == "user" else t.Role.AGENT
    parts = [part_out(t, part) for part in message.parts]
    return t.Message(
        message.id,
        role,
        parts,
        message.context_id,
        message.task_id,
        list(message.reference_task_ids),
        list(message.extensions),
        to_json(message.metadata),
    )


def message_in(message: Any) -> Message:
    return Message(
        [part_in(part) for part in message.parts],
        "user" if message.role.name == "USER" else "agent",
        message.id,
        message.context_id,
        message.task_id,
        list(message.reference_task_ids),
        list(message.extensions),
        from_json(message.metadata),
    )


def task_in(task: Any) -> Task:
    history = [message_in(message) for message in task.history]
    return Task(task.id, task.context_id, message_in(task.message), history, task.working_directory, from_json(task.metadata))


def artifact_out(t: Any, artifact: Artifact) -> Any:
    parts = [part_out(t, part) for part in artifact.parts]
    return t.Artifact(artifact.id, artifact.name, artifact.description, parts, list(artifact.extensions), to_json(artifact.metadata))


def artifact_in(artifact: Any) -> Artifact:
    parts = [part_in(part) for part in artifact.parts]
    return Artifact(artifact.id, parts, artifact.name, artifact.description, list(artifact.extensions), from_json(artifact.metadata))


def status_out(t: Any, state: State, message: Message | None, metadata: Any) -> Any:
    contract_message = None if message is None else message_out(t, message)
    return t.TaskStatus(t.TaskState[state.upper().replace("-", "_")], contract_message, to_json(metadata))


def end_out(t: Any, end: End) -> Any:
    if end.state is None:
        return t.Outcome_Message(message_out(t, end.message or Message([])))
    return t.Outcome_Status(status_out(t, end.state, end.message, end.metadata))


def outcome_in(outcome: Any) -> Outcome:
    value = outcome.value
    if type(outcome).__name__ == "Outcome_Message":
        return Outcome(None, message_in(value))
    message = message_in(value.message) if value.message else None
    return Outcome(state_name(value.state), message, from_json(value.metadata))


def event_in(event: Any) -> Event:
    kind, value = type(event).__name__, event.value
    if kind == "Event_Status":
        return Event(state=state_name(value.state), message=message_in(value.message) if value.message else None)
    if kind == "Event_Artifact":
        return Event(artifact=artifact_in(value.artifact), append=value.append, last_chunk=value.last_chunk)
    return Event()
