"""Parts of a model that take turns in slots: full passes give the bits they give with every part on the card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from builders import tiny_llama
from engine import budget_request
from engine.engine import Engine
from engine.errors import BadSetting, SpecularError
from engine.files.folder import open_folder
from engine.kernels import dispatch
from engine.kernels.triton import judge
from engine.kernels.triton.step import PROMPT_ROWS, StepKernels
from engine.kernels.triton.step_memory import FusedLayer, FusedModel, StepBuffers
from engine.kernels.triton.wide_choice import CHOSEN_PROBS, NEXT_PROBS, WIDE_ROWS
from engine.kernels.triton.wide_choice import IDS as IDS_ROW
from engine.model import card_steps
from engine.model.card_weights import CardWeights
from engine.model.decode_graphs import DecodeGraphs
from engine.model.wide_pass import WidePass
from engine.offload import part_store, pinned
from engine.offload.card_plan import CardPlan, CardPlanner
from engine.offload.demands import demands_of
from engine.offload.parts import Part, parts_of
from engine.offload.pinned import PinnedBuffer
from engine.offload.plan import Plan, Residency
from engine.offload.planner import minimum, whole
from engine.offload.rates import default_rates
from engine.offload.weight_stream import HostPart, WeightStream
from engine.records import CycleEvent
from engine.settings import Sampling
from engine_rig import no_end_tokens, random_prompts, reply, request
from step_rig import VOCABULARY, Step, make_step, small_model
from triton_rig import DEVICE, quiet

IDS = np.random.default_rng(11).integers(0, VOCABULARY, 64).tolist()


def plan_for(step: Step, streamed: Sequence[int], slots: int = 2) -> Plan:
    """A plan of a made step's model that streams the named parts."""
    entries = step.runner._weights
    parts = parts_of(step.runner.config, {name: t.numel() * t.element_size() for name, t in entries.items()})
    lies = tuple(Residency.STREAMED if part.index in streamed else Residency.RESIDENT for part in parts)
    largest = max((parts[index].nbytes for index in streamed), default=0)
    return Plan(0, parts, lies, slots, largest, 0, 0, 0, 0, 0, 0, 1.0, 1.0, 0.3, 4, 3.0)


def streamed_step(step: Step, streamed: Sequence[int], slots: int = 2) -> tuple[Step, WeightStream]:
    """The same model with parts taken out; what remains of them on the card is spoilt."""
    kernels = step.kernels
    model: FusedModel = kernels._model
    copies = replace(model, layers=tuple(map(_copied, model.layers)), output=model.output.clone())
    plan = plan_for(step, streamed, slots)
    weights = CardWeights(plan.parts, plan, DEVICE)
    placed, stream = weights.hold(copies), weights.stream
    assert stream is not None
    for number, layer in enumerate(copies.layers):
        for index, matrices in ((0, (layer.qkv, layer.output)), (1, (layer.gate_up, layer.down))):
            if 2 * number + index in streamed:
                for matrix in matrices:
                    matrix.fill_(float("nan"))
    config, tiles = step.runner.config, kernels._tiles
    positions = model.cosine.shape[0]
    buffers, prompt = (
        StepBuffers(config, tiles, positions, placed),
        StepBuffers(config, tiles, positions, placed, PROMPT_ROWS),
    )
    made = replace(
        step,
        buffers=buffers,
        kernels=StepKernels(config, placed, buffers, tiles, config.vocabulary, stream),
        prompt_buffers=prompt,
        prompt_kernels=StepKernels(config, placed, prompt, tiles, config.vocabulary, stream),
    )
    return made, stream


def _copied(layer: FusedLayer) -> FusedLayer:
    names = ("qkv", "output", "gate_up", "down")
    return replace(layer, **{name: getattr(layer, name).clone() for name in names})


@pytest.mark.parametrize(
    ("streamed", "slots"),
    [((1, 2, 3), 2), ((0, 1, 2, 3, 4), 2), ((0, 1, 2, 3, 4), 3), ((3,), 2), ((4,), 2), ((0, 2, 4), 2)],
    ids=str,
)
def test_passes_give_the_same_bits_with_parts_streamed(streamed: tuple[int, ...], slots: int, tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, torch.float16))
    expected = [step.full(0, IDS[:16]), step.full(16, IDS[16:19])]
    cache = step.cache(19)
    for layer in step.runner._cache:
        layer.zero_()
    made, stream = streamed_step(step, streamed, slots)
    for position, ids, logits in ((0, IDS[:16], expected[0]), (16, IDS[16:19], expected[1])):
        stream.wait()
        assert torch.equal(made.full(position, ids), logits)
        stream.prefetch()
    assert all(map(torch.equal, made.cache(19), cache))
    for layer in step.runner._cache:
        layer.zero_()
    stream.wait()
    made.prompt(0, IDS[:19])
    stream.prefetch()
    assert all(map(torch.equal, made.cache(19), cache)), "a prompt's pass streams too"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_wide_pass_chooses_what_passes_of_sixteen_rows_choose(dtype: torch.dtype, tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, dtype))
    config, kernels = step.runner.config, step.kernels
    model, tiles, positions = kernels._model, kernels._tiles, kernels._model.cosine.shape[0]
    expected: list[int] = []
    for first in range(0, 48, 16):
        step.full(first, IDS[first : first + 16])
        expected += step.buffers.state[judge.CHOSEN : judge.CHOSEN + 16].tolist()
    cache = step.cache(48)
    logits = step.full(32, IDS[32:48])
    for layer in step.runner._cache:
        layer.zero_()
    wide = StepBuffers(config, tiles, positions, model, WIDE_ROWS)
    wide.state[judge.TOKENS : judge.TOKENS + 48] = torch.tensor(IDS[:48], dtype=torch.int32, device=DEVICE)
    found = torch.zeros(3, WIDE_ROWS, dtype=torch.int32, device=DEVICE)
    with quiet():
        StepKernels(config, model, wide, tiles, config.vocabulary).wide(found)
    assert found[IDS_ROW].tolist() == expected
    assert all(map(torch.equal, step.cache(48), cache)), "and its rows of the cache have the same bits"
    probs = logits.softmax(-1)
    chosen, proposed = (found[row].view(torch.float32) for row in (CHOSEN_PROBS, NEXT_PROBS))
    own = probs[torch.arange(16), torch.tensor(expected[32:])]
    assert torch.allclose(chosen[32:].cpu(), own.cpu(), rtol=1e-4)
    following = probs[torch.arange(15), torch.tensor(IDS[33:48])]
    assert torch.allclose(proposed[32:47].cpu(), following.cpu(), rtol=1e-4, atol=1e-7)


@pytest.mark.gpu
def test_wide_judgements_are_those_of_plain_steps(tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, torch.bfloat16, layers=4), capacity=400)
    made, stream = streamed_step(step, (0, 1, 3, 4, 5, 8))
    graphs = DecodeGraphs(made.kernels, made.buffers, lambda done, total: None, weights=stream)
    config, tiles = step.runner.config, made.kernels._tiles
    wide = StepBuffers(config, tiles, made.kernels._model.cosine.shape[0], made.kernels._model, WIDE_ROWS)
    kernels = StepKernels(config, made.kernels._model, wide, tiles, config.vocabulary, stream)
    wide_pass = WidePass(graphs, kernels, wide)
    ids = IDS[:20]
    graphs.begin(0, IDS[:16])
    graphs.run_full(16)
    graphs.begin(16, IDS[16:20])
    graphs.run_full(4)
    plain: list[int] = []
    for _ in range(60):
        graphs.begin(len(ids) - 1, ids[-1:])
        plain.append(graphs.judge((), 0, ()).chosen[0])
        ids.append(plain[-1])
    for right in (0, 5, 30, 46):
        chain = [*plain[:right], plain[right] ^ 1, *plain[right + 1 : 47]][:47]
        judged = wide_pass.judge(19, (IDS[19], *chain))
        assert judged.accepted == right
        assert judged.chosen[: right + 1] == tuple(plain[: right + 1])
    assert wide_pass.judge(19, (IDS[19], *plain[:47])).accepted == 47


@pytest.mark.gpu
@pytest.mark.parametrize("slots", [2, 3])
def test_captured_passes_stream_while_the_host_does_nothing(slots: int, tmp_path: Path) -> None:
    step = make_step(small_model(tmp_path, torch.bfloat16, layers=6), capacity=400)
    made, stream = streamed_step(step, (0, 1, 3, 4, 5, 8, 10, 12), slots)
    resident = DecodeGraphs(step.kernels, step.buffers, lambda done, total: None, siblings=True)
    streaming = DecodeGraphs(made.kernels, made.buffers, lambda done, total: None, siblings=True, weights=stream)
    streaming.read_prompts_with(made.prompt_kernels, made.prompt_buffers)
    for position in (0, 5, 16, 130, 300):
        for rows in range(1, 17):
            resident.begin(position, IDS[:rows])
            resident.run_full(rows)
            expected = resident.logits(rows)
            streaming.begin(position, IDS[:rows])
            streaming.run_full(rows)
            assert torch.equal(streaming.logits(rows), expected), (position, rows)
    for turn in range(20):
        streaming.read_prompt(0, IDS[:48])
        streaming.begin(48, IDS[:3])
        judged = streaming.judge(IDS[1:3], 0, ())
        resident.begin(48, IDS[:3])
        assert judged == resident.judge(IDS[1:3], 0, ()), turn


def test_slots_are_filled_in_turn_and_never_while_they_are_read() -> None:
    data = {index: torch.full((8 + index,), index + 1, dtype=torch.uint8) for index in (1, 3, 4, 7)}
    parts = [HostPart(index, 8 + index, ((0, bytes_[:5]), (5, bytes_[5:]))) for index, bytes_ in data.items()]
    stream = WeightStream(parts, 2, DEVICE)
    assert stream.pass_bytes == sum(8 + index for index in (1, 3, 4, 7))
    for _ in range(2):
        stream.wait()
        stream.begin()
        for index in range(8):
            assert stream.before(index) is (index in (1, 3, 4, 7))
            if index in (1, 3, 4, 7):
                assert stream.slot(index).tolist() == [index + 1] * (8 + index)
            stream.after(index)
        stream.end()
        stream.prefetch()
    assert stream.brought_bytes == 2 * stream.pass_bytes
    assert stream.slot(1).data_ptr() == stream.slot(4).data_ptr() != stream.slot(3).data_ptr()


def test_host_memory_is_as_large_as_was_asked_and_checked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = PinnedBuffer(1000)
    assert len(buffer.data) == 1000
    buffer.close()
    monkeypatch.setattr(pinned.psutil, "virtual_memory", lambda: type("Free", (), {"available": 2_000_000_000}))
    with pytest.raises(SpecularError, match=r"Streaming needs 1\.5 GB of RAM, but only 2\.0 GB are free"):
        PinnedBuffer(1_500_000_000)


def test_parts_are_counted_once() -> None:
    step_parts = [Part(0, 0, "attention", ("a",), 5), Part(1, 0, "mlp", ("b",), 7), Part(2, None, "output", ("c",), 9)]
    lies = (Residency.STREAMED, Residency.RESIDENT, Residency.STREAMED)
    plan = Plan(100, tuple(step_parts), lies, 2, 9, 10, 20, 5, 3, 2, 0, 4.0, 4.4, 1.0, 4, 3.0)
    assert plan.peak == 10 + 7 + 18 + 20 + 5 + 3
    assert [part.name for part in plan.streamed] == ["layer 0's attention", "the output matrix"]
    assert plan.speculative_seconds == pytest.approx(2.8) and plan.speed_up == pytest.approx(4 / 2.8)


def plan_next_loads(
    folder: Path, monkeypatch: pytest.MonkeyPatch, streamed: Sequence[int], computed: Sequence[int] = ()
) -> None:
    """Let loads on the card stream the named parts of the folder's model, and have others computed by the CPU."""
    opened = open_folder(folder)
    parts = parts_of(opened.config, {name: entry.nbytes for name, entry in opened.entries.items()})
    opened.close()
    named = dict.fromkeys(streamed, Residency.STREAMED) | dict.fromkeys(computed, Residency.HOST)
    lies = tuple(named.get(part.index, Residency.RESIDENT) for part in parts)
    slots, largest = (2, max(part.nbytes for part in parts)) if streamed else (0, 0)
    plan = Plan(0, parts, lies, slots, largest, 0, 1, 0, 0, 0, 0, 1.0, 1.0, 0.3, 4, 3.0)
    monkeypatch.setattr(CardPlanner, "plan", lambda *_, **__: CardPlan(plan))


@pytest.mark.gpu
def test_replies_with_parts_streamed_are_those_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_llama(tmp_path, layers=6, hidden=256, heads=4, kv_heads=4, dtype="bfloat16", positions=512)
    no_end_tokens(folder)
    requests = [
        replace(request(prompt, 120, plain=plain), sampling=sampling, conversation=number)
        for number, prompt in enumerate(random_prompts(3, 290, seed=4, longest=200))
        for plain in (True, False)
        for sampling in (Sampling(), Sampling(temperature=0.8, seed=5))
    ]
    made = []
    for streamed in ((), (0, 1, 4, 5, 6, 9, 11, 12)):
        if streamed:
            plan_next_loads(folder, monkeypatch, streamed)
        engine = Engine()
        try:
            assert engine.load(str(folder), device="cuda").kernels.startswith("Triton graphs")
            made.append([reply(engine, wanted).ids for wanted in requests])
            found = engine.offload()
            assert found.transfers.bytes > 0 if found is not None else not streamed, "the second streams"
        finally:
            engine.close()
    assert made[0] == made[1]
    assert made[0][0] == made[0][2] and made[0][1] == made[0][3], "with and without speculation"


@pytest.mark.gpu
@pytest.mark.parametrize("streamed", [(), (4, 7)], ids=["no part streamed", "some streamed"])
def test_replies_with_a_share_of_the_cpu_do_not_depend_on_speculation(
    streamed: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_llama(tmp_path, layers=6, hidden=256, heads=4, kv_heads=4, dtype="bfloat16", positions=512)
    no_end_tokens(folder)
    plan_next_loads(folder, monkeypatch, streamed, computed=(1, 5, 9))
    engine = Engine()
    try:
        assert engine.load(str(folder), device="cuda").kernels.startswith("Triton graphs")
        for number, prompt in enumerate(random_prompts(3, 290, seed=4, longest=200)):
            for sampling in (Sampling(), Sampling(temperature=0.8, seed=5)):
                plain, drafted = (
                    replace(request(prompt, 120, plain=alone), sampling=sampling, conversation=number)
                    for alone in (True, False)
                )
                expected = reply(engine, plain).ids
                assert reply(engine, drafted).ids == expected
                engine.forget()
                assert reply(engine, drafted).ids == expected, "and not on what is in the cache"
    finally:
        engine.close()


def budgets_of(folder: Path, capacity: int, count: int) -> list[int]:
    """Budgets of a card from the least that this model can do with to one that holds all of it."""
    opened = open_folder(folder)
    sizes = {name: entry.nbytes for name, entry in opened.entries.items()}
    parts = parts_of(opened.config, sizes)
    opened.close()
    demands = demands_of(opened.config, sizes, parts, device="cuda", context=capacity)
    demands = replace(demands, always_drafts=True)
    least = minimum(parts, demands, default_rates("cuda"))
    most = whole(parts, demands, demands.drafts[0])
    return [least + (most - least) * step // (count - 1) for step in range(count)]


@pytest.mark.gpu
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=5)], ids=["greedy", "sampled"])
def test_a_budget_that_moves_during_a_reply_changes_no_token(
    sampling: Sampling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "_host_speed", lambda _: None)  # the CPU rounds otherwise than the card
    folder = tiny_llama(tmp_path, layers=6, hidden=256, heads=4, kv_heads=4, dtype="bfloat16", positions=512)
    no_end_tokens(folder)
    (prompt,) = random_prompts(1, 290, seed=4, longest=100)
    budgets = budgets_of(folder, 512, 7)
    order = [budgets[place] for place in (3, 0, 6, 1, 5, 2, 4, 0, 6)]
    engine = Engine()
    try:
        assert engine.load(str(folder), device="cuda").kernels.startswith("Triton graphs")
        wanted = replace(request(prompt, 240), sampling=sampling)
        expected = reply(engine, wanted).ids
        for plain in (False, True):
            engine.forget()
            seen, ids, told = [], [], []
            for event in engine.generate(replace(wanted, speculation=request(prompt, 1, plain=plain).speculation)):
                if isinstance(event, CycleEvent):
                    ids += event.record.emitted_ids
                    found = engine.offload()
                    seen.append(0 if found is None else found.plan.bytes_of(Residency.STREAMED))
                    assert found is None or found.refused is None
                    if order and len(ids) > 20 * (10 - len(order)):
                        engine.use_budget(order.pop(0), told.append)
            assert ids == expected
            assert len(set(seen)) >= (5 if not plain else 1) and told
            order = [budgets[place] for place in (6, 2, 0, 6)]
        with pytest.raises(BadSetting, match="needs at least"):
            engine.use_budget(1000)
        engine.forget()
        assert reply(engine, wanted).ids == expected
    finally:
        engine.close()


@pytest.mark.gpu
def test_a_move_that_fails_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_llama(tmp_path, layers=6, hidden=256, heads=4, kv_heads=4, dtype="bfloat16", positions=512)
    no_end_tokens(folder)
    (prompt,) = random_prompts(1, 290, seed=4, longest=100)
    budgets = budgets_of(folder, 512, 3)
    engine = Engine()
    try:
        engine.load(str(folder), device="cuda", budget_bytes=budgets[1])
        expected = reply(engine, request(prompt, 60)).ids
        before = engine.offload()
        assert before is not None
        failing = (
            (part_store, "PinnedBuffer", MemoryError),
            (card_steps, "StepKernels", torch.OutOfMemoryError),
        )
        for place, name, error in failing:
            with monkeypatch.context() as patch:
                calls: list[object] = []
                real = getattr(place, name)

                def once(*arguments: object, real: Any = real, error: type = error, calls: list = calls) -> object:
                    calls.append(arguments)
                    if len(calls) == 1:
                        raise error("not now")
                    return real(*arguments)

                patch.setattr(place, name, once)
                with pytest.raises(SpecularError, match="not enough memory to move"):
                    engine.use_budget(budgets[0])
            after = engine.offload()
            assert after is not None and after.plan == before.plan
            engine.forget()
            assert reply(engine, request(prompt, 60)).ids == expected
        engine.use_budget(budgets[2])
        engine.forget()
        assert reply(engine, request(prompt, 60)).ids == expected
    finally:
        engine.close()


@pytest.mark.gpu
def test_memory_that_cannot_be_pinned_still_streams_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_llama(tmp_path, layers=6, hidden=256, heads=4, kv_heads=4, dtype="bfloat16", positions=512)
    no_end_tokens(folder)
    (prompt,) = random_prompts(1, 290, seed=4, longest=100)
    real = torch.cuda.cudart()
    made = []
    for pins in (True, False):
        if not pins:
            refusing = SimpleNamespace(cudaHostRegister=lambda *_: 2, cudaHostUnregister=real.cudaHostUnregister)
            monkeypatch.setattr(pinned, "runtime", lambda refusing=refusing: refusing)
        engine = Engine()
        try:
            plan_next_loads(folder, monkeypatch, (0, 1, 4, 5, 6, 9, 11, 12))
            info = engine.load(str(folder), device="cuda")
            assert info.kernels.startswith("Triton graphs")
            assert any("would not pin" in note for note in info.notes) is not pins
            made.append([reply(engine, request(prompt, 100, plain=plain)).ids for plain in (True, False)])
        finally:
            engine.close()
    assert made[0] == made[1] and made[0][0] == made[0][1]


@pytest.mark.gpu
def test_parts_that_ram_is_too_short_for_are_read_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_llama(tmp_path, layers=6, hidden=256, heads=4, kv_heads=4, dtype="bfloat16", positions=512)
    no_end_tokens(folder)
    (prompt,) = random_prompts(1, 290, seed=4, longest=100)
    made = []
    for short in (False, True):
        plan_next_loads(folder, monkeypatch, (0, 1, 4, 5, 6, 9, 11, 12))
        if short:
            monkeypatch.setattr(part_store, "has_ram", lambda size: size < 600_000)
        engine = Engine()
        try:
            info = engine.load(str(folder), device="cuda")
            assert info.kernels.startswith("Triton graphs")
            assert any("RAM is short" in note for note in info.notes) is short
            made.append([reply(engine, request(prompt, 100, plain=plain)).ids for plain in (True, False)])
        finally:
            engine.close()
    assert made[0] == made[1] and made[0][0] == made[0][1]


@pytest.mark.gpu
def test_parts_leave_the_card_where_other_programs_need_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_llama(tmp_path, layers=6, hidden=256, heads=4, kv_heads=4, dtype="bfloat16", positions=512)
    no_end_tokens(folder)
    (prompt,) = random_prompts(1, 290, seed=4, longest=100)
    smallest = budgets_of(folder, 512, 3)[0]
    monkeypatch.setattr(budget_request, "LOOK_SECONDS", 0.0)
    engine = Engine()
    try:
        engine.load(str(folder), device="cuda")
        expected = reply(engine, request(prompt, 60)).ids
        assert engine.offload() is None
        runner: Any = engine._loaded.runner  # type: ignore[union-attr]
        with monkeypatch.context() as patch:  # another program leaves so much that the smallest plan just fits
            patch.setattr(torch.cuda, "mem_get_info", lambda *_: (smallest - runner._held(), 10**12))
            patch.setattr(CardPlanner, "pressed", True)
            engine.forget()
            assert reply(engine, request(prompt, 60)).ids == expected
        found = engine.offload()
        assert found is not None and found.plan.streamed and "Other programs need memory" in str(found.yielded)
    finally:
        engine.close()
