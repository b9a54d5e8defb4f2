"""Context memory of a scripted hub."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any


class Mind:
    """Memory that the agent sets: `working` and `items`, oldest first."""

    def __init__(self) -> None:
        self.working: dict[str, Any] = {}
        self.items: list[dict[str, Any]] = []

    def contract(self) -> Any:
        """Functions of the contract."""
        return SimpleNamespace(
            working=lambda: json.dumps(self.working),
            set_goal=lambda goal: self._set("goal", goal),
            add_thought=self._add_thought,
            decide=self._decide,
            set_variable=self._set_variable,
            remember=self._remember,
            recall=self._recall,
            forget=self._forget,
        )

    def _set(self, name: str, value: Any) -> None:
        self.working.pop(name, None)
        if value:
            self.working[name] = value

    def _add_thought(self, content: str, private: bool) -> None:
        thought = {"content": content, **({"private": True} if private else {})}
        thoughts = self.working.get("thoughts", [])
        if thought not in thoughts:
            self._set("thoughts", [*thoughts, thought])

    def _decide(self, key: str, value: str, reason: str | None, private: bool) -> None:
        decision = {"key": key, "value": json.loads(value)}
        decision.update({name: field for name, field in (("reason", reason), ("private", private)) if field})
        others = [known for known in self.working.get("decisions", []) if known["key"] != key]
        self._set("decisions", [*others, decision])

    def _set_variable(self, name: str, value: str | None, private: bool) -> None:
        others = {key: known for key, known in self.working.get("variables", {}).items() if key != name}
        private_names = [key for key in self.working.get("privateVariables", []) if key != name]
        self._set("variables", others if value is None else {**others, name: json.loads(value)})
        self._set("privateVariables", [*private_names, name] if private and value is not None else private_names)

    def _remember(self, text: str) -> None:
        item = json.loads(text)
        self._forget(item["id"])
        self.items.append(item)

    def _recall(self, query: str, limit: int) -> str:
        words = re.findall(r"\w+", query.lower())

        def score(item: dict[str, Any]) -> int:
            return len(set(words) & set(re.findall(r"[^\W_]+", json.dumps(item, ensure_ascii=False).lower())))

        matches = [item for item in reversed(self.items) if not words or score(item)]
        return json.dumps(sorted(matches, key=score, reverse=True)[:limit])

    def _forget(self, id: str) -> None:
        self.items[:] = [known for known in self.items if known["id"] != id]
