"""Widgets that are only made by their subclasses: what these must say is checked when one is made."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from PySide6.QtWidgets import QWidget

_OfQt: Any = type(QWidget)


class AbstractWidget(ABCMeta, _OfQt):
    """Metaclass of a widget with abstract methods. Qt's own way of making objects does not look for them."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        """An instance. Raises TypeError, naming the methods, where some are missing."""
        missing = sorted(cls.__abstractmethods__)
        if missing:
            raise TypeError(f"{cls.__name__} does not say: {', '.join(missing)}")
        return super().__call__(*args, **named)
