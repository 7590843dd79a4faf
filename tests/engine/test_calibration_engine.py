"""Calibration of real, tiny models through the engine: what is used after it, kept, refused, and left as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from builders import byte_tokenizer, read_safetensors, tiny_llama, write_safetensors
from engine.calibration import measure, session, store, trials
from engine.calibration.report import CalibrationProgress, Verdict
from engine.engine import Engine
from engine.errors import BadSetting, EngineBusy, NoModel, NumericFault, SpecularError
from engine.model.loaded import LoadedModel
from engine.recipe import Recipe
from engine.records import ModelInfo
from engine.settings import GenerateRequest, Message, Speculation
from engine_rig import DEFAULT, end_tokens, loaded_engine, no_end_tokens, reply, request, script_engine

MINUTES = 0.1


@pytest.fixture(autouse=True)
def little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tokens and pairs of passes than on a real model."""
    monkeypatch.setattr(trials, "MOST_TOKENS", 96)
    monkeypatch.setattr(measure, "MOST_PAIRS", 8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return no_end_tokens(byte_tokenizer(tiny_llama(tmp_path / "tiny", positions=512), eos="<pad>"))


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with loaded_engine(folder) as engine:
        yield engine


def loaded(engine: Engine) -> LoadedModel:
    assert engine._loaded is not None
    return engine._loaded


def info(engine: Engine) -> ModelInfo:
    assert engine.info is not None
    return engine.info


def saved_values(engine: Engine) -> dict[str, object]:
    values: dict[str, object] = json.loads(loaded(engine).key.path.read_text("utf-8"))
    return values


def test_what_is_found_is_used_kept_and_used_by_the_next_load(engine: Engine, folder: Path) -> None:
    before = info(engine)
    assert before.recipe == loaded(engine).runner.recipe and not before.calibrated
    report = engine.calibrate(MINUTES)
    assert report.chosen is not None and report.note is None and not report.stopped
    assert report.device == loaded(engine).key.device and report.positions > 30
    assert info(engine).recipe == report.chosen == loaded(engine).runner.recipe and info(engine).calibrated
    assert loaded(engine).controller.profile().draft == pytest.approx(report.cost)
    assert {finding.ingredient for finding in report.findings} >= {"8-bit weights", "4-bit weights", "16-bit weights"}
    assert [f for f in report.findings if f.verdict is Verdict.UNABLE]
    engine.load(str(folder), device="cpu")
    assert info(engine).calibrated and info(engine).recipe == report.chosen and info(engine).notes == before.notes
    assert loaded(engine).controller.profile().draft == pytest.approx(report.cost)


def test_replies_after_a_calibration_are_the_plain_ones(engine: Engine) -> None:
    prompt = GenerateRequest(messages=(Message("user", "hello world"),), max_new_tokens=30)
    plain = reply(engine, replace(prompt, speculation=Speculation(enabled=False)))
    held = loaded(engine).runner.kv.ids
    engine.calibrate(MINUTES)
    assert loaded(engine).runner.kv.ids == held != (), "it measures in rows of its own"
    again = reply(engine, prompt)
    assert again.ids == plain.ids and again.finished.reused_tokens == again.finished.prompt_tokens - 1
    assert all(record.recipe == info(engine).recipe for record in again.records)


def test_a_request_may_still_name_a_recipe(engine: Engine) -> None:
    engine.calibrate(MINUTES)
    chosen, costs = info(engine).recipe, loaded(engine).costs
    other = Recipe(weight_bits=16, skipped_mlp=(1,))
    assert chosen != other and costs is not None
    made = reply(engine, request([5, 6, 7], 20, recipe=other, gamma=2))
    assert {record.recipe for record in made.records} == {other}
    assert loaded(engine).controller.profile().draft != costs.draft
    made = reply(engine, request([5, 6, 7], 20))
    assert {record.recipe for record in made.records} == {chosen}


def test_a_model_without_tokenizer_is_calibrated_on_ids(tmp_path: Path) -> None:
    with loaded_engine(no_end_tokens(tiny_llama(tmp_path / "bare", positions=300))) as engine:
        report = engine.calibrate(MINUTES)
        assert report.chosen is not None and report.positions > 30


def test_a_model_whose_activations_are_all_zero(tmp_path: Path) -> None:
    """Rounding by activations and choosing neurons by them must not divide by zero."""
    folder = no_end_tokens(byte_tokenizer(tiny_llama(tmp_path / "zero", positions=300), eos="<pad>"))
    file = folder / "model.safetensors"
    tensors = read_safetensors(file.parent)
    write_safetensors(file, {name: np.zeros_like(tensor) for name, tensor in tensors.items()}, "float32")
    with loaded_engine(folder) as engine, np.errstate(divide="raise", invalid="raise"):
        report = engine.calibrate(MINUTES)
        assert report.chosen is not None and report.acceptance is not None
        assert len(reply(engine, request([1, 2, 3], 10)).ids) == 10


def test_a_model_of_nan_is_told_and_the_recipe_stays(tmp_path: Path) -> None:
    folder = no_end_tokens(tiny_llama(tmp_path / "nan", positions=128))
    tensors = read_safetensors(folder)
    tensors["model.norm.weight"][:] = np.nan
    write_safetensors(folder / "model.safetensors", tensors, "float32")
    with loaded_engine(folder) as engine:
        before = info(engine)
        with pytest.raises(NumericFault):
            engine.calibrate(MINUTES)
        assert info(engine) == before and not loaded(engine).key.path.exists()


def test_a_model_that_ends_at_once_is_calibrated(folder: Path) -> None:
    end_tokens(folder, list(range(290)))
    with loaded_engine(folder) as engine:
        report = engine.calibrate(MINUTES)
        assert report.positions == len(session.ORDER) and report.chosen is not None


def stops(after: int, asked: list[int]) -> bool:
    asked[0] += 1
    return asked[0] > after


def test_stopped_in_the_middle_all_is_as_before(engine: Engine) -> None:
    before, controller = info(engine), loaded(engine).controller
    asked = [0]
    engine.calibrate(MINUTES, cancelled=lambda: stops(10**9, asked))
    engine.load(info(engine).path, device="cpu")
    kept, recipe, controller = saved_values(engine), info(engine).recipe, loaded(engine).controller
    for after in (0, asked[0] // 5, asked[0] // 2, asked[0] // 5 * 4):
        count = [0]
        report = engine.calibrate(MINUTES, cancelled=lambda: stops(after, count))  # noqa: B023
        assert report.stopped and report.sentence == "Stopped: the draft is made as before."
        assert info(engine).recipe == recipe == loaded(engine).runner.recipe and saved_values(engine) == kept
        assert loaded(engine).controller is controller
    assert before.recipe == DEFAULT and len(reply(engine, request([1, 2], 5)).ids) == 5


def test_out_of_memory_in_the_middle_all_is_as_before(engine: Engine) -> None:
    before = info(engine)
    raised_at: list[int] = []

    def out(number: int) -> None:
        if number == 30 and not raised_at:
            raised_at.append(number)
            raise MemoryError

    script_engine(engine, before_draft=out)
    with pytest.raises(SpecularError) as raised:
        engine.calibrate(MINUTES)
    assert str(raised.value) == "There is not enough memory to calibrate: the draft is made as before."
    assert info(engine) == before and loaded(engine).runner.recipe == before.recipe
    assert not loaded(engine).key.path.exists()
    assert len(reply(engine, request([1, 2], 5)).ids) == 5


def test_the_engine_is_busy_meanwhile_and_free_after(engine: Engine) -> None:
    refused: list[Exception] = []

    def try_it(_: CalibrationProgress) -> None:
        if not refused:
            with pytest.raises(EngineBusy) as raised:
                next(engine.generate(request([1, 2], 5)))
            refused.append(raised.value)

    engine.calibrate(MINUTES, progress=try_it)
    assert refused and len(reply(engine, request([1, 2], 5)).ids) == 5


@pytest.mark.parametrize("minutes", [0.0, -1.0, 61.0, float("nan"), float("inf")])
def test_minutes_out_of_range_are_refused(engine: Engine, minutes: float) -> None:
    with pytest.raises(BadSetting, match=r"but must be a number from 0\.1 to 60"):
        engine.calibrate(minutes)


def test_without_a_model_there_is_nothing_to_calibrate() -> None:
    with pytest.raises(NoModel):
        Engine().calibrate(MINUTES)


def test_what_cannot_be_kept_is_used_all_the_same(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    report = engine.calibrate(MINUTES)
    assert report.note is not None and report.note.startswith("The recipe is in use, but not kept for the next start: ")
    assert report.note.endswith("cannot be written: No space left on device.")
    assert info(engine).recipe == report.chosen and info(engine).calibrated


def edit(engine: Engine, **changes: object) -> None:
    """Change the saved file of the engine's model."""
    values = saved_values(engine)
    values.update(changes)
    loaded(engine).key.path.write_text(json.dumps(values), "utf-8")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"device": "Some Other Processor, 64 cores"}, "was measured on another device (Some Other Processor, 64"),
        ({"fingerprint": "0" * 16}, "was measured for another model"),
        ({"format": 99}, "was written by another version of Specular"),
        ({"recipe": {}}, "is damaged: its weight_bits makes no sense"),
    ],
)
def test_a_file_that_does_not_belong_is_refused_in_the_notes(
    engine: Engine, folder: Path, changes: dict[str, object], reason: str
) -> None:
    default = info(engine)
    engine.calibrate(MINUTES)
    edit(engine, **changes)
    engine.load(str(folder), device="cpu")
    assert any(reason in note and note.endswith("so the default draft is used.") for note in info(engine).notes)
    assert info(engine).recipe == default.recipe and not info(engine).calibrated and loaded(engine).costs is None


def test_a_recipe_that_the_device_lacks_an_ingredient_for_is_refused(engine: Engine, folder: Path) -> None:
    default = info(engine)
    engine.calibrate(MINUTES)
    edit(engine, recipe=Recipe(head_share=0.5).to_json())
    engine.load(str(folder), device="cpu")
    assert info(engine).notes[-1] == (
        "The saved recipe cannot be used, so the default draft is: "
        "The draft on this computer's CPU cannot select attention heads."
    )
    assert info(engine).recipe == default.recipe and not info(engine).calibrated


def test_other_weights_under_the_same_name_have_no_recipe_yet(engine: Engine, folder: Path, tmp_path: Path) -> None:
    engine.calibrate(MINUTES)
    tensors: dict[str, np.ndarray] = read_safetensors(folder)
    tensors["model.layers.0.mlp.up_proj.weight"] += 1.0
    engine.unload()
    write_safetensors(folder / "model.safetensors", tensors, "float32")
    engine.load(str(folder), device="cpu")
    assert not info(engine).calibrated and info(engine).recipe == DEFAULT
    assert not [note for note in info(engine).notes if "recipe" in note]


def test_the_same_model_in_another_folder_keeps_its_recipe(engine: Engine, folder: Path, tmp_path: Path) -> None:
    report = engine.calibrate(MINUTES)
    engine.unload()
    moved = folder.rename(tmp_path / "moved")
    engine.load(str(moved), device="cpu")
    assert info(engine).calibrated and info(engine).recipe == report.chosen


def test_the_key_is_the_models_and_the_devices(engine: Engine) -> None:
    key: store.Key = loaded(engine).key
    assert (
        key.kind == "cpu" and len(key.fingerprint) == 16 and key.device.rsplit(", ", 1)[1].endswith(("core", "cores"))
    )
    sequence: Sequence[str] = key.path.parts
    assert sequence[-2:] == ("recipes", f"{key.fingerprint}-cpu.json")
