"""Settings that each chat has for itself: how tokens are chosen, and its system prompt. No Qt."""

from __future__ import annotations

from typing import Any

from app.declaration import PROMPT, SAMPLING
from app.settings import AppSettings, checked, declaration, names


def own_names() -> tuple[str, ...]:
    """The settings that a chat remembers; new chats take the user's own values of them."""
    return tuple(name for name in names() if declaration(name).group in (PROMPT, SAMPLING))


def own_values(settings: AppSettings) -> dict[str, Any]:
    """What a chat that begins now remembers."""
    return {name: getattr(settings, name) for name in own_names()}


def fitting(values: dict[str, Any]) -> dict[str, Any]:
    """Those of a stored chat's values that this version can have."""
    kept = {}
    for name in own_names():
        if name in values:
            try:
                kept[name] = checked(name, values[name])
            except ValueError:
                continue  # of another version, or made up
    return kept
