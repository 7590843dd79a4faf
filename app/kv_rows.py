"""The figures of the KV cache, one a row, as the cockpit lists them. Plain data: no Qt.

Names and help are written in English here and translated when they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.declaration import QT_TRANSLATE_NOOP
from app.memory_parts import size_text
from app.words import Words, words
from engine.memory.report import KvMemory, PageOperations

NO_PAGES = QT_TRANSLATE_NOOP("Memory", "A plain tensor has no pages.")
OPERATION = QT_TRANSLATE_NOOP("Memory", "Pages: {operation}")
MEAN = QT_TRANSLATE_NOOP("Memory", "How often since the load, and the mean time of each.")
NEVER = QT_TRANSLATE_NOOP("Memory", "It has not happened since the load.")


@dataclass(frozen=True, slots=True)
class KvRow:
    """One row. figure None: there is none, and `help` says why; else `help` says what it is."""

    name: Words
    figure: str | None
    help: str


def kv_rows(report: KvMemory) -> tuple[KvRow, ...]:
    """All that is known of a cache."""
    paged = report.page_bytes > 0

    def of_pages(name: str, figure: str, help: str) -> KvRow:
        return KvRow(Words(name), figure, help) if paged else KvRow(Words(name), None, NO_PAGES)

    sizes = (
        (
            QT_TRANSLATE_NOOP("Memory", "Reserved"),
            report.reserved,
            QT_TRANSLATE_NOOP("Memory", "Addresses set aside, which take no memory by themselves."),
        ),
        (
            QT_TRANSLATE_NOOP("Memory", "Whole context"),
            report.full,
            QT_TRANSLATE_NOOP("Memory", "What one conversation takes when its context is full."),
        ),
        (QT_TRANSLATE_NOOP("Memory", "Mapped"), report.mapped, QT_TRANSLATE_NOOP("Memory", "Backed by memory.")),
        (
            QT_TRANSLATE_NOOP("Memory", "Used"),
            report.used,
            QT_TRANSLATE_NOOP("Memory", "Rows of tokens that exist, and those the running cycle may write."),
        ),
        (
            QT_TRANSLATE_NOOP("Memory", "Fragmentation"),
            report.fragmentation,
            QT_TRANSLATE_NOOP("Memory", "Mapped beyond what is used."),
        ),
    )
    return (
        *(KvRow(Words(name), size_text(size), help) for name, size, help in sizes),
        of_pages(
            QT_TRANSLATE_NOOP("Memory", "Pool"),
            size_text(report.pool),
            QT_TRANSLATE_NOOP("Memory", "Pages created ahead of need."),
        ),
        of_pages(
            QT_TRANSLATE_NOOP("Memory", "Page size"),
            size_text(report.page_bytes),
            QT_TRANSLATE_NOOP("Memory", "The least that is mapped at a time."),
        ),
        KvRow(
            Words(QT_TRANSLATE_NOOP("Memory", "Conversations")),
            f"{report.conversations:,}",
            QT_TRANSLATE_NOOP("Memory", "Chats whose rows are kept."),
        ),
        KvRow(
            Words(QT_TRANSLATE_NOOP("Memory", "Evicted")),
            f"{report.evicted:,}",
            QT_TRANSLATE_NOOP("Memory", "Chats that gave up their rows to others since the load."),
        ),
        of_pages(
            QT_TRANSLATE_NOOP("Memory", "Pages late"),
            f"{report.late:,}",
            QT_TRANSLATE_NOOP("Memory", "Pages that a cycle had to wait for."),
        ),
        *(_operation(operation) for operation in report.operations),
    )


def _operation(operation: PageOperations) -> KvRow:
    name = words(OPERATION, operation=operation.name)
    if not operation.count:
        return KvRow(name, "0", NEVER)
    return KvRow(name, f"{operation.count:,} · {operation.seconds / operation.count * 1e6:.1f} µs", MEAN)
