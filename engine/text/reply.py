"""The text of one reply as its tokens are decided: decoding and stop strings together."""

from __future__ import annotations

from collections.abc import Iterable

from engine.text.stop import StopStrings
from engine.text.stream import StreamingDecoder
from engine.text.tokenizer import Tokenizer


class ReplyText:
    """What a generation loop asks for the text of a reply.

    Push the emitted ids in order; ask `ghosts` for a cycle's rejected ids after its accepted ids and before its
    correction. The pieces joined, with `flush()`, are the reply. Without a tokenizer every piece is "".
    """

    def __init__(self, tokenizer: Tokenizer | None, stop_strings: Iterable[str] = ()) -> None:
        self._decoder = StreamingDecoder(tokenizer) if tokenizer is not None else None
        self._stop = StopStrings(stop_strings)

    def push(self, token_id: int) -> tuple[str, bool]:
        """The text to show for this token, and whether it completes a stop string (the reply then ends)."""
        return self._stop.push(self._decoder.push(token_id)) if self._decoder else ("", False)

    def ghosts(self, token_ids: tuple[int, ...]) -> tuple[str, ...]:
        """One piece for each rejected id, as if it came next; the reply's own state does not change."""
        return self._decoder.ghosts(token_ids) if self._decoder else ("",) * len(token_ids)

    def flush(self) -> str:
        """The text still held back when the reply ends."""
        if self._decoder is None:
            return ""
        text, _ = self._stop.push(self._decoder.flush())
        return text + self._stop.flush()
