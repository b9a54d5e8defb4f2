"""Context memory: goal, thoughts, decisions, variables and searchable items of one conversation."""

from __future__ import annotations

import json
from typing import Any

from ._errors import asking


class Memory:
    """Memory of the agent in the conversation of its task, granted with `memory`.

    A calling agent may have handed over some of it: such entries are that agent's words.
    """

    def __init__(self, host: Any, private: bool = False) -> None:
        self._context_memory, self._private = host.context_memory, private
        self._host = host

    @property
    def private(self) -> Memory:
        """Same memory, except that everything set through it is private: never handed over to
        another agent.
        """
        return Memory(self._host, True)

    def working(self) -> dict[str, Any]:
        """Working memory without items: `goal`, `thoughts`, `decisions`, `variables` and
        `privateVariables`, if set.
        """
        return json.loads(asking(self._context_memory.working))

    @property
    def goal(self) -> str | None:
        """Goal of the agent, if it set one."""
        return self.working().get("goal")

    @goal.setter
    def goal(self, goal: str | None) -> None:
        asking(self._context_memory.set_goal, goal)

    def add_thought(self, content: str) -> None:
        """Adds a thought. Only the newest 256 are stored."""
        asking(self._context_memory.add_thought, content, self._private)

    @property
    def thoughts(self) -> list[dict[str, Any]]:
        """Thoughts, oldest first, each with `content`."""
        return self.working().get("thoughts", [])

    def decide(self, key: str, value: Any, reason: str | None = None) -> None:
        """Records a decision, replacing the one with the same key."""
        asking(self._context_memory.decide, key, _json(value), reason, self._private)

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Decisions, oldest first, each with `key`, `value` and `reason`."""
        return self.working().get("decisions", [])

    @property
    def vars(self) -> dict[str, Any]:
        """Current variables. `set_var` changes one."""
        return self.working().get("variables", {})

    def set_var(self, name: str, value: Any) -> None:
        """Sets a variable."""
        asking(self._context_memory.set_variable, name, _json(value), self._private)

    def drop_var(self, name: str) -> None:
        """Deletes a variable."""
        asking(self._context_memory.set_variable, name, None, False)

    def remember(self, id: str, data: Any, type: str = "semantic", *, metadata: dict[str, Any] | None = None) -> None:
        """Stores an item, replacing the one with the same id: a fact (`semantic`), an event
        (`episodic`), or another type.
        """
        item: dict[str, Any] = {"id": id, "type": type, "data": data}
        if metadata or self._private:
            item["metadata"] = {**(metadata or {}), **({"private": True} if self._private else {})}
        asking(self._context_memory.remember, _json(item))

    def recall(self, query: str = "", limit: int = 10) -> list[dict[str, Any]]:
        """Items that match the query, best first; the newest for a query without words. Each has
        `id`, `type` and `data`.
        """
        return json.loads(asking(self._context_memory.recall, query, limit))

    def forget(self, id: str) -> None:
        """Deletes the item with this id."""
        asking(self._context_memory.forget, id)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
