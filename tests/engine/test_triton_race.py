"""Sampled choice on the card against the sampler on the host: same tokens, probabilities and judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from engine.kernels.triton import judge
from engine.kernels.triton.noise import exponentials, hash_words
from engine.kernels.triton.sampled_choice import SampledChoice
from engine.sampling.accept import accept
from engine.sampling.distribution import process
from engine.sampling.noise import Noise
from engine.sampling.sampler import Choice, Sampler
from engine.settings import Sampling
from triton_rig import DEVICE, INTERPRETED, quiet, triton

tl = triton.language

ROUNDS, WIDTH = (1, 6) if INTERPRETED else (60, 16)  # an interpreted row takes some thousand times as long
SEED = 20_240_817
ROWS = 16

SETTINGS = {
    "plain": Sampling(temperature=1.0),
    "cold": Sampling(temperature=0.05),
    "hot": Sampling(temperature=7.0),
    "top-k": Sampling(temperature=0.8, top_k=20),
    "top-k-2": Sampling(temperature=10.0, top_k=2),
    "top-k-all": Sampling(temperature=1.0, top_k=10**6),
    "top-p": Sampling(temperature=1.2, top_p=0.9),
    "top-p-few": Sampling(temperature=1.0, top_p=0.01),
    "top-p-most": Sampling(temperature=1.5, top_p=0.9999),
    "min-p": Sampling(temperature=1.0, min_p=0.05),
    "best-only": Sampling(temperature=1.0, min_p=1.0),
    "all-three": Sampling(temperature=1.3, top_k=50, top_p=0.8, min_p=0.02),
    "penalty": Sampling(temperature=0.9, repetition_penalty=1.3),
    "everything": Sampling(temperature=0.9, top_k=40, top_p=0.95, min_p=0.01, repetition_penalty=1.15),
    "reward": Sampling(temperature=1.0, top_p=0.7, repetition_penalty=0.7),
    "greedy": Sampling(),
    "greedy-penalty": Sampling(repetition_penalty=1.4, top_k=30, top_p=0.3),
}


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter prepares triton.language anew at each call of a device function; once a kernel is enough."""
    if INTERPRETED:
        from triton.runtime import interpreter

        def call(self: Any, *args: Any, **names: Any) -> Any:
            return self.rewrite()(*args, **names)

        monkeypatch.setattr(interpreter.InterpretedFunction, "__call__", call)
    with quiet():
        yield


@dataclass(frozen=True)
class Outcome:
    """What a judged pass left in the state."""

    ids: list[int]
    probs: list[float]
    judged: list[float]
    accepted: int
    position: int
    cursor: int
    token: int


class Card:
    """A state, logits and SampledChoice of their own, as a step has them."""

    def __init__(self, vocabulary: int, *, allowed: int | None = None, block: int = 1024) -> None:
        self.state = torch.zeros(judge.STATE_SIZE, dtype=torch.int32, device=DEVICE)
        self.floats = self.state[judge.FLOATS :].view(torch.float32)
        self.logits = torch.full((ROWS, vocabulary), float("nan"), device=DEVICE)
        self.report = torch.zeros(judge.REPORT_SIZE, dtype=torch.int32, device=DEVICE)
        self.choice = SampledChoice(self.state, self.floats, self.logits, allowed, block)

    def begin(self, position: int, tokens: Sequence[int]) -> None:
        self.state[judge.POSITION], self.state[judge.CURSOR] = position, 0
        self.state[judge.TOKENS : judge.TOKENS + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)

    def judge(self, logits: np.ndarray) -> Outcome:
        rows = len(logits)
        self.logits[:rows] = torch.from_numpy(logits)
        self.logits[rows:] = float("nan")
        self.choice.launch_judge(rows)
        state, floats = self.state.tolist(), self.floats.tolist()
        return Outcome(
            ids=state[judge.CHOSEN : judge.CHOSEN + rows],
            probs=floats[judge.CHOSEN_PROBS : judge.CHOSEN_PROBS + rows],
            judged=floats[judge.FULL_PROBS : judge.FULL_PROBS + rows - 1],
            accepted=state[judge.ACCEPTED],
            position=state[judge.POSITION],
            cursor=state[judge.CURSOR],
            token=state[judge.TOKENS],
        )

    def propose(self, logits: np.ndarray) -> tuple[int, float]:
        """The proposal that a draft step with these logits [vocabulary] adds, and its probability."""
        self.logits[:1] = torch.from_numpy(logits[None])
        self.choice.launch_propose(1, self.report)
        cursor = int(self.state[judge.CURSOR])
        return int(self.state[judge.TOKENS + cursor]), float(self.floats[judge.DRAFT_PROBS + cursor - 1])


def compare(
    outcome: Outcome,
    choice: Choice,
    logits: np.ndarray,
    settings: Sampling,
    history: list[int],
    drafted: list[int],
    allowed: int,
    seed: int = SEED,
) -> int:
    """Asserts that ids and probabilities agree; returns how many rows differ, each by a near-tie of float32."""
    differing = 0
    for r, (got, expected) in enumerate(zip(outcome.ids, choice.ids, strict=True)):
        if got != expected:
            law = process(logits[r, :allowed], settings, history + drafted[:r])
            scores = law / Noise(seed, allowed).exponentials(len(history) + r)
            assert scores[got] > scores[expected] * (1 - 1e-5), (r, got, expected)
            differing += 1
        assert outcome.probs[r] == pytest.approx(choice.probability_of(r, got), rel=1e-4, abs=1e-9)
    for r, token in enumerate(drafted[: len(outcome.judged)]):
        assert outcome.judged[r] == pytest.approx(choice.probability_of(r, token), rel=1e-4, abs=1e-9)
    return differing


def check(
    card: Card, settings: Sampling, logits: np.ndarray, *, allowed: int, seed: int = SEED, start: int = 40
) -> int:
    """One judged pass over random history and proposals; as many differing rows as `compare` finds."""
    random = np.random.default_rng(start)
    history = random.integers(0, allowed, start).tolist()
    drafted = random.integers(0, allowed, len(logits) - 1).tolist()
    card.choice.configure(settings, seed, history)
    card.begin(len(history) - 1, [history[-1], *drafted])
    sampler = Sampler(settings, logits.shape[1], seed, allowed_vocabulary=allowed)
    choice = sampler.choose(logits, len(history), history, drafted)
    return compare(card.judge(logits), choice, logits, settings, history, drafted, allowed, seed)


def normal(seed: int, rows: int, vocabulary: int, scale: float = 3.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((rows, vocabulary)) * scale).astype(np.float32)


@triton.jit
def noise_kernel(seed, position, high_out, low_out, e_out, BLOCK: tl.constexpr):
    ids = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    high, low = hash_words(tl.load(seed), tl.load(position), ids)
    tl.store(high_out + ids, high.to(tl.int64))
    tl.store(low_out + ids, low.to(tl.int64))
    tl.store(e_out + ids, exponentials(high, low))


@pytest.mark.parametrize("seed", [0, 1, SEED, 2**32 - 1, 2**63 - 1])
@pytest.mark.parametrize("position", [0, 77, 2**31 - 2])
def test_noise_is_that_of_the_host(seed: int, position: int) -> None:
    count = 2**16
    high, low = (torch.zeros(count, dtype=torch.int64, device=DEVICE) for _ in range(2))
    values = torch.zeros(count, device=DEVICE)
    seeds = torch.tensor([seed], dtype=torch.int64, device=DEVICE)
    positions = torch.tensor([position], dtype=torch.int32, device=DEVICE)
    block = count if INTERPRETED else 1024
    noise_kernel[(count // block,)](seeds, positions, high, low, values, BLOCK=block)
    noise = Noise(seed, count)
    for ours, theirs in zip((high, low), noise.words(position), strict=True):
        assert np.array_equal(ours.cpu().numpy(), theirs.astype(np.int64))
    expected = noise.exponentials(position)
    assert (high < 2**24).sum() > 100, "the refined branch is under test too"
    assert np.abs(values.cpu().numpy() / expected - 1).max() < 3e-7


@pytest.mark.parametrize("name", SETTINGS)
def test_choices_are_those_of_the_sampler(name: str) -> None:
    """Random rows of a vocabulary that is no multiple of the block and has padding rows behind it."""
    vocabulary, allowed = 1011, 1000
    card = Card(vocabulary, allowed=allowed, block=1024)
    differing = 0
    for index in range(ROUNDS):
        logits = normal(index, WIDTH, vocabulary)
        logits[:, allowed:] = 99
        differing += check(card, SETTINGS[name], logits, allowed=allowed, seed=SEED + index, start=40 + index)
    assert differing <= ROUNDS * WIDTH // 100


@pytest.mark.parametrize("name", ["plain", "all-three", "reward", "greedy-penalty"])
def test_several_blocks(name: str) -> None:
    card = Card(301, block=128)
    assert check(card, SETTINGS[name], normal(7, 2, 301), allowed=301) == 0


@pytest.mark.parametrize("name", ["plain", "top-k", "top-p", "everything"])
def test_a_large_vocabulary(name: str) -> None:
    vocabulary = 33_003
    card = Card(vocabulary, block=2**15 if INTERPRETED else 1024)
    assert check(card, SETTINGS[name], normal(11, 2, vocabulary, 2.0), allowed=vocabulary) == 0


@pytest.mark.parametrize("vocabulary", [1, 2])
def test_tiny_vocabularies(vocabulary: int) -> None:
    card = Card(vocabulary, block=16)
    for name in ("plain", "top-p", "top-k-2"):
        assert check(card, SETTINGS[name], normal(3, 3, vocabulary), allowed=vocabulary) == 0


@pytest.mark.parametrize("name", ["top-k", "top-p", "all-three", "greedy", "reward"])
def test_ties_keep_what_the_host_keeps(name: str) -> None:
    """Logits of few values: ties at the k-th, at the edge of top-p (lowest ids stay), at the best."""
    card = Card(200, block=128)
    logits = np.random.default_rng(5).integers(-2, 3, (4, 200)).astype(np.float32)
    logits[1] = 0.0
    logits[2, ::2] = -0.0
    logits[3] = np.where(np.arange(200) % 3, -np.inf, -0.0)
    assert check(card, SETTINGS[name], logits, allowed=200) == 0


def test_a_flat_row_keeps_its_lowest_ids() -> None:
    """Exactly the ids below the edge can be drawn, in whichever block they lie."""
    card, settings = Card(10, block=4), Sampling(temperature=1.0, top_p=0.6)
    kept = np.flatnonzero(process(np.zeros(10, np.float32), settings))
    assert len(kept) == 6
    card.choice.configure(settings, SEED)
    card.begin(7, [0] * 8)
    outcome = card.judge(np.zeros((8, 10), np.float32))
    assert outcome.probs == pytest.approx([1 / len(kept)] * 8)
    assert set(outcome.ids) <= set(kept.tolist()) and max(outcome.ids) >= 4


@pytest.mark.parametrize("name", ["plain", "everything"])
def test_a_row_has_the_same_bits_at_every_width(name: str) -> None:
    """Row r of a wide pass and the only row of a pass at its place: same choice, same bits of its probability."""
    count = ROWS if name == "plain" or not INTERPRETED else 6
    card, logits = Card(150, block=128), normal(21, count, 150)
    history = np.random.default_rng(1).integers(0, 150, 30).tolist()
    drafted = np.random.default_rng(2).integers(0, 150, count - 1).tolist()
    card.choice.configure(SETTINGS[name], SEED, history)
    card.begin(29, [history[-1], *drafted])
    wide = card.judge(logits)
    for rows in (1, 4):
        card.choice.configure(SETTINGS[name], SEED, history)
        card.begin(29, [history[-1], *drafted])
        narrow = card.judge(logits[:rows])
        assert narrow.ids == wide.ids[:rows]
        assert narrow.probs == wide.probs[:rows] and narrow.judged == wide.judged[: rows - 1]
    for row in (3, count - 1):
        before = history + drafted[:row]
        card.choice.configure(SETTINGS[name], SEED, before)
        card.begin(len(before) - 1, before[-1:])
        alone = card.judge(logits[row : row + 1])
        assert (alone.ids, alone.probs) == (wide.ids[row : row + 1], wide.probs[row : row + 1])


@pytest.mark.parametrize("agreeing", [0, 1, 3, 4])
def test_judging_is_accept(agreeing: int) -> None:
    settings, logits, history = SETTINGS["everything"], normal(31, 5, 120, 2.0), [5, 17, 5, 99, 3]
    sampler = Sampler(settings, 120, SEED)
    drafted: list[int] = []
    for r in range(4):
        own = sampler.choose(logits[r : r + 1], len(history) + r, history + drafted).ids[0]
        drafted.append(own if r < agreeing else (own + 1) % 120)
    card = Card(120, block=128)
    card.choice.configure(settings, SEED, history)
    card.begin(4, [3, *drafted])
    outcome = card.judge(logits)
    choice = sampler.choose(logits, 5, history, drafted)
    assert compare(outcome, choice, logits, settings, history, drafted, 120) == 0
    expected = accept(drafted, choice.ids)
    assert (
        (outcome.accepted, outcome.token) == (expected.accepted, expected.next_id) == (agreeing, choice.ids[agreeing])
    )
    assert (outcome.position, outcome.cursor) == (4 + agreeing + 1, 0)


def test_a_reply_in_cycles_is_the_plain_reply() -> None:
    """Drafting, judging and marking what was emitted go on from state to state without the host."""
    settings, vocabulary = Sampling(temperature=1.0, top_k=9, repetition_penalty=1.5), 24
    table = normal(41, vocabulary, vocabulary, 1.5)
    noisy = table + normal(42, vocabulary, vocabulary, 0.4)
    sampler, expected = Sampler(settings, vocabulary, SEED), [1, 2, 3]
    while len(expected) < 18:
        expected += sampler.choose(table[expected[-1:]], len(expected), expected).ids
    card, ids, accepted = Card(vocabulary, block=32), [1, 2, 3], 0
    card.choice.configure(settings, SEED, ids)
    card.begin(2, [3])
    while len(ids) < 13:
        block, twin = [ids[-1]], Sampler(settings, vocabulary, SEED)
        for _ in range(3):
            host = twin.propose(noisy[block[-1]], len(ids) + len(block) - 1, ids, block[1:])
            token, probability = card.propose(noisy[block[-1]])
            assert (token, pytest.approx(probability, rel=1e-4)) == host
            block.append(token)
        outcome = card.judge(table[block])
        ids += [*block[1 : 1 + outcome.accepted], outcome.token]
        accepted += outcome.accepted
        assert outcome.position == len(ids) - 1
    assert ids == expected[: len(ids)]
    assert accepted > 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["plain", "everything", "greedy"])
def test_a_row_of_no_use_is_reported_and_harms_no_other(name: str, bad: float) -> None:
    card, logits = Card(100, block=128), normal(51, 4, 100)
    sound = logits.copy()
    logits[1, 70] = bad
    logits[2] = -np.inf
    history = [1, 2, 3]
    card.choice.configure(SETTINGS[name], SEED, history)
    card.begin(2, [3, 4, 5, 6])
    outcome = card.judge(logits)
    card.choice.configure(SETTINGS[name], SEED, history)
    card.begin(2, [3, 4, 5, 6])
    expected = card.judge(sound)
    assert [np.isnan(p) for p in outcome.probs] == [False, True, True, False]
    assert outcome.ids[1:3] == [0, 0]
    assert [outcome.ids[r] for r in (0, 3)] == [expected.ids[r] for r in (0, 3)]
    assert [outcome.probs[r] for r in (0, 3)] == [expected.probs[r] for r in (0, 3)]


def test_settings_and_seed_are_read_at_launch() -> None:
    """One object serves reply after reply; an earlier reply's settings, seed and seen ids are gone."""
    card, logits = Card(90, block=128), normal(61, 2, 90)
    for name, seed in (("everything", 1), ("plain", 2), ("greedy-penalty", 3), ("top-k", 2**63 - 1)):
        assert check(card, SETTINGS[name], logits, allowed=90, seed=seed, start=10) == 0


def test_a_vocabulary_too_large_to_sum_is_refused() -> None:
    state = torch.zeros(judge.STATE_SIZE, dtype=torch.int32)
    with pytest.raises(ValueError, match="600000 tokens is too large"):
        SampledChoice(state, state.view(torch.float32), torch.zeros(1, 1).expand(1, 600_000))
