"""C21, C23: sampled replies have exactly the full model's distribution, with speculation too, and seeds reproduce."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from builders import tiny_llama
from engine.engine import Engine
from engine.recipe import Recipe
from engine.sampling.distribution import process
from engine.settings import Sampling
from engine_rig import compiled_runner, loaded_engine, no_end_tokens, random_prompts, reply, request

PROMPT = [5, 9, 33, 7]
SEEDS = 300
VOCABULARY = 64
ROUGH = Recipe(weight_bits=16, skipped_attention=(0, 1), skipped_mlp=(2,))  # a poor draft: many corrections


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A random model of four layers over 64 tokens, without a tokenizer; its laws are neither flat nor certain."""
    return no_end_tokens(tiny_llama(tmp_path, layers=4, vocab=VOCABULARY, std=0.13, seed=3))


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with loaded_engine(folder) as made:
        yield made


def laws(folder: Path, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """Exact distributions of the first new token [64] and of the second given the first [64, 64], from the oracle."""
    with compiled_runner(folder) as runner:
        runner.full(PROMPT[:-1], 0, 0)
        first = process(runner.full(PROMPT[-1:], 3, 1)[0], sampling, PROMPT).astype(np.float64)
        second = [
            process(runner.full([token], 4, 1)[0], sampling, [*PROMPT, token]).astype(np.float64)
            for token in range(VOCABULARY)
        ]
    return first, np.stack(second)


def fits(observed: list[int], law: np.ndarray) -> float:
    """p-value of a chi-square test; tokens expected fewer than five times share one cell."""
    counts = np.bincount(observed, minlength=len(law)).astype(np.float64)
    expected = law / law.sum() * len(observed)
    assert (counts[law == 0] == 0).all(), "a token came that cannot come"
    common = expected >= 5
    counts = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    assert len(expected) > 5
    return float(chisquare(counts[expected > 0], expected[expected > 0]).pvalue)


@pytest.mark.parametrize(
    "shape",
    [
        {"temperature": 1.0},
        {"temperature": 1.5, "top_k": 30},
        {"temperature": 1.0, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.3},
    ],
    ids=["plain law", "top-k", "all"],
)
def test_c21_tokens_come_as_often_as_the_full_model_says(folder: Path, engine: Engine, shape: dict[str, float]) -> None:
    first, second = laws(folder, Sampling(**shape))  # type: ignore[arg-type]
    assert first.max() < 0.9 and (first > 0.01).sum() > 8
    marginal = first @ second
    ones: dict[bool, list[int]] = {True: [], False: []}
    twos: dict[bool, list[int]] = {True: [], False: []}
    accepted = tested = 0
    for seed in range(SEEDS):
        sampling = Sampling(seed=seed, **shape)  # type: ignore[arg-type]
        for plain in (True, False):
            # The first step of a fixed gamma is plain, so the second token is the drafted one.
            made = reply(engine, request(PROMPT, 3, gamma=2, plain=plain, recipe=ROUGH, sampling=sampling))
            ones[plain].append(made.ids[0])
            twos[plain].append(made.ids[1])
            accepted += sum(record.accepted for record in made.records)
            tested += sum(record.tested for record in made.records)
    for plain in (True, False):
        assert fits(ones[plain], first) > 0.001
        assert fits(twos[plain], marginal) > 0.001
    assert len(set(ones[True])) > 8
    assert tested == SEEDS and 0.1 < accepted / tested < 0.95, "both outcomes of the test must be frequent"


def test_the_chi_square_notices_a_wrong_law(folder: Path, engine: Engine) -> None:
    first, _ = laws(folder, Sampling(temperature=1.5))
    made = [
        reply(engine, request(PROMPT, 1, plain=True, sampling=Sampling(temperature=1.0, seed=seed))).ids[0]
        for seed in range(2 * SEEDS)
    ]
    assert fits(made, first) < 0.001


@pytest.mark.parametrize(
    "greedy",
    [
        Sampling(temperature=0.0, seed=1),
        Sampling(temperature=1e-6, seed=2),
        Sampling(temperature=1.0, top_k=1, seed=3),
        Sampling(temperature=1.0, top_p=0.0, seed=4),
        Sampling(temperature=1.0, min_p=1.0, seed=5),
    ],
    ids=["T=0", "T=1e-6", "top_k=1", "top_p=0", "min_p=1"],
)
@pytest.mark.parametrize("plain", [True, False])
def test_c21_degenerate_settings_are_greedy(engine: Engine, greedy: Sampling, plain: bool) -> None:
    best = reply(engine, request(PROMPT, 40, plain=True)).ids
    assert reply(engine, request(PROMPT, 40, gamma=3, plain=plain, sampling=greedy)).ids == best


def test_a_draft_that_is_the_full_model_is_always_right(engine: Engine) -> None:
    """Draft and model draw with the same noise at the same positions: equal laws choose equal tokens."""
    same = Recipe(weight_bits=16)
    for seed in range(10):
        sampling = Sampling(temperature=1.0, repetition_penalty=1.2, seed=seed)
        made = reply(engine, request(PROMPT, 40, gamma=5, recipe=same, sampling=sampling))
        assert made.drafted > 20
        assert all(record.accepted == len(record.drafted_ids) for record in made.records)
        probabilities = [pair for r in made.records for pair in zip(r.drafted_probs, r.full_probs, strict=True)]
        assert all(drafted == full for drafted, full in probabilities)


@pytest.mark.parametrize("plain", [True, False])
def test_c21_cuts_that_cut_nothing_change_nothing(engine: Engine, plain: bool) -> None:
    wanted = reply(engine, request(PROMPT, 60, plain=True, sampling=Sampling(temperature=1.0, seed=6))).ids
    for same in (
        Sampling(temperature=1.0, seed=6, top_k=VOCABULARY),
        Sampling(temperature=1.0, seed=6, top_k=10**9),
        Sampling(temperature=1.0, seed=6, top_p=1.0),
    ):
        assert reply(engine, request(PROMPT, 60, gamma=3, plain=plain, sampling=same)).ids == wanted


@pytest.mark.parametrize("gamma", [None, 3])
def test_c23_a_seed_gives_the_same_ids_every_time(folder: Path, engine: Engine, gamma: int | None) -> None:
    wanted = request(PROMPT, 50, gamma=gamma, recipe=ROUGH, sampling=Sampling(temperature=1.0, seed=42))
    first = reply(engine, wanted)
    assert any(record.drafted_ids for record in first.records)
    for _ in range(4):
        assert reply(engine, wanted).ids == first.ids
    for prompt in random_prompts(3, VOCABULARY):
        reply(engine, request(prompt, 30, sampling=Sampling(temperature=1.3)))
    assert reply(engine, wanted).ids == first.ids
    with loaded_engine(folder) as fresh:
        assert reply(fresh, wanted).ids == first.ids
    other = reply(engine, request(PROMPT, 50, gamma=gamma, sampling=Sampling(temperature=1.0, seed=43)))
    assert other.ids != first.ids


def test_c23_a_seed_gives_the_same_ids_in_another_process(folder: Path, engine: Engine) -> None:
    wanted = request(PROMPT, 50, gamma=3, sampling=Sampling(temperature=1.0, seed=42))
    code = (
        "import json, sys; from pathlib import Path\n"
        "from engine.settings import Sampling; from engine_rig import loaded_engine, reply, request\n"
        "sampling = Sampling(temperature=1.0, seed=42)\n"
        f"with loaded_engine(Path(sys.argv[1])) as engine:\n"
        f"    print(json.dumps(reply(engine, request({PROMPT}, 50, gamma=3, sampling=sampling)).ids))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(root), str(root / 'tests')]}\n{code}", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == reply(engine, wanted).ids


def test_c23_without_a_seed_each_reply_differs_and_says_which_seed_it_used(engine: Engine) -> None:
    replies = [reply(engine, request(PROMPT, 50, sampling=Sampling(temperature=1.0))) for _ in range(3)]
    assert len({tuple(made.ids) for made in replies}) == 3
    for made in replies:
        again = Sampling(temperature=1.0, seed=made.finished.seed)
        assert reply(engine, request(PROMPT, 50, sampling=again)).ids == made.ids
