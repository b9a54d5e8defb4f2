"""What an agent has in mind in the conversation of its task: goal, thoughts, decisions, variables, and items that are recalled."""

from __future__ import annotations

import json
from typing import Any

from ._errors import asking


class Memory:
    """What an agent has in mind in the conversation of its task; granted with `memory`.

    Another agent that called this one may have handed some of it over: then these are that agent's words.
    """

    def __init__(self, host: Any, private: bool = False) -> None:
        self._host, self._private = host.context_memory, private
        self._whole = host

    @property
    def private(self) -> Memory:
        """The same, but what it sets is private, and never handed over to another agent."""
        return Memory(self._whole, True)

    def working(self) -> dict[str, Any]:
        """All but the items: `goal`, `thoughts`, `decisions`, `variables` and `privateVariables`, those that there are."""
        return json.loads(asking(self._host.working))

    @property
    def goal(self) -> str | None:
        """What the agent is after, if it has said so."""
        return self.working().get("goal")

    @goal.setter
    def goal(self, goal: str | None) -> None:
        asking(self._host.set_goal, goal)

    def add_thought(self, content: str) -> None:
        """Adds a thought. The newest 256 are kept."""
        asking(self._host.add_thought, content, self._private)

    @property
    def thoughts(self) -> list[dict[str, Any]]:
        """The thoughts, oldest first, each with its `content`."""
        return self.working().get("thoughts", [])

    def decide(self, key: str, value: Any, reason: str | None = None) -> None:
        """Decides something, in place of what was decided under that key."""
        asking(self._host.decide, key, _json(value), reason, self._private)

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The decisions, oldest first, each with its `key`, `value` and `reason`."""
        return self.working().get("decisions", [])

    @property
    def vars(self) -> dict[str, Any]:
        """The variables, as they are now. `set_var` changes one."""
        return self.working().get("variables", {})

    def set_var(self, name: str, value: Any) -> None:
        """Sets a variable."""
        asking(self._host.set_variable, name, _json(value), self._private)

    def drop_var(self, name: str) -> None:
        """Drops a variable."""
        asking(self._host.set_variable, name, None, False)

    def remember(self, id: str, data: Any, type: str = "semantic", *, metadata: dict[str, Any] | None = None) -> None:
        """Remembers an item, in place of the one with its id: a fact (`semantic`), an event (`episodic`), or another type."""
        item: dict[str, Any] = {"id": id, "type": type, "data": data}
        if metadata or self._private:
            item["metadata"] = {**(metadata or {}), **({"private": True} if self._private else {})}
        asking(self._host.remember, _json(item))

    def recall(self, query: str = "", limit: int = 10) -> list[dict[str, Any]]:
        """The items that a text recalls, best first; the newest for a text without words. Each has `id`, `type` and `data`."""
        return json.loads(asking(self._host.recall, query, limit))

    def forget(self, id: str) -> None:
        """Forgets the item with this id."""
        asking(self._host.forget, id)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
