"""GGUF files: the tensors' way into a folder in the cache, and C29 (no output matrix)."""

from __future__ import annotations

import json
import os
import time
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import pytest

from builders import (
    byte_tokenizer,
    permute_heads,
    read_safetensors,
    tiny_llama,
    write_gguf,
    write_json,
    write_safetensors,
)
from engine.errors import LoadCancelled, ModelFileError, SpecularError
from engine.files import gguf_tensors
from engine.files.folder import open_folder
from engine.files.gguf_convert import ABANDONED_SECONDS, conversions_of, convert, converted_path, origin_of
from engine.files.gguf_reader import GgufTensor, read_gguf
from engine.files.gguf_tensors import PlannedTensor, converted_pieces
from engine.files.gguf_types import TYPES
from engine.files.paths import cache_dir
from engine.records import LoadProgress


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with 4 heads over 2 KV heads and a tokenizer; 320 rows, 30 past its tokens."""
    return byte_tokenizer(tiny_llama(tmp_path / "model", vocab=320))


@pytest.fixture
def source(folder: Path, tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "small.gguf", folder)


def converted(source: Path) -> Path:
    return convert(source, lambda _: None, lambda: False)


def refusal(path: Path) -> str:
    """The one sentence with which reading or converting fails; nothing is left in the cache."""
    with pytest.raises(ModelFileError) as caught:
        converted(path)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text
    assert not list(cache_dir().glob("models/*"))
    return text


def halves(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("quant", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_conversion_gives_back_what_was_stored(folder: Path, tmp_path: Path, quant: str) -> None:
    """Row order undone; quantised matrices as float16, floats as they are, vectors in float32."""
    kind = gguf.GGMLQuantizationType[quant]
    target = converted(write_gguf(tmp_path / "small.gguf", folder, quant))
    model, found = open_folder(target), read_safetensors(target)
    for name, original in read_safetensors(folder).items():
        if original.ndim == 1:
            assert model.entries[name].dtype == "F32"
            expected = original
        else:
            assert model.entries[name].dtype == (quant if quant in ("F32", "F16", "BF16") else "F16")
            stored = gguf.quants.dequantize(gguf.quants.quantize(original, kind), kind)
            expected = stored if quant in ("F32", "BF16") else halves(stored)
        assert np.array_equal(found[name], expected), name


@pytest.mark.parametrize(
    "code", [code for code, kind in TYPES.items() if kind.name.endswith("_K") or "IQ" in kind.name]
)
def test_block_types_that_cannot_be_written_are_dequantised(tmp_path: Path, code: int) -> None:
    kind = TYPES[code]
    blocks = np.random.default_rng(code).integers(0, 256, (64, kind.block_bytes), np.uint8)
    with np.errstate(all="ignore"):
        values = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(code))
    blocks[~(np.abs(values) < 60000).all(axis=1)] = 0  # random scales may be infinite
    path = tmp_path / "blocks"
    path.write_bytes(blocks.tobytes())
    columns = 2 * kind.block_values
    tensor = GgufTensor("blk.0.attn_v.weight", kind, (32, columns), 0, blocks.nbytes, path)
    pieces = list(converted_pieces(PlannedTensor(tensor, "x", "F16", 32 * columns * 2)))
    expected = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(code)).reshape(32, columns)
    assert np.array_equal(np.concatenate(pieces), expected.astype(np.float16))
    assert np.count_nonzero(expected) > 1000


def test_iq4_blocks_hold_the_values_of_their_public_table(tmp_path: Path) -> None:
    """IQ4_NL: a float16 scale, then sixteen bytes of two codes each, the low halves first."""
    table = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
    codes = np.array([low | (15 - low) << 4 for low in range(16)], np.uint8)
    (tmp_path / "blocks").write_bytes(np.float16(0.5).tobytes() + codes.tobytes())
    tensor = GgufTensor("blk.0.attn_v.weight", TYPES[20], (1, 32), 0, 18, tmp_path / "blocks")
    (piece,) = converted_pieces(PlannedTensor(tensor, "x", "F16", 64))
    assert piece.tolist() == [[0.5 * value for value in (*table, *reversed(table))]]


def test_type_table_agrees_with_the_gguf_package() -> None:
    for code, kind in TYPES.items():
        public = gguf.GGMLQuantizationType(code)
        assert (kind.name, (kind.block_values, kind.block_bytes)) == (public.name, gguf.GGML_QUANT_SIZES[public])


def test_small_pieces_give_the_same_tensors(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix is never held whole: with pieces of 7 rows the row order still comes out right."""
    monkeypatch.setattr(gguf_tensors, "PIECE_VALUES", 7 * 64)
    found = read_safetensors(converted(source))
    for name, original in read_safetensors(folder).items():
        assert np.array_equal(found[name], halves(original) if original.ndim > 1 else original)


def test_a_bias_of_q_is_reordered_like_its_rows(tmp_path: Path) -> None:
    bias = np.arange(64, dtype=np.float32)
    (tmp_path / "bias").write_bytes(permute_heads(bias, 4).tobytes())
    for heads, expected in [(4, bias), (None, permute_heads(bias, 4))]:
        tensor = GgufTensor("blk.0.attn_q.bias", TYPES[0], (64,), 0, 256, tmp_path / "bias")
        pieces = list(converted_pieces(PlannedTensor(tensor, "x", "F32", 256, heads)))
        assert np.array_equal(np.concatenate(pieces).view(np.float32).ravel(), expected)


def test_values_beyond_float16_are_refused(folder: Path, tmp_path: Path) -> None:
    tensors = read_safetensors(folder)
    tensors["model.layers.0.mlp.up_proj.weight"] *= 1e6
    write_safetensors(folder / "model.safetensors", tensors)
    text = refusal(write_gguf(tmp_path / "big.gguf", folder, "Q8_0"))
    assert text == "The tensor blk.0.ffn_up.weight has values that are no F16 numbers."


def test_config_says_the_same(source: Path, folder: Path) -> None:
    original, model = open_folder(folder).config, open_folder(converted(source)).config
    changed = {name for name in original.__slots__ if getattr(original, name) != getattr(model, name)}
    assert changed == {"dtype", "eos_ids"}  # weights became F16; <|im_end|> was found to end a turn


def test_no_output_matrix_means_tied(tmp_path: Path) -> None:
    """C29: the matrix is stored once."""
    folder = byte_tokenizer(tiny_llama(tmp_path / "model", tied=True))
    model = open_folder(converted(write_gguf(tmp_path / "tied.gguf", folder)))
    assert model.config.tied_embeddings
    assert "lm_head.weight" not in model.entries
    assert json.loads((model.path / "config.json").read_text())["tie_word_embeddings"] is True


class TestCache:
    def test_converted_once(self, source: Path) -> None:
        first = converted(source)
        stamp = (first / "model.safetensors").stat().st_mtime_ns
        seen: list[LoadProgress] = []
        assert convert(source, seen.append, lambda: False) == first
        assert (first / "model.safetensors").stat().st_mtime_ns == stamp
        assert seen == []

    def test_a_folder_damaged_in_the_cache_is_made_anew(self, source: Path) -> None:
        weights = converted(source) / "model.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole[:1000])
        assert (converted(source) / "model.safetensors").read_bytes() == whole
        weights.unlink()
        assert (converted(source) / "model.safetensors").read_bytes() == whole

    def test_a_changed_file_is_converted_anew(self, source: Path, tmp_path: Path) -> None:
        first = converted(source)
        folder = byte_tokenizer(tiny_llama(tmp_path / "other", vocab=320, seed=1))
        write_gguf(source, folder)
        second = converted(source)
        assert second != first
        assert list((cache_dir() / "models").iterdir()) == [second]
        norm = "model.norm.weight"
        assert np.array_equal(read_safetensors(second)[norm], read_safetensors(folder)[norm])

    def test_another_file_of_that_name_keeps_its_own(self, source: Path, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        other = write_gguf(tmp_path / "there" / source.name, folder, "Q8_0")
        first, second = converted(source), converted(other)
        assert sorted((cache_dir() / "models").iterdir()) == sorted([first, second])
        assert conversions_of(source) == [first] and conversions_of(other) == [second]

    def test_it_is_known_what_a_folder_was_made_from(self, source: Path, folder: Path, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "q8.gguf", folder, "Q8_0")
        sizes: dict[str, int] = {}
        for tensor in read_gguf(path).tensors.values():
            sizes[tensor.kind.name] = sizes.get(tensor.kind.name, 0) + tensor.nbytes
        origin = origin_of(converted(path))
        assert (origin["source"], origin["types"]) == (str(path), sizes)
        assert set(sizes) == {"Q8_0", "F32"} and origin_of(tmp_path) == {}

    def test_progress_counts_every_tensor_and_byte(self, source: Path) -> None:
        seen: list[LoadProgress] = []
        target = convert(source, seen.append, lambda: False)
        assert [state.done for state in seen] == list(range(22))
        assert {state.total for state in seen} == {21}
        assert seen[-1].done_bytes == seen[-1].total_bytes == open_folder(target).total_bytes
        assert all(a.done_bytes < b.done_bytes for a, b in pairwise(seen))

    @pytest.mark.parametrize("at", [1, 2, 21])
    def test_cancel_at_any_tensor_leaves_nothing(self, source: Path, at: int) -> None:
        asked: list[int] = []

        def cancelled() -> bool:
            asked.append(1)
            return len(asked) == at

        with pytest.raises(LoadCancelled, match=r"^Converting small\.gguf was cancelled\.$"):
            convert(source, lambda _: None, cancelled)
        assert len(asked) == at
        assert not list((cache_dir() / "models").iterdir())
        assert len(open_folder(converted(source)).entries) == 21

    def test_an_error_on_the_way_leaves_nothing(self, source: Path) -> None:
        def broken(state: LoadProgress) -> None:
            if state.done == 3:
                raise OSError(28, "No space left on device")

        with pytest.raises(SpecularError, match=r"^small\.gguf cannot be converted in .*: No space left on device\.$"):
            convert(source, broken, lambda: False)
        assert not list((cache_dir() / "models").iterdir())

    def test_what_a_killed_process_left_is_removed_later(self, source: Path) -> None:
        models = cache_dir() / "models"
        old, new = models / ".part-old", models / ".part-new"
        for part in (old, new):
            part.mkdir(parents=True)
        past = time.time() - ABANDONED_SECONDS - 60
        os.utime(old, (past, past))
        converted(source)
        assert not old.exists() and new.exists()

    def test_a_cache_that_cannot_be_written(
        self, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_bytes(b"")
        monkeypatch.setenv("SPECULAR_DATA_DIR", str(tmp_path / "file"))
        with pytest.raises(SpecularError, match=r"^The folder .* cannot be made: Not a directory\.$"):
            converted(source)


class TestRope:
    def with_factors(self, folder: Path, path: Path, factors: np.ndarray) -> Path:
        """The folder as GGUF with RoPE frequency factors, as files of Llama 3 carry them."""
        add = gguf.GGUFWriter.write_header_to_file

        def write_header(writer: gguf.GGUFWriter, *args: object) -> None:
            writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))
            add(writer)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gguf.GGUFWriter, "write_header_to_file", write_header)
            return write_gguf(path, folder)

    def test_llama3_factors_become_the_scaling_that_made_them(self, folder: Path, tmp_path: Path) -> None:
        scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        scaling["original_max_position_embeddings"] = 8192
        values = json.loads((folder / "config.json").read_text())
        write_json(folder / "config.json", values | {"rope_theta": 500000.0})
        frequency = 500000.0 ** (-np.arange(0, 16, 2) / 16)
        turns = 8192 * frequency / (2 * np.pi)
        smooth = np.clip((turns - 1) / 3, 0, 1)
        factors = np.where(turns < 1, 8.0, np.where(turns > 4, 1.0, 1 / ((1 - smooth) / 8 + smooth)))
        assert len(set(factors)) >= 2
        target = converted(self.with_factors(folder, tmp_path / "l3.gguf", factors))
        assert open_folder(target).config.rope_scaling == {"rope_type": "llama3", **scaling}

    def test_other_factors_are_refused(self, folder: Path, tmp_path: Path) -> None:
        path = self.with_factors(folder, tmp_path / "odd.gguf", np.linspace(1, 3, 8))
        assert "RoPE frequency factors of an unknown kind" in refusal(path)


def test_end_tokens_of_a_chat_are_all_found(folder: Path, tmp_path: Path) -> None:
    """The file declares only </s>; <|im_end|> is a control token that ends a turn."""
    model = open_folder(converted(write_gguf(tmp_path / "chat.gguf", folder)))
    assert model.config.eos_ids == (1, 289)


def test_path_changes_with_the_file(source: Path) -> None:
    before = converted_path(source)
    source.write_bytes(source.read_bytes() + b"x")
    assert converted_path(source) != before
    with pytest.raises(ModelFileError, match=r"gone\.gguf cannot be read: No such file or directory\.$"):
        converted_path(source.with_name("gone.gguf"))
