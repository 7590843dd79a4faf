"""A model that is larger than its budget of RAM: the same tokens, within the budget, come what may (C29, C41, C47)."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import tiny_llama
from engine import budget_request
from engine.engine import Engine
from engine.errors import BadSetting, SpecularError
from engine.files.folder import open_folder
from engine.memory.host_pages import PAGE_BYTES
from engine.model.compiled_runner import CompiledRunner
from engine.model.cpu_default import default_recipe
from engine.model.weights import HostWeights
from engine.offload import host_plan, planner
from engine.offload.host_needs import HostNeeds, host_needs
from engine.offload.host_stream import HostStream
from engine.offload.plan import Residency
from engine.offload.report import Offload
from engine.recipe import Recipe
from engine.records import CycleEvent, Event, LoadProgress, StopReason
from engine.settings import GenerateRequest, Message, Speculation
from engine_rig import PLAIN, Reply, loaded_engine, no_end_tokens, random_prompts, reply, request

PROMPT, OTHER = random_prompts(2, 290, seed=51)
CONTEXT = 256
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a small model's folder: five parts a... four layers of two parts, and an output matrix if not tied."""

    def folder(tied: bool = False, dtype: str = "float16") -> Path:
        return no_end_tokens(tiny_llama(tmp_path / f"tied-{tied}", layers=4, std=0.25, tied=tied, dtype=dtype))

    return folder


def state(engine: Engine) -> Offload:
    found = engine.offload()
    assert found is not None
    return found


def needs_of(folder: Path, recipe: Recipe | None = None, context: int = CONTEXT) -> HostNeeds:
    opened = open_folder(folder)
    return host_needs(opened.config, opened.entries, recipe or default_recipe(opened.config), context)


def least(folder: Path) -> int:
    """The smallest budget that has room for the usual draft."""
    return host_plan.least(needs_of(folder))


def whole(folder: Path, recipe: Recipe | None = None) -> int:
    """The smallest budget that has room for all of the model."""
    needs = needs_of(folder, recipe)
    return planner.whole(needs.parts, host_plan.with_draft(needs), None)


def streamed_bytes(engine: Engine) -> int:
    return state(engine).plan.bytes_of(Residency.STREAMED)


def expected_of(folder: Path) -> list[int]:
    """The plain reply of a model that is in memory as a whole."""
    with loaded_engine(folder, context=CONTEXT) as engine:
        assert state(engine).plan.streamed == ()
        return reply(engine, request(PROMPT, 60, plain=True)).ids


def file_bytes_in_memory(folder: Path) -> int:
    """Of pages of the folder's files that this process has mapped and touched (/proc/self/smaps)."""
    gc.collect()
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            inside = len(words) > 5 and words[5].startswith(str(folder.resolve()))
        elif inside and words[0] == "Rss:":
            total += int(words[1]) * 1024
    return total


# The starter model


def ask(engine: Engine, speculation: Speculation) -> Reply:
    messages = (Message("user", "Write a Python function that reverses a string."),)
    return reply(engine, GenerateRequest(messages=messages, max_new_tokens=32, speculation=speculation))


@pytest.fixture(scope="module")
def half_starter(starter_folder: Path) -> Iterator[Engine]:
    """The starter with a budget for half of its parts; of the module, so that its draft is the session's."""
    needs = needs_of(starter_folder, context=512)
    budget = planner.whole(needs.parts, host_plan.with_draft(needs), None)
    budget -= sum(part.nbytes for part in needs.parts) // 2
    with loaded_engine(starter_folder, context=512, budget=budget) as engine:
        yield engine


def test_the_starter_with_half_of_its_layers_streamed_says_the_same_within_its_budget(
    half_starter: Engine, starter_folder: Path
) -> None:
    engine, plan = half_starter, state(half_starter).plan
    parts = sum(part.nbytes for part in plan.parts)
    assert 0.5 < plan.bytes_of(Residency.STREAMED) / parts < 0.6 and plan.peak <= plan.budget
    plain, speculative = ask(engine, PLAIN), ask(engine, Speculation())
    assert plain.ids == speculative.ids and len(plain.ids) == 32
    assert sum(len(record.drafted_ids) for record in speculative.records) > 0
    if sys.platform.startswith("linux"):
        resident = plan.always + plan.bytes_of(Residency.RESIDENT)
        pages = 4096 * 2 * 300  # at both ends of each tensor
        assert resident * 0.99 < file_bytes_in_memory(starter_folder) < resident + pages
        assert resident + plan.slots * plan.slot_bytes + plan.draft + plan.kv + plan.workspace <= plan.budget
    note = f"Of the model's weights, {plan.bytes_of(Residency.STREAMED) / 1e9:.2f} GB are read anew"
    assert engine.info is not None and any(text.startswith(note) for text in engine.info.notes)
    engine.use_budget(None)
    assert state(engine).plan.streamed == ()
    assert ask(engine, PLAIN).ids == ask(engine, Speculation()).ids == plain.ids


# Bits and records


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_every_pass_has_the_same_bits_however_much_is_streamed(tied: bool, dtype: str, make: Make) -> None:
    folder = open_folder(make(tied, dtype))

    def logits(runner: CompiledRunner) -> Iterator[np.ndarray]:
        for position, ids in ((0, PROMPT * 3), (40, PROMPT[:5]), (45, PROMPT[5:6])):
            yield runner.full(ids[:40], position, min(16, len(ids))).copy()

    def runner(budget: int | None) -> CompiledRunner:
        return CompiledRunner(folder, CONTEXT, None, lambda _: None, lambda: False, budget=budget)

    all_there = runner(None)
    try:
        expected = list(logits(all_there))
        assert all_there.plan.streamed == ()
    finally:
        all_there.close()
    streamed = set()
    for budget in np.linspace(least(folder.path), whole(folder.path), 6).astype(int).tolist():
        part = runner(budget)
        try:
            before = part.transfers.bytes
            assert all(map(np.array_equal, logits(part), expected))
            assert part.transfers.bytes - before == 3 * part.plan.bytes_of(Residency.STREAMED)
            assert part.plan.peak + part.plan.margin <= budget
            streamed.add(part.plan.bytes_of(Residency.STREAMED))
        finally:
            part.close()
    assert len(streamed) > 3 and 0 in streamed


@pytest.mark.parametrize("tied", [False, True])
def test_plain_and_speculative_agree_token_for_token_and_records_tell_what_moved(tied: bool, make: Make) -> None:
    folder = make(tied)
    expected = expected_of(folder)
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
        size = streamed_bytes(engine)
        assert size > 0
        for wanted in (request(PROMPT, 60, plain=True), request(PROMPT, 60), request(PROMPT, 60, gamma=4)):
            before = state(engine).transfers
            made = reply(engine, wanted)
            assert made.ids == expected
            assert {record.streamed_bytes for record in made.records} == {size}
            moved = state(engine).transfers.since(before)
            passes = len(made.records) + sum(event.done > 1 for event in made.prefills[1:])
            assert moved.bytes == size * passes
            waited = sum(record.wait_seconds for record in made.records)
            assert 0 <= waited <= moved.wait_seconds + 1e-9


def test_a_pass_that_waits_says_so(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make()
    expected = expected_of(folder)
    before_reads(monkeypatch, lambda _: time.sleep(0.002))
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
        made = reply(engine, request(PROMPT, 5, plain=True))
        streamed = len(state(engine).plan.streamed)
        assert made.ids == expected[:5] and streamed > 3
        assert all(record.wait_seconds > 0.002 * (streamed - 3) for record in made.records)
        assert all(record.seconds >= record.wait_seconds + record.verify_seconds > 0 for record in made.records)
    with loaded_engine(folder, context=CONTEXT) as engine:
        made = reply(engine, request(PROMPT, 5, plain=True))
        assert {(record.wait_seconds, record.streamed_bytes) for record in made.records} == {(0.0, 0)}


# Live changes (C47)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("plain", [False, True])
def test_the_budget_changes_during_a_reply_and_no_token_does(tied: bool, plain: bool, make: Make) -> None:
    folder = make(tied)
    expected = expected_of(folder)
    steps: list[str] = []
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
        size = streamed_bytes(engine)
        engine.use_budget(None)
        budgets = {2: least(folder), 6: None, 9: least(folder), 12: whole(folder) - size // 3}

        def change(event: Event) -> None:
            if isinstance(event, CycleEvent) and event.record.index in budgets:
                engine.use_budget(budgets[event.record.index], lambda step: steps.append(step.what))

        made = reply(engine, request(PROMPT, 60, plain=plain, gamma=None if plain else 2), change)
        assert made.ids == expected
        moved = [record.streamed_bytes for record in made.records]
        assert moved[:3] == [0] * 3 and moved[3:7] == [size] * 4 and moved[7:10] == [0] * 3
        assert moved[10:13] == [size] * 3 and 0 < moved[13] < size
        assert "Bringing in layer 2's MLP" in steps and state(engine).refused is None
        engine.use_budget(None)
        assert state(engine).plan.streamed == () and reply(engine, request(PROMPT, 60)).ids == expected


def test_parts_give_way_to_other_programs_during_a_reply_and_it_is_said(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    expected, budgets = expected_of(folder), [least(folder), 1000]

    def give_way(runner: CompiledRunner, progress: object = None) -> bool:
        runner.use_budget(budgets[0])
        return True

    monkeypatch.setattr(CompiledRunner, "relieve", give_way)
    monkeypatch.setattr(budget_request, "LOOK_SECONDS", 0.0)
    with loaded_engine(folder, context=CONTEXT) as engine:
        assert not streamed_bytes(engine) and state(engine).yielded is None
        assert reply(engine, request(PROMPT, 60)).ids == expected
        assert streamed_bytes(engine) > 0
        said = f"Other programs need memory: {streamed_bytes(engine) / 1e9:.2f} GB of the model are brought in"
        assert str(state(engine).yielded).startswith(said)
        del budgets[0]
        assert reply(engine, request(PROMPT, 60)).ids == expected
        assert "this model cannot give way: The model needs 0.0" in str(state(engine).yielded)
        engine.use_budget(None)
        assert state(engine).yielded is None


def test_a_budget_that_cannot_be_is_refused_and_all_goes_on(make: Make) -> None:
    folder = make()
    expected = expected_of(folder)
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
        before = state(engine).plan
        with pytest.raises(SpecularError, match=r"needs 0\.\d\d GB of RAM at the least .* but the budget is 0\.00 GB"):
            engine.use_budget(1000)
        assert state(engine).plan is before

        def change(event: Event) -> None:
            if isinstance(event, CycleEvent) and event.record.index == 3:
                engine.use_budget(1000)

        assert reply(engine, request(PROMPT, 60), change).ids == expected
        refused = state(engine).refused
        assert refused is not None and "the budget is 0.00 GB" in refused
        assert state(engine).plan is before
        engine.use_budget(None)
        assert state(engine).refused is None


def test_a_move_that_fails_goes_back(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make()
    expected = expected_of(folder)
    bring: Callable[..., Any] = HostWeights.bring_in

    def broken(weights: HostWeights, name: str) -> Any:
        if "layers.2.mlp.up" in name:
            raise MemoryError
        return bring(weights, name)

    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
        before = state(engine).plan
        with monkeypatch.context() as patch:
            patch.setattr(HostWeights, "bring_in", broken)
            with pytest.raises(SpecularError, match="not enough memory to move parts"):
                engine.use_budget(None)
        assert state(engine).plan is before and reply(engine, request(PROMPT, 60)).ids == expected
        engine.use_budget(None)
        assert reply(engine, request(PROMPT, 60)).ids == expected


# Stops, faults, unloading


def before_reads(monkeypatch: pytest.MonkeyPatch, strike: Callable[[int], None]) -> None:
    """Calls strike(number of parts read before) in the reading thread before each part; it may raise OSError."""
    count = 0
    read: Callable[..., None] = HostStream._read_part

    def reading(stream: HostStream, *arguments: Any) -> None:
        nonlocal count
        count += 1
        strike(count - 1)
        read(stream, *arguments)

    monkeypatch.setattr(HostStream, "_read_part", reading)


@pytest.mark.parametrize("first", [3, 12, 25, 40, 61])
def test_a_stop_ends_a_pass_that_waits_and_what_was_committed_stays(
    first: int, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    expected = expected_of(folder)
    go_on = threading.Event()
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:

        def stop(reads: int) -> None:
            if reads == first:
                engine.stop()
                go_on.wait(20)

        with monkeypatch.context() as patch:
            before_reads(patch, stop)
            stopped = reply(engine, request(PROMPT, 60, gamma=3))
            assert not go_on.is_set(), "the reply ends while the disk stands still"
            go_on.set()
        assert stopped.finished.reason is StopReason.STOPPED
        assert stopped.ids == expected[: len(stopped.ids)] and len(stopped.ids) < 60
        rest = reply(engine, request([*PROMPT, *stopped.ids], 60 - len(stopped.ids)))
        assert [*stopped.ids, *rest.ids] == expected


@pytest.mark.parametrize("first", [1, 12, 30, 50])
def test_a_disk_that_fails_ends_the_reply_in_a_sentence_and_the_next_one_works(
    first: int, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    expected = expected_of(folder)

    def fail(reads: int) -> None:
        if reads >= first:
            raise OSError(5, "Input/output error")

    with loaded_engine(folder, context=CONTEXT) as engine:
        with monkeypatch.context() as patch:
            before_reads(patch, fail)
            engine.use_budget(least(folder))
            broken = reply(engine, request(PROMPT, 60, gamma=3))
        assert broken.finished.reason is StopReason.FAILED
        assert broken.finished.message == f"{folder / 'model.safetensors'} cannot be read: Input/output error."
        assert broken.ids == expected[: len(broken.ids)]
        assert reply(engine, request(PROMPT, 60, gamma=3)).ids == expected


def test_a_file_cut_short_is_told_in_a_sentence(make: Make) -> None:
    folder = make()
    expected = expected_of(folder)
    file = folder / "model.safetensors"
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:

        def cut(event: Event) -> None:
            if isinstance(event, CycleEvent) and event.record.index == 2:
                with file.open("r+b") as opened:
                    opened.truncate(file.stat().st_size - 16)

        broken = reply(engine, request(PROMPT, 60, plain=True), cut)
        assert broken.finished.reason is StopReason.FAILED
        assert broken.finished.message == "model.safetensors has become shorter since the model was opened."
        assert broken.ids == expected[:3]


@pytest.mark.parametrize("events", [0, 1, 2, 3, 5, 9])
def test_a_model_can_be_unloaded_at_any_moment(events: int, make: Make) -> None:
    folder = make()
    engine = Engine()
    engine.load(str(folder), context=CONTEXT, device="cpu", budget_bytes=least(folder))
    making = engine.generate(request(PROMPT, 60))
    for _ in range(events):
        next(making)
    if events % 2:
        engine.use_budget(None)
    making.close()  # type: ignore[attr-defined]
    engine.unload()
    assert engine.offload() is None
    if sys.platform.startswith("linux"):
        gc.collect()
        assert str(folder) not in Path("/proc/self/maps").read_text()
    engine.close()


# What is asked for, and what is checked before anything is taken


def test_what_does_not_fit_is_said_with_figures_before_anything_is_taken(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    smallest = host_plan.least(needs_of(folder, Recipe(weight_bits=3)))
    engine = Engine()
    taken: list[str] = []

    def load(budget: int | None, offload: bool = True) -> None:
        def note(step: LoadProgress) -> None:
            taken.append(step.what)

        engine.load(str(folder), device="cpu", context=CONTEXT, budget_bytes=budget, offload=offload, progress=note)

    with pytest.raises(SpecularError, match=r"at the least .* but the budget is"):
        load(smallest - 1)
    with pytest.raises(SpecularError, match=r"with all of its weights in memory .* but the budget is"):
        load(smallest, offload=False)
    free = type("Free", (), {"available": host_plan.FREE + smallest - 1})
    monkeypatch.setattr(host_plan.psutil, "virtual_memory", lambda: free)
    with pytest.raises(SpecularError, match=r"256 tokens of context\), but this computer has 0\.01 GB of RAM free\."):
        load(10**12)
    assert taken == [] and engine.info is None
    free.available += 1
    load(None)
    assert streamed_bytes(engine) > 0, "without a budget, what is free is one"
    engine.close()


def test_a_budget_too_small_for_the_usual_draft_gets_a_smaller_one(make: Make) -> None:
    folder = make()
    expected = expected_of(folder)
    with loaded_engine(folder, context=CONTEXT, budget=least(folder) - 1) as engine:
        assert engine.info is not None and engine.info.recipe.weight_bits == 3
        made = reply(engine, request(PROMPT, 60, gamma=3))
        assert made.ids == expected and made.drafted > 0
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
        assert engine.info is not None and engine.info.recipe.weight_bits == 4


def test_the_file_cache_keeps_what_was_read_only_where_it_could_hold_all(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("this system takes no advice about its file cache")
    folder = make()
    expected = expected_of(folder)
    advice: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, offset, size, what: advice.append(what))
    free = type("Free", (), {"available": 10**12})
    monkeypatch.setattr(host_plan.psutil, "virtual_memory", lambda: free)
    for available, dropped in ((10**12, False), (host_plan.FREE + least(folder), True)):
        free.available = available
        advice.clear()
        with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
            assert reply(engine, request(PROMPT, 20)).ids == expected[:20]
        assert os.POSIX_FADV_WILLNEED in advice and (os.POSIX_FADV_DONTNEED in advice) is dropped


def test_a_draft_of_sixteen_bits_needs_all_of_the_model_in_memory(make: Make) -> None:
    folder = make()
    expected = expected_of(folder)
    sixteen = Recipe(weight_bits=16, skipped_mlp=(1,))
    with loaded_engine(folder, context=CONTEXT, budget=least(folder)) as engine:
        with pytest.raises(BadSetting, match="can have 8, 4 or 3 bit weights, not 16"):
            reply(engine, request(PROMPT, 20, recipe=sixteen))
        assert reply(engine, request(PROMPT, 20)).ids == expected[:20]
    with loaded_engine(folder, context=CONTEXT) as engine:
        assert reply(engine, request(PROMPT, 20, recipe=sixteen)).ids == expected[:20]
        with pytest.raises(BadSetting, match="take a draft of fewer bits first, or a larger budget"):
            engine.use_budget(least(folder))
        assert reply(engine, request(PROMPT, 20, recipe=sixteen)).ids == expected[:20]


def test_a_larger_draft_leaves_less_room_for_the_model(make: Make) -> None:
    folder = make()
    expected = expected_of(folder)
    with loaded_engine(folder, context=CONTEXT, budget=whole(folder)) as engine:
        assert state(engine).plan.streamed == ()
        draft = state(engine).plan.draft
        assert reply(engine, request(PROMPT, 20, recipe=Recipe(weight_bits=8))).ids == expected[:20]
        found = state(engine).plan
        assert found.draft > draft and found.streamed and found.peak <= whole(folder)
        assert reply(engine, request(PROMPT, 20)).ids == expected[:20]
        assert state(engine).plan.streamed == ()


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(weight_bits=8),
        Recipe(weight_bits=4),
        Recipe(weight_bits=3),
        Recipe(weight_bits=4, neuron_share=0.5),
        Recipe(weight_bits=16),
    ],
    ids=str,
)
def test_what_is_counted_is_what_is_taken(recipe: Recipe, make: Make) -> None:
    folder = open_folder(make())
    runner = CompiledRunner(folder, CONTEXT, recipe, lambda _: None, lambda: False)
    try:
        memory, plan = runner._memory, runner.plan
        arrays = [*memory.buffers.values(), *memory.quantised.values(), memory.cosine, memory.sine, memory.scores]
        arrays += [memory.statistics, memory.chosen, memory.chosen_counts, memory.scalars]
        assert 0.75 < sum(array.nbytes for array in arrays) / plan.workspace < 1.1
        assert runner.draft_bytes == pytest.approx(plan.draft, rel=0.15 if recipe.neuron_share < 1 else 1e-9)
        assert 0 <= plan.kv - runner.kv.report().full <= PAGE_BYTES * folder.config.layers
        total = sum(entry.nbytes for entry in folder.entries.values())
        assert plan.always + sum(part.nbytes for part in plan.parts) == pytest.approx(total, rel=0.02)
    finally:
        runner.close()
