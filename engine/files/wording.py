"""Text from a model's files inside our sentences: short, on one line, without control characters."""

from __future__ import annotations

LONGEST = 80


def shown(value: object) -> str:
    """A name as it is, anything else (or a name with odd characters) as Python writes it; cut when long."""
    plain = isinstance(value, str) and value.isprintable() and value != ""
    text = str(value) if plain else ascii(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
