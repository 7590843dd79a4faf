"""What was made from a model must never be taken for another model's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builders import tiny_llama
from engine.errors import ModelFileError
from engine.files.fingerprint import fingerprint
from engine.files.folder import open_folder


def test_it_follows_the_contents_not_the_place(tmp_path: Path) -> None:
    first = tiny_llama(tmp_path / "a", std=0.2)
    shutil.copytree(first, tmp_path / "b")
    name = fingerprint(open_folder(first))
    assert len(name) == 16 and int(name, 16) >= 0
    assert fingerprint(open_folder(tmp_path / "b")) == name


def test_other_weights_another_type_and_another_shape_have_other_names(tmp_path: Path) -> None:
    variants = [
        tiny_llama(tmp_path / "a", std=0.2),
        tiny_llama(tmp_path / "b", std=0.2, seed=1),
        tiny_llama(tmp_path / "c", std=0.2, dtype="float16"),
        tiny_llama(tmp_path / "d", std=0.2, layers=3),
    ]
    assert len({fingerprint(open_folder(folder)) for folder in variants}) == len(variants)


def test_one_changed_matrix_changes_it(tmp_path: Path) -> None:
    folder = open_folder(tiny_llama(tmp_path, std=0.2))
    before = fingerprint(folder)
    entry = folder.entries["model.layers.1.mlp.up_proj.weight"]
    with entry.file.open("r+b") as file:
        file.seek(entry.offset + entry.nbytes - 4)
        file.write(b"\1\2\3\4")
    assert fingerprint(folder) != before


def test_a_file_that_has_gone_is_named(tmp_path: Path) -> None:
    folder = open_folder(tiny_llama(tmp_path))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"model\.safetensors cannot be read"):
        fingerprint(folder)
