"""Models in words: sizes, what one is, how it stands to this computer, and what removing it does."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.declaration import QT_TRANSLATE_NOOP
from app.known_model import ADDED, DOWNLOADED, FITS, HUB_CACHE, STARTER, STREAMED, TOO_LARGE, UNFINISHED, KnownModel

VERDICTS = {
    FITS: (QT_TRANSLATE_NOOP("Models", "Fits this computer"), "ok"),
    STREAMED: (QT_TRANSLATE_NOOP("Models", "Fits streamed: parts are brought in for every pass"), "warn"),
    TOO_LARGE: (QT_TRANSLATE_NOOP("Models", "Does not fit this computer"), "error"),
}
ORIGINS = {
    ADDED: QT_TRANSLATE_NOOP("Models", "added"),
    DOWNLOADED: QT_TRANSLATE_NOOP("Models", "downloaded"),
    HUB_CACHE: QT_TRANSLATE_NOOP("Models", "hub cache"),
    UNFINISHED: QT_TRANSLATE_NOOP("Models", "not complete"),
}


def size_words(nbytes: float) -> str:
    """Bytes for people: "98.4 MB", "13.48 GB"."""
    return f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:.1f} MB"


def name_words(model: KnownModel) -> str:
    """What to call it."""
    return QCoreApplication.translate("Models", "Starter model") if model.origin == STARTER else model.name


def fact_words(model: KnownModel) -> str:
    """Size, family, type and context on one line; what is not known is left out."""
    context = QCoreApplication.translate("Models", "context {count}").replace("{count}", f"{model.context:,}")
    size = size_words(model.nbytes) if model.nbytes else ""
    return " · ".join(part for part in (size, model.family, model.dtype, context if model.context else "") if part)


def origin_words(model: KnownModel) -> str:
    """Where it comes from."""
    return QCoreApplication.translate("Models", ORIGINS.get(model.origin, model.origin))


def fit_words(model: KnownModel) -> tuple[str, str]:
    """How it stands to this computer, and the colour role of that."""
    if model.origin == UNFINISHED:
        return QCoreApplication.translate("Models", "The download is not complete"), "warn"
    if model.problem:
        return QCoreApplication.translate("Models", "Cannot be loaded"), "error"
    text, tone = VERDICTS.get(model.verdict or "", ("", "text3"))
    if not text:
        return QCoreApplication.translate("Models", "n/a: this computer's memory could not be asked"), tone
    return QCoreApplication.translate("Models", text), tone


def removal_words(model: KnownModel) -> tuple[str, str]:
    """The question before a model is removed, and the word on the button that does it."""
    if not model.deletes_files:
        question = QCoreApplication.translate("Models", "Take it off the list? Its files stay where they are.")
        return question, QCoreApplication.translate("Models", "Take off")
    question = QCoreApplication.translate("Models", "Delete {size} from this computer?")
    return question.replace("{size}", size_words(model.nbytes)), QCoreApplication.translate("Models", "Delete")
