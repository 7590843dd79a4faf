"""The processed distribution equals that of transformers' logits processors, and bad logits are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.errors import NumericFault, SpecularError
from engine.sampling.distribution import Distribution, highest, process, truncate
from engine.settings import Sampling


def oracle(logits: np.ndarray, settings: Sampling, history: list[int]) -> np.ndarray:
    """The same distribution by transformers, in float64."""
    chain = LogitsProcessorList()
    if settings.repetition_penalty != 1.0 and history:
        chain.append(RepetitionPenaltyLogitsProcessor(settings.repetition_penalty))
    if settings.temperature != 1.0:
        chain.append(TemperatureLogitsWarper(float(settings.temperature)))
    if settings.top_k:
        chain.append(TopKLogitsWarper(settings.top_k))
    if settings.top_p < 1.0:
        chain.append(TopPLogitsWarper(settings.top_p))
    if settings.min_p:
        chain.append(MinPLogitsWarper(settings.min_p))
    ids = torch.tensor([history or [0]])
    scores = chain(ids, torch.from_numpy(logits.astype(np.float64))[None].clone())
    return scores.softmax(-1)[0].numpy()


@pytest.mark.parametrize("case", range(120))
def test_random_settings_equal_transformers(case: int) -> None:
    random = np.random.default_rng(case)
    vocabulary = int(random.choice([3, 11, 200, 4000]))
    logits = (random.standard_normal(vocabulary) * random.choice([0.2, 2, 8])).astype(np.float32)
    settings = Sampling(
        temperature=float(random.choice([0.05, 0.5, 1.0, 1.7, 10.0])),
        top_k=int(random.choice([0, 2, 40, 100_000])),
        top_p=float(random.choice([1.0, 0.999, 0.9, 0.5, 0.01])),
        min_p=float(random.choice([0.0, 0.02, 0.3, 1.0])),
        repetition_penalty=float(random.choice([1.0, 1.3, 0.7])),
    )
    history = random.integers(0, vocabulary, int(random.integers(0, 30))).tolist()
    ours, theirs = process(logits, settings, history), oracle(logits, settings, history)
    assert np.array_equal(ours > 0, theirs.astype(np.float32) > 0)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-12)


def test_each_setting_alone_equals_transformers_on_a_large_flat_vocabulary() -> None:
    logits = (np.random.default_rng(1).standard_normal(49_152) * 0.5).astype(np.float32)
    for settings in (
        Sampling(temperature=1.0),
        Sampling(temperature=0.7, top_k=50),
        Sampling(temperature=1.0, top_p=0.95),
        Sampling(temperature=1.5, top_p=0.3),
        Sampling(temperature=1.0, min_p=0.1),
    ):
        np.testing.assert_allclose(process(logits, settings), oracle(logits, settings, []), rtol=1e-4, atol=1e-12)


def test_ties_at_the_kth_are_kept_and_ties_at_the_nucleus_go_to_low_ids() -> None:
    flat = np.zeros(6, np.float32)
    assert (process(flat, Sampling(temperature=1.0, top_k=2)) > 0).all()
    assert np.flatnonzero(process(flat, Sampling(temperature=1.0, top_p=0.45))).tolist() == [0, 1, 2]
    wide = np.zeros(5000, np.float32)
    assert np.flatnonzero(process(wide, Sampling(temperature=1.0, top_p=0.4999))).tolist() == list(range(2500))


def test_nucleus_reaches_its_mass_with_the_fewest_tokens() -> None:
    random = np.random.default_rng(4)
    for _ in range(60):
        size = int(random.choice([5, 1500, 9000]))
        logits = np.round(random.standard_normal(size) * 2, int(random.choice([0, 1, 5]))).astype(np.float32)
        top_p = float(random.uniform(0.05, 0.99))
        kept = process(logits, Sampling(temperature=1.0, top_p=top_p)) > 0
        full = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum()
        mass = full[kept].sum()
        assert mass >= top_p - 1e-6
        assert mass - full[kept].min() < top_p + 1e-6
        assert full[kept].min() >= full[~kept].max(initial=0.0)


@pytest.mark.parametrize(
    "settings",
    [
        Sampling(),
        Sampling(temperature=1e-6),
        Sampling(temperature=1.0, top_k=1),
        Sampling(temperature=1.0, top_p=0.0),
    ],
)
def test_degenerate_settings_put_all_probability_on_the_best_token(settings: Sampling) -> None:
    logits = np.array([1.0, 3.0, 3.0, -2.0], np.float32)
    assert process(logits, settings).tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("temperature", [1.1e-5, 1e-3, 1.0, 10.0])
def test_extreme_temperatures_and_logits_stay_finite(temperature: float) -> None:
    for logits in ([1e38, -1e38, 3e38, -3e38], [-np.inf, 5.0, -np.inf, 4.0], [0.0, 0.0, -1e30, 1e-30]):
        row = np.array(logits, np.float32)
        for extra in ({}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.5}, {"top_k": 10**9}):
            probabilities = process(row, Sampling(temperature=temperature, **extra))
            assert np.isfinite(probabilities).all()
            assert probabilities.sum() == pytest.approx(1.0, abs=1e-6)
            assert not probabilities[np.isneginf(row)].any()


@pytest.mark.parametrize(
    ("logits", "word"),
    [([0.0, np.nan, 1.0], "NaN"), ([0.0, np.inf, 1.0], "infinity"), ([-np.inf] * 3, "no possible token")],
)
def test_unusable_logits_are_one_readable_sentence(logits: list[float], word: str) -> None:
    row = np.array(logits, np.float32)
    for settings in (Sampling(), Sampling(temperature=1.0), Sampling(temperature=0.5, top_k=2, top_p=0.9)):
        with pytest.raises(NumericFault, match=word) as fault:
            process(row, settings)
        assert isinstance(fault.value, SpecularError)
    with pytest.raises(NumericFault, match="position 12"):
        highest(row, 12)


def test_history_outside_the_vocabulary_is_ignored_and_inputs_are_untouched() -> None:
    logits = np.array([1.0, -1.0, 0.5], np.float32)
    before = logits.copy()
    settings = Sampling(temperature=1.0, repetition_penalty=2.0)
    assert np.array_equal(process(logits, settings, [0, 7, -3, 0]), process(logits, settings, [0]))
    expected = np.exp([0.5, -1.0, 0.5]) / np.exp([0.5, -1.0, 0.5]).sum()
    np.testing.assert_allclose(process(logits, settings, [0]), expected, rtol=1e-6)
    assert np.array_equal(logits, before)


def test_probability_of_single_tokens_agrees_with_the_dense_form() -> None:
    random = np.random.default_rng(2)
    row = random.standard_normal(50).astype(np.float32)
    for settings in (
        Sampling(temperature=1.0),
        Sampling(temperature=1.0, top_k=5),
        Sampling(temperature=1.0, min_p=0.3),
    ):
        law = truncate(row, settings)
        assert isinstance(law, Distribution)
        np.testing.assert_allclose([law.probability(i) for i in range(50)], law.dense(50), rtol=1e-6)
        assert law.probability(50) == law.probability(-1) == 0.0
