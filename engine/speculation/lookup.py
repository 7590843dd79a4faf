"""What followed the same tokens before: suffix look-ups over prompt and reply, a few dictionary accesses a token.

Prompt look-up decoding (Saxena 2023) as the first layer of a cascade: cheap guesses that the draft checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHORTEST, LONGEST = 2, 4  # lengths of the suffixes that are kept
_MEASURED = 12  # a match is followed back this far to tell how long it is


@dataclass(frozen=True, slots=True)
class Found:
    """What came after the last earlier occurrence of a suffix. length: how many tokens before agree (2 or more)."""

    ids: tuple[int, ...]
    length: int


NOTHING = Found((), 0)


class SuffixIndex:
    """Latest positions of all 2-, 3- and 4-grams of a growing sequence of ids."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}  # n-gram -> position behind its latest occurrence

    def __len__(self) -> int:
        return len(self._ids)

    def follow(self, ids: Sequence[int]) -> None:
        """Take over the tokens of `ids` that are new; it must continue what was followed before."""
        for token in ids[len(self._ids) :]:
            self.append(token)

    def find(self, drafted: Sequence[int], most: int) -> Found:
        """Up to `most` tokens that may follow the sequence and `drafted`: what followed their longest known suffix.

        Beyond the end of the sequence the continuation goes on with `drafted` and then with itself, as a text that
        repeats itself does.
        """
        known = self._ids
        last = [*known[max(0, len(known) - _MEASURED) :], *drafted]
        for size in range(min(LONGEST, len(last)), SHORTEST - 1, -1):
            at = self._after.get(tuple(last[-size:]))
            if at is not None and most > 0:
                return Found(self._continued(at, drafted, most), self._agreeing(at, last, size))
        return NOTHING

    def append(self, token: int) -> None:
        """The sequence goes on with this token."""
        ids = self._ids
        end = len(ids)
        # A suffix is entered when the token behind it is known, so that it never finds itself.
        for size in range(SHORTEST, min(LONGEST, end) + 1):
            self._after[tuple(ids[end - size :])] = end
        ids.append(token)

    def _continued(self, at: int, drafted: Sequence[int], most: int) -> tuple[int, ...]:
        result: list[int] = []
        known = len(self._ids)
        for place in range(at, at + most):
            if place < known:
                result.append(self._ids[place])
            elif place < known + len(drafted):
                result.append(drafted[place - known])
            else:
                result.append(result[place - known - len(drafted)])
        return tuple(result)

    def _agreeing(self, at: int, last: Sequence[int], size: int) -> int:
        """How many tokens before `at` equal the end of `last`, of which `size` are known to."""
        most = min(at, len(last), _MEASURED)
        while size < most and self._ids[at - 1 - size] == last[-1 - size]:
            size += 1
        return size
