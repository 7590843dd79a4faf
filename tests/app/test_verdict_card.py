"""The verdict's card: its button has room for its words as soon as they are there."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.ui.verdict_card import VerdictCard
from app.verdict import CALIBRATE, TURN_ON, Verdict
from app.words import Words


def test_the_button_is_laid_out_for_its_words_at_once(qtbot: QtBot) -> None:
    card = VerdictCard()
    qtbot.addWidget(card)
    card.resize(340, 120)
    card.show()
    for action in (TURN_ON, CALIBRATE):
        card.show_verdict(Verdict(Words("One sentence."), action))
        assert card.button.isVisible() and card.button.width() >= card.button.sizeHint().width() > 60
