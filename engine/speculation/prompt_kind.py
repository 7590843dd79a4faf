"""What a prompt tells about the reply before it begins: how well its own look-ups predict it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.speculation.lookup import SuffixIndex

_READ = 1024  # last tokens of the prompt that are looked at: a few milliseconds
_REPEATS, _LEAST = 0.3, 64


@dataclass(frozen=True, slots=True)
class PromptKind:
    """tokens: how many were looked at. outcomes: (length of the suffix, whether the look-up was right) -> how often."""

    tokens: int = 0
    outcomes: tuple[tuple[int, bool, int], ...] = ()

    @property
    def predicted(self) -> float:
        """Share of the prompt's tokens that a look-up predicts."""
        return sum(count for _, hit, count in self.outcomes if hit) / max(1, self.tokens)

    @property
    def phrase(self) -> str:
        """The kind in words; empty where nothing stands out."""
        if self.tokens < _LEAST:
            return ""
        if self.predicted >= _REPEATS:
            return "the prompt repeats itself"
        return "" if self.outcomes else "nothing in the prompt repeats"


UNKNOWN_PROMPT = PromptKind()


def analyse(prompt: Sequence[int]) -> PromptKind:
    """Look every token of the prompt's end up in what stands before it."""
    read = list(prompt[-_READ:])
    index = SuffixIndex()
    outcomes: Counter[tuple[int, bool]] = Counter()
    for token in read:
        found = index.find((), 1)
        if found.ids:
            outcomes[found.length, found.ids[0] == token] += 1
        index.append(token)
    return PromptKind(len(read), tuple((length, hit, count) for (length, hit), count in sorted(outcomes.items())))
