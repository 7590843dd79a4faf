"""A forecast as parts of the memory bar and as sentences. Plain data: no Qt. Texts are translated when shown."""

from __future__ import annotations

from app.declaration import QT_TRANSLATE_NOOP
from app.memory_parts import DRAFT, FREE, OTHERS, SLOTS, SLOTS_HELP, WEIGHTS, WORKSPACE, MemoryPart, MemoryPicture
from app.words import Words, words
from engine.offload.outlook import Help, Outlook

KV = QT_TRANSLATE_NOOP("Memory", "KV cache, full")
STREAMED = QT_TRANSLATE_NOOP("Memory", "Streamed weights")
STREAMED_HELP = QT_TRANSLATE_NOOP(
    "Memory", "Not part of the budget: they stay outside and are brought in for every full pass."
)
KV_HELP = QT_TRANSLATE_NOOP("Memory", "What the rows take once the whole context is filled.")
WORKSPACE_HELP = QT_TRANSLATE_NOOP("Memory", "Buffers of the passes and what the driver takes.")
TOO_LARGE = QT_TRANSLATE_NOOP("Memory", "The model does not fit this budget.")
FITS, STREAMS, NOT = "fits", "fits streamed", "does not fit"  # engine.offload.estimate.Verdict


def gigabytes(size: float) -> str:
    """Bytes in the unit of the budget: "5.52 GB", "0.135 GB"."""
    digits = 1 if size >= 1e11 else 2 if size >= 1e9 else 3
    return f"{size / 1e9:.{digits}f} GB"


def picture_of(outlook: Outlook) -> MemoryPicture:
    """The memory as it would be, with the budget's mark."""
    fits = outlook.peak is not None

    def part(name: str, role: str, size: int | None, help: str = "") -> MemoryPart:
        return MemoryPart(name, role, None if size is None else float(size), "" if fits else TOO_LARGE, help)

    parts = [
        part(WEIGHTS, "gpu" if outlook.on_card else "cpu", outlook.resident),
        *([part(SLOTS, "wait", outlook.slots, SLOTS_HELP)] if outlook.slots else []),
        part(DRAFT, "draft", outlook.draft),
        part(KV, "kv_used", outlook.kv if fits else None, KV_HELP),
        part(WORKSPACE, "workspace", outlook.workspace if fits else None, WORKSPACE_HELP),
    ]
    free, total = outlook.free, outlook.total
    left = None if free.value is None or outlook.peak is None else max(0.0, free.value - outlook.peak)
    others = None if total.value is None or free.value is None else max(0.0, total.value - free.value)
    parts.append(MemoryPart(FREE, "free", left, free.reason or ("" if fits else TOO_LARGE)))
    parts.append(MemoryPart(OTHERS, "other", others, total.reason or free.reason, foreign=True))
    return MemoryPicture(outlook.on_card, total, total, tuple(parts), float(outlook.limit), figure=gigabytes)


def with_streamed(picture: MemoryPicture, outlook: Outlook) -> MemoryPicture:
    """The same for the list below the bar, which also tells what lies outside the budget."""
    if not outlook.streamed:
        return picture
    first, *rest = picture.parts
    part = MemoryPart(STREAMED, "wait", float(outlook.streamed), help=STREAMED_HELP)
    return MemoryPicture(
        picture.on_card, picture.total, picture.own, (first, part, *rest), picture.budget, figure=picture.figure
    )


def verdict_words(outlook: Outlook) -> Words:
    """Whether it fits, in one sentence."""
    if outlook.verdict == FITS:
        return words(QT_TRANSLATE_NOOP("Budget", "Fits: all of the model stays in memory."))
    if outlook.verdict == STREAMS:
        return words(
            QT_TRANSLATE_NOOP("Budget", "Fits with {count} of {parts} parts streamed."),
            count=str(outlook.streamed_parts),
            parts=str(outlook.parts),
        )
    return words(
        QT_TRANSLATE_NOOP("Budget", "Does not fit: at least {least} are needed."), least=least_words(outlook.least)
    )


def speed_words(outlook: Outlook) -> Words:
    """What speed is to be expected."""
    if outlook.plain is None:
        return words("")
    plain = f"{outlook.plain:.1f}"
    if outlook.speculative is None:
        return words(QT_TRANSLATE_NOOP("Budget", "About {plain} tok/s plain; no draft."), plain=plain)
    return words(
        QT_TRANSLATE_NOOP("Budget", "About {plain} tok/s plain, {speculative} with speculation."),
        plain=plain,
        speculative=f"{outlook.speculative:.1f}",
    )


def help_words(fix: Help) -> Words:
    """What would help, and what it brings."""
    texts = {
        "context": QT_TRANSLATE_NOOP("Budget", "A context of {amount} tokens: {verdict}, about {speed} tok/s."),
        "budget": QT_TRANSLATE_NOOP("Budget", "A budget of {amount}: {verdict}, about {speed} tok/s."),
        "no draft": QT_TRANSLATE_NOOP("Budget", "No draft: {verdict}, about {speed} tok/s."),
        "other programs": QT_TRANSLATE_NOOP("Budget", "Closing other programs: {verdict}, about {speed} tok/s."),
    }
    amount = gigabytes(fix.amount) if fix.remedy == "budget" else f"{fix.amount:,}"
    return words(texts[fix.remedy], amount=amount, verdict=VERDICTS[fix.verdict], speed=f"{fix.tokens_per_second:.1f}")


VERDICTS = {
    FITS: QT_TRANSLATE_NOOP("Budget", "fits"),
    STREAMS: QT_TRANSLATE_NOOP("Budget", "fits streamed"),
    NOT: QT_TRANSLATE_NOOP("Budget", "does not fit"),
}


def least_words(size: int) -> str:
    """A size that is enough when given as it stands here: rounded up to what is shown."""
    step = 10**7 if size >= 10**9 else 10**6
    return gigabytes(-(-size // step) * step)
