"""What a benchmark found: speeds, speed-ups with their intervals, acceptance and costs, for each set and for all.

A speed-up compares seconds a token over the same questions. Its interval is that of the middle 95 % of a thousand draws
of as many questions, with repetition (bootstrap, Efron 1979); replies of one question are drawn together.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.bench.questions.measured import Turn
from engine.bench.questions.ways import PLAIN, SPECULATIVE

DRAWS, SEED, OVERALL = 1000, 20261201, "all"


@dataclass(frozen=True, slots=True)
class WaySummary:
    """One way over one set. tokens_per_second: of decoding, all tokens over all seconds; median: of the replies'.

    speed_up: over plain decoding in the same run, with its interval; None without plain decoding.
    identical: questions whose replies are plain decoding's, to the last token.
    """

    way: str
    questions: int
    replies: int
    tokens: int
    tokens_per_second: float
    median: float
    prefill_per_second: float
    speed_up: float | None
    interval: tuple[float, float] | None
    identical: int | None
    energy: float | None


@dataclass(frozen=True, slots=True)
class DraftSummary:
    """What drafting did over one set. acceptance: accepted over tested. tokens_per_cycle: of all cycles.

    draft_cost, verify_cost: seconds of a drafted token and of a verify pass, in plain steps of the same replies.
    gamma: drafted tokens of a cycle that drafts.
    """

    acceptance: float | None
    tokens_per_cycle: float | None
    draft_cost: float | None
    verify_cost: float | None
    gamma: float | None


@dataclass(frozen=True, slots=True)
class SetSummary:
    """One set, or all of them."""

    name: str
    ways: tuple[WaySummary, ...]
    draft: DraftSummary
    different: tuple[str, ...]  # questions with another text than plain decoding's
    cut: int  # replies that the context ended

    def way(self, name: str) -> WaySummary | None:
        """A way by its name."""
        return next((way for way in self.ways if way.way == name), None)


def summarise(turns: Sequence[Turn]) -> tuple[SetSummary, ...]:
    """Each set in order of appearance, then all."""
    names = list(dict.fromkeys(turn.set for turn in turns))
    found = [_summary(name, [turn for turn in turns if turn.set == name]) for name in names]
    return (*found, _summary(OVERALL, turns)) if len(names) != 1 else tuple(found)


def own_share(turns: Sequence[Turn]) -> float:
    """Share of the measured time that the benchmark itself took."""
    whole = sum(turn.prefill_seconds + turn.decode_seconds for turn in turns)
    return sum(turn.own_seconds for turn in turns) / whole if whole else 0.0


def _summary(name: str, turns: Sequence[Turn]) -> SetSummary:
    by_way: dict[str, dict[str, list[Turn]]] = {}
    for turn in turns:
        by_way.setdefault(turn.way, {}).setdefault(turn.key, []).append(turn)
    plain = by_way.get(PLAIN, {})
    ways = tuple(_way(way, questions, plain) for way, questions in by_way.items())
    speculative = by_way.get(SPECULATIVE, {})
    different = tuple(key for key, mine in speculative.items() if key in plain and not _same(mine, plain[key]))
    cut = sum(turn.reason == "context full" for turn in turns)
    return SetSummary(name, ways, _draft([t for mine in speculative.values() for t in mine]), different, cut)


def _way(way: str, questions: Mapping[str, list[Turn]], plain: Mapping[str, list[Turn]]) -> WaySummary:
    turns = [turn for mine in questions.values() for turn in mine]
    tokens, seconds = sum(turn.tokens for turn in turns), sum(turn.decode_seconds for turn in turns)
    speeds = [turn.tokens / turn.decode_seconds for turn in turns if turn.tokens and turn.decode_seconds]
    read = sum(turn.prompt - turn.reused for turn in turns)
    reading = sum(turn.prefill_seconds for turn in turns)
    energies = [turn.energy for turn in turns if turn.energy is not None]
    both = [key for key in questions if key in plain]
    ratio, interval = (None, None) if way == PLAIN else speed_up([(plain[key], questions[key]) for key in both])
    return WaySummary(
        way=way,
        questions=len(questions),
        replies=len(turns),
        tokens=tokens,
        tokens_per_second=tokens / seconds if seconds else 0.0,
        median=statistics.median(speeds) if speeds else 0.0,
        prefill_per_second=read / reading if reading else 0.0,
        speed_up=ratio,
        interval=interval,
        identical=None if way == PLAIN else sum(_same(questions[key], plain[key]) for key in both),
        energy=sum(energies) / tokens if energies and tokens else None,
    )


def speed_up(pairs: Sequence[tuple[list[Turn], list[Turn]]]) -> tuple[float | None, tuple[float, float] | None]:
    """Plain seconds a token over another way's, and the interval; None where there is nothing to compare."""
    sums = [
        (_seconds(plain), _tokens(plain), _seconds(other), _tokens(other))
        for plain, other in pairs
        if _tokens(plain) and _tokens(other) and _seconds(plain) and _seconds(other)
    ]
    if not sums:
        return None, None
    chance = random.Random(SEED)
    drawn = sorted(_ratio(chance.choices(sums, k=len(sums))) for _ in range(DRAWS))
    low, high = drawn[math.floor(0.025 * (DRAWS - 1))], drawn[math.ceil(0.975 * (DRAWS - 1))]
    return _ratio(sums), (low, high)


def _ratio(sums: Sequence[tuple[float, int, float, int]]) -> float:
    plain = sum(entry[0] for entry in sums) / sum(entry[1] for entry in sums)
    other = sum(entry[2] for entry in sums) / sum(entry[3] for entry in sums)
    return plain / other


def _seconds(turns: Sequence[Turn]) -> float:
    return sum(turn.decode_seconds for turn in turns)


def _tokens(turns: Sequence[Turn]) -> int:
    return sum(turn.tokens for turn in turns)


def _same(mine: Sequence[Turn], other: Sequence[Turn]) -> bool:
    return [turn.digest for turn in mine] == [turn.digest for turn in other]


def _draft(turns: Sequence[Turn]) -> DraftSummary:
    drafted, tested = sum(turn.drafted for turn in turns), sum(turn.tested for turn in turns)
    cycles, drafting = sum(turn.cycles for turn in turns), sum(turn.drafting_cycles for turn in turns)
    plain = sum(turn.plain_seconds for turn in turns) / drafting if drafting else 0.0
    return DraftSummary(
        acceptance=sum(turn.accepted for turn in turns) / tested if tested else None,
        tokens_per_cycle=_tokens(turns) / cycles if cycles else None,
        draft_cost=sum(turn.draft_seconds for turn in turns) / drafted / plain if drafted and plain else None,
        verify_cost=sum(turn.verify_seconds for turn in turns) / drafting / plain if drafting and plain else None,
        gamma=drafted / drafting if drafting else None,
    )
