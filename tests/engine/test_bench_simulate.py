"""Traces through the real stepper and controller: what the clock charges, and what look-ups and siblings gain."""

from __future__ import annotations

import random

import pytest

from engine.bench.simulate import Replayed, TableClock, replay
from engine.bench.traces import Trace, synthetic
from engine.speculation.controller import GammaController
from engine.speculation.estimates import CostProfile

CARD = TableClock(0.3)


def knowing(clock: TableClock = CARD) -> GammaController:
    return GammaController(
        costs=CostProfile(clock.draft_cost, 1.0, clock.verify_slope, clock.few_rows, clock.few_slope)
    )


def repeating(tokens: int = 300) -> list[Trace]:
    """Replies that say their prompt again and again, by a draft that is right nine times in ten."""
    traces = []
    for base in synthetic(0.9, replies=3, tokens=tokens):
        ids = tuple((base.prompt_ids * (tokens // 32 + 1))[:tokens])
        swap = dict(zip(base.ids, ids, strict=True))
        top = tuple(
            tuple((swap.get(i, i) if rank or i != base.ids[t] else ids[t], p) for rank, (i, p) in enumerate(ranked))
            for t, ranked in enumerate(base.top)
        )
        right = tuple(
            ((ids[t], ranked[0][1]), *ranked[1:]) if base.top[t][0][0] == base.ids[t] else ranked
            for t, ranked in enumerate(top)
        )
        traces.append(Trace(base.prompt_ids, ids, right, base.full_prob, {}, "m", "s"))
    return traces


def test_every_token_is_made_once() -> None:
    traces = synthetic(0.9, replies=3, tokens=100)
    made = replay(traces, CARD)
    assert made.tokens == 300
    assert made.accepted <= made.tested <= made.drafted + made.taken
    assert made.plain_seconds == 1.0


def test_plain_decoding_takes_the_time_of_plain_steps() -> None:
    traces = synthetic(0.0, replies=2, tokens=200)
    made = replay(traces, TableClock(5.0), GammaController(costs=CostProfile(draft=5.0)))
    assert made.plain == made.cycles == 400
    assert made.speed_up == pytest.approx(1.0)


def test_the_clock_charges_every_pass() -> None:
    class Counting:
        def __init__(self) -> None:
            self.asked: list[tuple[str, int]] = []

        def draft(self, rows: int) -> float:
            self.asked.append(("draft", rows))
            return 0.25

        def verify(self, rows: int, siblings: int) -> float:
            assert rows - siblings >= 1
            self.asked.append(("verify", rows))
            return 1.0

    clock = Counting()
    made = replay(repeating(120), clock)
    drafts = [rows for kind, rows in clock.asked if kind == "draft"]
    assert made.seconds == pytest.approx(0.25 * len(drafts) + len(clock.asked) - len(drafts))
    assert made.passes == len(drafts)
    assert max(rows for _, rows in clock.asked) <= 16
    assert max(drafts) > 1


def speed_up(traces: list[Trace], **options: object) -> float:
    return mean_of(replay(traces, CARD, knowing(), **options))  # type: ignore[arg-type]


def mean_of(made: Replayed) -> float:
    return made.speed_up


def test_siblings_gain_on_an_unsure_draft() -> None:
    traces = synthetic(0.88, replies=10)
    assert speed_up(traces) > 1.03 * speed_up(traces, siblings=False)
    assert replay(traces, CARD, knowing()).taken > 20
    assert replay(traces, CARD, knowing(), most_siblings=0).taken == 0


def test_lookups_gain_on_a_text_that_repeats_itself_and_cost_nothing_elsewhere() -> None:
    assert speed_up(repeating()) > 1.5 * speed_up(repeating(), cascade=False)
    traces = synthetic(0.9, replies=4)
    assert speed_up(traces) == pytest.approx(speed_up(traces, cascade=False))


def test_the_better_the_draft_the_faster() -> None:
    got = [speed_up(synthetic(alpha, replies=6)) for alpha in (0.5, 0.8, 0.91, 0.96)]
    assert got == sorted(got) and got[0] > 1.0
    assert got[2] >= 1.9 and got[3] >= 2.4


@pytest.mark.parametrize("seed", range(6))
def test_never_noticeably_slower_than_plain_on_random_costs(seed: int) -> None:
    """After the first tokens, with any costs, acceptance, and a draft that may be sure of the wrong thing."""
    chance = random.Random(seed)
    clock = TableClock(chance.uniform(0.2, 1.2), chance.uniform(1, 3), chance.uniform(0, 0.5), chance.uniform(0, 0.3))
    alpha = chance.choice((0.0, 0.2, 0.5))
    traces = synthetic(alpha, replies=1, tokens=400, seed=seed, vocabulary=chance.choice((6, 20, 1000)))
    boasting = [
        Trace(
            trace.prompt_ids,
            trace.ids,
            tuple(((ranked[0][0], 0.999), *ranked[1:]) for ranked in trace.top),
            trace.full_prob,
            {},
            "m",
            "s",
        )
        for trace in traces
    ]
    for kind in (traces, boasting):
        made = replay(kind, clock, GammaController())
        # What the first 50 tokens lost is not forgiven here: the whole reply is held to the bound.
        assert made.speed_up >= 0.95, (alpha, clock)
