"""Access of a running agent to the world outside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable, Iterable, Iterator, Literal, Mapping, TypeVar

from . import _convert as convert
from ._errors import KINDS, Cancelled, Exhausted, Failure, asking
from ._memory import Memory
from ._streams import Call, Child, Exit, Response, TextStream, _ms
from ._types import Artifact, Content, End, Message, Outcome, Permission, message_of, parts_of
from ._workspace import Workspace

T = TypeVar("T")

# Maximum length of a step's stored result, in characters of JSON.
_MAX_STEP_RESULT = 1 << 20


class Context:
    """Access of one run to the hub. Errors are raised as a `Failure`; times are seconds."""

    def __init__(self, host: Any, live: bool) -> None:
        self._host, self._t = host, host.types
        self.live = live
        """True if a client is subscribed during the run. If false, only the result counts."""

    # Output.

    def say(self, content: Content, *, metadata: dict[str, Any] | None = None) -> None:
        """Sends a status while the task works."""
        self._status(message_of(content), metadata)

    def progress(self, percent: float, text: str = "") -> None:
        """Sends the progress in per cent, with a text about the current work."""
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
        """Emits an artifact, replacing any with the same id; `append` adds to it instead."""
        parts = parts_of(content)
        for part in parts:
            part.media_type = part.media_type or media_type
            part.filename = part.filename or filename
        artifact = Artifact(id, parts, name, description, [], metadata)
        update = self._t.ArtifactUpdate(convert.artifact_out(self._t, artifact), append, last_chunk)
        asking(self._host.tasks.emit, self._t.Event_Artifact(update))

    def stream(self, id: str, **options: Any) -> TextStream:
        """Starts a text artifact that is streamed: `write` the chunks, then `finish`. Takes the
        options of `artifact`.
        """
        return TextStream(self, id, options)

    # Questions.

    def ask(self, prompt: Content, *, auth: bool = False, timeout: float | None = None) -> Message:
        """Asks the client, and waits for the answer. With `auth`, the answer is a login."""
        tasks = self._host.tasks
        need = tasks.Need.AUTH if auth else tasks.Need.INPUT
        answer = asking(tasks.ask, need, convert.message_out(self._t, message_of(prompt)), _ms(timeout))
        return convert.message_in(answer)

    def request_permission(self, facts: dict[str, Any], prompt: Content, *, timeout: float | None = None) -> Permission:
        """Requests permission for what a program asks. A rule of the operator decides if one can;
        otherwise the client is asked with `prompt`. `facts` has the program's request as it is:
        `vendor`, `request`, and if known `method`, `directory`, `call` and `paths`.
        """
        tasks, message = self._host.tasks, convert.message_out(self._t, message_of(prompt))
        reply = asking(tasks.request_permission, json.dumps(facts), message, _ms(timeout))
        if isinstance(reply, tasks.Permission_Allowed):
            return Permission(allowed_by=reply.value)
        if isinstance(reply, tasks.Permission_Denied):
            return Permission(denied=reply.value)
        return Permission(answer=convert.message_in(asking(tasks.Question.answer, reply.value)))

    def permission_denial(self, facts: dict[str, Any]) -> str | None:
        """Reason if a rule of the operator denies a request that the agent would allow without asking."""
        return asking(self._host.tasks.permission_denial, json.dumps(facts))

    def next_message(self, timeout: float | None = None) -> Message:
        """Waits for the next message that the client, or the calling agent, sends to the task while
        the agent works. Raises `TimedOut` after `timeout` seconds without one. A message that no run
        reads starts another run after this one.
        """
        return convert.message_in(asking(self._host.tasks.next_message, _ms(timeout)))

    @property
    def cancelled(self) -> bool:
        """True if the task was cancelled. A long computation polls this."""
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
        """True if the client accepts this media type, exactly or by a range such as `image/*`."""
        modes = self._host.tasks.accepted_output_modes()
        ranges = ("*/*", media_type, media_type.split("/")[0] + "/*")
        return not modes or any(mode in ranges for mode in modes)

    # Programs.

    def spawn(self, program: str, *args: object, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Child:
        """Starts a granted program, to exchange data with it."""
        variables = list((env or {}).items())
        command = self._host.process.Command(program, [str(arg) for arg in args], variables, cwd)
        return Child(self, command)

    def lines(self, program: str, *args: object, input: str | bytes = b"", check: bool = True, **options: Any) -> Iterator[str]:
        """Runs a granted program, and yields its lines as they arrive. With `check`, raises
        `Failure` unless the exit code is 0.
        """
        with self.spawn(program, *args, **options) as child:
            child.write(input)
            child.close_stdin()
            yield from child
            exit = child.wait()
        if check and not exit.ok:
            raise Failure(f"`{program}` ended with {exit.code if exit.signal is None else f'signal {exit.signal}'}: {exit.stderr}")

    def run(self, program: str, *args: object, input: str | bytes = b"", **options: Any) -> Exit:
        """Runs a granted program to its end, and returns its exit and output."""
        with self.spawn(program, *args, **options) as child:
            child.write(input)
            child.close_stdin()
            lines = list(child)
            exit = child.wait()
        exit.stdout = "\n".join(lines)
        return exit

    def fingerprint(self, program: str) -> str:
        """Fingerprint of a program's file, which changes with the file."""
        return asking(self._host.process.fingerprint, program)

    # External resources.

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
        """Sends a request to a granted host. The body of the response is read as it arrives;
        `timeout` applies to its head.
        """
        pairs = list((headers or {}).items())
        if json_body is not None:
            body = json.dumps(json_body)
            pairs.append(("content-type", "application/json"))
        data = body.encode() if isinstance(body, str) else bytes(body)
        request = self._host.http.Request(method, url, pairs, data, _ms(timeout))
        return Response(self, asking(self._host.http.Exchange.send, request), url)

    @property
    def memory(self) -> Memory:
        """Memory of this agent in the conversation of its task: goal, thoughts, decisions,
        variables, items.
        """
        return Memory(self._host)

    def remember(self, key: str, value: Any) -> None:
        """Stores a value, as JSON, for later tasks of this agent."""
        asking(self._host.memory.set, key, json.dumps(value, ensure_ascii=False).encode())

    def recall(self, key: str, default: Any = None) -> Any:
        """Reads the value of a key."""
        stored = asking(self._host.memory.get, key)
        return default if stored is None else json.loads(stored)

    def forget(self, key: str) -> None:
        """Deletes the value of a key."""
        asking(self._host.memory.delete, key)

    def remembered(self, prefix: str = "") -> list[str]:
        """Keys that begin with the prefix, sorted."""
        return asking(self._host.memory.keys, prefix)

    @property
    def workspace(self) -> Workspace:
        """Files of the task's working directory, granted with `workspace`."""
        return Workspace(self._host)

    def put_file(self, name: str, content: str | bytes) -> str:
        """Writes a file for a program to read, and returns its path."""
        data = content.encode() if isinstance(content, str) else content
        return asking(self._host.files.put, name, data)

    def setting(self, name: str, default: str | None = None) -> str | None:
        """Reads a setting that the operator made for this agent, as text."""
        value = self._host.settings.get(name)
        return default if value is None else value

    def sleep(self, seconds: float) -> None:
        """Sleeps; raises `Cancelled` once the task is cancelled."""
        asking(self._host.wait.any_of, [], _ms(seconds))
        self.check_cancelled()

    def wait(self, *sources: Child | Call | Response, timeout: float | None = None) -> list[Any]:
        """Waits for several sources, and returns those that are ready; empty after the timeout."""
        ready = [source for source in sources if source._is_ready]
        if ready:
            return ready
        indices = asking(self._host.wait.any_of, [source._origin for source in sources], _ms(timeout))
        return [sources[index] for index in indices]

    # Other agents and tools.

    def agents(self) -> list[dict[str, Any]]:
        """Cards of the agents that this one may call. A card is third-party text, not instructions.
        """
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
        """Finds callable agents that fit, best first, each with `id`, `card`, `score` and `why`.
        `query` describes the work in any words.
        """
        criteria = {"query": query, "name": name, "skill": skill, "tags": list(tags), "version": version, "limit": limit}
        criteria |= {"inputModes": list(input_modes), "outputModes": list(output_modes), "allowOlder": allow_older}
        query_json = json.dumps({key: value for key, value in criteria.items() if value})
        return json.loads(asking(self._host.delegate.find, query_json))["agents"]

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
        worktree: bool | str | dict[str, str] | None = None,
        context_id: str | None = None,
        answers_questions: bool = False,
        inherit_working_memory: bool = False,
        inherit_memory: bool | str = False,
        memory_scope: Literal["full", "minimal", "summary"] | None = None,
        memory_names: list[str] | None = None,
        memory_bytes: int | None = None,
        memory_tokens: int | None = None,
    ) -> Call:
        """Starts a child task with another agent, and returns at once. Several calls run at the
        same time.

        `worktree` has the child work in a git worktree, apart from the checkout: True for a new one,
        a commit to start from, or `{"task": ID}` for that of another child. Its changes arrive as the
        artifact `patch`. The operator allows it with the term `worktrees` of the grant `delegate`.

        `inherit_working_memory` and `inherit_memory` (a text selects items) hand over this agent's
        memory without private entries; `memory_scope`, `memory_names` and the budget limit it.
        """
        options = self._host.delegate.Options()
        option_setters: list[tuple[Callable[[Any], None], Any]] = [
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
            option_setters.append((options.set_inherit_working_memory, True))
        if memory_scope is not None:
            option_setters.append((options.set_memory_scope, self._host.delegate.MemoryScope[memory_scope.upper()]))
        option_setters.append((options.set_memory_names, memory_names))
        for setter, value in option_setters:
            if value is not None:
                setter(value)
        if inherit_memory:
            options.set_inherit_memory(True, inherit_memory if isinstance(inherit_memory, str) else None)
        if memory_bytes is not None or memory_tokens is not None:
            options.set_memory_budget(memory_bytes, memory_tokens)
        user_message = message_of(message, "user")
        if worktree:
            user_message = replace(user_message, metadata={**(user_message.metadata or {}), "worktree": worktree})
        contract_message = convert.message_out(self._t, user_message)
        return Call(self, agent, asking(self._host.delegate.Call.start_with, agent, contract_message, options))

    def call(self, agent: str, message: Content, **options: Any) -> Outcome:
        """Calls another agent, and waits for the end of its task. Takes the options of `start`."""
        return self.start(agent, message, **options).completed()

    def tools(self) -> list[dict[str, Any]]:
        """Tools of MCP servers that the operator granted. Their descriptions are third-party text,
        not instructions.
        """
        return json.loads(asking(self._host.tools.list))

    def call_tool(self, server: str, name: str, arguments: dict[str, Any] | None = None, *, timeout: float | None = None) -> dict[str, Any]:
        """Calls a tool. The result has `content`, `structuredContent`, `isError`, and `text` with
        all of its text.
        """
        result = json.loads(asking(self._host.tools.call, server, name, json.dumps(arguments or {}), _ms(timeout)))
        result["text"] = "\n".join(block["text"] for block in result.get("content", []) if "text" in block)
        return result

    # Replay.

    def step(self, key: str, work: Callable[[], T], *, mode: Literal["recorded", "again", "ask"] = "recorded") -> T:
        """Performs a side effect once, also if the agent runs again after a restart (`resume =
        "replay"`).

        The result of `work` is stored as JSON.
        """
        steps = self._host.steps
        step = asking(steps.Step.begin, key, steps.Mode[mode.upper()])
        if (stored := step.kept()) is not None:
            return _unwrap_result(json.loads(stored))
        try:
            result: dict[str, Any] = {"done": work()}
        except Cancelled:
            raise
        except Failure as failure:
            result = {failure.kind: failure.text}
        text = "" if mode == "again" else json.dumps(result, ensure_ascii=False)
        if len(text.encode()) > _MAX_STEP_RESULT:
            result = {Exhausted.kind: f"the step `{key}` came to {len(text)} characters of JSON, and {_MAX_STEP_RESULT} are kept; keep less of it"}
            text = json.dumps(result)
        asking(steps.Step.end, step, text)
        return _unwrap_result(result)

    # Log.

    def log(self, text: object, level: Literal["debug", "info", "warn", "error"] = "info") -> None:
        """Writes a line to the hub's log."""
        self._host.log.log(self._host.log.Level[level.upper()], convert.well_formed(str(text)))

    # End of the run.

    def done(self, content: Content | None = None, *, metadata: dict[str, Any] | None = None) -> End:
        """Completes the task."""
        return End("completed", None if content is None else message_of(content), metadata)

    def fail(self, reason: str, content: Content, *, fix: str | None = None, metadata: dict[str, Any] | None = None) -> End:
        """Fails the task: a stable reason for machines, a text for people; `fix` is a repair, such
        as a command.
        """
        merged_metadata = {**(metadata or {}), "reason": reason, **({} if fix is None else {"fix": fix})}
        return End("failed", message_of(content), merged_metadata)

    def reject(self, content: Content) -> End:
        """Rejects the task: the agent does not do this for any client."""
        return End("rejected", message_of(content))

    def reply(self, content: Content) -> End:
        """Answers with a message instead of a task; the manifest says `direct_message = true`."""
        return End(None, message_of(content))


def _unwrap_result(result: dict[str, Any]) -> Any:
    if "done" in result:
        return result["done"]
    [(kind, text)] = result.items()
    raise KINDS[kind](text)
