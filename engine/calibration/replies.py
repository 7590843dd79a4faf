"""Text to calibrate on: prompts that the model has answered itself, by full passes, taking its best token each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.model.runner import Runner

REPLY_TOKENS = 64  # of one prompt, so that the prompts that time allows are of many kinds


@dataclass(frozen=True, slots=True)
class OwnText:
    """A prompt and the model's reply. first: position of the first token that the model chose."""

    ids: tuple[int, ...]
    first: int

    @property
    def chosen(self) -> int:
        """Tokens that the model chose."""
        return len(self.ids) - self.first


class Reader:
    """Keeps the cache filled with the full model's rows for one text at a time, reading only what it does not hold."""

    def __init__(self, runner: Runner, check: Callable[[], None]) -> None:
        self._runner, self._check = runner, check
        self._held: tuple[int, ...] = ()

    def forget(self) -> None:
        """Read everything anew next time: a draft with a reduced vocabulary takes in the tokens that are read."""
        self._held = ()

    def hold(self, ids: Sequence[int]) -> None:
        """Fill the cache for all of `ids`."""
        kept = next((i for i, (a, b) in enumerate(zip(self._held, ids, strict=False)) if a != b), None)
        place = min(len(self._held), len(ids)) if kept is None else kept
        while place < len(ids):
            self._check()
            chunk = ids[place : place + self._runner.chunk]
            self._held = tuple(ids[:place])
            self._runner.full(chunk, place, 0)
            place += len(chunk)
        self._held = tuple(ids)


def own_replies(
    runner: Runner,
    reader: Reader,
    prompts: Sequence[Sequence[int]],
    end_ids: frozenset[int],
    check: Callable[[], None],
    enough: Callable[[int], bool],
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[OwnText, list[float]]]:
    """Texts with the seconds of their plain steps, until `enough` tokens or no prompt is left.

    enough: told the tokens chosen so far. Prompts that leave no room for a reply are passed over. `check` raises to
    stop. The cache then holds the last text's rows.
    """
    made = 0
    for prompt in prompts:
        ids, first, seconds = list(prompt), len(prompt), []
        most = min(REPLY_TOKENS, runner.capacity - first)
        if most < 1 or not prompt:
            continue
        reader.hold(ids[:-1])
        while len(ids) - first < most and not enough(made):
            check()
            began = clock()
            token = runner.peak(runner.full(ids[-1:], len(ids) - 1, 1)[0], len(ids))[0]
            seconds.append(clock() - began)
            ids.append(token)
            made += 1
            if token in end_ids:
                break
        reader.hold(ids)
        if len(ids) > first:
            yield OwnText(tuple(ids), first), seconds
        if enough(made):
            return
