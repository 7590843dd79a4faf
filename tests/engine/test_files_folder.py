"""Opening model folders: what they hold, C29 (tied matrices) and the shard half of C33."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from builders import read_safetensors, shard, tiny_llama, write_json
from engine.errors import ModelFileError
from engine.files.folder import open_folder

INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_llama(tmp_path / "model")


def refusal(folder: Path) -> str:
    """The one sentence with which opening fails."""
    with pytest.raises(ModelFileError) as caught:
        open_folder(folder)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    return text


def rewrite_header(path: Path, change: Any) -> None:
    """Let `change(header)` edit the JSON header of a safetensors file; the data stays."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensors_are_what_was_written(tmp_path: Path, dtype: str) -> None:
    model = open_folder(tiny_llama(tmp_path, dtype=dtype))
    written = read_safetensors(tmp_path)
    assert set(model.entries) == set(written)
    for name, expected in written.items():
        tensor = model.tensor(name)
        assert tensor.dtype == getattr(torch, dtype)
        assert torch.equal(tensor.float(), torch.from_numpy(expected.copy()))
    assert model.total_bytes == sum(entry.nbytes for entry in model.entries.values())
    assert model.total_bytes == sum(value.size for value in written.values()) * (4 if dtype == "float32" else 2)


def test_tensors_are_views_of_the_file_that_cannot_change_it(folder: Path) -> None:
    before = (folder / "model.safetensors").read_bytes()
    model = open_folder(folder)
    first, second = model.tensor("model.norm.weight"), model.tensor("model.norm.weight")
    assert first.data_ptr() == second.data_ptr()
    first.zero_()
    assert (folder / "model.safetensors").read_bytes() == before
    model.close()
    assert first.sum() == 0  # the view outlives the folder
    assert open_folder(folder).tensor("model.norm.weight").sum() != 0


def test_a_tensor_at_an_odd_place_is_still_right(folder: Path) -> None:
    path = folder / "model.safetensors"
    rewrite_header(path, lambda header: header.update(__metadata__={"odd": ""}))
    while (8 + struct.unpack_from("<Q", path.read_bytes())[0]) % 2 == 0:
        rewrite_header(path, lambda header: header["__metadata__"].update(odd=header["__metadata__"]["odd"] + "x"))
    model = open_folder(folder)
    entry = model.entries["model.norm.weight"]
    assert entry.offset % 4
    expected = np.frombuffer(path.read_bytes()[entry.offset : entry.offset + entry.nbytes], np.float32)
    assert np.array_equal(model.tensor("model.norm.weight").numpy(), expected)


def test_a_file_that_shrinks_after_opening_is_named(folder: Path) -> None:
    model = open_folder(folder)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match=r"^model\.safetensors has become shorter"):
        model.tensor("lm_head.weight")


def test_headers_are_read_without_torch_or_transformers(folder: Path) -> None:
    code = (
        "import sys; from engine.files.folder import open_folder; import engine.files.resolve;"
        f"print(len(open_folder({str(folder)!r}).entries), 'torch' in sys.modules, 'transformers' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["21", "False", "False"]


class TestTied:
    """C29: no output matrix in the file."""

    @pytest.mark.parametrize("said", [True, False])
    def test_no_head_means_tied(self, tmp_path: Path, said: bool) -> None:
        folder = tiny_llama(tmp_path, tied=True)
        values = json.loads((folder / "config.json").read_text())
        write_json(folder / "config.json", values | {"tie_word_embeddings": said})
        model = open_folder(folder)
        assert model.config.tied_embeddings
        assert "lm_head.weight" not in model.entries

    def test_a_copy_of_the_tied_matrix_is_not_taken_twice(self, tmp_path: Path) -> None:
        folder = tiny_llama(tmp_path)
        values = json.loads((folder / "config.json").read_text())
        untied = open_folder(folder).total_bytes
        write_json(folder / "config.json", values | {"tie_word_embeddings": True})
        model = open_folder(folder)
        assert "lm_head.weight" not in model.entries
        assert model.total_bytes == untied - 290 * 64 * 4


class TestShards:
    """C33: five shards, with and without what belongs to them."""

    @pytest.fixture
    def five(self, folder: Path) -> Path:
        shard(folder, 5)
        return folder

    def test_all_shards_are_one_model(self, tmp_path: Path) -> None:
        whole = open_folder(tiny_llama(tmp_path / "whole"))
        shard(tiny_llama(tmp_path / "five"), 5)
        parts = open_folder(tmp_path / "five")
        assert len({entry.file for entry in parts.entries.values()}) == 5
        assert list(parts.entries) == list(whole.entries)
        assert all(torch.equal(parts.tensor(name), whole.tensor(name)) for name in whole.entries)

    def test_missing_shard_is_numbered(self, five: Path) -> None:
        (five / "model-00003-of-00005.safetensors").unlink()
        expected = f"Shard 3 of 5 is missing: model-00003-of-00005.safetensors is not in {five}."
        assert refusal(five) == expected
        (five / INDEX).unlink()
        assert refusal(five) == expected

    def test_without_the_index_the_headers_say_it_all(self, five: Path) -> None:
        (five / INDEX).unlink()
        assert len(open_folder(five).entries) == 21

    def test_index_with_a_tensor_in_the_wrong_shard(self, five: Path) -> None:
        index = json.loads((five / INDEX).read_text())
        index["weight_map"]["model.norm.weight"] = "model-00001-of-00005.safetensors"
        write_json(five / INDEX, index)
        assert refusal(five) == (
            f"{INDEX} places model.norm.weight in model-00001-of-00005.safetensors, "
            "but it is in model-00005-of-00005.safetensors."
        )

    def test_index_naming_one_shard_for_two(self, five: Path) -> None:
        index = json.loads((five / INDEX).read_text())
        first, second = "model-00001-of-00005.safetensors", "model-00002-of-00005.safetensors"
        index["weight_map"] = {k: first if v == second else v for k, v in index["weight_map"].items()}
        write_json(five / INDEX, index)
        text = refusal(five)
        assert text.startswith(INDEX) and text.endswith(f"in {first}, but no shard holds it.")

    def test_index_naming_a_tensor_twice(self, five: Path) -> None:
        text = (
            (five / INDEX)
            .read_text()
            .replace('"weight_map": {', '"weight_map": {"lm_head.weight": "model-00001-of-00005.safetensors", ')
        )
        (five / INDEX).write_text(text)
        assert refusal(five) == f"{INDEX} names lm_head.weight twice."

    def test_tensor_in_two_shards(self, five: Path) -> None:
        (five / INDEX).unlink()
        name = "model-00002-of-00005.safetensors"
        (five / name).write_bytes((five / "model-00001-of-00005.safetensors").read_bytes())
        text = refusal(five)
        assert text.endswith(f"is in two shards, model-00001-of-00005.safetensors and {name}.")

    @pytest.mark.parametrize("place", ["../model.safetensors", "/etc/x.safetensors", "a\\b.safetensors", "x.bin", 7])
    def test_index_never_leads_out_of_the_folder(self, five: Path, place: object) -> None:
        write_json(five / INDEX, {"weight_map": {"lm_head.weight": place}})
        assert "which is no safetensors file beside it" in refusal(five)

    @pytest.mark.parametrize("content", [{}, {"weight_map": {}}, {"weight_map": [1]}])
    def test_index_without_a_map(self, five: Path, content: dict[str, Any]) -> None:
        write_json(five / INDEX, content)
        assert refusal(five) == f"{INDEX} is damaged: it has no weight_map."


def test_what_is_no_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone") == f"The folder {tmp_path / 'gone'} does not exist."
    (tmp_path / "file").write_bytes(b"x")
    assert refusal(tmp_path / "file") == f"{tmp_path / 'file'} is a file, not a model folder."


def test_folder_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert refusal(folder) == f"{folder} holds no weights: model.safetensors is missing."
