"""Rivals of a token: the figures of its record, what asking costs the KV cache (nothing), and their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from builders import byte_tokenizer, tiny_llama
from engine.engine import Engine
from engine.errors import BadSetting, EngineBusy, NoModel, PromptTooLong
from engine.find_candidates import agreement, best, law, rank
from engine.sampling.noise import Noise
from engine.sampling.sampler import Sampler
from engine.settings import Sampling
from engine_rig import cache_rows, loaded_engine, no_end_tokens, random_prompts, reply, request, same_bits

PROMPT = random_prompts(1, 290, seed=5)[0]
HOT = Sampling(temperature=1.0, top_k=30, top_p=0.95, repetition_penalty=1.1, seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return no_end_tokens(tiny_llama(tmp_path_factory.mktemp("model"), layers=3, std=0.25))


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with loaded_engine(folder) as made:
        yield made


@pytest.fixture
def spoken(tmp_path: Path) -> Iterator[Engine]:
    """An engine whose model has a tokenizer of bytes."""
    with loaded_engine(byte_tokenizer(tiny_llama(tmp_path, std=0.25))) as made:
        yield made


@pytest.mark.parametrize("sampling", [Sampling(), HOT], ids=["greedy", "sampled"])
def test_figures_are_those_of_the_cycle_that_made_the_token(engine: Engine, sampling: Sampling) -> None:
    wanted = request(PROMPT, 40, gamma=4, sampling=sampling)
    made = reply(engine, wanted)
    before: list[int] = []
    seen = set()
    for record in made.records:
        for place, token in enumerate(record.emitted_ids):
            asked = replace(wanted, reply_prefix_ids=(*before, *record.emitted_ids[:place]))
            drafted = place if place <= record.agreed else record.agreed
            found = engine.candidates(asked, token, drafted=drafted)
            assert found is not None
            assert found.token.id == token
            if place < record.agreed:
                full, draft = record.full_probs[place], record.drafted_probs[place]
                assert found.token.draft_prob == pytest.approx(draft, abs=2e-3)
                seen.add("accepted")
            else:
                assert record.next_prob is not None
                full = record.next_prob
                seen.add("own")
            assert found.token.full_prob == pytest.approx(full, abs=1e-5)
            if sampling.greedy:
                assert found.full_rank == 1 and found.full[0].id == token
        before += record.emitted_ids
    assert seen == {"accepted", "own"}


def test_of_a_rejected_guess_both_ranks_are_told(engine: Engine) -> None:
    wanted = request(PROMPT, 40, gamma=4)
    made = reply(engine, wanted)
    before: list[int] = []
    rejected = 0
    for record in made.records:
        if record.rejected_ids and len(record.full_probs) > record.agreed:
            asked = replace(wanted, reply_prefix_ids=(*before, *record.drafted_ids[: record.agreed]))
            found = engine.candidates(asked, record.rejected_ids[0], drafted=record.agreed)
            assert found is not None
            assert found.draft_rank == 1 and found.draft[0].id == record.rejected_ids[0]
            assert found.full_rank is not None and found.full_rank > 1
            assert found.token.full_prob == pytest.approx(record.full_probs[record.agreed], abs=1e-5)
            assert found.accept == 0.0
            rejected += 1
        before += record.emitted_ids
    assert rejected


def test_asking_leaves_every_row_of_the_cache_and_the_next_reply_as_they_were(engine: Engine) -> None:
    wanted = request(PROMPT, 40, gamma=4)
    made = reply(engine, wanted)
    rows = len(PROMPT) + len(made.ids) - 1
    before = cache_rows(engine, rows)
    found = engine.candidates(replace(wanted, reply_prefix_ids=tuple(made.ids[:20])), made.ids[20], drafted=3)
    assert found is not None and found.read == 0, "nothing is read again"
    assert same_bits(before, cache_rows(engine, rows))
    longer = reply(engine, request([*PROMPT, *made.ids], 20, gamma=4))
    assert longer.finished.reused_tokens == rows
    with loaded_engine_of(engine) as fresh:
        assert longer.ids == reply(fresh, request([*PROMPT, *made.ids], 20, plain=True)).ids


def loaded_engine_of(engine: Engine):  # type: ignore[no-untyped-def]
    assert engine.info is not None
    return loaded_engine(Path(engine.info.path))


def test_what_the_cache_lost_is_read_again(engine: Engine) -> None:
    wanted = request(PROMPT, 40, gamma=4)
    made = reply(engine, wanted)
    asked = replace(wanted, reply_prefix_ids=tuple(made.ids[:20]))
    kept = engine.candidates(asked, made.ids[20])
    engine.forget()
    lost = engine.candidates(asked, made.ids[20])
    assert kept is not None and lost is not None
    assert lost.read == len(PROMPT) + 19
    assert (lost.full, lost.full_rank) == (kept.full, kept.full_rank)


def test_a_cancelled_question_has_no_answer_and_keeps_only_what_it_read(engine: Engine) -> None:
    prompt = random_prompts(1, 290, seed=8)[0] * 6
    calls = count()
    asked = request(prompt[:200])
    assert engine.candidates(asked, 5, cancelled=lambda: next(calls) >= 1) is None
    assert engine.candidates(asked, 5, cancelled=lambda: True) is None
    with loaded_engine_of(engine) as fresh:
        assert reply(engine, asked).ids == reply(fresh, asked).ids


def test_pieces_are_made_for_display(spoken: Engine) -> None:
    found = spoken.candidates(request(PROMPT), 65)
    assert found is not None and spoken._loaded is not None and spoken._loaded.tokenizer is not None
    piece = spoken._loaded.tokenizer.piece
    assert found.token.piece == piece(65) != ""
    assert all(rival.piece == piece(rival.id) for rival in (*found.full, *found.draft))
    assert len(found.full) == len(found.draft) == 5


def test_bad_questions_raise_before_any_work(engine: Engine) -> None:
    with pytest.raises(BadSetting, match="vocabulary"):
        engine.candidates(request(PROMPT), 10**6)
    with pytest.raises(BadSetting, match="vocabulary"):
        engine.candidates(replace(request(PROMPT), reply_prefix_ids=(10**6,)), 5)
    with pytest.raises(PromptTooLong):
        engine.candidates(request(PROMPT * 100), 5)
    with pytest.raises(NoModel):
        Engine().candidates(request(PROMPT), 5)


def test_during_a_reply_the_engine_is_busy(engine: Engine) -> None:
    events = engine.generate(request(PROMPT))
    next(events)
    with pytest.raises(EngineBusy):
        engine.candidates(request(PROMPT), 5)
    events.close()  # type: ignore[attr-defined]


@pytest.mark.gpu
@pytest.mark.parametrize("sampling", [Sampling(), HOT], ids=["greedy", "sampled"])
def test_on_a_card_figures_fit_and_the_next_reply_is_as_without_a_look(tmp_path: Path, sampling: Sampling) -> None:
    options = {"layers": 6, "hidden": 128, "heads": 4, "kv_heads": 2, "positions": 4096, "std": 0.1}
    folder = no_end_tokens(tiny_llama(tmp_path, dtype="bfloat16", **options))
    engine = Engine()
    try:
        engine.load(str(folder), context=2048, device="cuda")
        wanted = request(PROMPT, 60, sampling=sampling)
        made = reply(engine, wanted)
        before: list[int] = []
        for record in made.records:
            for place, token in enumerate(record.emitted_ids):
                asked = replace(wanted, reply_prefix_ids=(*before, *record.emitted_ids[:place]))
                found = engine.candidates(asked, token, drafted=min(place, record.agreed))
                assert found is not None and found.read == 0
                own = place >= record.agreed
                full = record.next_prob if own and record.taken is None else found.token.full_prob
                full = record.full_probs[place] if not own else full
                assert found.token.full_prob == pytest.approx(full, abs=1e-3)
            before += record.emitted_ids
        rows = len(PROMPT) + len(made.ids) - 1
        longer = reply(engine, request([*PROMPT, *made.ids], 40, sampling=sampling))
        assert longer.finished.reused_tokens == rows
        engine.forget()
        assert longer.ids == reply(engine, request([*PROMPT, *made.ids], 40, plain=True, sampling=sampling)).ids
    finally:
        engine.close()


# The parts


def test_best_and_rank_agree_on_ties() -> None:
    probs = np.array([0.1, 0.3, 0.1, 0.3, 0.0, 0.2], np.float32)
    assert best(probs) == (1, 3, 5, 0, 2)
    assert [rank(probs, i) for i in range(6)] == [4, 1, 5, 2, None, 3]
    assert best(np.array([0.0, 1.0], np.float32)) == (1,)


def test_greedy_law_is_the_softmax_after_the_penalty() -> None:
    logits = np.array([2.0, 1.0, 0.0], np.float32)
    plain = law(logits, Sampling(), ())
    assert plain == pytest.approx(np.exp(logits) / np.exp(logits).sum())
    penalised = law(logits, Sampling(repetition_penalty=2.0), (0,))
    assert penalised[0] == pytest.approx(penalised[1])


def test_agreement_is_the_share_of_races_that_both_win() -> None:
    random = np.random.default_rng(0)
    full, draft = random.dirichlet(np.full(12, 0.4), 2).astype(np.float32)
    full[3], draft[7] = 0.0, 0.0
    full, draft = full / full.sum(), draft / draft.sum()
    slow = sum(
        1 / sum(max(full[j] / full[i], draft[j] / draft[i]) for j in range(12))
        for i in range(12)
        if full[i] > 0 and draft[i] > 0
    )
    chance = agreement(full, draft, HOT)
    assert chance == pytest.approx(slow, rel=1e-5)
    noise = Noise(7, 12)
    races = [noise.exponentials(position, None) for position in range(4000)]
    same = sum(int((full / race).argmax() == (draft / race).argmax()) for race in races)
    assert same / 4000 == pytest.approx(chance, abs=0.03)


def test_greedy_agreement_is_whether_the_best_are_the_same() -> None:
    first, second = np.array([0.6, 0.4], np.float32), np.array([0.4, 0.6], np.float32)
    assert agreement(first, first, Sampling()) == 1.0
    assert agreement(first, second, Sampling()) == 0.0
    assert agreement(first, first, HOT) == pytest.approx(1.0)


def test_probabilities_are_those_that_the_sampler_draws_from() -> None:
    logits = np.random.default_rng(1).normal(size=50).astype(np.float32) * 3
    choice = Sampler(HOT, 50).choose(logits[None], 9, (1, 2, 3))
    mine = law(logits, HOT, (1, 2, 3))
    assert all(choice.probability_of(0, i) == pytest.approx(mine[i], abs=1e-6) for i in range(50))
