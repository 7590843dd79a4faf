"""A widget that does not say what its kind must say cannot be made."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from app.ui.cockpit_section import Section
from app.widgets.plot_frame import PlotFrame


def test_a_section_without_content_and_a_plot_without_a_summary_are_refused(qapp: QApplication) -> None:
    with pytest.raises(TypeError, match="Section does not say: build"):
        Section("empty")  # type: ignore[abstract]

    class Silent(PlotFrame):
        pass

    with pytest.raises(TypeError, match="Silent does not say: summary"):
        Silent("silent")  # type: ignore[abstract]


def test_one_that_says_all_is_made(qapp: QApplication) -> None:
    class Full(Section):
        def build(self) -> None:
            self.built = True

    section = Full("full")
    section.set_open(True)
    assert section.built
