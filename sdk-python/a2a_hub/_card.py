"""Agent card: the agent's identity and skills."""

from __future__ import annotations

import json
from typing import Any


class Card:
    """A2A 1.0 agent card. The hub adds the interfaces through which clients reach the agent."""

    def __init__(
        self,
        name: str,
        description: str,
        version: str,
        *,
        input_modes: list[str] | None = None,
        output_modes: list[str] | None = None,
        streaming: bool = True,
        provider: tuple[str, str] | None = None,
        icon_url: str | None = None,
        documentation_url: str | None = None,
    ) -> None:
        """Creates a card. `provider` is an organization and its URL; the modes are media types, by
        default `text/plain`.
        """
        self._json: dict[str, Any] = {
            "name": name,
            "description": description,
            "version": version,
            "capabilities": {"streaming": streaming},
            "defaultInputModes": input_modes or ["text/plain"],
            "defaultOutputModes": output_modes or ["text/plain"],
            "skills": [],
        }
        if provider:
            self._json["provider"] = {"organization": provider[0], "url": provider[1]}
        if icon_url:
            self._json["iconUrl"] = icon_url
        if documentation_url:
            self._json["documentationUrl"] = documentation_url

    def skill(
        self,
        id: str,
        name: str,
        description: str,
        *,
        tags: list[str] | None = None,
        examples: list[str] | None = None,
        input_modes: list[str] | None = None,
        output_modes: list[str] | None = None,
        input_schema: dict[str, Any] | None = None,
        prompts: list[dict[str, Any]] | None = None,
    ) -> Card:
        """Adds a skill, and returns the card.

        `input_schema` is the JSON Schema of its input data: at most 16 KiB, without external
        references. The hub validates five-step submissions and calls of its MCP tool against it.
        `prompts` are those that clients of MCP show in their menus: `name`, `title`, `description`,
        `arguments` and `parts`.
        """
        skill: dict[str, Any] = {"id": id, "name": name, "description": description, "tags": tags or []}
        for key, value in (
            ("examples", examples),
            ("inputModes", input_modes),
            ("outputModes", output_modes),
            ("inputSchema", input_schema),
            ("prompts", prompts),
        ):
            if value:
                skill[key] = value
        self._json["skills"].append(skill)
        return self

    def extension(self, uri: str, description: str, *, required: bool = False, params: dict[str, Any] | None = None) -> Card:
        """Adds an A2A extension that the agent supports, and returns the card."""
        extension: dict[str, Any] = {"uri": uri, "description": description, "required": required}
        if params is not None:
            extension["params"] = params
        self._json["capabilities"].setdefault("extensions", []).append(extension)
        return self

    def to_json(self) -> str:
        """Serializes the card as JSON."""
        return json.dumps(self._json, ensure_ascii=False)
