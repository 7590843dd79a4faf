"""Links: what is said about where they lead, and that nothing is opened unasked."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.markdown.targets import target_of
from app.ui.link_question import LinkQuestion, oddities, question
from app.ui.reply_view import ReplyView
from reply_builders import cycle, finished


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://example.org/a?b=c#d", "example.org"),
        ("http://EXAMPLE.org:8080/", "example.org"),
        ("https://google.com@evil.example/", "evil.example"),
        ("https://аpple.com/", "xn--pple-43d.com"),
        ("https://%61bc.org/", "abc.org"),
    ],
)
def test_the_host_that_decides_is_named(address: str, host: str) -> None:
    target = target_of(address)
    assert target.opens and target.host == host and host in question(target)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "page.html",
        "//host/x",
        "",
        "http://",
        "https://[bad",
        "smb://h",
    ],
)
def test_what_is_no_page_is_not_opened(address: str) -> None:
    assert not target_of(address).opens and "not opened" in question(target_of(address))


def test_tricks_are_told() -> None:
    assert "google.com" in oddities(target_of("https://google.com@evil.example/"))[0]
    assert "аpple.com" in oddities(target_of("https://xn--pple-43d.com/"))[0]
    assert "not encrypted" in oddities(target_of("http://example.org"))[0]
    assert oddities(target_of("https://example.org")) == []
    assert target_of("https://a.org/\u202egpj.exe").address == "https://a.org/%E2%80%AEgpj.exe", "all of it is seen"
    assert target_of("mailto:a@b.org").opens and "Write" in question(target_of("mailto:a@b.org"))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    addresses: list[str] = []

    def keep(url: QUrl) -> bool:
        addresses.append(url.toString())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", keep)
    return addresses


@pytest.fixture
def reply(qapp: QApplication, qtbot: QtBot) -> ReplyView:
    theme.apply(qapp, "light")
    view = ReplyView()
    qtbot.addWidget(view)
    view.resize(700, 300)
    view.show()
    view.append(cycle(0, ["See"], " [the page](https://example.org/x)"))
    view.append(finished())
    return view


def asked(view: ReplyView) -> LinkQuestion:
    return next(child for child in view.findChildren(LinkQuestion) if child.isVisible())


def test_a_click_on_a_link_asks_first(reply: ReplyView, qtbot: QtBot, opened: list[str]) -> None:
    place = reply.text.token_rect(1).center()
    qtbot.mouseClick(reply.text.viewport(), Qt.MouseButton.LeftButton, pos=place)
    box = asked(reply)
    assert "example.org" in box.text() and "https://example.org/x" in box.informativeText()
    assert opened == [] and box.defaultButton() is box.escapeButton()
    box.copy_button.click()
    assert QGuiApplication.clipboard().text() == "https://example.org/x" and opened == []
    qtbot.mouseClick(reply.text.viewport(), Qt.MouseButton.LeftButton, pos=place)
    asked(reply).open_button.click()
    assert opened == ["https://example.org/x"]


def test_a_link_is_reached_by_keyboard_and_said(reply: ReplyView, qtbot: QtBot, opened: list[str]) -> None:
    reply.text.setFocus()
    qtbot.keyClick(reply.text, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert "https://example.org/x" in reply.text.accessibleDescription()
    qtbot.keyClick(reply.text, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    box = asked(reply)
    box.reject()
    assert opened == []


def test_a_file_cannot_be_opened_even_by_the_button(qtbot: QtBot, opened: list[str]) -> None:
    box = LinkQuestion("file:///etc/passwd")
    qtbot.addWidget(box)
    box.open()
    assert not box.open_button.isEnabled()
    box._open()
    assert opened == []
    box.reject()
