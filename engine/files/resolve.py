"""From what a user names as a model to a folder that can be opened, and what that model will need in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelFileError
from engine.files import starter
from engine.files.config import ModelConfig, parse_config
from engine.files.disguise import missing, read_start, unreadable
from engine.files.folder import open_folder
from engine.files.gguf_config import gguf_config, gguf_generation
from engine.files.gguf_convert import convert, converted_path
from engine.files.gguf_parts import part_paths
from engine.files.gguf_reader import read_gguf
from engine.files.gguf_tensors import plan_tensors
from engine.records import LoadProgress

STARTER = "starter"


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """Bytes a model will need: its weights as stored, and its KV cache per token of context in either width.

    values: number of weights, from which other widths can be worked out.
    """

    weights_bytes: int
    values: int
    kv_bytes_per_token_f16: int
    kv_bytes_per_token_f32: int


def resolve(model: str, progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]) -> Path:
    """The folder of "starter", of a model folder or of a .gguf file; a GGUF is converted when it was not before.

    The folder is not checked further: that is what `open_folder` does.
    Raises ModelFileError for anything else, LoadCancelled, and what `convert` raises.
    """
    path = locate(model)
    return path if path.is_dir() else convert(path, progress, cancelled)


def locate(model: str) -> Path:
    """The model folder or GGUF file that `model` names; nothing is converted.

    A folder without config.json but with one GGUF file stands for that file.
    Raises ModelFileError when there is no such thing.
    """
    if not model.strip():
        raise ModelFileError('No model is named: give "starter", a model folder or a .gguf file.')
    if model == STARTER:
        if not starter.is_installed():
            raise ModelFileError(
                f"The starter model is not at {starter.starter_path()}: run python3 run.py setup to fetch it."
            )
        return starter.starter_path()
    try:
        return _on_disk(Path(model).expanduser())
    except OSError as error:
        raise unreadable(Path(model), error) from error
    except RuntimeError as error:  # "~name" of nobody
        raise ModelFileError(f"{model} does not exist: {error}") from error


def _on_disk(path: Path) -> Path:
    if path.is_dir():
        return _only_gguf(path) or path
    if path.is_symlink() and not path.exists():
        raise ModelFileError(f"{missing(path)}.")
    if not path.exists():
        raise ModelFileError(f'{path} does not exist: give "starter", a model folder or a .gguf file.')
    if path.suffix.lower() != ".gguf" and read_start(path, 4) != b"GGUF":
        raise ModelFileError(f"{path} is neither a model folder nor a .gguf file.")
    return path.absolute()


def _only_gguf(folder: Path) -> Path | None:
    if (folder / "config.json").exists():
        return None
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".gguf")
    if len({part_paths(path)[0].name for path in files}) > 1:
        names = ", ".join(path.name for path in files[:4])
        raise ModelFileError(f"{folder} holds {len(files)} GGUF files; open one of them ({names}).")
    return files[0].absolute() if files else None


@dataclass(frozen=True, slots=True)
class Headers:
    """What a model's headers say. sizes: bytes of every tensor by name, for a GGUF as they will be after conversion.

    values: number of weights.
    """

    config: ModelConfig
    sizes: dict[str, int]
    values: int


def read_headers(path: str | Path) -> Headers:
    """Of a model folder, a GGUF file or "starter"; nothing is converted or mapped. Raises ModelFileError as opening
    would."""
    located = locate(str(path))
    if not located.is_dir() and converted_path(located).is_dir():
        located = converted_path(located)
    if located.is_dir():
        folder = open_folder(located)
        sizes = {name: entry.nbytes for name, entry in folder.entries.items()}
        return Headers(folder.config, sizes, sum(math.prod(entry.shape) for entry in folder.entries.values()))
    file = read_gguf(located)
    config = parse_config(gguf_config(file), gguf_generation(file))
    plan = plan_tensors(file, config)
    values = sum(math.prod(tensor.source.shape) for tensor in plan)
    return Headers(config, {tensor.name: tensor.nbytes for tensor in plan}, values)


def estimate_bytes(path: str | Path) -> SizeEstimate:
    """What a model will need: see `read_headers`."""
    found = read_headers(path)
    kv_values = 2 * found.config.layers * found.config.kv_heads * found.config.head_dim
    return SizeEstimate(sum(found.sizes.values()), found.values, 2 * kv_values, 4 * kv_values)
