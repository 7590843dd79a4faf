"""Asks before a link of a reply is opened: a model may write any address, under any words."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from app.markdown.targets import Target, target_of


class LinkQuestion(QMessageBox):
    """Shows where a link really leads. Nothing is opened but by its button, and only pages and mail addresses."""

    def __init__(self, address: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.target = target_of(address)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setWindowTitle(self.tr("Open link?"))
        self.setAccessibleName(self.windowTitle())
        self.setText(question(self.target))
        self.setInformativeText("\n\n".join([_broken(self.target.address), *oddities(self.target)]))
        self.copy_button = self.addButton(self.tr("Copy address"), QMessageBox.ButtonRole.ActionRole)
        self.open_button = self.addButton(self.tr("Open in browser"), QMessageBox.ButtonRole.AcceptRole)
        self.open_button.setEnabled(self.target.opens)
        cancel = self.addButton(self.tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
        self.setDefaultButton(cancel)
        self.setEscapeButton(cancel)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.copy_button.clicked.connect(self._copy)
        self.open_button.clicked.connect(self._open)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.target.address)

    def _open(self) -> None:
        if self.target.opens:
            QDesktopServices.openUrl(QUrl(self.target.address))


def _broken(address: str) -> str:
    """A long address on several lines."""
    shown = address if len(address) <= 600 else address[:600] + "…"
    return "\n".join(shown[i : i + 60] for i in range(0, len(shown), 60))


def question(target: Target) -> str:
    """The question in a sentence."""
    if not target.opens:
        return QCoreApplication.translate("LinkQuestion", "This link is not opened: it leads to no page.")
    if not target.host:
        return QCoreApplication.translate("LinkQuestion", "Write to this address?")
    words = QCoreApplication.translate("LinkQuestion", "Open a page of {host}?")
    return words.replace("{host}", target.host)


def oddities(target: Target) -> list[str]:
    """What is odd about it, a sentence each."""
    found = []
    if target.user:
        words = QCoreApplication.translate(
            "LinkQuestion", "“{user}” before the @ is a user name and says nothing about where the link leads."
        )
        found.append(words.replace("{user}", target.user))
    if target.decoded:
        words = QCoreApplication.translate(
            "LinkQuestion", "The name is shown elsewhere as “{name}”, whose letters may look like those of another."
        )
        found.append(words.replace("{name}", target.decoded))
    if target.plain:
        found.append(QCoreApplication.translate("LinkQuestion", "The connection is not encrypted."))
    return found
