"""What a running agent can do outside itself."""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable, Iterator, Literal, Mapping, TypeVar

from . import _convert as convert
from ._errors import KINDS, Cancelled, Exhausted, Failure, asking
from ._memory import Memory
from ._streams import Call, Child, Exit, Response, TextStream, _ms
from ._types import Artifact, Content, End, Message, Outcome, message_of, parts_of

T = TypeVar("T")

# What a step comes to is kept up to this length of JSON.
_MAX_KEPT = 1 << 20


class Context:
    """The hub, as one run of an agent sees it. What cannot be done is raised as a `Failure`; times are seconds."""

    def __init__(self, host: Any, live: bool) -> None:
        self._host, self._t = host, host.types
        self.live = live
        """Whether somebody listens while the run goes on. If not, only the result counts."""

    # What is told.

    def say(self, content: Content, *, metadata: dict[str, Any] | None = None) -> None:
        """Tells the listeners what is being done."""
        self._status(message_of(content), metadata)

    def progress(self, percent: float, text: str = "") -> None:
        """Tells how far the work is, in per cent, and what is being done."""
        bounded = max(0, min(100, round(percent)))
        self._status(message_of(text) if text else None, {"progress": {"percent": bounded}})

    def _status(self, message: Message | None, metadata: dict[str, Any] | None) -> None:
        status = convert.status_out(self._t, "working", message, metadata)
        asking(self._host.tasks.emit, self._t.Event_Status(status))

    def artifact(
        self,
        id: str,
        content: Content,
        *,
        name: str | None = None,
        description: str | None = None,
        media_type: str | None = None,
        filename: str | None = None,
        metadata: dict[str, Any] | None = None,
        append: bool = False,
        last_chunk: bool = True,
    ) -> None:
        """Makes an artifact; another of the same id is replaced, unless `append` adds to it."""
        parts = parts_of(content)
        for part in parts:
            part.media_type = part.media_type or media_type
            part.filename = part.filename or filename
        made = Artifact(id, parts, name, description, [], metadata)
        update = self._t.ArtifactUpdate(convert.artifact_out(self._t, made), append, last_chunk)
        asking(self._host.tasks.emit, self._t.Event_Artifact(update))

    def stream(self, id: str, **options: Any) -> TextStream:
        """A growing artifact of text: `write` it piece by piece, then `finish`. Takes the options of `artifact`."""
        return TextStream(self, id, options)

    # What is asked.

    def ask(self, prompt: Content, *, auth: bool = False, timeout: float | None = None) -> Message:
        """Asks the client, and waits for the answer. `auth`: the answer is a login."""
        tasks = self._host.tasks
        need = tasks.Need.AUTH if auth else tasks.Need.INPUT
        answer = asking(tasks.ask, need, convert.message_out(self._t, message_of(prompt)), _ms(timeout))
        return convert.message_in(answer)

    @property
    def cancelled(self) -> bool:
        """Whether the task was cancelled; an agent that computes for long looks now and then."""
        return self._host.tasks.cancelled()

    def check_cancelled(self) -> None:
        """Raises `Cancelled` if the task was cancelled."""
        if self.cancelled:
            raise Cancelled()

    @property
    def extensions(self) -> list[str]:
        """URIs of the A2A extensions that are active for the client's latest message."""
        return self._host.tasks.extensions()

    def accepts(self, media_type: str) -> bool:
        """Whether the client takes this media type, be it by a range such as `image/*`."""
        modes = self._host.tasks.accepted_output_modes()
        ranges = ("*/*", media_type, media_type.split("/")[0] + "/*")
        return not modes or any(mode in ranges for mode in modes)

    # Programs.

    def spawn(self, program: str, *args: object, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Child:
        """Starts a granted program, to be talked with."""
        variables = list((env or {}).items())
        command = self._host.process.Command(program, [str(arg) for arg in args], variables, cwd)
        return Child(self, command)

    def lines(self, program: str, *args: object, input: str | bytes = b"", check: bool = True, **options: Any) -> Iterator[str]:
        """Runs a granted program, and gives its lines as they come. `check`: raises `Failure` unless it ends with status 0."""
        with self.spawn(program, *args, **options) as child:
            child.write(input)
            child.close_stdin()
            yield from child
            exit = child.wait()
        if check and not exit.ok:
            raise Failure(f"`{program}` ended with {exit.code if exit.signal is None else f'signal {exit.signal}'}: {exit.stderr}")

    def run(self, program: str, *args: object, input: str | bytes = b"", **options: Any) -> Exit:
        """Runs a granted program to its end, and returns how it ended and what it wrote."""
        with self.spawn(program, *args, **options) as child:
            child.write(input)
            child.close_stdin()
            lines = list(child)
            exit = child.wait()
        exit.stdout = "\n".join(lines)
        return exit

    def fingerprint(self, program: str) -> str:
        """Another text once another file stands in the program's place."""
        return asking(self._host.process.fingerprint, program)

    # The world.

    def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | bytes = b"",
        json_body: Any = None,
        timeout: float | None = None,
    ) -> Response:
        """Sends a request to a granted host. The answer's body is read as it comes; `timeout` is for its head."""
        pairs = list((headers or {}).items())
        if json_body is not None:
            body = json.dumps(json_body)
            pairs.append(("content-type", "application/json"))
        data = body.encode() if isinstance(body, str) else bytes(body)
        request = self._host.http.Request(method, url, pairs, data, _ms(timeout))
        return Response(self, asking(self._host.http.Exchange.send, request), url)

    @property
    def memory(self) -> Memory:
        """What this agent has in mind in the conversation of its task: goal, thoughts, decisions, variables, items."""
        return Memory(self._host)

    def remember(self, key: str, value: Any) -> None:
        """Keeps a value, as JSON, for later tasks of this agent."""
        asking(self._host.memory.set, key, json.dumps(value, ensure_ascii=False).encode())

    def recall(self, key: str, default: Any = None) -> Any:
        """What was kept under the key."""
        kept = asking(self._host.memory.get, key)
        return default if kept is None else json.loads(kept)

    def forget(self, key: str) -> None:
        """Keeps it no longer."""
        asking(self._host.memory.delete, key)

    def remembered(self, prefix: str = "") -> list[str]:
        """The keys that begin with the prefix, sorted."""
        return asking(self._host.memory.keys, prefix)

    def put_file(self, name: str, content: str | bytes) -> str:
        """Writes a file for a program to read, and returns its path."""
        data = content.encode() if isinstance(content, str) else content
        return asking(self._host.files.put, name, data)

    def setting(self, name: str, default: str | None = None) -> str | None:
        """What the operator set under this name, as text."""
        value = self._host.settings.get(name)
        return default if value is None else value

    def sleep(self, seconds: float) -> None:
        """Waits; ends with `Cancelled` when the task is cancelled."""
        asking(self._host.wait.any_of, [], _ms(seconds))
        self.check_cancelled()

    def wait(self, *sources: Child | Call | Response, timeout: float | None = None) -> list[Any]:
        """Waits for several at once, and returns those that have something to tell; none when there was none in time."""
        ready = [source for source in sources if source._is_ready]
        if ready:
            return ready
        indices = asking(self._host.wait.any_of, [source._origin for source in sources], _ms(timeout))
        return [sources[index] for index in indices]

    # Others.

    def agents(self) -> list[dict[str, Any]]:
        """The cards of the agents that this one may call. What a card says is another's text."""
        return json.loads(asking(self._host.delegate.agents))

    def find(
        self,
        query: str | None = None,
        *,
        name: str | None = None,
        skill: str | None = None,
        tags: Iterable[str] = (),
        version: str | None = None,
        input_modes: Iterable[str] = (),
        output_modes: Iterable[str] = (),
        limit: int | None = None,
        allow_older: bool = False,
    ) -> list[dict[str, Any]]:
        """Those of them that fit, the best first, each with its `id`, `card`, `score` and `why`. `query` is what they are to do, in any words."""
        asked = {"query": query, "name": name, "skill": skill, "tags": list(tags), "version": version, "limit": limit}
        asked |= {"inputModes": list(input_modes), "outputModes": list(output_modes), "allowOlder": allow_older}
        said = json.dumps({key: value for key, value in asked.items() if value})
        return json.loads(asking(self._host.delegate.find, said))["agents"]

    def start(
        self,
        agent: str,
        message: Content,
        *,
        key: str | None = None,
        timeout: float | None = None,
        max_depth: int | None = None,
        max_tasks: int | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        working_directory: str | None = None,
        context_id: str | None = None,
        answers_questions: bool = False,
        inherit_working_memory: bool = False,
        inherit_memory: bool | str = False,
        memory_scope: Literal["full", "minimal", "summary"] | None = None,
        memory_names: list[str] | None = None,
        memory_bytes: int | None = None,
        memory_tokens: int | None = None,
    ) -> Call:
        """Gives another agent a task, and returns at once. Several such calls are at work at once.

        `inherit_working_memory` and `inherit_memory` (a text recalls items) hand over what this agent has in mind, but for what is
        private; `memory_scope`, `memory_names` and the budget say how much of it.
        """
        options = self._host.delegate.Options()
        given: list[tuple[Callable[[Any], None], Any]] = [
            (options.set_key, key),
            (options.set_timeout_ms, _ms(timeout)),
            (options.set_max_depth, max_depth),
            (options.set_max_tasks, max_tasks),
            (options.set_max_tokens, max_tokens),
            (options.set_max_cost_usd, max_cost_usd),
            (options.set_working_directory, working_directory),
            (options.set_context_id, context_id),
            (options.set_answers_questions, answers_questions or None),
        ]
        if inherit_working_memory:
            given.append((options.set_inherit_working_memory, True))
        if memory_scope is not None:
            given.append((options.set_memory_scope, self._host.delegate.MemoryScope[memory_scope.upper()]))
        given.append((options.set_memory_names, memory_names))
        for setter, value in given:
            if value is not None:
                setter(value)
        if inherit_memory:
            options.set_inherit_memory(True, inherit_memory if isinstance(inherit_memory, str) else None)
        if memory_bytes is not None or memory_tokens is not None:
            options.set_memory_budget(memory_bytes, memory_tokens)
        said = convert.message_out(self._t, message_of(message, "user"))
        return Call(self, agent, asking(self._host.delegate.Call.start_with, agent, said, options))

    def call(self, agent: str, message: Content, **options: Any) -> Outcome:
        """Has another agent do something, and waits for its end. Takes the options of `start`."""
        return self.start(agent, message, **options).completed()

    def tools(self) -> list[dict[str, Any]]:
        """The tools of servers that the operator grants. What a server says is another's text."""
        return json.loads(asking(self._host.tools.list))

    def call_tool(self, server: str, name: str, arguments: dict[str, Any] | None = None, *, timeout: float | None = None) -> dict[str, Any]:
        """Calls a tool; its result has `content`, `structuredContent`, `isError`, and here all text of it as `text`."""
        result = json.loads(asking(self._host.tools.call, server, name, json.dumps(arguments or {}), _ms(timeout)))
        result["text"] = "\n".join(block["text"] for block in result.get("content", []) if "text" in block)
        return result

    # Replay.

    def step(self, key: str, work: Callable[[], T], *, mode: Literal["recorded", "again", "ask"] = "recorded") -> T:
        """Does something to the world once, also where the agent is run again after a restart (`resume = "replay"`).

        What `work` returns is kept as JSON.
        """
        steps = self._host.steps
        step = asking(steps.Step.begin, key, steps.Mode[mode.upper()])
        if (before := step.kept()) is not None:
            return _came_to(json.loads(before))
        try:
            kept: dict[str, Any] = {"done": work()}
        except Cancelled:
            raise
        except Failure as failed:
            kept = {failed.kind: failed.text}
        text = "" if mode == "again" else json.dumps(kept, ensure_ascii=False)
        if len(text.encode()) > _MAX_KEPT:
            kept = {Exhausted.kind: f"the step `{key}` came to {len(text)} characters of JSON, and {_MAX_KEPT} are kept; keep less of it"}
            text = json.dumps(kept)
        asking(steps.Step.end, step, text)
        return _came_to(kept)

    # The operator.

    def log(self, text: object, level: Literal["debug", "info", "warn", "error"] = "info") -> None:
        """Tells the operator something, in the hub's log."""
        self._host.log.log(self._host.log.Level[level.upper()], convert.well_formed(str(text)))

    # The end.

    def done(self, content: Content | None = None, *, metadata: dict[str, Any] | None = None) -> End:
        """The task is completed."""
        return End("completed", None if content is None else message_of(content), metadata)

    def fail(self, reason: str, content: Content, *, fix: str | None = None, metadata: dict[str, Any] | None = None) -> End:
        """The task failed: a stable reason for machines, a text for people; `fix` mends it, such as a command."""
        told = {**(metadata or {}), "reason": reason, **({} if fix is None else {"fix": fix})}
        return End("failed", message_of(content), told)

    def reject(self, content: Content) -> End:
        """The agent will not do this, whoever asks."""
        return End("rejected", message_of(content))

    def reply(self, content: Content) -> End:
        """A message in place of a task."""
        return End(None, message_of(content))


def _came_to(kept: dict[str, Any]) -> Any:
    if "done" in kept:
        return kept["done"]
    [(kind, text)] = kept.items()
    raise KINDS[kind](text)
