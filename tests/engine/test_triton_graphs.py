"""On a card: captured steps replay what a launch computes, hand their state on, and speculation changes no bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from builders import byte_tokenizer, tiny_llama
from engine.engine import Engine
from engine.kernels.triton import judge
from engine.model.decode_graphs import DecodeGraphs
from engine.recipe import Recipe
from engine.records import StopReason
from engine.sampling.accept import accept
from engine_rig import no_end_tokens, random_prompts, reply, request
from step_rig import VOCABULARY, Step, make_step, small_model
from triton_rig import DTYPES

pytestmark = pytest.mark.gpu

IDS = np.random.default_rng(6).integers(0, VOCABULARY, 400).tolist()
SKIPPING = Recipe(weight_bits=16, skipped_attention=(1,), skipped_mlp=(2,))


def captured(step: Step) -> DecodeGraphs:
    graphs = DecodeGraphs(step.kernels, step.buffers, lambda done, total: None, siblings=True)
    graphs.read_prompts_with(step.prompt_kernels, step.prompt_buffers)
    attention, mlp, report = SKIPPING.skipped_attention, SKIPPING.skipped_mlp, step.buffers.report
    graphs.use_draft(
        lambda rows, choice: step.kernels.draft(attention, mlp, report, choice), 1, lambda done, total: None
    )
    return graphs


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_replays_equal_launches_at_every_width_and_position(dtype: torch.dtype, tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, dtype, layers=3), capacity=400)
    graphs = captured(step)
    for first in range(0, 320, 64):
        graphs.read_prompt(first, IDS[first : first + 64])
    graphs.synchronize()
    for position in (0, 1, 100, 120, 127, 128, 129, 300):
        whole = step.full(position, IDS[position : position + 16]).cpu()
        assert whole.isfinite().all()
        for rows in range(1, 17):
            block = IDS[position : position + rows]
            assert torch.equal(step.full(position, block).cpu(), whole[:rows]), (position, rows)
            torch.cuda.synchronize()
            graphs.begin(position, block)
            graphs.run_full(rows)
            assert torch.equal(graphs.logits(rows), whole[:rows]), (position, rows)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_twenty_cycles_hand_their_state_on_without_the_host(dtype: torch.dtype, tmp_path: Path) -> None:
    """Blocks of every width, one after the other, beside a simulation by single launches that the host leads."""
    folder = small_model(tmp_path, dtype, layers=3)
    step, graphs = make_step(folder), captured(make_step(folder))
    step.prompt(0, IDS[:64])
    torch.cuda.synchronize()
    graphs.read_prompt(0, IDS[:64])
    graphs.synchronize()
    position, token, accepted, tested = 20, IDS[20], 0, 0
    graphs.begin(position, [token])
    for cycle in range(20):
        gamma = cycle % 6
        made = [graphs.draft(i, ()).ids[0] for i in range(gamma)]
        result = graphs.judge(made, gamma, ())
        step.begin(position, [token])
        for _ in range(gamma):
            step.draft(SKIPPING)
        drafted = step.buffers.state[judge.TOKENS + 1 : judge.TOKENS + 1 + gamma].tolist()
        chosen = step.full(position, [token, *drafted]).argmax(1).tolist()
        outcome = accept(drafted, chosen)
        assert (made, list(result.chosen), result.accepted) == (drafted, chosen, outcome.accepted)
        position, token = position + outcome.accepted + 1, outcome.next_id
        accepted, tested = accepted + outcome.accepted, tested + outcome.tested
    assert 0 < accepted < tested, "the test must see both right and wrong proposals"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_siblings_change_no_bit_of_the_chain_and_have_those_of_the_chain(dtype: torch.dtype, tmp_path: Path) -> None:
    """At every width and at positions around the splits of attention; the kernel with siblings is another binary."""
    step = make_step(small_model(tmp_path, dtype, layers=3), capacity=400)
    graphs = captured(step)
    for first in range(0, 320, 64):
        graphs.read_prompt(first, IDS[first : first + 64])
    graphs.synchronize()
    for position in (0, 100, 120, 125, 127, 128, 300):
        for chain in (2, 5, 9):
            block = IDS[position : position + chain]
            plain = step.full(position, block).cpu()
            siblings = [(place, IDS[place + 7]) for place in range(min(chain - 1, 3))]
            alone = [step.full(position, [*block[: place + 1], token])[-1].cpu() for place, token in siblings]
            torch.cuda.synchronize()
            graphs.begin(position, block)
            result = graphs.judge(block[1:], chain - 1, siblings)
            logits = graphs.logits(chain + len(siblings))
            assert torch.equal(logits[:chain], plain), (position, chain)
            assert all(map(torch.equal, logits[chain:], alone)), (position, chain)
            assert list(result.chosen) == logits.argmax(1).tolist()


@contextmanager
def card_engine(folder: Path, dtype: torch.dtype, *, talks: bool) -> Iterator[Engine]:
    """A model of six layers on the card, in captured graphs. talks: with a tokenizer, which brings end tokens."""
    name = str(dtype).removeprefix("torch.")
    options = {"layers": 6, "hidden": 128, "heads": 4, "kv_heads": 2, "positions": 4096, "std": 0.1}
    model = no_end_tokens(tiny_llama(folder, dtype=name, **options))
    if talks:
        byte_tokenizer(model, eos="<pad>")
    engine = Engine()
    try:
        info = engine.load(str(model), context=2048, device="cuda")
        assert info.kernels.startswith("Triton graphs")
        yield engine
    finally:
        engine.close()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_speculation_proves_exact_over_two_thousand_tokens(dtype: torch.dtype, tmp_path: Path) -> None:
    """Every token's id and logits, bit for bit, prefix reuse included; passes are read back one by one."""
    with card_engine(tmp_path, dtype, talks=True) as engine:
        report = engine.prove(2000)
    assert report.difference is None
    assert report.tokens >= 2000
    assert all(result.accepted and result.reused_tokens for result in report.results)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_replies_made_wholly_on_the_card_are_the_plain_ones(dtype: torch.dtype, tmp_path: Path) -> None:
    """The card's own cycles, with a prefix reused from reply to reply and another draft each time."""
    recipes = (
        Recipe(weight_bits=16, skipped_attention=(2,)),
        Recipe(weight_bits=4),
        Recipe(weight_bits=16, skipped_mlp=(1, 4)),
        Recipe(weight_bits=4, skipped_mlp=(3,), reduced_vocabulary=120, kv_window=64),
    )
    with card_engine(tmp_path, dtype, talks=False) as engine:
        accepted = tested = total = 0
        for prompt in random_prompts(3, 290, seed=8, longest=150):
            for turn in range(8):
                engine.forget()
                plain = reply(engine, request(prompt, 90, plain=True))
                engine.forget()
                reply(engine, request(prompt[:-1] or prompt, 1, plain=True))
                made = reply(engine, request(prompt, 90, gamma=turn * 2 + 1, recipe=recipes[turn % 4]))
                assert made.ids == plain.ids, (len(prompt), turn)
                assert len(prompt) < 3 or made.finished.reused_tokens > 0
                accepted += sum(record.accepted for record in made.records)
                tested += sum(record.tested for record in made.records)
                total += len(made.ids)
                prompt = prompt + made.ids
        assert total >= 2000 and 0 < accepted < tested


def test_siblings_and_look_ups_are_taken_and_change_nothing(tmp_path: Path) -> None:
    """A prompt that repeats itself, four bits and automatic lengths: every way of speculating is used."""
    with card_engine(tmp_path, torch.bfloat16, talks=False) as engine:
        taken = looked_up = 0
        for seed in range(6):
            (once,) = random_prompts(1, 290, seed=seed, longest=40)
            prompt = (once * 4)[:120]
            plain = reply(engine, request(prompt, 200, plain=True))
            made = reply(engine, request(prompt, 200, recipe=Recipe(weight_bits=4)))
            assert made.ids == plain.ids
            taken += sum(sibling.taken for record in made.records for sibling in record.siblings)
            looked_up += sum(record.looked_up for record in made.records)
    assert looked_up, "no look-up was tried"
    print("siblings taken:", taken, "looked up:", looked_up)


@pytest.mark.parametrize("plain", [True, False])
def test_a_nan_ends_the_reply_and_names_its_layer(plain: bool, tmp_path: Path) -> None:
    with card_engine(tmp_path, torch.bfloat16, talks=False) as engine:
        assert engine._loaded is not None
        engine._loaded.runner._weights["model.layers.4.mlp.down_proj.weight"][3] = float("nan")
        finished = reply(engine, request(IDS[:70], 20, gamma=None if plain else 4, plain=plain)).finished
    assert finished.reason is StopReason.FAILED
    assert finished.message is not None and "NaN in layer 4's MLP, for the token at position 70:" in finished.message
