"""Faults of libraries that the version bounds in pyproject.toml keep out, checked in the versions installed here."""

from __future__ import annotations

import sys

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot


def test_qt_calls_lose_no_reference_to_none(qtbot: QtBot) -> None:
    """PySide6 6.12.0 before Python 3.12 loses one at each call that returns nothing, and aborts after some 5,000."""
    label = QLabel()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for _ in range(1000):
        label.setText("x")
    assert sys.getrefcount(None) > before - 500
