"""The tensors of a GGUF file on their way into a safetensors file: names, row order, element types.

Everything is done piece by piece, so that no whole matrix is ever held.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ModelFileError
from engine.files.checks import expected_tensors
from engine.files.config import ModelConfig
from engine.files.gguf_families import FAMILIES
from engine.files.gguf_names import is_interleaved, matrices_of
from engine.files.gguf_reader import GgufFile, GgufTensor
from engine.files.gguf_types import stored_dtype
from engine.files.safetensors_header import ITEM_BYTES
from engine.files.wording import shown

if TYPE_CHECKING:
    import numpy as np

PIECE_VALUES = 2**20  # values dequantised at a time


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """One tensor to write: where it comes from, its name and element type in the new file, its bytes there.

    heads: for rows that are stored with each head's halves interleaved, how many heads there are; else None.
    """

    source: GgufTensor
    name: str
    dtype: str
    nbytes: int
    heads: int | None = None


def plan_tensors(file: GgufFile, config: ModelConfig) -> list[PlannedTensor]:
    """What will be written, in the order of the model, checked against the config.

    Raises ModelFileError naming the first tensor that is missing or has the wrong shape.
    """
    family, shapes = FAMILIES[file.metadata["general.architecture"]], expected_tensors(config)
    found: dict[str, GgufTensor] = {}
    for stored in file.tensors.values():
        found |= matrices_of(stored, family, shapes)
    plan = []
    for name, shape in shapes.items():
        tensor = found.get(name)
        if tensor is None:
            raise ModelFileError(f"{file.path.name} lacks the tensor for {name}: the model is not complete.")
        if tensor.shape != shape:
            raise ModelFileError(
                f"{file.path.name} holds {tensor.name} as {shown(list(tensor.shape))}, "
                f"but its metadata calls for {list(shape)}."
            )
        dtype = stored_dtype(tensor.kind.name, len(shape))
        heads = None
        if family.interleaved and is_interleaved(tensor.name):
            heads = config.heads if ".attn_q." in tensor.name else config.kv_heads
        plan.append(PlannedTensor(tensor, name, dtype, math.prod(shape) * ITEM_BYTES[dtype], heads))
    return plan


def safetensors_header(plan: list[PlannedTensor]) -> bytes:
    """The length and header of the safetensors file that holds the planned tensors one after another."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in plan:
        span = [offset, offset + tensor.nbytes]
        header[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.source.shape), "data_offsets": span}
        offset += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)  # data starts aligned for any vector width
    return struct.pack("<Q", len(text)) + text


def converted_pieces(tensor: PlannedTensor) -> Iterator[np.ndarray]:
    """The tensor in its new element type and the usual row order, some rows at a time, read from its GGUF file.

    Raises ModelFileError for a value that is no number (NaN or infinite), also once it is in the new type.
    """
    import numpy as np

    source, heads = tensor.source, tensor.heads
    # A bias of Q or K is reordered too: it is a column of rows. Any other vector is one row.
    column = heads is not None and len(source.shape) == 1
    rows = source.shape[0] if column else math.prod(source.shape[:-1])
    columns = math.prod(source.shape) // rows
    stored = np.memmap(source.file, np.uint8, "r", source.offset, (rows, source.nbytes // rows))
    order = None if heads is None else _row_order(rows, heads)
    step = max(1, PIECE_VALUES // columns)
    for start in range(0, rows, step):
        piece = stored[start : start + step] if order is None else stored[order[start : start + step]]
        yield _values(piece, tensor)


def _row_order(rows: int, heads: int) -> np.ndarray:
    """For each row of the usual order, the row of the GGUF order that holds it (llama.cpp interleaves halves)."""
    import numpy as np

    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(rows)


def _values(rows: np.ndarray, tensor: PlannedTensor) -> np.ndarray:
    import numpy as np
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    kind = tensor.source.kind.name
    if kind == tensor.dtype:
        return np.ascontiguousarray(rows)
    with np.errstate(all="ignore"):  # infinite scales of a damaged file are found below
        values = dequantize(np.ascontiguousarray(rows), GGMLQuantizationType[kind])
        values = values.astype(np.float32 if tensor.dtype == "F32" else np.float16, copy=False)
    if not np.isfinite(values).all():
        raise ModelFileError(f"The tensor {tensor.source.name} has values that are no {tensor.dtype} numbers.")
    return np.ascontiguousarray(values)
