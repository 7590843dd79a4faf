"""Which executor runs a model on which device: the one place where that is decided."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from engine.errors import BadSetting, SpecularError, is_out_of_memory
from engine.files.folder import ModelFolder
from engine.model.runner import Runner
from engine.recipe import Recipe
from engine.records import LoadProgress

if TYPE_CHECKING:
    from engine.model.host_mlps import HostSpeed

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

    refusal = _refusal()
    if refusal is None:
        return Placement("cuda", torch.cuda.get_device_name())
    note = f"An NVIDIA card is present, but {refusal}: the CPU is used."
    if wanted == "cuda":
        raise BadSetting(note)
    return _cpu(note)


def card_of(placement: Placement) -> str | None:
    """UUID of the card that a model was loaded onto, None for the CPU. Other programmes number cards otherwise."""
    if placement.device == "cpu":
        return None
    import torch

    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)


def make_runner(
    folder: ModelFolder,
    placement: Placement,
    capacity: int,
    recipe: Recipe | None,
    progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
    allowed: int,
    sample: Sequence[int] = (),
    *,
    virtual_memory: bool = True,
    budget: int | None = None,
    offload: bool = True,
) -> tuple[Runner, tuple[str, ...]]:
    """Load a checked folder onto its device; beside it a sentence for people where the fastest path was not to be had.

    recipe None takes the device's default; ids from `allowed` on, which only pad the vocabulary, are never chosen by
    a runner that chooses itself. sample: ids of a text by which the draft's weights are rounded.
    virtual_memory: whether the KV cache may lie in it. budget: bytes of the device's memory that the model may take,
    None for what is free; offload: whether parts of it may be brought in for every full pass where it does not fit.
    Raises LoadCancelled, BadSetting for a recipe the device cannot run, SpecularError with figures for a budget that is
    too small, and MemoryError.
    """
    if placement.device == "cpu" and _suits_compiled_kernels(folder):
        from engine.model.compiled_runner import CompiledRunner

        compiled = CompiledRunner(
            folder,
            capacity,
            recipe,
            progress,
            cancelled,
            sample,
            virtual_memory=virtual_memory,
            budget=budget,
            offload=offload,
        )
        return compiled, compiled.notes
    notes: tuple[str, ...] = ()
    if placement.device == "cuda":
        obstacle = _decode_obstacle(folder)
        if obstacle is None:
            try:
                from engine.model.graph_runner import GraphRunner
                from engine.offload.card_plan import CardPlanner

                graphs = GraphRunner(
                    folder,
                    capacity,
                    recipe,
                    progress,
                    cancelled,
                    placement.device,
                    allowed,
                    sample,
                    planner=CardPlanner(folder, capacity, offload=offload, host=_host_speed(folder)),
                    budget=budget,
                    virtual_memory=virtual_memory,
                )
                return graphs, graphs.notes
            except Exception as error:  # whatever a compiler, a driver or a broken package may raise: it is shown
                if isinstance(error, SpecularError) or is_out_of_memory(error):
                    raise
                obstacle = f"they could not be made ready ({_gist(error)})"
            _release_card()
        notes = (f"The decode kernels cannot run here, because {obstacle}; torch computes instead, more slowly.",)
    from engine.model import torch_runner

    wanted = recipe or torch_runner.DEFAULT_RECIPE
    torch_one = torch_runner.TorchRunner(
        folder, capacity, wanted, progress, cancelled, placement.device, virtual_memory=virtual_memory
    )
    return torch_one, notes


def _decode_obstacle(folder: ModelFolder) -> str | None:
    """Why the captured decode steps cannot run this model on this card, or None."""
    import torch

    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    capability = torch.cuda.get_device_capability()
    if capability < (7, 5):
        return "the card is older than compute capability 7.5"
    types = {entry.dtype for entry in folder.entries.values() if len(entry.shape) > 1}
    if len(types) > 1:
        return "the model's matrices are of different types"
    if types == {"BF16"} and capability < (8, 0):
        return "the card has no bfloat16 arithmetic of its own"
    from engine.model.fused import unsupported

    stored = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    reason = unsupported(folder.config, stored[types.pop()], frozenset(folder.entries))
    return None if reason is None else f"the model is not made for them ({reason})"


def _refusal() -> str | None:
    """Why torch cannot compute on the card that the driver sees, or None; found out by computing something."""
    import torch

    if torch.version.cuda is None:
        return "the installed torch was built without CUDA"
    try:
        if torch.cuda.is_available():
            torch.ones(8, device="cuda").sum().item()
            return None
    except RuntimeError as error:
        return "its memory is full" if is_out_of_memory(error) else f"torch cannot use it ({_gist(error)})"
    return f"its driver does not work with this torch, which needs CUDA {torch.version.cuda}"


def _release_card() -> None:
    """Give back what a runner that did not come to be still holds: the next one needs the room."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()


def _gist(error: Exception) -> str:
    """The line of an error's text that says most; a compiler's own sentence where it comes below a listing."""
    text = getattr(error, "error_message", None) or str(error)
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _cpu(note: str | None = None) -> Placement:
    return Placement("cpu", f"CPU, {os.cpu_count()} cores", (note,) if note else ())


def _suits_compiled_kernels(folder: ModelFolder) -> bool:
    """Eight-lane kernels need sizes in eights: every real model has them, some tiny test models do not."""
    config = folder.config
    sizes = (config.hidden_size, config.intermediate_size, config.output_width, config.head_dim // 2)
    return all(size % 8 == 0 for size in sizes)


def _host_speed(folder: ModelFolder) -> Callable[[], HostSpeed] | None:
    """Measures how fast the CPU computes a share of a card's model; None where it cannot."""
    from engine.model.host_mlps import measured_speed, suits

    return partial(measured_speed, folder) if suits(folder.config) else None


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
