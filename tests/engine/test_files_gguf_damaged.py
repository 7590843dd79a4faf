"""GGUF files that cannot be read: C33 (cut, empty, disguised) and types or shapes that are not supported."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from builders import byte_tokenizer, tiny_llama, write_gguf
from engine.errors import ModelFileError
from engine.files.gguf_convert import convert
from engine.files.gguf_reader import read_gguf
from engine.files.paths import cache_dir


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


class TestDamaged:
    """C33: cut, empty, disguised."""

    def test_cut_at_60_percent(self, source: Path) -> None:
        whole = source.read_bytes()
        source.write_bytes(whole[: len(whole) * 6 // 10])
        text = refusal(source)
        assert text.startswith(f"small.gguf is cut short: it has {len(whole) * 6 // 10:,} of ")
        assert text.endswith("so the download is not complete.")

    def test_cut_anywhere_inside_the_header(self, source: Path) -> None:
        whole = source.read_bytes()
        end = min(tensor.offset for tensor in read_gguf(source).tensors.values())
        for size in [4, 7, 8, 15, 16, 23, 24, *range(25, end - 64, 97)]:
            source.write_bytes(whole[:size])
            assert refusal(source) == "small.gguf is cut inside its header: the download is not complete."

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "small.gguf is empty: the download is not complete."),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "small.gguf is a Git LFS pointer"),
            (b"ggjt" + bytes(100), "small.gguf is not a GGUF file, whatever its name says"),
            (b"PK\x03\x04" + bytes(100), "small.gguf is really a zip archive"),
            (b"GGUF" + struct.pack("<I", 1) + bytes(100), "small.gguf is GGUF version 1; versions 2 and 3"),
            (b"GGUF" + struct.pack(">I", 3) + bytes(100), "small.gguf is GGUF version 50331648"),
            (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 1), "small.gguf is damaged: it claims 1,152,921,504,606,846,976"),
        ],
    )
    def test_another_kind_of_file(self, source: Path, content: bytes, words: str) -> None:
        source.write_bytes(content)
        assert refusal(source).startswith(words)

    def test_any_flipped_byte_is_a_header_or_a_sentence(self, source: Path) -> None:
        data = bytearray(source.read_bytes())
        end = min(tensor.offset for tensor in read_gguf(source).tensors.values())
        chance, refused = random.Random(7), 0
        for _ in range(200):
            place, bit = chance.randrange(end), 1 << chance.randrange(8)
            data[place] ^= bit
            source.write_bytes(data)
            try:
                read_gguf(source)
            except ModelFileError as error:
                assert "\n" not in str(error)
                refused += 1
            data[place] ^= bit
        assert refused > 20


class TestUnsupported:
    """Refused by name, with what is supported, before anything is converted."""

    def patched(self, source: Path, before: bytes, after: bytes) -> Path:
        data = source.read_bytes()
        assert data.count(before) == 1 and len(before) == len(after)
        source.write_bytes(data.replace(before, after))
        return source

    @pytest.mark.parametrize(("code", "name"), [(16, "IQ2_XXS"), (19, "IQ1_S"), (99, "number 99"), (24, "I8")])
    def test_tensor_type(self, source: Path, code: int, name: str) -> None:
        info = b"blk.0.attn_v.weight" + struct.pack("<IQQ", 2, 64, 32)
        self.patched(source, info + struct.pack("<I", 1), info + struct.pack("<I", code))
        assert refusal(source) == (
            f"small.gguf holds blk.0.attn_v.weight as {name}; supported tensor types are F32, F16, Q4_0, Q4_1, Q5_0, "
            "Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16."
        )

    def test_architecture(self, source: Path) -> None:
        value = b"general.architecture" + struct.pack("<IQ", 8, 5)
        self.patched(source, value + b"llama", value + b"bloom")
        assert (
            refusal(source)
            == "small.gguf has the architecture bloom; supported are llama, qwen2, qwen3, smollm3, phi3."
        )

    def test_missing_tensor(self, source: Path) -> None:
        self.patched(source, b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight")
        assert refusal(source) == (
            "small.gguf lacks the tensor for model.layers.1.mlp.up_proj.weight: the model is not complete."
        )

    def test_shape_against_the_metadata(self, source: Path) -> None:
        value = b"llama.feed_forward_length" + struct.pack("<I", 4)
        self.patched(source, value + struct.pack("<I", 128), value + struct.pack("<I", 96))
        assert refusal(source) == (
            "small.gguf holds blk.0.ffn_gate.weight as [128, 64], but its metadata calls for [96, 64]."
        )

    def test_missing_metadata(self, source: Path) -> None:
        self.patched(source, b"llama.context_length", b"llama.context_lengtx")
        assert refusal(source) == "small.gguf lacks the metadata llama.context_length."
