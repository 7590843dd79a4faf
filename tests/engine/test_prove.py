"""The proof itself: it passes on an exact engine, finds every kind of fault at its place, and stops when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import byte_tokenizer, read_safetensors, tiny_llama, write_safetensors
from engine.engine import Engine
from engine.errors import BadSetting, NoModel, PromptTooLong, SpecularError
from engine.model.compiled_runner import CompiledRunner
from engine.proof import PromptProof, ProofProgress
from engine.prove import GAMMAS, TURN_TOKENS, TURNS
from engine.prove_prompts import FOLLOW_UPS, PROMPTS, ProofPrompt
from engine.settings import GenerateRequest, Message, Sampling, Speculation
from engine_rig import end_tokens, loaded_engine, no_end_tokens, reply, step_logits

TWO = PROMPTS[:2]


def talker(folder: Path, **options: Any) -> Path:
    """A tiny model that takes text and never ends a reply by itself."""
    return no_end_tokens(byte_tokenizer(tiny_llama(folder, **{"positions": 1024, **options}), eos="<pad>"))


class TamperedRunner:
    """A runner whose full passes a test may tamper with: told tokens, position and the logits, which it may change."""

    def __init__(self, inner: CompiledRunner, tamper: Callable[[Sequence[int], int, np.ndarray], None]) -> None:
        self.inner, self._tamper = inner, tamper

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        logits = self.inner.full(tokens, position, wanted)
        self._tamper(tokens, position, logits)
        return logits


def compiled(engine: Engine) -> CompiledRunner:
    assert engine._loaded is not None and isinstance(engine._loaded.runner, CompiledRunner)
    return engine._loaded.runner


@contextmanager
def tampered(engine: Engine, tamper: Callable[[Sequence[int], int, np.ndarray], None]) -> Iterator[None]:
    """Inside, the engine's model computes what `tamper` makes of it."""
    inner = compiled(engine)
    engine._loaded.runner = TamperedRunner(inner, tamper)
    yield
    engine._loaded.runner = inner


def one_ulp_more(tokens: Sequence[int], position: int, logits: np.ndarray) -> None:
    if len(logits) > 1:
        logits[:] = np.nextafter(logits, np.float32(np.inf))


def opening(prompt: ProofPrompt) -> GenerateRequest:
    """The request of a conversation's first reply."""
    return GenerateRequest(messages=(Message("user", prompt.text),), max_new_tokens=40)


def test_an_exact_engine_passes_over_all_prompts_gammas_and_kept_prefixes(tmp_path: Path) -> None:
    with loaded_engine(talker(tmp_path)) as engine:
        seen: list[ProofProgress] = []
        before = compiled(engine)
        report = engine.prove(600, progress=seen.append)
        assert compiled(engine) is before
    assert report.difference is None and not report.stopped
    assert (report.tokens, report.wanted, report.prompts) == (600, 600, 12)
    assert report.sentence == "Identical: 600 tokens, ids and logits, over 12 prompts."
    assert [result.prompt for result in report.results] == [prompt.name for prompt in PROMPTS]
    assert all(result.turns == 2 and result.reused_tokens > 25 for result in report.results)
    assert {gamma for result in report.results for gamma in result.gammas} == set(GAMMAS)
    assert 0 < sum(result.accepted for result in report.results) < sum(result.drafted for result in report.results)
    assert [step.result for step in seen if step.result is not None] == list(report.results)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert (seen[-1].done, seen[-1].total) == (1200, 1200)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_model_without_a_tokenizer_is_proved_on_ids_also_in_half_precision(dtype: str, tmp_path: Path) -> None:
    with loaded_engine(no_end_tokens(tiny_llama(tmp_path, dtype=dtype))) as engine:
        report = engine.prove(240)
    assert report.sentence == "Identical: 240 tokens, ids and logits, over 12 prompts."
    assert all(result.reused_tokens > 0 for result in report.results)


def test_sampled_replies_are_proved_with_one_seed(tmp_path: Path) -> None:
    with loaded_engine(talker(tmp_path)) as engine:
        drawn = engine.prove(60, prompts=TWO, sampling=Sampling(temperature=1.0))
        chosen = engine.prove(60, prompts=TWO, sampling=Sampling(temperature=1.0, seed=7))
        greedy = engine.prove(60, prompts=TWO)
    assert (drawn.tokens, drawn.temperature, drawn.seed, drawn.difference) == (60, 1.0, 0, None)
    assert (chosen.tokens, chosen.seed, greedy.seed) == (60, 7, None)
    assert [result.accepted for result in drawn.results] != [result.accepted for result in chosen.results]


def test_replies_that_end_early_are_made_up_for(tmp_path: Path) -> None:
    """A model that ends most replies soon, in a context that few of them fill, is asked until there is enough."""
    folder = byte_tokenizer(tiny_llama(tmp_path, positions=256), eos="</s>")
    tensors = read_safetensors(folder)
    tensors["lm_head.weight"][1] *= 3  # the end token is now among the likeliest
    write_safetensors(folder / "model.safetensors", tensors)
    with loaded_engine(folder) as engine:
        report = engine.prove(300, prompts=TWO)
    assert report.tokens == 300 and report.difference is None
    assert 2 < max(result.turns for result in report.results) <= TURNS
    assert len(report.results) > 2 and report.prompts == 2


def test_a_model_that_ends_every_reply_at_once_is_asked_in_bounded_conversations(tmp_path: Path) -> None:
    with loaded_engine(end_tokens(tiny_llama(tmp_path), list(range(290)))) as engine:
        report = engine.prove(TURNS * 3, prompts=TWO)
    assert report.tokens == TURNS * 3 and report.difference is None
    assert [(result.prompt, result.tokens, result.turns) for result in report.results] == [
        ("chat", TURNS, TURNS),
        ("story", TURNS, TURNS),
        ("chat", TURNS, TURNS),
    ]


def test_long_conversations_are_split_into_replies(tmp_path: Path) -> None:
    with loaded_engine(no_end_tokens(tiny_llama(tmp_path, positions=1024))) as engine:
        report = engine.prove(TURN_TOKENS * 2 + 10, prompts=PROMPTS[:1], gamma=4)
    [result] = report.results
    assert (result.turns, result.tokens, result.gammas) == (3, TURN_TOKENS * 2 + 10, (4, 4, 4))


def test_one_ulp_in_verify_passes_is_found_at_its_place_with_the_gap(tmp_path: Path) -> None:
    with loaded_engine(talker(tmp_path)) as engine:
        plain = reply(engine, replace(opening(PROMPTS[0]), speculation=Speculation(enabled=False)))
        prompt = engine._loaded.chat_ids(opening(PROMPTS[0]).messages)
        logits = step_logits(compiled(engine), prompt + plain.ids)
        engine.forget()
        records = reply(engine, replace(opening(PROMPTS[0]), speculation=Speculation(gamma=3))).records
        first_block = next(i for i, record in enumerate(records) if record.drafted_ids)
        position = sum(len(record.emitted_ids) for record in records[:first_block])
        with tampered(engine, one_ulp_more):
            report = engine.prove(160, prompts=TWO, gamma=3)
    difference = report.difference
    assert difference is not None
    second, best = np.sort(logits[len(prompt) - 1 + position])[-2:]
    assert (difference.prompt, difference.turn, difference.position) == ("chat", 0, position)
    assert difference.plain_token == difference.speculative_token == plain.ids[position]
    assert difference.gap == float(best) - float(second) > 0
    assert (difference.gamma, difference.row, difference.rows, difference.message) == (3, 0, 4, None)
    assert report.sentence == (
        f"The logits differ at token {position + 1} of reply 1 to “chat”, where both choose token "
        f"{plain.ids[position]}; the plain run's two best logits are {difference.gap:.6g} apart."
    )
    assert len(report.results) == 2, "the other prompts of the round are compared too"
    assert all(result.turns == 1 and result.difference for result in report.results)
    assert report.results[0].tokens == position


def test_another_token_in_one_row_is_found_in_that_row(tmp_path: Path) -> None:
    """The third row of each verify pass prefers token 77; the report names that row and both tokens."""

    def prefer(tokens: Sequence[int], position: int, logits: np.ndarray) -> None:
        if len(logits) > 2:
            logits[2, 77] = 1e6

    with loaded_engine(talker(tmp_path, std=0.05)) as engine, tampered(engine, prefer):
        report = engine.prove(200, prompts=PROMPTS[:1], gamma=4)
    difference = report.difference
    assert difference is not None and difference.speculative_token == 77 != difference.plain_token
    assert (difference.row, difference.rows) == (2, 5)
    assert difference.sentence.startswith(f"The tokens differ at token {difference.position + 1} of reply 1 to “chat”")
    assert f"plain decoding chooses {difference.plain_token}, speculation chooses 77" in difference.sentence


def test_a_kept_prefix_that_went_bad_is_found_in_the_second_reply(tmp_path: Path) -> None:
    with loaded_engine(talker(tmp_path)) as engine:
        runner = compiled(engine)

        def spoil(tokens: Sequence[int], position: int, logits: np.ndarray) -> None:
            if not len(logits) and position % runner.chunk:  # a prompt read on from a prefix
                runner._memory.cache[0][3] *= np.float32(1.01)

        with tampered(engine, spoil):
            report = engine.prove(80, prompts=TWO)
    assert [result.difference.turn for result in report.results if result.difference] == [1, 1]
    assert all(result.tokens >= 20 for result in report.results)


def test_a_reply_that_fails_only_with_speculation_is_a_difference(tmp_path: Path) -> None:
    def fail(tokens: Sequence[int], position: int, logits: np.ndarray) -> None:
        if len(logits) > 1:
            raise SpecularError("The card has fallen off the bus.")

    with loaded_engine(talker(tmp_path)) as engine, tampered(engine, fail):
        report = engine.prove(40, prompts=TWO, gamma=2)
    difference = report.difference
    assert difference is not None and difference.message == "The card has fallen off the bus."
    assert difference.speculative_token is None and difference.plain_token is not None and difference.row is None
    assert "The speculative run failed at token" in report.sentence


def test_a_plain_run_that_fails_is_an_error_naming_the_prompt(tmp_path: Path) -> None:
    def nonsense(tokens: Sequence[int], position: int, logits: np.ndarray) -> None:
        logits[:] = np.nan

    with loaded_engine(talker(tmp_path)) as engine:
        with (
            tampered(engine, nonsense),
            pytest.raises(SpecularError, match=r"Plain decoding failed at the prompt .chat"),
        ):
            engine.prove(40)
        assert engine.prove(24).difference is None


def test_cancel_stops_within_a_cycle_and_keeps_what_was_compared(tmp_path: Path) -> None:
    results: list[PromptProof] = []
    after_cancel: list[ProofProgress] = []

    def watch(step: ProofProgress) -> None:
        if results:
            after_cancel.append(step)
        if step.result is not None:
            results.append(step.result)

    with loaded_engine(talker(tmp_path)) as engine:
        runner = compiled(engine)
        report = engine.prove(400, progress=watch, cancelled=lambda: bool(results))
        assert compiled(engine) is runner
        assert engine.prove(12).tokens == 12
    assert report.stopped and list(report.results) == results and len(after_cancel) <= 1
    assert report.tokens == 34 and report.difference is None
    assert report.sentence == "Stopped; identical so far: 34 tokens, ids and logits, over 1 prompts."


def test_a_cancel_in_the_second_run_reports_its_finished_replies(tmp_path: Path) -> None:
    with loaded_engine(talker(tmp_path)) as engine:
        done: list[int] = []
        report = engine.prove(
            40,
            prompts=TWO[:1],
            progress=lambda step: done.append(step.done),
            cancelled=lambda: max(done, default=0) > 60,
        )
    assert report.stopped and report.tokens == 20 and report.results[0].turns == 1


def test_what_cannot_be_proved_is_refused_in_one_sentence(tmp_path: Path) -> None:
    engine = Engine()
    with pytest.raises(NoModel):
        engine.prove(10)
    with loaded_engine(talker(tmp_path, positions=64)) as engine:
        with pytest.raises(BadSetting, match="at least 1 token, not 0"):
            engine.prove(0)
        with pytest.raises(BadSetting, match="gamma is 99"):
            engine.prove(10, gamma=99)
        with pytest.raises(BadSetting, match="at least one prompt"):
            engine.prove(10, prompts=())
        with pytest.raises(PromptTooLong, match="the context holds 64"):
            engine.prove(10, prompts=[ProofPrompt("long", "word " * 64)])
        assert engine.prove(3, prompts=[ProofPrompt("short", "a")]).tokens == 3


def test_the_observer_sees_every_row_before_it_is_used(tmp_path: Path) -> None:
    passes: list[tuple[int, int]] = []
    with loaded_engine(talker(tmp_path)) as engine:
        with engine.observed(lambda position, logits: passes.append((position, len(logits)))):
            seen = reply(engine, replace(opening(PROMPTS[0]), speculation=Speculation(gamma=2)))
        unseen = reply(engine, replace(opening(PROMPTS[0]), speculation=Speculation(gamma=2)))
    expected, length = [], seen.finished.prompt_tokens
    for record in seen.records:
        expected.append((length - 1, len(record.drafted_ids) + 1))
        length += len(record.emitted_ids)
    assert passes == expected
    assert unseen.ids == seen.ids


def test_the_built_in_prompts_are_varied_and_short() -> None:
    assert len({prompt.name for prompt in PROMPTS}) == len(PROMPTS) == 12
    assert len({prompt.text for prompt in PROMPTS}) == 12 and len(set(FOLLOW_UPS)) == len(FOLLOW_UPS)
    assert all(len(prompt.text.encode()) < 120 for prompt in PROMPTS)
