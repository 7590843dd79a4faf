"""What the history has to say to people; translated when it is shown."""

from __future__ import annotations

from app.declaration import QT_TRANSLATE_NOOP

NEWER = QT_TRANSLATE_NOOP(
    "History",
    "{file} was written by a newer version of Specular (format {found}, this one writes {known}). It stays as it is; "
    "chats of this run are not kept.",
)
MENDED = QT_TRANSLATE_NOOP(
    "History",
    "{file} was damaged. It was kept as {aside}, and the {count} chats that can be read were brought over.",
)
NOT_KEPT = QT_TRANSLATE_NOOP("History", "Chats of this run are not kept: {file} cannot be written ({cause}).")
TROUBLE = QT_TRANSLATE_NOOP(
    "History", "Chats cannot be written at the moment ({cause}). Specular keeps trying while it runs."
)
