"""A model folder: its config and its tensors, checked from the headers alone and then mapped, never copied whole."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import ModelFileError
from engine.files.checks import HEAD, expected_tensors, needed_entries
from engine.files.config import ModelConfig, read_config
from engine.files.disguise import unreadable
from engine.files.json_file import read_json
from engine.files.safetensors_header import ITEM_BYTES, TensorEntry
from engine.files.shards import read_all_headers
from engine.files.stored_names import our_entries
from engine.files.wording import shown

if TYPE_CHECKING:
    import torch

ORIGIN = "specular.json"
# Ends of the names of buffers that older versions of transformers saved though they follow from the config.
OLD_BUFFERS = (".inv_freq", ".attn.bias", ".masked_bias", ".embed_positions.position_ids")
EXTRA_SHOWN = 3


class ModelFolder:
    """An opened model folder.

    config: the shape, `tied_embeddings` also true where the files hold no lm_head.
    entries: exactly the tensors the model needs, by our names (LLaMA's), in the order of the model; where a file keeps
        several matrices in one tensor, each is an entry.
    notes: sentences from a conversion that the user should see once.
    """

    def __init__(
        self, path: Path, config: ModelConfig, entries: Mapping[str, TensorEntry], notes: tuple[str, ...]
    ) -> None:
        self.path = path
        self.config = config
        self.entries = MappingProxyType(dict(entries))
        self.notes = notes
        self._maps: dict[Path, mmap.mmap] = {}

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors as they lie in the files."""
        return sum(entry.nbytes for entry in self.entries.values())

    def tensor(self, name: str) -> torch.Tensor:
        """The tensor as a view of the mapped file, in the file's element type; pages are read when touched.

        The mapping is private: writing to the tensor never reaches the file. A tensor whose place in the file is
        not aligned to its element size is copied. Raises KeyError for a name not in `entries`, ModelFileError when
        the file has changed since it was opened.
        """
        import torch

        dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[self.entries[name].dtype]
        entry = self.entries[name]
        mapped = self._map(entry.file)
        if entry.offset + entry.nbytes > len(mapped):
            raise ModelFileError(f"{entry.file.name} has become shorter since the model was opened.")
        if entry.offset % ITEM_BYTES[entry.dtype]:
            flat = torch.frombuffer(bytearray(mapped[entry.offset : entry.offset + entry.nbytes]), dtype=dtype)
        else:
            count = entry.nbytes // ITEM_BYTES[entry.dtype]
            flat = torch.frombuffer(mapped, dtype=dtype, count=count, offset=entry.offset)
        return flat.view(entry.shape)

    def _map(self, path: Path) -> mmap.mmap:
        if path not in self._maps:
            try:
                with path.open("rb") as file:
                    self._maps[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            except (OSError, ValueError) as error:
                cause = error if isinstance(error, OSError) else OSError(str(error))
                raise unreadable(path, cause) from error
        return self._maps[path]

    def close(self) -> None:
        """Let go of the mapped files; tensors taken before stay valid and keep their file mapped."""
        self._maps.clear()


def open_folder(path: str | Path) -> ModelFolder:
    """Open a folder with config.json and safetensors files; reads headers only, takes no memory for weights.

    Raises ModelFileError with one sentence naming the file and the cause for everything that is wrong with it.
    """
    folder = Path(path)
    if not folder.exists():
        raise ModelFileError(f"The folder {folder} does not exist.")
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is a file, not a model folder.")
    try:
        config = read_config(folder)
        found = read_all_headers(folder)
    except OSError as error:
        raise unreadable(folder, error) from error
    if HEAD not in found:
        config = replace(config, tied_embeddings=True)
    shapes = expected_tensors(config)
    needed = needed_entries(config, our_entries(config, found, shapes), folder.name)
    return ModelFolder(folder, config, needed, _notes(folder) + _left_out(config, found, needed, folder.name))


def _left_out(
    config: ModelConfig, found: Mapping[str, TensorEntry], needed: Mapping[str, TensorEntry], where: str
) -> tuple[str, ...]:
    """A note naming tensors that the model has no use for; buffers of older formats and a tied head are none."""
    used = {(entry.file, entry.offset) for entry in needed.values()}
    extra = [name for name, entry in found.items() if (entry.file, entry.offset) not in used]
    extra = [name for name in extra if not name.endswith(OLD_BUFFERS) and name != HEAD]
    if not extra:
        return ()
    names = ", ".join(shown(name) for name in extra[:EXTRA_SHOWN])
    more = f" and {len(extra) - EXTRA_SHOWN} more" if len(extra) > EXTRA_SHOWN else ""
    verb = "was" if len(extra) == 1 else "were"
    what = "a tensor" if len(extra) == 1 else f"{len(extra)} tensors"
    return (
        f"{where} holds {what} that a {config.family} model has no place for, which {verb} left out: {names}{more}.",
    )


def _notes(folder: Path) -> tuple[str, ...]:
    if not (folder / ORIGIN).is_file():
        return ()
    notes = read_json(folder / ORIGIN).get("notes", [])
    return tuple(str(note) for note in notes) if isinstance(notes, list) else ()
