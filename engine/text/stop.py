"""Stop strings: text that ends a reply and is not part of it."""

from __future__ import annotations

from collections.abc import Iterable


class StopStrings:
    """Watches a stream of text for stop strings.

    The first stop string to be completed, character by character, ends the reply, the longest if several end there;
    how the text is cut into pieces makes no difference. Text that may be the beginning of a stop string is held
    back; no emitted text ever holds a stop string. Empty strings are ignored.
    """

    def __init__(self, strings: Iterable[str]) -> None:
        self._strings = tuple(dict.fromkeys(s for s in strings if s))
        self._held = ""
        self._stopped = False

    def push(self, piece: str) -> tuple[str, bool]:
        """Add text. Returns the text that is safe to show, and whether a stop string has been completed."""
        if self._stopped or not piece:
            return "", self._stopped
        text = self._held + piece
        start = self._first_stop(text)
        if start is not None:
            self._held, self._stopped = "", True
            return text[:start], True
        keep = self._possible_start(text)
        self._held = text[keep:]
        return text[:keep], False

    def flush(self) -> str:
        """The held-back text, at the reply's end; "" after a stop."""
        held, self._held = self._held, ""
        return held

    def _first_stop(self, text: str) -> int | None:
        found = [(at + len(s), at) for s in self._strings if (at := text.find(s)) >= 0]
        return min(found)[1] if found else None

    def _possible_start(self, text: str) -> int:
        """Index from which the end of `text` may be the beginning of a stop string; len(text) if none may."""
        starts = [len(text)]
        for string in self._strings:
            for length in range(min(len(string) - 1, len(text)), 0, -1):
                if text.endswith(string[:length]):
                    starts.append(len(text) - length)
                    break
        return min(starts)
