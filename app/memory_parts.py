"""What fills the memory that a model is in, as parts of one bar. Plain data: no Qt.

Names and reasons are written in English here and translated when they are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.declaration import QT_TRANSLATE_NOOP
from app.monitor import Sample
from engine.memory.report import KvMemory
from engine.offload.plan import Plan, Residency
from engine.probes.reading import Measure
from engine.records import ModelInfo

WEIGHTS = QT_TRANSLATE_NOOP("Memory", "Weights")
SLOTS = QT_TRANSLATE_NOOP("Memory", "Streaming slots")
DRAFT = QT_TRANSLATE_NOOP("Memory", "Draft copy")
KV_USED = QT_TRANSLATE_NOOP("Memory", "KV used")
KV_MAPPED = QT_TRANSLATE_NOOP("Memory", "KV mapped")
KV_POOL = QT_TRANSLATE_NOOP("Memory", "KV pool")
WORKSPACE = QT_TRANSLATE_NOOP("Memory", "Workspace")
OTHERS = QT_TRANSLATE_NOOP("Memory", "Other programs")
SHARED = QT_TRANSLATE_NOOP("Memory", "Workspace, others")
FREE = QT_TRANSLATE_NOOP("Memory", "Free")

WORKSPACE_HELP = QT_TRANSLATE_NOOP(
    "Memory", "Everything else this program holds: code, libraries, buffers of the passes and the allocator's cache."
)
SHARED_HELP = QT_TRANSLATE_NOOP(
    "Memory", "All that is in use beside the model. How much of it is this program's is not known: {reason}"
)
SLOTS_HELP = QT_TRANSLATE_NOOP("Memory", "Room in which the weights that did not fit take turns, pass by pass.")
MAPPED_HELP = QT_TRANSLATE_NOOP("Memory", "Mapped for the KV cache beyond the rows that are used.")
POOL_HELP = QT_TRANSLATE_NOOP("Memory", "Pages created ahead for the KV cache, to which nothing is mapped.")
PARTLY_READ = QT_TRANSLATE_NOOP(
    "Memory", "Weights are mapped from their file and come into memory as they are read; not all of them have been."
)
NOT_ALL = QT_TRANSLATE_NOOP("Memory", "The driver counts less for this program than the model alone takes.")
NO_MODEL = QT_TRANSLATE_NOOP("Memory", "No model is loaded.")


KV_PARTS = ((KV_USED, "kv_used"), (KV_MAPPED, "kv_mapped"))


def size_text(size: float) -> str:
    """Bytes for people: "5.5 GiB", "257 MiB", "512 KiB", "0 B"."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale * 0.9995:
            value = size / scale
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
    return f"{size:.0f} B"


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One piece of the bar and one row of its list. role: its colour. bytes None: not known, and `reason` says why.

    help: what it is, where the name does not say all; it may hold "{reason}". foreign: of other programs, drawn from
    the right.
    """

    name: str
    role: str
    bytes: float | None
    reason: str = ""
    help: str = ""
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPicture:
    """The memory of the model's card, or RAM where it is on none. `own`: what this program takes of `total`, in bytes.

    The parts that are known, with what is free, never exceed the total. budget: what this program's model may take,
    in bytes; None where none was set. figure: how sizes are written.
    """

    on_card: bool
    total: Measure
    own: Measure
    parts: tuple[MemoryPart, ...]
    budget: float | None = None
    figure: Callable[[float], str] = size_text


def memory_picture(sample: Sample, info: ModelInfo | None) -> MemoryPicture:
    """The parts in the order of the bar: ours from the left, then what is free, then what others hold."""
    card, host = sample.card, sample.host
    plan = sample.offload.plan if sample.offload is not None else None
    model = _model_parts(info, sample.kv, plan, card is not None)
    known = sum(part.bytes or 0.0 for part in model)
    if card is not None:
        total, own, used = card.total, card.own, card.used
        free = _difference(total, used)
    else:
        # The system counts file pages that this program has mapped among what can be had; here they are the program's.
        total, own = host.total, host.own
        private = _difference(own, host.own_mapped)
        others = _difference(_difference(total, host.available), private)
        used = _sum(own, others)
        free = _difference(total, _sum(others, Measure(max(known, own.value or 0.0))))
    ours, foreign = _rest(own, used, known, mapped=card is None)
    parts = (*model, *ours, MemoryPart(FREE, "free", *_both(free)), *foreign)
    return MemoryPicture(card is not None, total, own, parts, float(plan.budget) if plan is not None else None)


def _both(measure: Measure) -> tuple[float | None, str]:
    return measure.value, measure.reason


def _model_parts(
    info: ModelInfo | None, kv: KvMemory | None, plan: Plan | None, on_card: bool
) -> tuple[MemoryPart, ...]:
    if info is None:
        rows = ((WEIGHTS, "cpu"), (DRAFT, "draft"), *KV_PARTS)
        return tuple(MemoryPart(name, role, None, NO_MODEL) for name, role in rows)
    weights = info.weights_bytes if plan is None else plan.always + plan.bytes_of(Residency.RESIDENT)
    slots = 0 if plan is None else plan.slots * plan.slot_bytes
    parts = [
        MemoryPart(WEIGHTS, "gpu" if on_card else "cpu", float(weights)),
        *([MemoryPart(SLOTS, "wait", float(slots), help=SLOTS_HELP)] if slots else []),
        MemoryPart(DRAFT, "draft", float(info.draft_bytes)),
    ]
    if kv is None:
        return (*parts, *(MemoryPart(name, role, None, NO_MODEL) for name, role in KV_PARTS))
    parts.append(MemoryPart(KV_USED, "kv_used", float(kv.used)))
    parts.append(MemoryPart(KV_MAPPED, "kv_mapped", float(max(0, kv.fragmentation)), help=MAPPED_HELP))
    if kv.page_bytes:
        parts.append(MemoryPart(KV_POOL, "cache", float(kv.pool), help=POOL_HELP))
    return tuple(parts)


def _rest(
    own: Measure, used: Measure, model: float, *, mapped: bool
) -> tuple[tuple[MemoryPart, ...], tuple[MemoryPart, ...]]:
    """What this program holds beside the model, and what others do; in one piece where it cannot be told apart."""
    if own.value is None:
        shared = None if used.value is None else max(0.0, used.value - model)
        reason = own.reason if shared is not None else used.reason
        return (), (MemoryPart(SHARED, "other", shared, reason, SHARED_HELP, foreign=True),)
    workspace = Measure(own.value - model)
    if own.value < model:
        workspace = Measure(None, PARTLY_READ if mapped else NOT_ALL)
    return (
        (MemoryPart(WORKSPACE, "workspace", *_both(workspace), WORKSPACE_HELP),),
        (MemoryPart(OTHERS, "other", *_both(_difference(used, own)), foreign=True),),
    )


def _difference(whole: Measure, part: Measure) -> Measure:
    if whole.value is None or part.value is None:
        return Measure(None, whole.reason or part.reason)
    return Measure(max(0.0, whole.value - part.value))


def _sum(one: Measure, other: Measure) -> Measure:
    if one.value is None or other.value is None:
        return Measure(None, one.reason or other.reason)
    return Measure(one.value + other.value)
