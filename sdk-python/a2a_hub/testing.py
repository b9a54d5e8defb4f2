"""Hub for tests without WebAssembly: follows a script and records all calls.

Calls that the script does not name are denied.

    host = ScriptedHost()
    host.program("git", stdout="a1 one\\nb2 two\\n")
    host.answer("main")
    assert host.run(agent, "how many commits?").text == "2 commits on main"
    assert host.spawned[0].args == ["log", "--oneline"]
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, Iterable

from . import _convert as convert
from ._agent import Agent, Health, check_health, find, run_task
from ._errors import KINDS, Denied, Exhausted, Failure, Invalid, TimedOut
from ._mind import Mind
from ._types import Artifact, Content, Message, Outcome, Part, State, from_json, message_of


class _Record:
    """Record or case of the contract, with its fields in the order of the bindings."""

    fields: tuple[str, ...] = ()

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self.fields, values, strict=True):
            setattr(self, name, value)


def _record(name: str, *fields: str) -> type[_Record]:
    return type(name, (_Record,), {"fields": fields})


_ALLOWED, _DENIED, _PENDING = (_record(f"Permission_{kind}", "value") for kind in ("Allowed", "Denied", "Pending"))
_MESSAGE = ("id", "role", "parts", "context_id", "task_id", "reference_task_ids", "extensions", "metadata")
_TYPES = SimpleNamespace(
    Role=Enum("Role", ["USER", "AGENT"]),
    TaskState=Enum("TaskState", ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED", "REJECTED"]),
    Part=_record("Part", "content", "filename", "media_type", "metadata"),
    Message=_record("Message", *_MESSAGE),
    TaskStatus=_record("TaskStatus", "state", "message", "metadata"),
    Artifact=_record("Artifact", "id", "name", "description", "parts", "extensions", "metadata"),
    ArtifactUpdate=_record("ArtifactUpdate", "artifact", "append", "last_chunk"),
    Task=_record("Task", "id", "context_id", "message", "history", "working_directory", "metadata"),
    **{
        name: _record(name, "value")
        for name in (
            *(f"PartContent_{kind}" for kind in ("Text", "Raw", "Url", "Data")),
            *("Event_Status", "Event_Artifact", "Event_Other", "Outcome_Message", "Outcome_Status"),
        )
    },
)
_CODE, _EXITED = _record("ExitStatus_Code", "value"), _record("Output_Exited", "value")
_STDOUT, _STDERR = _record("Output_Stdout", "value"), _record("Output_Stderr", "value")
_EVENT, _FINISHED = _record("Update_Event", "value"), _record("Update_Finished", "value")


@dataclass
class Status:
    """Emitted status."""

    state: State
    text: str | None
    metadata: dict[str, Any] | None = None


@dataclass
class Update:
    """Emitted chunk of an artifact."""

    artifact: Artifact
    append: bool
    last_chunk: bool


@dataclass
class Command:
    """Program that the agent started, with its input."""

    program: str
    args: list[str]
    env: dict[str, str]
    cwd: str | None
    stdin: str = ""


@dataclass
class Request:
    """Request that the agent sent."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ScriptedResponse:
    """Response to a request. `pieces` replace the body if the agent is to read it in chunks."""

    status: int = 200
    body: str | bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    json: Any = None
    pieces: Iterable[str | bytes] | None = None


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


class ScriptedHost:
    """Hub for tests, which follows a script."""

    def __init__(self) -> None:
        self.events: list[Status | Update] = []
        """Emitted events, oldest first."""
        self.asked: list[Message] = []
        """Questions to the client."""
        self.spawned: list[Command] = []
        """Started programs."""
        self.requests: list[Request] = []
        """Sent requests."""
        self.logs: list[tuple[str, str]] = []
        """Log lines with their levels."""
        self.files: list[tuple[str, bytes]] = []
        """Written files."""
        self.calls: list[tuple[str, Message]] = []
        """Calls of other agents."""
        self.searches: list[dict[str, Any]] = []
        """Searches for other agents. A search finds all agents that the script lets it call."""
        self.tool_calls: list[tuple[str, str, Any]] = []
        """Called tools."""
        self.memory: dict[str, bytes] = {}
        """Stored values."""
        self.mind = Mind()
        """Context memory: `working`, and `items`."""
        self.steps: dict[str, str] = {}
        """Results of steps, kept between runs as after a restart."""
        self.slept: list[int] = []
        """Duration of each sleep, in milliseconds."""
        self.sent: list[tuple[str, Message]] = []
        """Further messages to called agents, each with the name of the agent."""
        self._answers: list[Content | Failure] = []
        self._messages: list[Content] = []
        self._programs: dict[str, list[tuple[bytes, bytes, int]]] = {}
        self._responses: list[Any] = []
        self._agents: dict[str, list[tuple[State, str, dict[str, str]]]] = {}
        self._tools: dict[tuple[str, str], Any] = {}
        self._rules: list[tuple[str, str | None]] = []
        self._settings = {"permissions": "ask", "approval_timeout": "3600000"}
        self._cancel_after: int | None = None
        self._memory_bytes: int | None = None
        self.workspace: dict[str, bytes] | None = None
        """Files of the granted workspace, by path; `None` without a grant."""
        self._read_only = False

    # Script.

    def answer(self, answer: Content | Failure) -> ScriptedHost:
        """Answers the next question; a `Failure` is raised."""
        self._answers.append(answer)
        return self

    def message(self, message: Content) -> ScriptedHost:
        """Scripts the next message to the agent at work. Without one, its wait times out."""
        self._messages.append(message)
        return self

    def program(self, name: str, *, stdout: str | bytes = b"", stderr: str | bytes = b"", code: int = 0) -> ScriptedHost:
        """Scripts one start of a granted program: its output and exit. The last script also serves
        all later starts.
        """
        self._programs.setdefault(name, []).append((_bytes(stdout), _bytes(stderr), code))
        return self

    def respond(self, response: str | bytes | ScriptedResponse | Failure | Callable[[Request], Any]) -> ScriptedHost:
        """Scripts the next response; a function gets the request."""
        self._responses.append(response)
        return self

    def agent(self, name: str, text: str, *, state: State = "completed", artifacts: dict[str, str] | None = None) -> ScriptedHost:
        """Scripts another agent, with its outcome when called."""
        self._agents.setdefault(name, []).append((state, text, artifacts or {}))
        return self

    def tool(self, server: str, name: str, result: Any) -> ScriptedHost:
        """Scripts a tool with its result."""
        self._tools[server, name] = result
        return self

    def setting(self, name: str, value: object) -> ScriptedHost:
        """Sets a setting, as the operator would."""
        self._settings[name] = str(value)
        return self

    def memory_bytes(self, most: int) -> ScriptedHost:
        """Limits the memory in bytes."""
        self._memory_bytes = most
        return self

    def grant_workspace(self, files: dict[str, str | bytes], *, read_only: bool = False) -> ScriptedHost:
        """Grants a workspace with these files."""
        self.workspace = {path: _bytes(content) for path, content in files.items()}
        self._read_only = read_only
        return self

    def rule(self, part: str, *, denied: str | None = None) -> ScriptedHost:
        """Makes a rule of the operator for the requests whose facts, as JSON, contain this text: it
        allows them, or denies them with a reason.
        """
        self._rules.append((part, denied))
        return self

    def cancel_after(self, events: int) -> ScriptedHost:
        """Cancels the task once `events` events were emitted."""
        self._cancel_after = events
        return self

    # Run.

    def run(
        self,
        agent: Agent | type[Agent] | ModuleType,
        content: Content = "",
        *,
        live: bool = True,
        history: Iterable[Content] = (),
        working_directory: str | None = None,
    ) -> Outcome:
        """Runs a task to its end. A `Failure` is raised."""
        messages = [convert.message_out(_TYPES, message_of(message, "user")) for message in (content, *history)]
        task = _TYPES.Task("task", "context", messages[0], messages[1:], working_directory, None)
        return convert.outcome_in(run_task(_agent(agent), self._host(), task, live))

    def health(self, agent: Agent | type[Agent] | ModuleType) -> Health:
        """Runs the agent's health check."""
        return check_health(_agent(agent), self._host())

    @property
    def said(self) -> list[str]:
        """Texts of the emitted statuses."""
        return [event.text for event in self.events if isinstance(event, Status) and event.text is not None]

    def artifact(self, id: str) -> str | None:
        """Final text of an artifact, as a client has it."""
        text = None
        for event in self.events:
            if isinstance(event, Update) and event.artifact.id == id:
                text = (text or "" if event.append else "") + event.artifact.text
        return text

    def _is_cancelled(self) -> bool:
        return self._cancel_after is not None and len(self.events) >= self._cancel_after

    def _check(self) -> None:
        if self._is_cancelled():
            raise KINDS["cancelled"]()

    def _emit(self, event: Any) -> None:
        self._check()
        value = event.value
        if isinstance(event, _TYPES.Event_Artifact):
            self.events.append(Update(convert.artifact_in(value.artifact), value.append, value.last_chunk))
            return
        text = convert.message_in(value.message).text if value.message else None
        self.events.append(Status(convert.state_name(value.state), text, from_json(value.metadata)))

    def _ask(self, need: Any, prompt: Any, timeout: int | None) -> Any:
        self._check()
        self.asked.append(convert.message_in(prompt))
        if not self._answers:
            raise _denied(f"the answer to `{self.asked[-1].text}`")
        answer = self._answers.pop(0)
        if isinstance(answer, Failure):
            raise answer
        return convert.message_out(_TYPES, message_of(answer, "user"))

    def _rule_for(self, facts: str) -> tuple[str, str | None] | None:
        return next((rule for rule in self._rules if rule[0] in facts), None)

    def _request_permission(self, facts: str, prompt: Any, timeout: int | None) -> Any:
        self._check()
        rule = self._rule_for(facts)
        if rule is None:
            return _PENDING(self._ask(None, prompt, timeout))
        part, denied = rule
        return _ALLOWED(part) if denied is None else _DENIED(denied)

    def _permission_denial(self, facts: str) -> str | None:
        self._check()
        rule = self._rule_for(facts)
        return rule[1] if rule else None

    def _remember(self, key: str, value: bytes) -> None:
        self._check()
        used = sum(len(k) + len(v) for k, v in self.memory.items() if k != key) + len(key) + len(value)
        if self._memory_bytes is not None and used > self._memory_bytes:
            raise Exhausted(f"remember {len(value)} bytes: {self._memory_bytes} are granted")
        self.memory[key] = value

    def _put(self, name: str, content: bytes) -> str:
        self._check()
        self.files.append((name, content))
        return f"/files/{name}"

    def _workspace_files(self, action: str) -> dict[str, bytes]:
        self._check()
        if self.workspace is None:
            raise _denied(action)
        return self.workspace

    def _workspace_read(self, path: str) -> bytes:
        files = self._workspace_files(f"read `{path}`")
        if path not in files:
            raise Invalid(f"read `{path}`: there is no such file in the workspace")
        return files[path]

    def _workspace_write(self, path: str, content: bytes) -> None:
        files = self._workspace_files(f"write `{path}`")
        if self._read_only:
            raise Denied(f"write `{path}`: the workspace is read-only")
        files[path] = content

    def _workspace_list(self, path: str) -> list[str]:
        folder = f"{path}/" if path else ""
        paths = [file[len(folder) :] for file in self._workspace_files(f"list `{path}`") if file.startswith(folder)]
        if folder and not paths:
            raise Invalid(f"list `{path}`: there is no such file in the workspace")
        return list({name if "/" not in name else name.split("/")[0] + "/" for name in paths})

    def _spawn(self, command: Any) -> Any:
        self._check()
        scripts = self._programs.get(command.program)
        if not scripts:
            raise _denied(f"run `{command.program}`")
        stdout, stderr, code = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        started = Command(command.program, command.args, dict(command.env), command.cwd)
        self.spawned.append(started)
        outputs = [_STDOUT(stdout)] if stdout else []
        outputs += [_STDERR(stderr)] if stderr else []
        outputs.append(_EXITED(_CODE(code)))

        def write(data: bytes) -> None:
            started.stdin += data.decode("utf-8", "replace")

        return self._handle(next=lambda timeout: outputs.pop(0), write_stdin=write, close_stdin=_noop, interrupt=_noop, kill=_noop)

    def _send(self, request: Any) -> Any:
        self._check()
        recorded = Request(request.method, request.url, dict(request.headers), request.body)
        self.requests.append(recorded)
        if not self._responses:
            raise _denied(f"{recorded.method} {recorded.url}")
        response = self._responses.pop(0)
        response = response(recorded) if callable(response) else response
        if isinstance(response, Failure):
            raise response
        if isinstance(response, (str, bytes)):
            response = ScriptedResponse(body=response)
        body = response.body if response.json is None else json.dumps(response.json)
        pieces = [_bytes(piece) for piece in (response.pieces or [body])]
        return self._handle(
            status=lambda: response.status,
            headers=lambda: list(response.headers.items()),
            next=lambda timeout: pieces.pop(0) if pieces else None,
        )

    def _next_message(self, timeout: int | None) -> Any:
        self._check()
        if not self._messages:
            raise TimedOut("no message came")
        return convert.message_out(_TYPES, message_of(self._messages.pop(0), "user"))

    def _start(self, agent: str, message: Any, options: Any) -> Any:
        self._check()
        outcomes = self._agents.get(agent)
        if not outcomes:
            raise _denied(f"call `{agent}`")
        state, text, artifacts = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        self.calls.append((agent, convert.message_in(message)))
        send = lambda message: self.sent.append((agent, convert.message_in(message)))
        contract_artifacts = [convert.artifact_out(_TYPES, Artifact(id, [Part(text=content)])) for id, content in artifacts.items()]
        updates = [_EVENT(_TYPES.Event_Artifact(_TYPES.ArtifactUpdate(artifact, False, True))) for artifact in contract_artifacts]
        status = convert.status_out(_TYPES, state, message_of(text), None)
        updates.append(_FINISHED(_TYPES.Outcome_Status(status)))
        return self._handle(next=lambda timeout: updates.pop(0), task_id=lambda: f"task-of-{agent}", answer=_noop, send=send, cancel=_noop)

    def _call_tool(self, server: str, name: str, arguments: str, timeout: int | None) -> str:
        self._check()
        self.tool_calls.append((server, name, json.loads(arguments)))
        if (server, name) not in self._tools:
            raise _denied(f"call `{name}` of `{server}`")
        return json.dumps(self._tools[server, name])

    def _any_of(self, origins: list[Any], timeout: int | None) -> list[int]:
        self._check()
        if not origins and timeout is not None:
            self.slept.append(timeout)
        return list(range(len(origins)))

    def _handle(self, **calls: Callable[..., Any]) -> Any:
        def checked(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any) -> Any:
                self._check()
                return call(*args)

            return wrapper

        return type("Handle", (), {"__exit__": _noop, **{name: staticmethod(checked(call)) for name, call in calls.items()}})()

    def _find(self, query: str) -> str:
        self.searches.append(json.loads(query))
        matches = [{"id": name, "card": {"agentId": name, "name": name}, "score": 1.0, "why": []} for name in self._agents]
        return json.dumps({"agents": matches})

    def _host(self) -> Any:
        origin = lambda handle: handle  # noqa: E731
        options = type("Options", (), {"__getattr__": lambda self, name: _noop})
        step = SimpleNamespace(
            begin=lambda key, mode: SimpleNamespace(key=key, kept=lambda: self.steps.get(key)),
            end=lambda step, result: self.steps.__setitem__(step.key, result) if result else None,
        )
        tools = [{"server": server, "name": name, "inputSchema": {}} for server, name in self._tools]
        cards = [{"agentId": name, "name": name} for name in self._agents]
        levels = Enum("levels", ["DEBUG", "INFO", "WARN", "ERROR"])
        return SimpleNamespace(
            types=_TYPES,
            tasks=SimpleNamespace(
                emit=self._emit,
                ask=self._ask,
                request_permission=self._request_permission,
                permission_denial=self._permission_denial,
                Permission_Allowed=_ALLOWED,
                Permission_Denied=_DENIED,
                Permission_Pending=_PENDING,
                Question=SimpleNamespace(answer=lambda answer: answer),
                next_message=self._next_message,
                cancelled=self._is_cancelled,
                extensions=list,
                accepted_output_modes=list,
                Need=Enum("Need", ["INPUT", "AUTH"]),
            ),
            log=SimpleNamespace(Level=levels, log=lambda level, text: self.logs.append((level.name.lower(), text))),
            settings=SimpleNamespace(get=self._settings.get),
            memory=SimpleNamespace(
                get=self.memory.get,
                set=self._remember,
                delete=lambda key: self.memory.pop(key, None) and None,
                keys=lambda prefix: sorted(key for key in self.memory if key.startswith(prefix)),
            ),
            context_memory=self.mind.contract(),
            files=SimpleNamespace(put=self._put),
            workspace=SimpleNamespace(read=self._workspace_read, write=self._workspace_write, list=self._workspace_list),
            process=SimpleNamespace(
                Command=_record("Command", "program", "args", "env", "cwd"),
                Child=SimpleNamespace(spawn=self._spawn),
                fingerprint=lambda program: f"fingerprint of {program}",
            ),
            http=SimpleNamespace(
                Request=_record("Request", "method", "url", "headers", "body", "timeout_ms"), Exchange=SimpleNamespace(send=self._send)
            ),
            delegate=SimpleNamespace(
                agents=lambda: json.dumps(cards),
                find=self._find,
                Options=options,
                MemoryScope=Enum("MemoryScope", ["FULL", "MINIMAL", "SUMMARY"]),
                Call=SimpleNamespace(start_with=self._start),
            ),
            steps=SimpleNamespace(Step=step, Mode=Enum("Mode", ["RECORDED", "AGAIN", "ASK"])),
            tools=SimpleNamespace(list=lambda: json.dumps(tools), call=self._call_tool),
            wait=SimpleNamespace(Origin_Child=origin, Origin_Call=origin, Origin_Exchange=origin, any_of=self._any_of),
        )


def _agent(agent: Agent | type[Agent] | ModuleType) -> Agent:
    if isinstance(agent, ModuleType):
        return find(agent)
    return agent() if isinstance(agent, type) else agent


def _denied(request: str) -> Denied:
    return Denied(f"{request}: not in the script of the test")


def _noop(*args: Any) -> None:
    return None
