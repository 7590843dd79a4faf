"""The system's dialogs to choose a model or a replay."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFileDialog, QWidget


def ask_folder(parent: QWidget) -> str:
    """A model folder; empty when the user chose none."""
    title = QCoreApplication.translate("ModelDialogs", "Open a model folder")
    return QFileDialog.getExistingDirectory(parent, title)


def ask_file(parent: QWidget) -> str:
    """A GGUF file; empty when the user chose none."""
    title = QCoreApplication.translate("ModelDialogs", "Open a GGUF file")
    kinds = QCoreApplication.translate("ModelDialogs", "GGUF models (*.gguf)")
    path, _ = QFileDialog.getOpenFileName(parent, title, "", kinds)
    return path


def ask_replay(parent: QWidget) -> str:
    """A replay file; empty when the user chose none."""
    title = QCoreApplication.translate("ModelDialogs", "Open a replay")
    kinds = QCoreApplication.translate("ModelDialogs", "Replays (*.json)")
    path, _ = QFileDialog.getOpenFileName(parent, title, "", kinds)
    return path
