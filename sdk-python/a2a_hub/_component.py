"""Export of an agent to the contract. Only the entry module that `a2a_hub.build` writes imports
this.
"""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

from componentize_py_types import Err
from wit_world.exports.agent import HealthReport, HealthStatus
from wit_world.imports import context_memory, delegate, files, http, log, memory, process, settings, steps, tasks, tools, types, wait

from ._agent import Agent, check_health, clean_up, run_task
from ._convert import well_formed
from ._errors import Failure
from ._workspace import WasiFiles

_HOST = SimpleNamespace(
    context_memory=context_memory,
    delegate=delegate,
    files=files,
    http=http,
    log=log,
    memory=memory,
    process=process,
    settings=settings,
    steps=steps,
    tasks=tasks,
    tools=tools,
    types=types,
    wait=wait,
    workspace=WasiFiles(),
)


def _to_contract(failure: Failure) -> Err[Any]:
    variant = getattr(types, f"Failure_{failure.kind.capitalize()}")
    return Err(variant() if failure.kind in ("cancelled", "timeout") else variant(well_formed(failure.text)))


class _LogStream(io.TextIOBase):
    """Stream that writes printed lines to the hub's log."""

    def __init__(self, level: Any) -> None:
        self._level, self._rest = level, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            log.log(self._level, well_formed(line))
        return len(text)


def _initialize_run() -> None:
    """Initializes each run. Not called while the component is built: no hub exists then."""
    if random := sys.modules.get("random"):
        # The seed comes from the machine that built the component, and would be the same in each
        # task.
        random.seed()
    sys.stdout, sys.stderr = _LogStream(log.Level.INFO), _LogStream(log.Level.WARN)


def export(agent: Agent) -> type:
    """Creates the class that answers the contract's calls."""
    card = agent.card.to_json()

    class Exported:
        def card(self) -> str:
            return card

        def health(self) -> HealthReport:
            _initialize_run()
            report = check_health(agent, _HOST)
            return HealthReport(HealthStatus[report.status.upper()], report.version, report.detail, report.fix)

        def execute(self, task: Any) -> Any:
            return self._run(task, False)

        def stream(self, task: Any) -> Any:
            return self._run(task, True)

        def _run(self, task: Any, live: bool) -> Any:
            _initialize_run()
            try:
                return run_task(agent, _HOST, task, live)
            except Failure as failure:
                raise _to_contract(failure) from None

        def cancel(self, task_id: str) -> None:
            _initialize_run()
            try:
                clean_up(agent, _HOST, task_id)
            except Failure as failure:
                raise _to_contract(failure) from None

    return Exported
