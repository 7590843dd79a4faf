"""The reply as the window draws it, as a picture: question, text, timeline, counts and figures."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QByteArray, QEvent, QIODevice, QPoint, Qt
from PySide6.QtGui import QImage, QPainter, QRegion
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.recorded import turn_of
from app.theme import PX_LABEL, SPACING_TURN, active
from app.ui.labels import reply_note
from app.ui.panel import ToneLabel
from app.ui.reply_view import ReplyView
from app.widgets.user_bubble import UserBubble
from engine.errors import RecordingError
from engine.recording import Recording

WIDTH = 720 + 2 * SPACING_TURN
SHARP_UP_TO = 8_000  # pixels of height that are drawn twice as fine
HIGHEST = 30_000  # what a painter can reach; a longer reply is cut there, and its page has all of it


def picture(recording: Recording, *, keep_ghosts: bool) -> bytes:
    """A PNG of the reply in the theme in force. Raises RecordingError where there is no memory for it."""
    sheet = _sheet(recording, keep_ghosts)
    height = min(sheet.sizeHint().height(), HIGHEST)
    sheet.resize(WIDTH, sheet.sizeHint().height())
    scale = 2 if height <= SHARP_UP_TO else 1
    image = QImage(WIDTH * scale, height * scale, QImage.Format.Format_RGB32)
    if image.isNull():
        raise RecordingError("There is not enough memory to draw the picture of this reply.")
    image.setDevicePixelRatio(scale)
    image.fill(active().color("canvas"))
    painter = QPainter(image)
    sheet.render(painter, QPoint(), QRegion(0, 0, WIDTH, height), QWidget.RenderFlag.DrawChildren)
    painter.end()
    sheet.deleteLater()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(data.data())


def _sheet(recording: Recording, keep_ghosts: bool) -> QWidget:
    """What is drawn, never shown. The reply's own actions are left out."""
    sheet = QWidget()
    sheet.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    reply = ReplyView(sheet)
    reply.resize(WIDTH - 2 * SPACING_TURN, 100)
    reply.set_keep_ghosts(keep_ghosts)
    reply.set_note(reply_note(turn_of(recording, 0)))
    reply.for_a_still()
    column = QVBoxLayout(sheet)
    column.setContentsMargins(SPACING_TURN, SPACING_TURN, SPACING_TURN, SPACING_TURN)
    column.setSpacing(SPACING_TURN)
    column.addWidget(UserBubble(recording.prompt, sheet))
    column.addWidget(reply)
    column.addWidget(ToneLabel(f"{recording.model.name} · {recording.model.device}", "text3", PX_LABEL))
    sheet.resize(WIDTH, 100)
    sheet.show()
    reply.append_many(list(recording.events))
    reply.settle()
    for part in (*reversed(sheet.findChildren(QWidget)), sheet):  # what a window does by itself, a moment later
        QApplication.sendPostedEvents(part, QEvent.Type.LayoutRequest.value)
    column.activate()
    return sheet
