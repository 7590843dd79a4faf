"""Sentences about one token, for tooltips and assistive tools: its state, cycle, draft position, probabilities."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.widgets.token_spans import Span, SpanKind
from engine.records import CycleEvent


def _probability(value: float | None) -> str:
    return QCoreApplication.translate("TokenWords", "n/a") if value is None else f"{value:.2f}"


def _quoted(text: str) -> str:
    visible = text.strip(" ").replace("\n", "↵").replace("\t", "⇥")
    return visible or QCoreApplication.translate("TokenWords", "space")


def _at(values: tuple[float, ...], index: int) -> float | None:
    return values[index] if 0 <= index < len(values) else None


def describe(span: Span, event: CycleEvent | None) -> str:
    """What became of a token, in words. event: the cycle that brought it; None for text without a cycle."""
    if span.kind is SpanKind.GIVEN:
        return QCoreApplication.translate("TokenWords", "given: kept or chosen when this reply was begun from here.")
    if event is None:
        return QCoreApplication.translate("TokenWords", "Text that was held back until the reply ended.")
    record = event.record
    values = {
        "cycle": record.index + 1,
        "position": span.place + 1,
        "drafted": len(record.drafted_ids),
        "draft": _probability(_at(record.drafted_probs, span.place)),
        "full": _probability(_at(record.full_probs, span.place)),
        "own": _probability(record.next_prob),
        "chosen": _probability(record.taken.full_prob if record.taken else record.next_prob),
    }
    return _sentence(span, event).format(**values, **_texts(span, event))


def _sentence(span: Span, event: CycleEvent) -> str:
    translate = QCoreApplication.translate
    if event.record.taken is not None and span.kind is SpanKind.ACCEPTED and span.place == event.record.agreed:
        return translate(
            "TokenWords",
            "accepted: cycle {cycle}, second choice at draft position {position} of {drafted}, tried in the same pass. "
            "The draft gave it {second_draft}, the full model {second_full}; "
            "its first choice “{guess}” ({guess_draft}) was wrong.",
        )
    if span.kind is SpanKind.BONUS and event.record.taken is not None:
        return translate(
            "TokenWords",
            "bonus: cycle {cycle}. The draft's second choice was accepted; "
            "the full model added this token in the same pass ({own}).",
        )
    if span.kind is SpanKind.ACCEPTED:
        return translate(
            "TokenWords",
            "accepted: cycle {cycle}, draft position {position} of {drafted}. "
            "The draft gave it {draft}, the full model {full}.",
        )
    if span.kind is SpanKind.BONUS:
        return translate(
            "TokenWords",
            "bonus: cycle {cycle}. All {drafted} drafts were accepted; "
            "the full model added this token in the same pass ({own}).",
        )
    if span.kind is SpanKind.PLAIN:
        return translate("TokenWords", "plain: step {cycle}, decoded without a draft ({own}).")
    if span.kind is SpanKind.CORRECTION:
        return translate(
            "TokenWords",
            "correction: cycle {cycle}, draft position {wrong} of {drafted}. "
            "The draft proposed “{guess}” ({guess_draft}), the full model chose this ({own}).",
        )
    sentence = translate(
        "TokenWords",
        "rejected: cycle {cycle}, draft position {wrong} of {drafted}. "
        "The draft proposed “{guess}” ({guess_draft}); the full model gave it {guess_full} "
        "and chose “{choice}” ({chosen}).",
    )
    if event.record.tested < event.record.drafted:
        sentence += " " + translate("TokenWords", "Not tested after it: “{untested}”.")
    return sentence


def _texts(span: Span, event: CycleEvent) -> dict[str, object]:
    record = event.record
    wrong, second = record.agreed, record.taken
    guess, untested = split_ghosts(event)
    return {
        "wrong": wrong + 1,
        "guess": _quoted(guess),
        "guess_draft": _probability(_at(record.drafted_probs, wrong)),
        "guess_full": _probability(_at(record.full_probs, wrong)),
        "choice": _quoted(event.pieces[wrong]) if wrong < len(event.pieces) else "",
        "second_draft": _probability(second.prob if second else None),
        "second_full": _probability(second.full_prob if second else None),
        "untested": untested.strip().replace("\n", "↵"),
    }


def split_ghosts(event: CycleEvent) -> tuple[str, str]:
    """The text of the rejected guess, and of the drafts after it that were never tested.

    A guess that is half a character takes the pieces that complete it.
    """
    for i, text in enumerate(event.ghosts):
        if text:
            return text, "".join(event.ghosts[i + 1 :])
    return "", ""
