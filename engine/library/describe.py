"""What a model is, from its headers: size, kind, context, what to know of it, and what it needs of this computer."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelFileError, SpecularError
from engine.files.config import ModelConfig, parse_config
from engine.files.folder import ModelFolder, open_folder
from engine.files.gguf_config import gguf_config, gguf_generation
from engine.files.gguf_convert import converted_path
from engine.files.gguf_reader import GgufFile, read_gguf
from engine.files.gguf_tensors import plan_tensors
from engine.files.not_numbers import not_numbers
from engine.files.resolve import locate
from engine.library.shelf import Entry
from engine.library.this_machine import Machine
from engine.model.loaded import capacity_of
from engine.offload.demands import DRAFT_WIDTHS
from engine.offload.estimate import Wanted, estimate
from engine.offload.rates import default_rates

# Bits a weight of the GGUF types, as people speak of them.
BITS = {"Q8_0": 8, "Q6_K": 6, "Q5_0": 5, "Q5_1": 5, "Q5_K": 5, "Q3_K": 3, "Q2_K": 2}
BITS |= dict.fromkeys(("Q4_0", "Q4_1", "Q4_K", "IQ4_NL", "IQ4_XS"), 4)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model on the list. nbytes: of its files. weights: their number. dtype: the type most bytes are stored in.

    context: tokens it was made for. verdict: "fits", "fits streamed" or "does not fit" on this computer, with
    `advice` where it is not the first; None where that cannot be told. notes: sentences to know before loading it.
    problem: why it cannot be loaded, in a sentence; the other values are then empty.
    """

    entry: Entry
    nbytes: int = 0
    family: str = ""
    weights: int = 0
    dtype: str = ""
    context: int = 0
    verdict: str | None = None
    advice: str = ""
    notes: tuple[str, ...] = ()
    problem: str | None = None


def describe(entry: Entry, machine: Machine | None, *, deep: bool = False) -> ModelCard:
    """The card of a model; never raises SpecularError: what is wrong with the model is its `problem`.

    machine: what to estimate for, None for no estimate. deep: whether tokenizer, template and samples of the weights
    are looked at too, which takes longer.
    """
    try:
        path = locate(entry.path)
        if path.is_dir():
            return _of_folder(entry, open_folder(path), machine, deep)
        return _of_gguf(entry, read_gguf(path), machine, deep)
    except SpecularError as error:
        return ModelCard(entry, problem=str(error))


def _of_folder(entry: Entry, folder: ModelFolder, machine: Machine | None, deep: bool) -> ModelCard:
    sizes = {name: tensor.nbytes for name, tensor in folder.entries.items()}
    notes = folder.notes
    if deep:
        notes = (*notes, *not_numbers(folder), *_text_notes(folder.path, entry.name))
    verdict, advice = _fit(folder.config, sizes, machine)
    return ModelCard(
        entry,
        nbytes=folder.total_bytes,
        family=folder.config.family,
        weights=sum(math.prod(tensor.shape) for tensor in folder.entries.values()),
        dtype=_commonest({name: (tensor.dtype, tensor.nbytes) for name, tensor in folder.entries.items()}),
        context=folder.config.context,
        verdict=verdict,
        advice=advice,
        notes=notes,
    )


def _of_gguf(entry: Entry, file: GgufFile, machine: Machine | None, deep: bool) -> ModelCard:
    config = parse_config(gguf_config(file), gguf_generation(file))
    plan = plan_tensors(file, config)
    dtype = _commonest({tensor.name: (tensor.source.kind.name, tensor.source.nbytes) for tensor in plan})
    verdict, advice = _fit(config, {tensor.name: tensor.nbytes for tensor in plan}, machine)
    return ModelCard(
        entry,
        nbytes=sum(path.stat().st_size for path in {tensor.file for tensor in file.tensors.values()}),
        family=config.family,
        weights=sum(math.prod(tensor.source.shape) for tensor in plan),
        dtype=dtype,
        context=config.context,
        verdict=verdict,
        advice=advice,
        notes=(*_quality(dtype), *(_gguf_text_notes(file, entry.name) if deep else ())),
    )


def _quality(dtype: str) -> tuple[str, ...]:
    """What a file's rounding means for quality, and for acceptance as it is measured."""
    bits = BITS.get(dtype)
    if bits is None:
        return ()
    if bits == 4:
        return ("4-bit source: a draft on the same grid would match it exactly.",)
    if bits < 4:
        return (f"{bits}-bit source: coarser than the four-bit draft that is made of it.",)
    return (f"{bits}-bit source.",)


def _commonest(tensors: Mapping[str, tuple[str, int]]) -> str:
    """The type that most bytes are in."""
    sizes: dict[str, int] = {}
    for dtype, nbytes in tensors.values():
        sizes[dtype] = sizes.get(dtype, 0) + nbytes
    return max(sizes, key=lambda name: sizes[name])


def _fit(config: ModelConfig, sizes: Mapping[str, int], machine: Machine | None) -> tuple[str | None, str]:
    """The verdict for a computer, with its usual context, and the first thing that would better it."""
    if machine is None or machine.memory.free.value is None:
        return None, ""
    free, device = int(machine.memory.free.value), machine.device
    made = estimate(
        Wanted(
            config,
            sizes,
            device,
            capacity_of(config, None),
            free,
            machine.memory,
            default_rates(device),
            DRAFT_WIDTHS[device],
        )
    )
    better = [fix for fix in made.fixes if fix.verdict is not made.verdict]
    helped = f"{better[0].text}: {better[0].verdict.value}." if better else ""
    return made.verdict.value, " ".join(text for text in (made.refusal or "", helped) if text)


def _text_notes(folder: Path, name: str) -> tuple[str, ...]:
    """What loading would say of the tokenizer and the chat template. Raises ModelFileError for a damaged one."""
    from engine.text.template import ChatTemplate
    from engine.text.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(folder)
    if tokenizer is None:
        return ("It has no tokenizer, so it takes token ids only.",)
    note = ChatTemplate.for_folder(folder, tokenizer, name).note
    return () if note is None else (note,)


def _gguf_text_notes(file: GgufFile, name: str) -> tuple[str, ...]:
    """The same of a GGUF file, whose tokenizer is written out for it unless it was before."""
    from engine.files.gguf_tokenizer import write_tokenizer

    target = converted_path(file.path)
    if target.is_dir():
        return _text_notes(target, name)
    with tempfile.TemporaryDirectory(prefix="specular-") as scratch:
        try:
            notes = write_tokenizer(file, Path(scratch))
        except OSError as error:
            raise ModelFileError(f"The tokenizer of {file.path.name} cannot be looked at: {error}.") from error
        if not (Path(scratch) / "tokenizer.json").is_file():
            return notes
        return (*notes, *_text_notes(Path(scratch), name))
