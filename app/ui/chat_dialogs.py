"""The system's dialogs to choose where a chat is written to, or which is read."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget


def ask_export(parent: QWidget, name: str) -> str:
    """Where a chat is to be written to; empty when the user thinks better of it."""
    title = QCoreApplication.translate("ChatDialogs", "Export chat")
    markdown = QCoreApplication.translate("ChatDialogs", "Markdown (*.md)")
    with_cycles = QCoreApplication.translate("ChatDialogs", "Specular chat with its cycles (*.json)")
    kinds = f"{with_cycles};;{markdown}" if name.endswith(".json") else f"{markdown};;{with_cycles}"
    path, _ = QFileDialog.getSaveFileName(parent, title, str(Path(_documents()) / name), kinds)
    return path


def ask_import(parent: QWidget) -> str:
    """An exported chat; empty when the user chose none."""
    title = QCoreApplication.translate("ChatDialogs", "Import chat")
    kinds = QCoreApplication.translate("ChatDialogs", "Specular chats (*.json)")
    path, _ = QFileDialog.getOpenFileName(parent, title, _documents(), kinds)
    return path


def _documents() -> str:
    return QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
