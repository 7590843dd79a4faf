"""Which executor runs a model on which device: the one place where that is decided."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import BadSetting
from engine.files.folder import ModelFolder
from engine.model.runner import Runner
from engine.recipe import Recipe
from engine.records import LoadProgress

DEVICES = ("cuda", "cpu")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model runs. name: for people ("NVIDIA GeForce RTX 4070", "CPU, 2 cores"); notes: why, if it surprises."""

    device: str
    name: str
    notes: tuple[str, ...] = ()


def choose_device(wanted: str | None) -> Placement:
    """The wanted device, or the best one: a CUDA card where there is one, else the CPU. Never imports torch for a CPU.

    Raises BadSetting when a device is wanted that this machine does not have.
    """
    if wanted not in (None, *DEVICES):
        raise BadSetting(f"The device {wanted!r} is not known; there are {' and '.join(DEVICES)}.")
    if wanted == "cpu":
        return _cpu()
    if not _driver_sees_card():
        if wanted == "cuda":
            raise BadSetting("No NVIDIA card was found on this computer.")
        return _cpu()
    import torch

    if torch.cuda.is_available():
        return Placement("cuda", torch.cuda.get_device_name())
    note = "An NVIDIA card is present, but the installed torch was built without CUDA: the CPU is used."
    if wanted == "cuda":
        raise BadSetting(note)
    return _cpu(note)


def make_runner(
    folder: ModelFolder,
    placement: Placement,
    capacity: int,
    recipe: Recipe | None,
    progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
    allowed: int,
) -> Runner:
    """Load a checked folder onto its device. recipe None takes the device's default; ids from `allowed` on, which
    only pad the vocabulary, are never chosen by a runner that chooses itself.

    Raises LoadCancelled, BadSetting for a recipe the device cannot run, and MemoryError.
    """
    if placement.device == "cpu" and _suits_compiled_kernels(folder):
        from engine.model.compiled_runner import DEFAULT_RECIPE, CompiledRunner

        return CompiledRunner(folder, capacity, recipe or DEFAULT_RECIPE, progress, cancelled)
    if placement.device == "cuda" and _decode_obstacle(folder) is None:
        from engine.model.graph_runner import GraphRunner

        return GraphRunner(folder, capacity, recipe, progress, cancelled, placement.device, allowed)
    from engine.model import torch_runner

    return torch_runner.TorchRunner(
        folder, capacity, recipe or torch_runner.DEFAULT_RECIPE, progress, cancelled, placement.device
    )


def _decode_obstacle(folder: ModelFolder) -> str | None:
    """Why the captured decode steps cannot run this model here, or None."""
    import torch

    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if torch.cuda.get_device_capability() < (7, 5):
        return "the card is older than compute capability 7.5"
    from engine.model.fused import unsupported

    stored = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    embedding = folder.entries["model.embed_tokens.weight"]
    return unsupported(folder.config, stored[embedding.dtype], frozenset(folder.entries))


def _cpu(note: str | None = None) -> Placement:
    return Placement("cpu", f"CPU, {os.cpu_count()} cores", (note,) if note else ())


def _suits_compiled_kernels(folder: ModelFolder) -> bool:
    """Eight-lane kernels need sizes in eights: every real model has them, some tiny test models do not."""
    config = folder.config
    return all(size % 8 == 0 for size in (config.hidden_size, config.intermediate_size, config.head_dim // 2))


def _driver_sees_card() -> bool:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no driver, no library, or the two differ: there is no card to use
        return False
    try:
        return bool(pynvml.nvmlDeviceGetCount() > 0)
    finally:
        pynvml.nvmlShutdown()
