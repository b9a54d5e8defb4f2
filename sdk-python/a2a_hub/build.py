"""Builds the component of a project: run `python3 build.py` there, or `python3 -m a2a_hub.build`.

`[tool.a2a-hub]` of `pyproject.toml` has the settings: `main` (the module, by default `agent`),
`component` (path of the component), `manifest`, `wit` (folder of the contract) and
`componentize-py` (its version).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path
from typing import Any, NoReturn

COMPONENTIZE_PY = "0.25.1"
SECTION = b"a2a-hub:manifest"
_SDK = Path(__file__).resolve().parent


class BuildError(Exception):
    """Error with a text that lets the user fix it."""


def main(root: str | Path = ".", words: list[str] | None = None) -> NoReturn:
    """Builds with `build.py`; `build.py test` runs the project's tests, which need only Python."""
    words = sys.argv[1:] if words is None else words
    folder = Path(root).resolve()
    try:
        if words[:1] == ["test"]:
            sys.exit(_test(folder, words[1:]))
        if words:
            raise BuildError(f"`{words[0]}` is not known here; there are `build.py` and `build.py test`")
        started = time.monotonic()
        out = build(folder)
        size = out.stat().st_size / 1e6
        print(f"{out.relative_to(folder)}: {size:.1f} MB, in {time.monotonic() - started:.1f} s")
        sys.exit(0)
    except (BuildError, OSError) as error:
        sys.exit(f"error: {error}")


def build(root: Path) -> Path:
    """Builds the component of the project in `root`, and returns its path."""
    settings = _settings(root)
    module = settings.get("main", "agent")
    if not (root / f"{module}.py").is_file() and not (root / module).is_dir():
        raise BuildError(f"there is no {module}.py in {root}; `main` in [tool.a2a-hub] of pyproject.toml names the module of the agent")
    contract = root / settings["wit"] if "wit" in settings else _contract(root)
    if not (contract / "world.wit").is_file():
        raise BuildError(f"there is no contract in {contract}; `a2a-hub plugin new` puts it into vendor/wit")
    tool = _componentize_py(root, settings.get("componentize-py", COMPONENTIZE_PY))
    work = root / "build"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    entry = f"import {module}\nfrom a2a_hub._agent import find\nfrom a2a_hub._component import export\n\nAgent = export(find({module}))\n"
    (work / "a2a_hub_entry.py").write_text(entry)
    component_file = work / "component.wasm"
    command = [tool, "-q", "-d", str(contract), "-w", "plugin", "componentize", "a2a_hub_entry", "-o", str(component_file)]
    paths = [work, root, _SDK.parent, *_libraries(root)]
    for path in paths:
        command += ["-p", str(path)]
    completed = subprocess.run(command, cwd=work, capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if completed.returncode != 0 or not component_file.is_file():
        raise BuildError(f"componentize-py cannot make a component of `{module}`:\n{(completed.stderr or completed.stdout).strip()}")
    component = component_file.read_bytes()
    manifest = root / settings.get("manifest", "manifest.toml")
    if manifest.is_file():
        component += custom_section(SECTION, manifest.read_bytes())
    out = root / settings.get("component", f"dist/{settings['name']}.wasm")
    out.parent.mkdir(parents=True, exist_ok=True)
    # A hub may watch the file, so it must never be incomplete.
    new = out.with_suffix(".wasm.new")
    new.write_bytes(component)
    new.replace(out)
    return out


def custom_section(name: bytes, content: bytes) -> bytes:
    """Encodes a custom section of WebAssembly."""
    payload = bytes([len(name)]) + name + content
    length, remaining = bytearray(), len(payload)
    while True:
        length.append(remaining & 0x7F | (0x80 if remaining > 0x7F else 0))
        remaining >>= 7
        if not remaining:
            return b"\0" + bytes(length) + payload


def _settings(root: Path) -> dict[str, Any]:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text())
    except FileNotFoundError:
        raise BuildError(f"there is no pyproject.toml in {root}; run this in the project's folder") from None
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"pyproject.toml is no TOML: {error}") from None
    return {"name": project.get("project", {}).get("name", root.name), **project.get("tool", {}).get("a2a-hub", {})}


def _contract(root: Path) -> Path:
    vendored = root / "vendor" / "wit"
    return vendored if vendored.is_dir() else _SDK.parent.parent / "wit"


def _libraries(root: Path) -> list[Path]:
    """Libraries that pip installed into `lib` for the agent (`pip install --target lib …`); pure
    Python only.
    """
    return [path for path in (root / "lib",) if path.is_dir()]


def _componentize_py(root: Path, version: str) -> str:
    """Path of the tool: the configured one, the one beside this Python, or the one in `.venv`,
    which is created if missing.
    """
    if configured := os.environ.get("COMPONENTIZE_PY"):
        return configured
    adjacent_tool = Path(sys.executable).with_name("componentize-py")
    venv_tool = root / ".venv" / "bin" / "componentize-py"
    for tool in (adjacent_tool, venv_tool):
        if tool.is_file() and version in _version(tool):
            return str(tool)
    print(f"installing componentize-py {version} into .venv", file=sys.stderr)
    try:
        venv.create(root / ".venv", with_pip=True)
    except (subprocess.CalledProcessError, SystemExit) as error:
        raise BuildError(f"Python's `venv` is not whole; on Debian it comes with `apt install python3-venv` ({error})") from None
    pip = [str(root / ".venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, f"componentize-py=={version}"]).returncode != 0:
        raise BuildError(f"pip cannot install componentize-py {version}; its words are above")
    return str(venv_tool)


def _version(tool: Path) -> str:
    return subprocess.run([tool, "--version"], capture_output=True, text=True).stdout


def _test(root: Path, args: list[str]) -> int:
    path = os.pathsep.join([str(root), str(_SDK.parent), *map(str, _libraries(root))])
    command = [sys.executable, "-B", "-m", "unittest", *(args or ["discover", "-s", str(root), "-p", "test_*.py"])]
    return subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": path}).returncode


if __name__ == "__main__":
    main()
