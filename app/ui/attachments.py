"""The files that go along with a message: a line each, with what it takes of the context and a button that drops it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.icons import BOX, icon
from app.text_files import TextFile
from app.theme import PX_LABEL, active, is_theme_change, ui_font
from app.widgets.icon_button import HIT_SMALL, IconButton

MOST = 10


class Attachments(QWidget):
    """Signals: changed() when files come or go."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[_Row] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Files that go along"))
        self.hide()

    def files(self) -> list[TextFile]:
        """The files, in the order they came."""
        return [row.file for row in self._rows]

    def add(self, file: TextFile) -> bool:
        """Take a file along; False where there are as many as there may be."""
        if len(self._rows) == MOST:
            return False
        row = _Row(file, self)
        row.removed.connect(self._remove)
        self._rows.append(row)
        self._column.addWidget(row)
        self.show()
        self.changed.emit()
        return True

    def set_tokens(self, file: TextFile, tokens: int) -> None:
        """What a file takes, counted by the model's tokenizer."""
        for row in self._rows:
            if row.file is file:
                row.show_tokens(tokens)

    def clear(self) -> None:
        """No files go along any more."""
        for row in list(self._rows):
            self._drop(row)

    @Slot()
    def _remove(self) -> None:
        row = self.sender()
        if isinstance(row, _Row):
            self._drop(row)

    def _drop(self, row: _Row) -> None:
        self._rows.remove(row)
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()
        self.setVisible(bool(self._rows))
        self.changed.emit()

    def labels(self) -> list[str]:
        """What the lines say."""
        return [row.words.text() for row in self._rows]

    def remove_buttons(self) -> list[IconButton]:
        """The buttons that drop files."""
        return [row.button for row in self._rows]


class _Row(QWidget):
    """One file."""

    removed = Signal()

    def __init__(self, file: TextFile, parent: QWidget) -> None:
        super().__init__(parent)
        self.file = file
        self._icon = QLabel(self)
        self.words = QLabel(self)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setFont(ui_font(PX_LABEL))
        self.button = IconButton("close", self.tr("Leave out {name}").replace("{name}", file.name), self, HIT_SMALL)
        self.button.clicked.connect(self.removed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self._icon)
        row.addWidget(self.words, 1)
        row.addWidget(self.button)
        about = self.tr("{name} · about {count} tokens")
        self._say(about, file.likely_tokens())
        self._dress()

    def show_tokens(self, tokens: int) -> None:
        self._say(self.tr("{name} · {count} tokens"), tokens)

    def _say(self, words: str, tokens: int) -> None:
        self.words.setText(words.replace("{count}", f"{tokens:,}").replace("{name}", self.file.name))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if is_theme_change(event) and hasattr(self, "button"):
            self._dress()

    def _dress(self) -> None:
        palette = self.words.palette()
        palette.setColor(self.words.foregroundRole(), active().color("text2"))
        self.words.setPalette(palette)
        self._icon.setPixmap(icon("attach").pixmap(BOX, BOX))
