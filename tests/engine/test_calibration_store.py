"""Saved recipes: what is written is read again, and a file that does not belong here is refused with its reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration_rig import config
from engine.calibration.device import device_identity, processor_name
from engine.calibration.report import CalibrationReport, Finding, Verdict
from engine.calibration.store import MOST_BYTES, Key, Saved, load, save
from engine.errors import SpecularError
from engine.kernels.dispatch import Placement
from engine.recipe import Recipe
from engine.speculation.estimates import CostProfile

KEY = Key("0123456789abcdef", "cpu", "A Processor, 2 cores")
RECIPE = Recipe(4, 0.3, 0.5, 0.75, (1, 3), (2,), 128, 512)
COSTS = CostProfile(0.31, 1.02, 0.03, 1.1, 0.05)
REPORT = CalibrationReport(
    model="tiny",
    device="A Processor, 2 cores",
    kernels="rules",
    seconds=12.0,
    plain_seconds=0.01,
    verify=((1, 1.0), (5, 1.1)),
    few_rows=((2, 1.1),),
    positions=320,
    findings=(Finding("4-bit weights", Verdict.ON, "", RECIPE, 0.31, 0.9, 4, 3.5, 1.6),),
    chosen=RECIPE,
    cost=0.31,
    acceptance=0.9,
    gamma=4,
    tokens=3.5,
    speed_up=1.6,
)


def changed(change: Callable[[dict[str, Any]], object]) -> None:
    """The file of KEY, written and then changed."""
    save(KEY, REPORT, COSTS)
    values = json.loads(KEY.path.read_text("utf-8"))
    change(values)
    KEY.path.write_text(json.dumps(values), "utf-8")


def refusal() -> str:
    saved, sentence = load(KEY, config())
    assert saved is None and sentence is not None
    start, end = f"The saved recipe {KEY.path} ", ", so the default draft is used."
    assert sentence.startswith(start) and sentence.endswith(end)
    return sentence[len(start) : -len(end)]


def test_what_is_saved_is_read_again() -> None:
    assert load(KEY, config()) == (None, None)
    save(KEY, REPORT, COSTS)
    assert load(KEY, config()) == (Saved(RECIPE, COSTS, 0.9, 1.6), None)
    values = json.loads(KEY.path.read_text("utf-8"))
    assert values["report"]["findings"][0]["ingredient"] == "4-bit weights"
    assert values["model"] == "tiny" and os.listdir(KEY.path.parent) == [KEY.path.name]


def test_models_and_kinds_of_device_have_files_of_their_own() -> None:
    others = (replace(KEY, fingerprint="f" * 16), replace(KEY, kind="cuda"))
    save(KEY, REPORT, COSTS)
    assert len({key.path for key in (KEY, *others)}) == 3
    assert [load(other, config()) for other in others] == [(None, None)] * 2


def test_another_device_model_or_version_is_refused_by_name() -> None:
    save(KEY, REPORT, COSTS)
    other = replace(KEY, device="Another Processor, 8 cores")
    saved, sentence = load(other, config())
    assert saved is None and sentence is not None
    assert "on another device (A Processor, 2 cores, and this is Another Processor, 8 cores)" in sentence
    changed(lambda values: values.update(fingerprint="f" * 16))
    assert refusal() == "was measured for another model"
    changed(lambda values: values.update(format=2))
    assert refusal() == "was written by another version of Specular"
    changed(lambda values: values.pop("format"))
    assert refusal() == "was written by another version of Specular"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("weight_bits", 5),
        ("weight_bits", True),
        ("weight_bits", 4.0),
        ("input_sparsity", 0.95),
        ("input_sparsity", "much"),
        ("neuron_share", 0),
        ("neuron_share", 1.5),
        ("head_share", None),
        ("skipped_attention", [6]),
        ("skipped_attention", [-1]),
        ("skipped_mlp", [0.5]),
        ("skipped_mlp", 3),
        ("reduced_vocabulary", 0),
        ("reduced_vocabulary", 10**9),
        ("kv_window", -5),
    ],
)
def test_a_recipe_that_makes_no_sense_is_damaged(field: str, value: object) -> None:
    changed(lambda values: values["recipe"].update({field: value}))
    assert refusal() == f"is damaged: its {field} makes no sense"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda values: values["recipe"].pop("kv_window"), "its kv_window makes no sense"),
        (lambda values: values.pop("recipe"), "its recipe is missing"),
        (lambda values: values.update(recipe=[1]), "its recipe is missing"),
        (lambda values: values.update(costs=None), "its costs is missing"),
        (lambda values: values["costs"].update(draft="cheap"), "its draft is no number"),
        (lambda values: values["costs"].update(verify_slope=float("nan")), "its verify_slope is no number"),
        (lambda values: values["costs"].update(draft=0), "a cost in it is not above 0"),
        (lambda values: values["costs"].update(few_base=-1), "a cost in it is not above 0"),
        (lambda values: values.pop("acceptance"), "its acceptance is no number"),
        (lambda values: values.update(speed_up=True), "its speed_up is no number"),
    ],
)
def test_missing_and_wrong_parts_are_damage(change: Callable[[dict[str, Any]], object], reason: str) -> None:
    changed(change)
    assert refusal() == f"is damaged: {reason}"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is damaged: it is not valid JSON"),
        (b"\xff\xfe{}", "is damaged: it is not valid JSON"),
        (b"[" * 100_000, "is damaged: it is not valid JSON"),
        (b"[1, 2]", "is damaged: it holds no JSON object"),
        (b" " * (MOST_BYTES + 1), "is too large to be a recipe"),
    ],
)
def test_bytes_that_are_no_recipe_are_refused(data: bytes, reason: str) -> None:
    save(KEY, REPORT, COSTS)
    KEY.path.write_bytes(data)
    assert refusal() == reason


def test_a_file_cut_short_anywhere_is_refused() -> None:
    save(KEY, REPORT, COSTS)
    whole = KEY.path.read_bytes().rstrip()
    for length in range(0, len(whole), 97):
        KEY.path.write_bytes(whole[:length])
        assert refusal() == "is damaged: it is not valid JSON"


def test_a_folder_in_its_place_cannot_be_read() -> None:
    KEY.path.mkdir(parents=True)
    assert refusal().startswith("cannot be read (")


def test_costs_of_another_version_are_read_as_far_as_they_are_known() -> None:
    changed(lambda values: values["costs"].update(of_a_later_version=3.0))
    changed_too = json.loads(KEY.path.read_text("utf-8"))
    del changed_too["costs"]["few_slope"]
    KEY.path.write_text(json.dumps(changed_too), "utf-8")
    saved, _ = load(KEY, config())
    assert saved is not None and saved.costs == replace(COSTS, few_slope=CostProfile().few_slope)


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(monkeypatch: pytest.MonkeyPatch) -> None:
    save(KEY, REPORT, COSTS)
    before = KEY.path.read_bytes()

    def full_disk(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(SpecularError) as raised:
        save(KEY, replace(REPORT, chosen=Recipe(8)), COSTS)
    assert str(raised.value) == f"{KEY.path} cannot be written: No space left on device."
    assert KEY.path.read_bytes() == before and os.listdir(KEY.path.parent) == [KEY.path.name]


def test_devices_are_told_apart_by_name() -> None:
    assert device_identity(Placement("cuda", "NVIDIA GeForce RTX 4070")) == "NVIDIA GeForce RTX 4070"
    name, _, cores = device_identity(Placement("cpu", "CPU, 2 cores")).rpartition(", ")
    assert name == processor_name() and cores.split()[0].isdigit()


def test_the_processors_name_is_found_or_made_up_for(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nmodel name\t: other\n", "utf-8")
    assert processor_name(info) == "AMD EPYC 7763 64-Core Processor"
    info.write_text("Features\t: fp asimd\n", "utf-8")
    assert processor_name(info) == processor_name(tmp_path / "missing") != ""
