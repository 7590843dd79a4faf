"""The real starter model: it answers, and drafting changes none of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.engine import Engine
from engine.model.compiled_runner import CompiledRunner
from engine.records import StopReason
from engine.settings import GenerateRequest, Message, Sampling, Speculation
from engine.statistics import ReplyStatistics
from engine_rig import PLAIN, Reply, loaded_engine, reply

QUESTIONS = (
    "What is the capital of France?",
    "Write a Python function that reverses a string.",
    "Tell me a story about a lighthouse and a storm.",
    "If I have three apples and eat one, how many are left? Explain.",
    "Translate 'good morning, my friend' into Spanish, German and Japanese.",
    "List five uses of copper, one a line.",
)
SAMPLED = Sampling(temperature=0.8, top_p=0.95, repetition_penalty=1.1, seed=7)


@pytest.fixture(scope="module")
def engine(starter_folder: Path) -> Iterator[Engine]:
    """One engine for all tests of this file, so that the prefix of one question is there for the next."""
    with loaded_engine(starter_folder, context=512) as made:
        yield made


def ask(engine: Engine, question: str, speculation: Speculation, sampling: Sampling, most: int = 48) -> Reply:
    messages = (Message("user", question),)
    return reply(
        engine,
        GenerateRequest(messages=messages, max_new_tokens=most, speculation=speculation, sampling=sampling),
    )


def test_it_knows_the_capital_of_france(engine: Engine) -> None:
    made = ask(engine, QUESTIONS[0], Speculation(), Sampling())
    assert "Paris" in made.text
    assert made.finished.reason in (StopReason.END_TOKEN, StopReason.LENGTH)


def test_drafting_changes_no_token_of_greedy_replies_and_is_mostly_right(engine: Engine) -> None:
    statistics = ReplyStatistics()
    for gamma, question in zip((3, 5, 8, 2, None, 4), QUESTIONS, strict=True):
        plain = ask(engine, question, PLAIN, Sampling())
        made = ask(engine, question, Speculation(gamma=gamma), Sampling())
        assert made.ids == plain.ids, question
        assert made.text == plain.text and len(made.text) > 10
        for record in made.records:
            statistics = statistics.with_cycle(record)
    assert statistics.tested > 100
    # The default is 4 bits with 16384 tokens: 0.91 of thousands of tokens; four standard errors below it for 150.
    assert statistics.acceptance is not None and statistics.acceptance > 0.82


@pytest.mark.parametrize("question", QUESTIONS[2:4])
def test_drafting_changes_no_token_of_sampled_replies(engine: Engine, question: str) -> None:
    plain = ask(engine, question, PLAIN, SAMPLED)
    made = ask(engine, question, Speculation(gamma=4), SAMPLED)
    assert made.ids == plain.ids
    assert made.drafted > 0
    assert plain.ids[:24] != ask(engine, question, PLAIN, Sampling(), most=24).ids[:24]


def test_prefill_and_verify_passes_have_the_bits_of_single_steps(engine: Engine) -> None:
    assert engine._loaded is not None
    runner = engine._loaded.runner
    assert isinstance(runner, CompiledRunner)
    ids = engine._loaded.chat_ids([Message("user", " ".join(QUESTIONS))])[:80]
    with runner.kv.scratch():
        alone = np.concatenate([runner.full([token], place, 1).copy() for place, token in enumerate(ids)])
        cache = [layer[:80].copy() for layer in runner._memory.cache]
        assert np.array_equal(runner.full(ids[:64], 0, 16), alone[48:64])
        assert np.array_equal(runner.full(ids[64:], 64, 16), alone[64:])
        for width in (2, 3, 5, 8, 13):
            assert np.array_equal(runner.full(ids[60 : 60 + width], 60, width), alone[60 : 60 + width]), width
        assert all(
            np.array_equal(layer[:80], before) for layer, before in zip(runner._memory.cache, cache, strict=True)
        )
