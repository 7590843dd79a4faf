"""Files that are not what they should be: C33 (cut, disguised, contradictory) and C35 (pickles), in one sentence."""

from __future__ import annotations

import json
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import read_safetensors, tiny_llama, write_json, write_safetensors
from engine.errors import ModelFileError
from engine.files.folder import open_folder
from engine.files.safetensors_header import read_header

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 462176\n"


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


class TestDamaged:
    """C33: files that are not what they should be."""

    def test_cut_short(self, folder: Path) -> None:
        path = folder / "model.safetensors"
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) * 6 // 10])
        assert refusal(folder) == (
            f"model.safetensors is cut short: it has {len(whole) * 6 // 10:,} of {len(whole):,} bytes, "
            "so the download is not complete."
        )

    @pytest.mark.parametrize("size", [1, 7, 8, 9, 100, 1000])
    def test_cut_inside_the_header(self, folder: Path, size: int) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:size])
        assert refusal(folder) == "model.safetensors is cut inside its header: the download is not complete."

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "model.safetensors is empty: the download is not complete."),
            (POINTER, "model.safetensors is a Git LFS pointer, not the file itself"),
            (b"GGUF\3\0\0\0" + bytes(100), "model.safetensors is really a GGUF file"),
            (b"<!DOCTYPE html><html></html>", "model.safetensors is not a safetensors file"),
            (bytes(100), "model.safetensors is not a safetensors file"),
            (struct.pack("<Q", 2**62) + b"{" + bytes(50), "model.safetensors is not a safetensors file"),
            (struct.pack("<Q", 20) + b"{" + b"x" * 19, "The header of model.safetensors is damaged"),
        ],
    )
    def test_another_kind_of_file(self, folder: Path, content: bytes, words: str) -> None:
        (folder / "model.safetensors").write_bytes(content)
        assert refusal(folder).startswith(words)

    def test_header_entries_that_contradict_themselves(self, folder: Path) -> None:
        path, name = folder / "model.safetensors", "model.norm.weight"
        whole = path.read_bytes()
        for change, words in [
            ({"data_offsets": [0, 256]}, "two of its tensors overlap"),
            ({"data_offsets": [9, 3]}, "its shape or offsets are no sizes"),
            ({"shape": [65]}, "256 bytes do not make a [65] of F32"),
            ({"shape": [-64]}, "its shape or offsets are no sizes"),
            ({"shape": "64"}, "its shape or offsets are no sizes"),
            ({"data_offsets": 5}, "lacks dtype, shape or data_offsets"),
            ({"dtype": None}, "its element type is no name"),
            ({"dtype": "I8"}, "as I8; supported element types are F32, F16, BF16"),
        ]:
            path.write_bytes(whole)
            rewrite_header(path, lambda header, change=change: header[name].update(change))
            assert words in refusal(folder)

    def test_missing_tensor_is_named(self, folder: Path) -> None:
        path = folder / "model.safetensors"
        gone = "model.layers.1.mlp.up_proj.weight"
        write_safetensors(path, {k: v for k, v in read_safetensors(folder).items() if k != gone})
        assert refusal(folder) == f"model lacks the tensor {gone}: the model is not complete."
        write_safetensors(path, {"x": np.zeros(3, np.float32)})
        assert "lacks the tensor model.embed_tokens.weight and 19 more" in refusal(folder)

    def test_shape_against_the_config(self, folder: Path) -> None:
        values = json.loads((folder / "config.json").read_text())
        write_json(folder / "config.json", values | {"vocab_size": 320})
        assert refusal(folder) == (
            "model.safetensors holds model.embed_tokens.weight as [290, 64], but config.json calls for [320, 64]."
        )

    def test_buffers_nobody_needs_are_left_out(self, folder: Path) -> None:
        extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(8, np.float32)}
        write_safetensors(folder / "model.safetensors", read_safetensors(folder) | extra)
        assert len(open_folder(folder).entries) == 21

    def test_any_flipped_byte_is_a_model_or_a_sentence(self, folder: Path) -> None:
        path = folder / "model.safetensors"
        data = bytearray(path.read_bytes())
        (length,) = struct.unpack_from("<Q", data)
        chance, refused = random.Random(5), 0
        for _ in range(300):
            place, bit = chance.randrange(8 + length), 1 << chance.randrange(8)
            data[place] ^= bit
            path.write_bytes(data)
            try:
                read_header(path)
            except ModelFileError as error:
                assert "\n" not in str(error)
                refused += 1
            data[place] ^= bit
        assert refused > 50


class TestPickles:
    """C35: nothing that could run code is opened."""

    class Marker:
        def __init__(self, path: Path) -> None:
            self.path = path

        def __reduce__(self) -> Any:
            return (open, (str(self.path), "w"))

    def test_pickle_only_folder(self, folder: Path, tmp_path: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(self.Marker(tmp_path / "ran")))
        text = refusal(folder)
        assert "pytorch_model.bin" in text and "only safetensors and GGUF are read" in text
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("protocol", range(6))
    def test_pickle_named_safetensors(self, folder: Path, tmp_path: Path, protocol: int) -> None:
        content = pickle.dumps(self.Marker(tmp_path / "ran"), protocol)
        (folder / "model.safetensors").write_bytes(content)
        text = refusal(folder)
        assert text.startswith("model.safetensors is") and text.endswith("only safetensors and GGUF are read.")
        assert not (tmp_path / "ran").exists()

    def test_zip_named_safetensors(self, folder: Path) -> None:
        with zipfile.ZipFile(folder / "model.safetensors", "w") as archive:
            archive.writestr("archive/data.pkl", b"x")
        assert "is really a zip archive" in refusal(folder)

    def test_a_header_that_starts_like_a_pickle_is_read(self, folder: Path) -> None:
        path = folder / "model.safetensors"
        rewrite_header(path, lambda header: header.update(__metadata__={"pad": ""}))
        (length,) = struct.unpack_from("<Q", path.read_bytes())
        wanted = (length & ~0xFFFF) + 0x0480
        wanted += 0x10000 if wanted < length else 0
        pad = "x" * (wanted - length)
        rewrite_header(path, lambda header: header.update(__metadata__={"pad": pad}))
        assert path.read_bytes()[:2] == b"\x80\x04"
        assert len(open_folder(folder).entries) == 21
