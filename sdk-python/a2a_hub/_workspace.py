"""Files of the task's working directory."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from ._errors import Denied, Exhausted, Failure, Invalid, Unavailable

WORKSPACE_ROOT = "/workspace"

_MISSING = (
    "the agent has no workspace; its manifest must ask with `[workspace]`, "
    "and the operator allows it with `a2a-hub plugin grant ID --workspace read`"
)
_READ_ONLY = "not granted; `a2a-hub plugin grant ID --workspace read-write` allows changes"


class Workspace:
    """Access to the files of a granted workspace. Paths are relative to it."""

    def __init__(self, host: Any) -> None:
        self._files = host.workspace

    def read(self, path: str) -> str:
        """Reads a file as text."""
        return self.read_bytes(path).decode("utf-8", "replace")

    def read_bytes(self, path: str) -> bytes:
        """Reads a file as bytes."""
        return self._files.read(_relative_path(path))

    def write(self, path: str, content: str | bytes) -> None:
        """Writes a file, and creates its folders."""
        self._files.write(_relative_path(path), content.encode() if isinstance(content, str) else content)

    def list(self, path: str = "") -> list[str]:
        """Lists the names of a folder, sorted; names of folders end in `/`."""
        return sorted(self._files.list(_relative_path(path)))


def _relative_path(path: str) -> str:
    relative = path[len(WORKSPACE_ROOT) + 1 :] if path == WORKSPACE_ROOT or path.startswith(f"{WORKSPACE_ROOT}/") else path
    names = [name for name in relative.split("/") if name not in ("", ".")]
    if ".." in names or relative.startswith("/"):
        raise Invalid(f"`{path}` is outside of the workspace; give a path below it, such as `src/main.py`")
    return "/".join(names)


class WasiFiles:
    """Files of a component, by the file functions of Python."""

    def __init__(self, root: str = WORKSPACE_ROOT) -> None:
        self._root = Path(root)

    def read(self, path: str) -> bytes:
        return self._attempt(f"read `{path}`", lambda: (self._root / path).read_bytes())

    def write(self, path: str, content: bytes) -> None:
        def write() -> None:
            file = self._root / path
            if file.parent != self._root:
                file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

        self._attempt(f"write `{path}`", write)

    def list(self, path: str) -> list[str]:
        def names() -> list[str]:
            return [f"{entry.name}/" if entry.is_dir() else entry.name for entry in (self._root / path).iterdir()]

        return self._attempt(f"list `{path or '.'}`", names)

    def _attempt(self, action: str, work: Any) -> Any:
        try:
            return work()
        except OSError as error:
            raise self._to_failure(action, error) from None

    def _to_failure(self, action: str, error: OSError) -> Failure:
        if not self._root.is_dir():
            return Denied(f"{action}: {_MISSING}")
        match error.errno:
            case errno.ENOENT:
                return Invalid(f"{action}: there is no such file in the workspace")
            case errno.ENOTDIR:
                return Invalid(f"{action}: it is no folder")
            case errno.EISDIR:
                return Invalid(f"{action}: it is a folder, and not a file")
            case errno.EACCES | errno.EPERM | errno.EROFS:
                return Denied(f"{action}: {_READ_ONLY}")
            case errno.ENOSPC:
                return Exhausted(f"{action}: the task's limit of written files or bytes is used up")
            case _:
                return Unavailable(f"{action}: {error.strerror}")
