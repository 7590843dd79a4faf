"""The GGUF tensor types that are read: how their blocks are laid out and what they become in safetensors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GgufType:
    """A tensor type: `block_values` values take `block_bytes` bytes, along a row."""

    name: str
    block_values: int
    block_bytes: int


# Source: the ggml type list, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
TYPES = {
    0: GgufType("F32", 1, 4),
    1: GgufType("F16", 1, 2),
    2: GgufType("Q4_0", 32, 18),
    3: GgufType("Q4_1", 32, 20),
    6: GgufType("Q5_0", 32, 22),
    7: GgufType("Q5_1", 32, 24),
    8: GgufType("Q8_0", 32, 34),
    10: GgufType("Q2_K", 256, 84),
    11: GgufType("Q3_K", 256, 110),
    12: GgufType("Q4_K", 256, 144),
    13: GgufType("Q5_K", 256, 176),
    14: GgufType("Q6_K", 256, 210),
    20: GgufType("IQ4_NL", 32, 18),
    23: GgufType("IQ4_XS", 256, 136),
    30: GgufType("BF16", 1, 2),
}
SUPPORTED = ", ".join(kind.name for kind in TYPES.values())


def type_name(code: int) -> str:
    """The public name of a type code that is not read, for the refusal."""
    from gguf.constants import GGMLQuantizationType

    try:
        return GGMLQuantizationType(code).name
    except ValueError:
        return f"number {code}"


def stored_dtype(kind: str, dimensions: int) -> str:
    """The safetensors element type a tensor is converted to.

    Float types stay as they are. Quantised matrices become F16, which holds a block's values to its own precision.
    Vectors (norms) become F32: they are tiny, and the norm is computed in float32.
    """
    if dimensions == 1:
        return "F32"
    return kind if kind in ("F32", "F16", "BF16") else "F16"
