"""Tensors nobody needs, and values that are no numbers: each a note, where seeing it costs little."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders import read_safetensors, shard, tiny_llama, write_safetensors
from engine.files.folder import open_folder
from engine.files.not_numbers import PLACE_BYTES, PLACES, WHOLE_BYTES, not_numbers
from engine_rig import loaded_engine

NORM, MATRIX = "model.layers.1.input_layernorm.weight", "model.layers.0.mlp.up_proj.weight"
GATE = "model.layers.0.mlp.gate_proj.weight"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose MLP matrices are 256 KB each in float32, larger than what is read whole."""
    return tiny_llama(tmp_path / "model", hidden=128 + 64, heads=12, kv_heads=6, vocab=290)


def rewrite(folder: Path, dtype: str, **changes: float) -> None:
    """Save again as `dtype`, with the first value of the tensors (dots as double underscores) changed."""
    tensors = read_safetensors(folder)
    for name, value in changes.items():
        tensors[name.replace("__", ".")].flat[0] = value
    write_safetensors(folder / "model.safetensors", tensors, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [NORM, MATRIX])
def test_a_bad_value_is_noticed(folder: Path, dtype: str, bad: float, name: str) -> None:
    rewrite(folder, dtype, **{name.replace(".", "__"): bad})
    assert not_numbers(open_folder(folder)) == (
        f"model holds values that are no numbers in {name}: the file is damaged, or was saved from a model that is.",
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_largest_numbers_are_numbers(folder: Path, dtype: str) -> None:
    largest = {"float32": 3.4028234e38, "float16": 65504.0, "bfloat16": 3.3895314e38}[dtype]
    rewrite(folder, dtype, **{NORM.replace(".", "__"): largest, MATRIX.replace(".", "__"): -largest})
    assert not_numbers(open_folder(folder)) == ()


def test_several_are_counted_over_all_shards(folder: Path) -> None:
    rewrite(folder, "float32", **{n.replace(".", "__"): np.nan for n in (NORM, MATRIX, GATE)})
    shard(folder, 3)
    (note,) = not_numbers(open_folder(folder))
    assert f"in {GATE} and 2 more:" in note


def test_places_are_spread_from_the_first_byte_to_the_last(folder: Path) -> None:
    nbytes = open_folder(folder).entries[MATRIX].nbytes
    assert nbytes > WHOLE_BYTES
    last = 192 * 384 - 1
    for place, noticed in [(0, True), (last, True), (PLACE_BYTES // 4, False), (last // 2 + 5, False)]:
        tensors = read_safetensors(tiny_llama(folder, hidden=192, heads=12, kv_heads=6))
        tensors[MATRIX].flat[place] = np.nan
        write_safetensors(folder / "model.safetensors", tensors)
        assert bool(not_numbers(open_folder(folder))) is noticed, place
    tensors[MATRIX][100:200] = np.nan  # a stretch is never missed
    write_safetensors(folder / "model.safetensors", tensors)
    assert len(not_numbers(open_folder(folder))) == 1 and PLACES * PLACE_BYTES < WHOLE_BYTES


def test_a_load_tells_both(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path / "odd")
    tensors = read_safetensors(folder) | {"adapter.weight": np.ones(3, np.float32)}
    tensors[NORM][3] = np.nan
    write_safetensors(folder / "model.safetensors", tensors)
    with loaded_engine(folder) as engine:
        assert engine.info is not None
        notes = " ".join(engine.info.notes)
    assert f"odd holds values that are no numbers in {NORM}:" in notes
    assert "odd holds a tensor that a llama model has no place for, which was left out: adapter.weight." in notes


class TestLeftOver:
    def notes(self, folder: Path, *names: str) -> tuple[str, ...]:
        extra = {name: np.ones(8, np.float32) for name in names}
        write_safetensors(folder / "model.safetensors", read_safetensors(tiny_llama(folder)) | extra)
        return open_folder(folder).notes

    def test_several_are_counted_and_the_first_named(self, folder: Path) -> None:
        names = [f"model.layers.{layer}.mlp.extra.weight" for layer in range(2, 7)]
        assert self.notes(folder, *names) == (
            "model holds 5 tensors that a llama model has no place for, which were left out: "
            f"{names[0]}, {names[1]}, {names[2]} and 2 more.",
        )

    def test_buffers_of_old_files_and_a_tied_head_are_none(self, tmp_path: Path, folder: Path) -> None:
        assert self.notes(folder, "model.layers.0.self_attn.rotary_emb.inv_freq") == ()
        tied = tiny_llama(tmp_path / "tied", tied=True)
        tensors = read_safetensors(tied)
        head = {"lm_head.weight": tensors["model.embed_tokens.weight"]}
        write_safetensors(tied / "model.safetensors", tensors | head)
        assert open_folder(tied).notes == ()

    def test_odd_names_stay_on_one_line(self, folder: Path) -> None:
        (note,) = self.notes(folder, "evil\n\x1b[31mname")
        assert "\n" not in note and "\x1b" not in note
