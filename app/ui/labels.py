"""Short words for the settings in force, as the chips under the composer show them."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.conversation import Turn
from app.settings import AppSettings
from app.words import Words, fill
from engine.comparison import Comparison
from engine.records import ModelInfo


def sampling_label(settings: AppSettings) -> str:
    """ "Greedy", or the temperature."""
    sampling = settings.sampling()
    if sampling.greedy:
        return QCoreApplication.translate("Labels", "Greedy")
    return QCoreApplication.translate("Labels", "Temperature {value}").format(value=f"{sampling.temperature:g}")


def speculation_label(settings: AppSettings) -> str:
    """Whether and how far the draft runs ahead."""
    if not settings.speculation:
        return QCoreApplication.translate("Labels", "Speculation off")
    if settings.gamma_fixed:
        return QCoreApplication.translate("Labels", "Speculation γ {count}").format(count=settings.gamma)
    return QCoreApplication.translate("Labels", "Speculation auto")


def comparison_label(comparison: Comparison) -> str:
    """What comparing a reply with plain decoding found, in a few words."""
    if comparison.difference is not None:
        words = QCoreApplication.translate("Labels", "compared with plain: different from token {place}")
        return words.replace("{place}", f"{comparison.difference + 1:,}")
    if comparison.stopped:
        words = QCoreApplication.translate("Labels", "compared with plain: identical so far, {count} tokens")
    elif comparison.speed_up is not None:
        words = QCoreApplication.translate("Labels", "compared with plain: identical, {factor}× as fast")
        return words.replace("{factor}", f"{comparison.speed_up:.1f}")
    else:
        words = QCoreApplication.translate("Labels", "compared with plain: identical")
    return words.replace("{count}", f"{comparison.compared:,}")


def origin_label(info: ModelInfo) -> str:
    """Where a reply out of a replay file comes from."""
    words = QCoreApplication.translate("Labels", "recorded with {model} on {device}")
    return words.replace("{model}", info.name).replace("{device}", info.device)


def reply_note(turn: Turn) -> str:
    """What is told of a reply beside its figures: where it was recorded, what a comparison found."""
    notes = []
    if turn.reply is not None and turn.reply.reply_id < 0 and turn.reply.info is not None:
        notes.append(origin_label(turn.reply.info))
    if turn.comparison is not None:
        notes.append(comparison_label(turn.comparison))
    return " · ".join(notes)


def history_words(words: Words) -> str:
    """A text of `app.history.words` with its values, in the language of the window."""
    return fill(QCoreApplication.translate("History", words.text), words.values)
