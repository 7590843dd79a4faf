"""Sampling is exact, reproducible and the same with and without a draft, whatever the draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

from engine.errors import NumericFault
from engine.sampling.accept import accept
from engine.sampling.distribution import process
from engine.sampling.sampler import Sampler
from engine.settings import Sampling

VOCABULARY = 5
CHANCE = 1e-4  # p-value below which a difference counts as real; some forty are taken here
Model = Callable[[list[int]], np.ndarray]


def model(seed: int, vocabulary: int = VOCABULARY, scale: float = 1.5) -> Model:
    """A tiny language model: logits [vocabulary] that depend on the last two tokens."""
    table = np.random.default_rng(seed).standard_normal((vocabulary, vocabulary, vocabulary)).astype(np.float32) * scale
    return lambda ids: table[ids[-2], ids[-1]]


FULL = model(0)


def good_draft(ids: list[int]) -> np.ndarray:
    return FULL(ids) + 0.3 * model(1)(ids)


def bad_draft(ids: list[int]) -> np.ndarray:
    return model(2)(ids)


def adversarial_draft(ids: list[int]) -> np.ndarray:
    return -3 * FULL(ids)


DRAFTS = {"good": good_draft, "bad": bad_draft, "adversarial": adversarial_draft, "itself": FULL}


def plain(full: Model, sampler: Sampler, prompt: list[int], tokens: int) -> list[int]:
    ids = list(prompt)
    while len(ids) < len(prompt) + tokens:
        ids += sampler.choose(full(ids)[None], len(ids), ids).ids
    return ids[len(prompt) :]


def speculative(
    full: Model, draft: Model, sampler: Sampler, prompt: list[int], tokens: int, gammas: Callable[[], int]
) -> tuple[list[int], int]:
    """The engine's loop in small: draft, verify in one call, accept. Also returns how many proposals were accepted."""
    ids, accepted = list(prompt), 0
    while len(ids) < len(prompt) + tokens:
        drafted: list[int] = []
        for _ in range(gammas()):
            token, probability = sampler.propose(draft(ids + drafted), len(ids) + len(drafted), ids, drafted)
            assert 0 < probability <= 1
            drafted.append(token)
        rows = np.stack([full(ids + drafted[:r]) for r in range(len(drafted) + 1)])
        outcome = accept(drafted, sampler.choose(rows, len(ids), ids, drafted).ids)
        ids += [*drafted[: outcome.accepted], outcome.next_id]
        accepted += outcome.accepted
    return ids[len(prompt) : len(prompt) + tokens], accepted


SETTINGS = [
    Sampling(temperature=1.0),
    Sampling(temperature=0.6, top_k=3),
    Sampling(temperature=1.4, top_p=0.8),
    Sampling(temperature=1.0, min_p=0.2, repetition_penalty=1.5),
]


def exact(settings: Sampling, prompt: list[int], tokens: int) -> dict[tuple[int, ...], float]:
    """Probability of every reply of this length under the full model."""
    law = {}
    for reply in product(range(VOCABULARY), repeat=tokens):
        ids, probability = list(prompt), 1.0
        for token in reply:
            probability *= float(process(FULL(ids), settings, ids)[token])
            ids.append(token)
        if probability > 0:
            law[reply] = probability
    return law


def chi_square(counts: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> float:
    """p-value of the counts; replies expected less than 5 times are pooled."""
    n = sum(counts.values())
    assert not set(counts) - set(law), "a reply of probability 0 was sampled"
    large = [reply for reply, p in law.items() if p * n >= 5]
    observed = [counts[reply] for reply in large]
    expected = [law[reply] * n for reply in large]
    rest = n - sum(expected)
    if rest > 5:
        observed.append(n - sum(observed))
        expected.append(rest)
    return float(stats.chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", DRAFTS)
def test_speculative_replies_follow_the_full_model_exactly(settings: Sampling, name: str) -> None:
    prompt, tokens, runs = [1, 3], 3, 600
    counts: Counter[tuple[int, ...]] = Counter()
    first = 10_000 * list(DRAFTS).index(name)  # other seeds for each draft, or all would be one and the same sample
    for seed in range(first, first + runs):
        sampler = Sampler(settings, VOCABULARY, seed)
        counts[tuple(speculative(FULL, DRAFTS[name], sampler, prompt, tokens, lambda: 2)[0])] += 1
    assert chi_square(counts, exact(settings, prompt, tokens)) > CHANCE


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_one_seed_over_many_positions_follows_the_distribution(settings: Sampling) -> None:
    random = np.random.default_rng(3)
    row = random.standard_normal(40).astype(np.float32) * 2
    sampler = Sampler(settings, 40, 17)
    rows = np.repeat(row[None], 16, axis=0)
    counts = np.bincount(
        [i for start in range(0, 8000, 16) for i in sampler.choose(rows[:16], start, [2, 9], [2] * 15).ids],
        minlength=40,
    )
    law = process(row, settings, [2, 9]).astype(np.float64)
    assert not counts[law == 0].any()
    law, counts = law[law > 0], counts[law > 0]
    rare = law * 8000 < 5
    observed = [*counts[~rare], *([counts[rare].sum()] if rare.any() else [])]
    expected = [*law[~rare] * 8000, *([law[rare].sum() * 8000] if rare.any() else [])]
    expected = np.array(expected) * 8000 / sum(expected)
    assert stats.chisquare(observed, expected).pvalue > CHANCE


def test_rare_tokens_of_a_large_vocabulary_come_as_often_as_they_should() -> None:
    vocabulary, draws = 50_000, 2000
    row = np.zeros(vocabulary, np.float32)
    row[0] = np.log(vocabulary)  # half the mass on one token, the other half in 50,000 equal crumbs
    sampler = Sampler(Sampling(temperature=1.0), vocabulary, 8)
    ids = np.array([sampler.choose(row[None], t, []).ids[0] for t in range(draws)])
    crumbs = ids[ids > 0]
    assert stats.binomtest(len(crumbs), draws, 0.5).pvalue > CHANCE
    assert stats.kstest(crumbs / vocabulary, "uniform").pvalue > CHANCE
    assert len(np.unique(crumbs)) > 0.97 * len(crumbs)


@pytest.mark.parametrize("settings", [Sampling(), *SETTINGS, Sampling(repetition_penalty=1.3)], ids=str)
@pytest.mark.parametrize("name", DRAFTS)
def test_same_seed_same_ids_whatever_the_draft_and_its_length(settings: Sampling, name: str) -> None:
    full, vocabulary = model(5, 12), 12
    drafts = {"good": lambda i: full(i) + 0.3 * model(6, 12)(i), "bad": model(7, 12), "itself": full}
    draft = drafts.get(name, lambda i: -3 * full(i))
    random = np.random.default_rng(1)
    for seed in (42, 43):
        expected = plain(full, Sampler(settings, vocabulary, seed), [3, 4, 5], 60)
        for gammas in (lambda: 1, lambda: 4, lambda: 15, lambda: int(random.integers(0, 9))):
            reply, accepted = speculative(full, draft, Sampler(settings, vocabulary, seed), [3, 4, 5], 60, gammas)
            assert reply == expected
            assert accepted >= 28 or name != "itself"


def test_seeds_reproduce_and_differ() -> None:
    settings = Sampling(temperature=1.0, seed=42)
    full = model(5, 12)
    first = Sampler(settings, 12)
    assert first.seed == 42
    reply = plain(full, first, [1, 2], 50)
    plain(full, Sampler(Sampling(temperature=1.0), 12), [3, 2], 20)  # an unrelated chat in between
    assert plain(full, Sampler(settings, 12), [1, 2], 50) == reply
    assert plain(full, Sampler(settings, 12, 43), [1, 2], 50) != reply
    unseeded = [Sampler(Sampling(temperature=1.0), 12) for _ in range(2)]
    assert unseeded[0].seed != unseeded[1].seed
    replies = [plain(full, s, [1, 2], 50) for s in unseeded]
    assert replies[0] != replies[1]
    again = Sampler(Sampling(temperature=1.0), 12, unseeded[0].seed)
    assert plain(full, again, [1, 2], 50) == replies[0], "the reported seed repeats the reply"


def test_reply_in_a_new_process_is_this_one() -> None:
    row = np.linspace(0, 2, 30, dtype=np.float32)
    sampler = Sampler(Sampling(temperature=1.0), 30, 42)
    ids = [sampler.choose(row[None], t, []).ids[0] for t in range(12)]
    assert ids == [29, 18, 22, 15, 23, 23, 27, 29, 18, 27, 29, 13], "what a seed stands for must never change"


@pytest.mark.parametrize(
    "settings",
    [
        Sampling(temperature=1e-6),
        Sampling(temperature=2e-5),  # just above what counts as greedy
        Sampling(temperature=1.0, top_k=1),
        Sampling(temperature=1.0, top_p=0.0),
        Sampling(temperature=1.0, top_p=1e-9),
        Sampling(temperature=1.0, min_p=1.0),
    ],
    ids=str,
)
def test_degenerate_settings_equal_greedy(settings: Sampling) -> None:
    full = model(8, 30)
    greedy = plain(full, Sampler(Sampling(), 30), [1, 2], 40)
    assert plain(full, Sampler(settings, 30, 5), [1, 2], 40) == greedy


def test_settings_that_keep_everything_change_nothing() -> None:
    full = model(8, 30)
    reference = plain(full, Sampler(Sampling(temperature=1.0), 30, 5), [1, 2], 40)
    keeps_all = Sampling(temperature=1.0, top_k=31, top_p=1.0, min_p=0.0)
    assert plain(full, Sampler(keeps_all, 30, 5), [1, 2], 40) == reference
    assert len(set(reference)) > 5


def test_greedy_takes_the_lowest_id_on_ties_and_reports_the_plain_softmax() -> None:
    row = np.array([[0.0, 2.0, 2.0, -np.inf]], np.float32)
    choice = Sampler(Sampling(), 4).choose(row, 0, [])
    total = 1 + 2 * np.exp(2)
    assert choice.ids == (1,)
    assert choice.probs[0] == pytest.approx(np.exp(2) / total, rel=1e-6)
    assert choice.probability_of(0, 0) == pytest.approx(1 / total, rel=1e-6)
    assert choice.probability_of(0, 3) == choice.probability_of(0, 4) == choice.probability_of(0, -1) == 0.0


def test_sampled_probabilities_are_those_of_the_processed_distribution() -> None:
    random = np.random.default_rng(5)
    for settings in SETTINGS:
        rows = random.standard_normal((3, 20)).astype(np.float32)
        history, drafted = [1, 2, 3], [4, 7]
        choice = Sampler(settings, 20, 1).choose(rows, 3, history, drafted)
        for r in range(3):
            law = process(rows[r], settings, history + drafted[:r])
            np.testing.assert_allclose([choice.probability_of(r, i) for i in range(20)], law, rtol=1e-6)
            assert choice.probs[r] == pytest.approx(law[choice.ids[r]], rel=1e-6)


@pytest.mark.parametrize("settings", [Sampling(), Sampling(temperature=10.0), Sampling(temperature=1.0, top_p=0.99)])
def test_padding_ids_are_never_chosen(settings: Sampling) -> None:
    rows = np.zeros((1, 64), np.float32)
    rows[0, 50:] = 9.0
    sampler = Sampler(settings, 64, 3, allowed_vocabulary=50)
    for t in range(200):
        choice = sampler.choose(rows, t, [])
        assert choice.ids[0] < 50
        assert choice.probability_of(0, 55) == 0.0


def test_penalty_history_may_grow_shrink_and_change() -> None:
    random = np.random.default_rng(6)
    settings = Sampling(repetition_penalty=1.8)
    sampler = Sampler(settings, 40)
    history: list[int] = []
    for step in range(120):
        match step % 10:
            case 7:
                history = history[: len(history) // 2]
            case 9:
                history = random.integers(0, 40, len(history)).tolist()
            case _:
                history = [*history, *random.integers(0, 45, 2).tolist()]
        drafted = random.integers(0, 40, 3).tolist()
        rows = (random.standard_normal((4, 40)) * 2).astype(np.float32)
        choice = sampler.choose(rows, len(history), history, drafted)
        expected = [process(rows[r], settings, history + drafted[:r]).argmax() for r in range(4)]
        assert list(choice.ids) == expected
        proposal, _ = sampler.propose(rows[3], len(history) + 3, history, drafted)
        assert proposal == expected[3]


def test_logits_are_not_changed_and_rows_need_their_drafts() -> None:
    rows = np.random.default_rng(7).standard_normal((2, 9)).astype(np.float32)
    before = rows.copy()
    sampler = Sampler(Sampling(temperature=1.0, top_k=4, top_p=0.9, repetition_penalty=1.2), 9, 1)
    sampler.choose(rows, 2, [1, 2], [3])
    assert np.array_equal(rows, before)
    with pytest.raises(ValueError, match="2 rows need 1 drafted"):
        sampler.choose(rows, 2, [1, 2])


@pytest.mark.parametrize("settings", [Sampling(), Sampling(temperature=1.0, top_p=0.9)])
def test_nan_logits_name_the_position(settings: Sampling) -> None:
    rows = np.zeros((2, 9), np.float32)
    rows[1, 4] = np.nan
    with pytest.raises(NumericFault, match="NaN for the token at position 8"):
        Sampler(settings, 9, 1).choose(rows, 7, [], [0])


@pytest.mark.parametrize("closeness", [0.05, 0.3, 1.0])
def test_acceptance_is_that_of_the_coupling(closeness: float) -> None:
    random = np.random.default_rng(9)
    row = random.standard_normal(30).astype(np.float32) * 2
    near = row + closeness * random.standard_normal(30).astype(np.float32)
    settings = Sampling(temperature=1.0)
    p, q = process(row, settings).astype(np.float64), process(near, settings).astype(np.float64)
    theory = sum(1 / np.maximum(p / p[i], q / q[i]).sum() for i in range(30))
    distance = np.abs(p - q).sum() / 2
    sampler = Sampler(settings, 30, 2)
    equal = sum(sampler.propose(row, t, [])[0] == sampler.propose(near, t, [])[0] for t in range(6000))
    assert stats.binomtest(equal, 6000, theory).pvalue > CHANCE
    assert (1 - distance) / (1 + distance) <= theory <= 1 - distance + 1e-9


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_judgement_is_the_choices_up_to_the_first_that_contradicts(settings: Sampling) -> None:
    rows = np.random.default_rng(6).standard_normal((5, 40)).astype(np.float32) * 3
    history = [1, 2, 3]
    drafted: list[int] = []
    for r in range(4):  # the tokens that will be chosen, one after the other
        drafted += Sampler(settings, 40, seed=5).choose(rows[: r + 1], 3, history, drafted).ids[-1:]
    whole = Sampler(settings, 40, seed=5).choose(rows, 3, history, drafted)
    assert list(whole.ids[:4]) == drafted
    judged = Sampler(settings, 40, seed=5).judge(rows, 3, history, drafted)
    assert (judged.ids, judged.probs) == (whole.ids, whole.probs)
    wrong = [*drafted[:2], (drafted[2] + 1) % 40, 0]
    short = Sampler(settings, 40, seed=5).judge(rows, 3, history, wrong)
    assert (short.ids, short.probs) == (whole.ids[:3], whole.probs[:3])
    assert short.probability_of(1, drafted[1]) == whole.probability_of(1, drafted[1])


def test_a_judgement_ends_before_a_row_that_is_no_number() -> None:
    rows = np.eye(3, 8, dtype=np.float32) * 9
    rows[1, 4] = np.nan
    assert Sampler(Sampling(), 8).judge(rows, 3, [], [0, 1]).ids == (0,)
    rows[0, 4] = np.inf
    assert Sampler(Sampling(), 8).judge(rows, 3, [], [0, 1]).ids == ()


@pytest.mark.parametrize("settings", SETTINGS)
def test_ranks_begin_with_the_proposal_and_go_on_with_what_would_come_without_it(settings: Sampling) -> None:
    sampler = Sampler(settings, 40, seed=8)
    for position in range(30):
        row = np.random.default_rng(position).standard_normal(40).astype(np.float32) * 2
        ranked = sampler.ranked(row, position, [3, 4], [5], 4)
        assert ranked[0] == sampler.propose(row, position, [3, 4], [5])
        assert len(ranked) <= 4 and len({token for token, _ in ranked}) == len(ranked)
        assert all(0 < prob <= 1 for _, prob in ranked)
        if settings.temperature == 0 or len(ranked) < 2 or settings.top_k or settings.top_p < 1 or settings.min_p:
            continue
        without = row.copy()
        without[ranked[0][0]] = -1e9
        assert sampler.propose(without, position, [3, 4], [5])[0] == ranked[1][0]


def test_greedy_ranks_are_by_logit_the_lower_id_first() -> None:
    row = np.array([0.0, 2.0, 5.0, 2.0, 2.0, -1.0], np.float32)
    assert [token for token, _ in Sampler(Sampling(), 6).ranked(row, 0, [], [], 3)] == [2, 1, 3]
    assert len(Sampler(Sampling(), 6, allowed_vocabulary=2).ranked(row, 0, [], [], 4)) == 2
    with pytest.raises(NumericFault):
        Sampler(Sampling(), 6).ranked(np.full(6, np.nan, np.float32), 0, [], [], 4)
