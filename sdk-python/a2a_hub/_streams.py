"""Streams: lines of a program, bodies of responses, text artifacts, events of a called agent."""

from __future__ import annotations

import codecs
import json
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator

from ._convert import event_in, message_out, outcome_in
from ._errors import Exhausted, Unavailable, asking
from ._types import Content, Event, Outcome, message_of

if TYPE_CHECKING:
    from ._context import Context

# Looked up while the component is built: a running one has no files to load an encoding from.
_UTF_8_SIG = codecs.lookup("utf-8-sig")

_MAX_LINE = 8 << 20
_STDERR_TAIL = 8 << 10
_STDIN_CHUNK = 64 << 10

# Thresholds for sending buffered text: its length, and its age.
_FLUSH_LENGTH = 512
_FLUSH_AGE = 0.1


class _LineBuffer:
    """Splits chunks of bytes into lines."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._started = False
        self.lines: list[str] = []

    def push(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(piece)).split("\n")
        if len(self._rest) > _MAX_LINE:
            raise Exhausted(f"a line has more than {_MAX_LINE} characters")
        for line in lines:
            self._add(line)

    def end(self) -> None:
        self._rest += self._decoder.decode(b"", True)
        if self._rest:
            self._add(self._rest)
        self._rest = ""

    def _add(self, line: str) -> None:
        """Adds a line without its carriage return, and the first one without a byte order mark."""
        if not self._started:
            line = line.removeprefix("\ufeff")
        self._started = True
        self.lines.append(line.removesuffix("\r"))


class _EventLineBuffer(_LineBuffer):
    """Splits a stream of server-sent events into lines, which end with CRLF, LF or CR, after an
    optional byte order mark (WHATWG HTML, section 9.2.6).
    """

    def __init__(self) -> None:
        super().__init__()
        self._decoder = _UTF_8_SIG.incrementaldecoder("replace")
        self._after_return = False

    def push(self, piece: bytes) -> None:
        if not piece:
            return
        rest = piece.removeprefix(b"\n") if self._after_return else piece
        self._after_return = piece.endswith(b"\r")
        super().push(rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


class TextStream:
    """Text artifact that is streamed. Chunks are sent if a client is subscribed; the end replaces
    them by the whole text.

    As a context manager it finishes at the end of the block, unless an exception propagates.
    """

    def __init__(self, ctx: Context, id: str, options: dict[str, Any]) -> None:
        self._ctx, self._id, self._options = ctx, id, options
        self._unsent = ""
        self._written: list[str] = []
        self._buffered_since: float | None = None
        self._started = self._finished = False

    def write(self, text: str) -> None:
        """Adds text, and sends the buffered text if it is large or old enough."""
        self._written.append(text)
        if not self._ctx.live:
            return
        self._unsent += text
        now = time.monotonic()
        self._buffered_since = now if self._buffered_since is None else self._buffered_since
        if not self._started or len(self._unsent) >= _FLUSH_LENGTH or now - self._buffered_since >= _FLUSH_AGE:
            self.flush()

    def flush(self) -> None:
        """Sends the buffered text. Half of a surrogate pair at its end waits for the other half."""
        half = self._unsent[-1:] if "\ud800" <= self._unsent[-1:] <= "\udbff" else ""
        text = self._unsent.removesuffix(half)
        if not text:
            return
        self._unsent, self._buffered_since = half, time.monotonic() if half else None
        append, self._started = self._started, True
        self._ctx.artifact(self._id, text, append=append, last_chunk=False, **self._options)

    def finish(self, text: str | None = None) -> str:
        """Ends the artifact with the given text, or else with all written text."""
        self._finished = True
        text = "".join(self._written) if text is None else text
        self._ctx.artifact(self._id, text, **self._options)
        return text

    def __enter__(self) -> TextStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None and not self._finished:
            self.finish()


@dataclass
class Exit:
    """Exit of a program. `stdout` is set if `Context.run` collected it."""

    code: int | None
    signal: int | None
    stderr: str
    stdout: str = ""

    @property
    def ok(self) -> bool:
        """True if the exit code is 0."""
        return self.code == 0


class Child:
    """Running program. Iteration yields its lines; as a context manager it ends with the block."""

    def __init__(self, ctx: Context, command: Any) -> None:
        self._handle = asking(ctx._host.process.Child.spawn, command)
        self._wrap = ctx._host.wait.Origin_Child
        self._lines = _LineBuffer()
        self._stderr = b""
        self._exit: Any = None

    @property
    def _origin(self) -> Any:
        return self._wrap(self._handle)

    @property
    def _is_ready(self) -> bool:
        return bool(self._lines.lines) or self._exit is not None

    def next_line(self, timeout: float | None = None) -> str | None:
        """Next line of its output; None once it has ended. Raises `TimedOut` after `timeout`
        seconds without a line.
        """
        while not self._lines.lines and self._exit is None:
            self._read(timeout)
        return self._lines.lines.pop(0) if self._lines.lines else None

    def _read(self, timeout: float | None) -> None:
        output = asking(self._handle.next, _ms(timeout))
        kind = type(output).__name__
        if kind == "Output_Stdout":
            self._lines.push(output.value)
        elif kind == "Output_Stderr":
            self._stderr = (self._stderr + output.value)[-_STDERR_TAIL:]
        else:
            self._exit = output.value
            self._lines.end()

    def __iter__(self) -> Iterator[str]:
        while (line := self.next_line()) is not None:
            yield line

    def write(self, data: str | bytes) -> None:
        """Writes to its standard input. Blocks while the program does not read."""
        data = data.encode() if isinstance(data, str) else data
        for offset in range(0, len(data), _STDIN_CHUNK):
            asking(self._handle.write_stdin, data[offset : offset + _STDIN_CHUNK])

    def close_stdin(self) -> None:
        """Closes its standard input."""
        self._handle.close_stdin()

    def interrupt(self) -> None:
        """Sends the program an interrupt."""
        self._handle.interrupt()

    def kill(self) -> None:
        """Kills the program and its descendants."""
        self._handle.kill()

    def wait(self) -> Exit:
        """Waits for its exit."""
        while self._exit is None:
            self._lines.lines.clear()
            self._read(None)
        value = self._exit.value
        is_code = type(self._exit).__name__ == "ExitStatus_Code"
        stderr = self._stderr.decode("utf-8", "replace").rstrip()
        return Exit(value if is_code else None, None if is_code else value, stderr)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None) -> None:
        self._handle.__exit__(None, None, None)


@dataclass
class ServerEvent:
    """Server-sent event."""

    event: str
    data: str
    id: str | None = None


class Response:
    """HTTP response whose body is read as it arrives."""

    def __init__(self, ctx: Context, exchange: Any, url: str) -> None:
        self._exchange = exchange
        self._wrap = ctx._host.wait.Origin_Exchange
        self.url = url
        self.status: int = exchange.status()
        self._headers = [(name.lower(), value) for name, value in exchange.headers()]
        self._body: bytes | None = None

    @property
    def _origin(self) -> Any:
        return self._wrap(self._exchange)

    _is_ready = False

    @property
    def ok(self) -> bool:
        """True if the status is 200 to 299."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """Header with this name, case-insensitive."""
        return next((value for key, value in self._headers if key == name.lower()), None)

    def __iter__(self) -> Iterator[bytes]:
        while (piece := asking(self._exchange.next, None)) is not None:
            yield piece

    def lines(self) -> Iterator[str]:
        """Lines of the body."""
        return self._split(_LineBuffer())

    def _split(self, buffer: _LineBuffer) -> Iterator[str]:
        for piece in self:
            buffer.push(piece)
            yield from buffer.lines
            buffer.lines.clear()
        buffer.end()
        yield from buffer.lines

    def events(self) -> Iterator[ServerEvent]:
        """Server-sent events of the body, as language models stream them."""
        event, id = "message", None
        data: list[str] = []
        for line in self._split(_EventLineBuffer()):
            if not line:
                if "\n".join(data):
                    yield ServerEvent(event, "\n".join(data), id)
                event, data, id = "message", [], None
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                event = value
            elif field == "data":
                data.append(value)
            elif field == "id":
                id = value

    @property
    def body(self) -> bytes:
        """Reads the whole body."""
        if self._body is None:
            self._body = b"".join(self)
        return self._body

    @property
    def text(self) -> str:
        """Reads the whole body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Reads the whole body as JSON."""
        return json.loads(self.body)

    def close(self) -> None:
        """Closes the connection."""
        self._exchange.__exit__(None, None, None)


class Call:
    """Child task of another agent. Iteration yields its events; `completed` waits for its end."""

    def __init__(self, ctx: Context, agent: str, handle: Any) -> None:
        self._t, self._handle, self._agent = ctx._host.types, handle, agent
        self._wrap = ctx._host.wait.Origin_Call
        self._outcome: Outcome | None = None
        self._artifacts: dict[str, str] = {}

    @property
    def _origin(self) -> Any:
        return self._wrap(self._handle)

    @property
    def _is_ready(self) -> bool:
        return self._outcome is not None

    @property
    def task_id(self) -> str:
        """Id of the child task."""
        return self._handle.task_id()

    def next(self, timeout: float | None = None) -> Event | None:
        """Next event; None once the task has ended. Raises `TimedOut` after `timeout` seconds
        without an event.
        """
        if self._outcome is not None:
            return None
        update = asking(self._handle.next, _ms(timeout))
        if type(update).__name__ == "Update_Finished":
            self._outcome = outcome_in(update.value)
            self._outcome.artifacts = self._artifacts
            return None
        event = event_in(update.value)
        if (artifact := event.artifact) is not None:
            previous_text = self._artifacts.get(artifact.id, "") if event.append else ""
            self._artifacts[artifact.id] = previous_text + artifact.text
        return event

    def __iter__(self) -> Iterator[Event]:
        while (event := self.next()) is not None:
            yield event

    def answer(self, content: Content) -> None:
        """Answers the child task's question; requires `answers_questions`."""
        asking(self._handle.answer, message_out(self._t, message_of(content, "user")))

    def send(self, content: Content) -> None:
        """Sends the child task, which is at work, a further message. It is never an answer."""
        asking(self._handle.send, message_out(self._t, message_of(content, "user")))

    def cancel(self) -> None:
        """Cancels the child task, and returns once it has ended."""
        self._handle.cancel()

    def outcome(self) -> Outcome:
        """Waits for the end of the child task, in any state."""
        for _ in self:
            pass
        assert self._outcome is not None
        return self._outcome

    def completed(self) -> Outcome:
        """Waits for the end, and raises `Unavailable` unless it is `completed` or a direct answer.
        """
        outcome = self.outcome()
        if outcome.state not in (None, "completed"):
            raise Unavailable(f"`{self._agent}` ended as {outcome.state}: {outcome.text}")
        return outcome


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else max(0, round(seconds * 1000))
