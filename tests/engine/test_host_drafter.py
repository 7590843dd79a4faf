"""The host's drafter over a real model: wide draft passes choose what single ones do, and verdicts stop in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from builders import tiny_llama
from engine.bench.record import record_trace
from engine.errors import NumericFault
from engine.model.compiled_runner import CompiledRunner
from engine.sampling.sampler import Sampler
from engine.settings import Sampling
from engine.speculation.drafter import SiblingPlan
from engine.speculation.host_drafter import HostDrafter
from engine_rig import ScriptedRunner, compiled_runner, step_logits

PROMPT = [5, 99, 14, 7, 200, 31]
SETTINGS = [
    Sampling(),
    Sampling(repetition_penalty=1.6),
    Sampling(temperature=0.9, seed=3),
    Sampling(temperature=1.2, top_p=0.9, repetition_penalty=1.3, seed=4),
]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompiledRunner]:
    with compiled_runner(tiny_llama(tmp_path_factory.mktemp("model"), layers=3, std=0.25)) as made:
        yield made


def sampler_of(runner: CompiledRunner, settings: Sampling) -> Sampler:
    return Sampler(settings, runner.config.vocabulary, peak=runner.peak)


def drafter(runner: CompiledRunner, settings: Sampling) -> HostDrafter:
    runner.full(PROMPT[:-1], 0, 0)
    made = HostDrafter(runner, sampler_of(runner, settings))
    made.begin(PROMPT)
    return made


def chain(runner: CompiledRunner, settings: Sampling, count: int) -> list[int]:
    """What single draft steps choose."""
    made = drafter(runner, settings)
    return [made.step(())[0].id for _ in range(count)]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_wide_pass_agrees_with_what_single_steps_choose(runner: CompiledRunner, settings: Sampling) -> None:
    truth = chain(runner, settings, 8)
    made = drafter(runner, settings)
    assert [p.id for p in made.step(truth[:3])] == truth[:4]
    wrong = (truth[5] + 1) % 290
    assert [p.id for p in made.step([truth[4], wrong, truth[6]])] == truth[4:6]
    assert [p.id for p in made.step([wrong])] in ([truth[6]], truth[6:8])
    assert all(0 < p.prob <= 1 and p.second_id is None for p in made.step(()))


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_verdict_is_the_models_own_choice_up_to_the_first_wrong_token(
    runner: CompiledRunner, settings: Sampling
) -> None:
    sampler = sampler_of(runner, settings)
    truth = list(PROMPT)
    runner.full(PROMPT[:-1], 0, 0)
    for _ in range(6):
        truth += sampler.choose(runner.full(truth[-1:], len(truth) - 1, 1), len(truth), truth).ids
    own = truth[len(PROMPT) :]
    made = drafter(runner, settings)
    made._block[:] = own[:2]
    verdict = made.verify([own[2], (own[3] + 1) % 290, own[4]], ())
    assert verdict.chosen_ids == (*own[:4], -1, -1)
    assert all(0 < p <= 1 for p in (*verdict.chosen_probs[:4], *verdict.chain_probs[:3]))
    assert 0 <= verdict.chain_probs[3] < 1
    assert all(map(math.isnan, (*verdict.chosen_probs[4:], *verdict.chain_probs[4:])))
    made = drafter(runner, settings)
    assert made.verify(own[:4], ()).chosen_ids == tuple(own[:5])


def test_times_of_every_pass_are_reported(runner: CompiledRunner) -> None:
    made = drafter(runner, Sampling())
    made.step(())
    made.step((1, 2))
    verdict = made.verify((), ())
    assert len(verdict.step_seconds) == 2 and min(*verdict.step_seconds, verdict.verify_seconds) > 0
    made.begin(PROMPT)
    assert made.verify((), ()).step_seconds == ()


def test_a_draft_that_computes_nan_adds_what_stands_before_it(runner: CompiledRunner) -> None:
    truth = chain(runner, Sampling(), 3)
    made = drafter(runner, Sampling())
    real = runner.draft

    class Damaged(ScriptedRunner):
        def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
            logits = real(tokens, position)
            logits[-1] = np.nan
            return logits

    made._runner = Damaged(runner)
    assert [p.id for p in made.step(truth[:2])] == truth[:2]
    assert made.step(()) == []


def test_a_fault_is_shown_in_its_row_and_raised_in_a_plain_step(runner: CompiledRunner) -> None:
    own = chain(runner, Sampling(), 2)
    made = drafter(runner, Sampling())
    real = runner.full

    class Damaged(ScriptedRunner):
        def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
            logits = real(tokens, position, wanted)
            logits[0] = np.nan
            return logits

    made._runner = Damaged(runner)
    verdict = made.verify(own, ())
    assert verdict.chosen_ids == (-1, -1, -1) and math.isnan(verdict.chosen_probs[0])
    made.begin(PROMPT)
    with pytest.raises(NumericFault, match=f"position {len(PROMPT)}"):
        made.verify((), ())


def test_the_host_takes_no_siblings(runner: CompiledRunner) -> None:
    made = drafter(runner, Sampling())
    assert made.most_siblings == 0
    with pytest.raises(ValueError, match="no siblings"):
        made.verify((), [SiblingPlan(0, 3, 0.5)])


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_recorded_trace_is_the_plain_reply_with_what_the_draft_proposed(
    runner: CompiledRunner, settings: Sampling, tmp_path: Path
) -> None:
    trace = record_trace(runner, sampler_of(runner, settings), PROMPT, 30, model="m", set_name="s")
    sampler = sampler_of(runner, settings)
    ids = list(PROMPT)
    runner.full(ids[:-1], 0, 0)
    for t in range(30):
        choice = sampler.choose(runner.full(ids[-1:], len(ids) - 1, 1), len(ids), ids)
        assert (trace.ids[t],) == choice.ids and trace.full_prob[t] == pytest.approx(choice.probs[0])
        ids += choice.ids
    assert trace.prompt_ids == tuple(PROMPT) and trace.recipe == runner.recipe.to_json()
    assert trace.acceptance > 0.5, "int8 drafts are good ones"
    assert all(0 < len(ranked) <= 4 and all(0 < p <= 1 for _, p in ranked) for ranked in trace.top)
    first = chain(runner, settings, 1)
    assert trace.top[0][0][0] == first[0]
    if settings.greedy:
        assert all(ranked == tuple(sorted(ranked, key=lambda pair: -pair[1])) for ranked in trace.top)


def test_a_trace_ends_at_an_end_token_and_at_the_context(runner: CompiledRunner) -> None:
    sampler = sampler_of(runner, Sampling())
    whole = record_trace(runner, sampler, PROMPT, 20)
    ended = record_trace(runner, sampler, PROMPT, 20, end_ids={whole.ids[7]})
    assert ended.ids == whole.ids[: whole.ids.index(whole.ids[7]) + 1]
    long = record_trace(runner, sampler, PROMPT * 41, 100)
    assert len(long.ids) == runner.capacity - 41 * len(PROMPT)
    for prompt in ([], PROMPT * 43):
        with pytest.raises(ValueError, match="cannot be traced"):
            record_trace(runner, sampler, prompt, 5)
    assert np.isfinite(step_logits(runner, PROMPT)).all()
