"""Low-bit copies on disk: found again with the same bits, and made anew whenever something is wrong with the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from builders import tiny_llama
from engine.errors import LoadCancelled
from engine.files.fingerprint import fingerprint
from engine.files.folder import open_folder
from engine.files.paths import cache_dir
from engine.lowbit import store
from engine.lowbit.codes import round_to_nearest
from engine.lowbit.packed import PackedMatrix, pack
from engine.lowbit.store import copy_path, keep_copies, read_copies, write_copies
from engine.model import draft_weights as draft_weights_module
from engine.model.compiled_runner import CompiledRunner
from engine.recipe import Recipe
from engine.records import LoadProgress
from engine_rig import compiled_runner

WANTED = {"a": (9, 64), "b": (16, 96)}
MODEL = "0123456789abcdef"


@pytest.fixture
def copies() -> dict[str, PackedMatrix]:
    random = np.random.default_rng(0)
    made = {}
    for (name, size), bits in zip(WANTED.items(), (4, 8), strict=True):
        factors = random.uniform(0.5, 2, size[1]).astype(np.float32)
        made[name] = pack(round_to_nearest(random.normal(0, 1, size).astype(np.float32), bits, 32, factors))
    return made


def written(copies: dict[str, PackedMatrix]) -> Path:
    path = copy_path(MODEL, 4)
    write_copies(path, MODEL, copies)
    return path


def test_what_was_written_is_read_mapped_and_alike(copies: dict[str, PackedMatrix]) -> None:
    path = written(copies)
    assert path.parent == cache_dir() / "drafts" and MODEL in path.name
    found = read_copies(path, MODEL, WANTED)
    assert found is not None and found.keys() == copies.keys()
    for name, made in copies.items():
        got = found[name]
        assert (got.rows, got.columns, got.bits, got.group) == (made.rows, made.columns, made.bits, made.group)
        assert np.array_equal(got.data, made.data) and np.array_equal(got.inverse, made.inverse)
        assert not got.data.flags.owndata and not got.data.flags.writeable
    assert [file.name for file in path.parent.iterdir()] == [path.name], "nothing half written is left behind"


def test_the_file_is_plain_safetensors(copies: dict[str, PackedMatrix]) -> None:
    tensors = load_file(written(copies))
    assert np.array_equal(tensors["a data"], copies["a"].data)
    assert json.loads(tensors["about"].tobytes())["fingerprint"] == MODEL


def test_there_is_nothing_to_read_before_anything_was_written() -> None:
    assert read_copies(copy_path(MODEL, 4), MODEL, WANTED) is None


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scribble(path: Path) -> None:
    path.write_bytes(b"\xff" * 64 + path.read_bytes()[64:])


def about(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert len(old) == len(new) and data.count(old) == 1
    path.write_bytes(data.replace(old, new))


DAMAGE: list[Callable[[Path], None]] = [
    cut,
    empty,
    scribble,
    lambda path: about(path, f'"version": {store.VERSION}'.encode(), b'"version": 0'),
    lambda path: about(path, MODEL.encode(), MODEL[::-1].encode()),
    lambda path: about(path, b'"a": [9, 64, 4, 32]', b'"a": [9, 64, 4, 00]'),
    lambda path: about(path, b'"a": [9, 64, 4, 32]', b'"a": [9, 64, 5, 32]'),
    lambda path: about(path, b'"a": [9, 64, 4, 32]', b'"a": [9, 64, 8, 32]'),
    lambda path: about(path, b'"a": [9, 64, 4, 32]', b'"a": "nonsense...."'),
    lambda path: about(path, b'"about":', b'"doubt":'),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_file_that_is_not_right_is_deleted(damage: Callable[[Path], None], copies: dict[str, PackedMatrix]) -> None:
    path = written(copies)
    damage(path)
    assert read_copies(path, MODEL, WANTED) is None
    assert not path.exists()


@pytest.mark.parametrize("wanted", [{"a": (9, 64), "c": (16, 96)}, {"a": (64, 9)}, {"b": (16, 64)}])
def test_a_copy_of_other_matrices_is_deleted(
    wanted: dict[str, tuple[int, int]], copies: dict[str, PackedMatrix]
) -> None:
    path = written(copies)
    assert read_copies(path, MODEL, wanted) is None and not path.exists()


def test_a_full_disk_is_a_note_and_leaves_nothing(
    copies: dict[str, PackedMatrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    path = copy_path(MODEL, 4)
    note = keep_copies(path, MODEL, copies)
    assert note is not None and "No space left on device" in note and str(path.parent) in note
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_note(copies: dict[str, PackedMatrix]) -> None:
    cache_dir().parent.mkdir(parents=True, exist_ok=True)
    cache_dir().write_text("a file where the folder should be")
    note = keep_copies(copy_path(MODEL, 4), MODEL, copies)
    assert note is not None and note.count(".") >= 1 and "the next load makes them again" in note


# A runner with its copy on disk.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_llama(tmp_path / "model", std=0.2)


def drafts(runner: CompiledRunner) -> np.ndarray:
    runner.full(range(20), 0, 0)
    return runner.draft([5, 6, 7], 20).copy()


def making(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The widths of copies that are made, as they are made."""
    made: list[int] = []
    original = draft_weights_module.make_copies

    def make(source: Any, plan: Any, *rest: Any) -> dict[str, PackedMatrix]:
        made.append(plan.bits)
        return original(source, plan, *rest)

    monkeypatch.setattr(draft_weights_module, "make_copies", make)
    return made


def test_the_second_load_reads_what_the_first_has_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = making(monkeypatch)
    results = []
    for _ in range(2):
        with compiled_runner(folder, recipe=Recipe(weight_bits=4)) as runner:
            results.append(drafts(runner))
            assert runner.notes == ()
    assert made == [4] and np.array_equal(*results)
    with compiled_runner(folder, recipe=Recipe(weight_bits=8)) as runner:
        runner.use_recipe(Recipe(weight_bits=3))
        runner.use_recipe(Recipe(weight_bits=8, skipped_mlp=(0,)))
    assert made == [4, 8, 3]


def test_a_damaged_copy_is_made_again_with_the_same_bits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = making(monkeypatch)
    with compiled_runner(folder, recipe=Recipe(weight_bits=4)) as runner:
        wanted = drafts(runner)
    cut(copy_path(fingerprint(open_folder(folder)), 4))
    with compiled_runner(folder, recipe=Recipe(weight_bits=4)) as runner:
        assert np.array_equal(drafts(runner), wanted)
    assert made == [4, 4]


def test_another_models_copy_is_never_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = making(monkeypatch)
    other = tiny_llama(tmp_path / "other", std=0.2, seed=1)
    results = []
    for each in (folder, other):
        with compiled_runner(each, recipe=Recipe(weight_bits=4)) as runner:
            results.append(drafts(runner))
    assert made == [4, 4] and not np.array_equal(*results)


def test_a_copy_that_cannot_be_kept_is_told_and_used(folder: Path) -> None:
    cache_dir().mkdir(parents=True, exist_ok=True)
    (cache_dir() / "drafts").write_text("in the way")
    with compiled_runner(folder, recipe=Recipe(weight_bits=4)) as runner:
        assert len(runner.notes) == 1 and "the next load makes them again" in runner.notes[0]
        assert np.isfinite(drafts(runner)).all()


def test_making_a_copy_can_be_cancelled_and_leaves_the_recipe_before(folder: Path) -> None:
    with compiled_runner(folder, recipe=Recipe(weight_bits=16)) as runner:
        wanted = drafts(runner)
        seen: list[LoadProgress] = []
        with pytest.raises(LoadCancelled):
            runner.use_recipe(Recipe(weight_bits=4), seen.append, lambda: len(seen) >= 3)
        assert len(seen) == 3 and runner.recipe == Recipe(weight_bits=16)
        assert np.array_equal(drafts(runner), wanted)
        assert not copy_path(fingerprint(open_folder(folder)), 4).exists()
