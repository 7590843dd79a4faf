"""C25: a real model on a clock that charges every pass; drafting that does not pay ends within 50 tokens. And the
cascade on the same model: texts that repeat themselves, token for token as without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from builders import tiny_llama
from engine.engine import Engine
from engine.recipe import Recipe
from engine.settings import GenerateRequest, Sampling, Speculation
from engine.speculation import host_drafter
from engine.statistics import ReplyStatistics
from engine_rig import Reply, ScriptedRunner, loaded_engine, no_end_tokens, random_prompts, reply, request

POOR = Recipe(weight_bits=16, skipped_attention=(0, 1), skipped_mlp=(0, 2))
GOOD = Recipe(weight_bits=16, skipped_attention=(1,))


@dataclass
class Costs:
    """Passes in plain steps: a draft over r rows, a full pass over r rows. seconds: what has been charged."""

    draft: float = 0.4
    draft_row: float = 0.05
    full_row: float = 0.02
    seconds: float = 0.0


class ClockedRunner(ScriptedRunner):
    """A runner whose passes take the time that the costs say. habit: makes token t + 1 likely after token t by so
    much, so that texts repeat themselves."""

    costs: Costs
    habit = 0.0

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        self.costs.seconds += self.costs.draft + self.costs.draft_row * (len(tokens) - 1)
        return self._with_habit(super().draft(tokens, position), tokens)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        if not wanted:
            return super().full(tokens, position, wanted)
        self.costs.seconds += 1.0 + self.costs.full_row * (wanted - 1)
        return self._with_habit(super().full(tokens, position, wanted), tokens)

    def _with_habit(self, logits: np.ndarray, tokens: Sequence[int]) -> np.ndarray:
        for row, token in zip(logits[::-1], tokens[::-1], strict=False):
            row[(token + 1) % 12] += self.habit
        return logits


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = no_end_tokens(tiny_llama(tmp_path_factory.mktemp("model"), layers=3, std=0.25, positions=1024))
    with loaded_engine(folder) as made:
        yield made


@pytest.fixture
def costs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Costs:
    made = Costs()
    loaded = engine._loaded
    assert loaded is not None
    runner = ClockedRunner(loaded.runner)  # type: ignore[arg-type]
    runner.costs = made
    monkeypatch.setattr(loaded, "runner", runner)
    monkeypatch.setattr(host_drafter, "time", SimpleNamespace(perf_counter=lambda: made.seconds))
    loaded.controller = loaded.fresh_controller()
    return made


def after_50(made: Reply) -> tuple[float, float]:
    """Speed over plain of the tokens after the first 50, and the share of them that cycles with a draft brought."""
    statistics, drafted, tokens = ReplyStatistics(), 0, 0
    for record in made.records:
        if tokens >= 50:
            statistics = statistics.with_cycle(record)
            drafted += len(record.emitted_ids) * bool(record.drafted_ids)
        tokens += len(record.emitted_ids)
    return statistics.emitted / statistics.seconds, drafted / statistics.emitted


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.2, seed=5)], ids=["greedy", "T1.2"])
def test_a_draft_that_is_seldom_right_ends_within_50_tokens(engine: Engine, costs: Costs, sampling: Sampling) -> None:
    costs.draft = 0.7
    for prompt in random_prompts(4, 290, seed=6):
        made = reply(engine, request(prompt, 350, recipe=POOR, sampling=sampling))
        speed, drafted = after_50(made)
        assert speed >= 0.95
        assert drafted < 0.2
        assert any(record.strategy == "plain: drafting does not pay" for record in made.records)
        assert [record.plain_seconds for record in made.records[1:]] == pytest.approx([1.0] * (len(made.records) - 1))


def test_a_dear_draft_ends_too_however_right_it_is(engine: Engine, costs: Costs) -> None:
    costs.draft, costs.full_row = 1.3, 0.5
    made = reply(engine, request(random_prompts(1, 290, seed=7)[0], 350, recipe=GOOD))
    speed, _ = after_50(made)
    assert speed >= 0.95


def test_a_draft_that_pays_goes_on(engine: Engine, costs: Costs) -> None:
    costs.draft, costs.draft_row = 0.2, 0.02
    made = reply(engine, request(random_prompts(1, 290, seed=8)[0], 300, recipe=Recipe(weight_bits=8)))
    speed, drafted = after_50(made)
    assert speed > 1.5 and drafted > 0.9
    assert made.records[0].strategy == "plain: measuring"


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(repetition_penalty=1.1), Sampling(temperature=0.3, seed=2)], ids=str
)
@pytest.mark.parametrize("gamma", [None, 6])
def test_lookups_change_no_token(
    engine: Engine, costs: Costs, sampling: Sampling, gamma: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small costs of wide passes, so that look-ups are used wherever there are any."""
    costs.draft, costs.draft_row, costs.full_row = 0.3, 0.0, 0.001
    monkeypatch.setattr(ClockedRunner, "habit", 9.0)
    looked_up = tails = 0
    for seed in range(3):
        prompt = (*random_prompts(1, 290, seed=seed)[0], *list(range(12)) * 6)
        base = GenerateRequest(prompt_ids=prompt, max_new_tokens=120, sampling=sampling)
        plain = reply(engine, GenerateRequest(**as_dict(base), speculation=Speculation(enabled=False)))
        made = reply(engine, GenerateRequest(**as_dict(base), speculation=Speculation(gamma=gamma)))
        without = reply(engine, GenerateRequest(**as_dict(base), speculation=Speculation(gamma=gamma, cascade=False)))
        assert made.ids == plain.ids == without.ids
        assert {record.strategy for record in plain.records} == {"plain: speculation is off"}
        assert not any(record.looked_up for record in without.records)
        looked_up += sum(record.looked_up for record in made.records)
        tails += sum("lookups: the prompt repeats itself" in record.strategy for record in made.records)
        assert len(set(made.ids)) > 12, "the habit is broken now and then"
    assert looked_up > 100 and (tails > 3 or gamma)


def as_dict(made: GenerateRequest) -> dict[str, object]:
    return {"prompt_ids": made.prompt_ids, "max_new_tokens": made.max_new_tokens, "sampling": made.sampling}
