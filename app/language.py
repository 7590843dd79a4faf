"""The language of the window: which one is meant, and its translations put in force before the window is made."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from app.settings import CHINESE, ENGLISH, SYSTEM

FOLDER = Path(__file__).resolve().parents[1] / "assets" / "translations"


def meant(name: str, preferred: list[str] | None = None) -> str:
    """The language that a setting stands for. preferred: the user's languages, as the system orders them."""
    if name != SYSTEM:
        return name
    for tag in QLocale.system().uiLanguages() if preferred is None else preferred:
        parts = tag.replace("_", "-").split("-")
        if parts[0] == "zh":
            return CHINESE if not {"Hant", "TW", "HK", "MO"} & set(parts) else ENGLISH
        if parts[0] == "en":
            return ENGLISH
    return ENGLISH


def install(app: QCoreApplication, name: str) -> str:
    """Have texts made from now on in a language ("system", "en" or "zh_CN"), Qt's own included; which one it is.

    Widgets that exist keep their words: it is called before the window is made.
    """
    for old in app.findChildren(QTranslator):
        app.removeTranslator(old)
        old.setParent(None)
    language = meant(name)
    if language != ENGLISH:
        qt = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        for file, folder in ((f"qtbase_{language}", qt), (f"specular_{language}", str(FOLDER))):
            translator = QTranslator(app)
            if translator.load(file, folder):
                app.installTranslator(translator)
    return language
