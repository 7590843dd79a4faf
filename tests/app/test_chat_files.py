"""Chats as files: what is exported is imported again as it was; what is something else is refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_engine import paris, text_of
from window_bench import Bench, BenchMaker

from app.history.copying import AddWholeChat
from app.history.exports import ChatFileError, closed, export_json, export_markdown, file_name
from app.history.imports import ImportedChat, import_chat
from app.history.operations import ChangeChat, SetComparison
from app.history.rows import Ids, StoredReply
from app.states import HostState
from engine.comparison import Comparison
from engine.settings import Message
from history_rig import Shelf, shelf

EVENTS = paris().events()
ANSWER = text_of(EVENTS)
HOSTILE = "<script>alert(1)</script> \u202eevil\u202c \x1b[31m \ud83d\n" + "x" * 50_000


def filled(store: Shelf) -> int:
    """A chat with a branch, a comparison, settings, and a reply of which only the text is there."""
    chat = store.chat("A title / with: signs?")
    first = store.say(chat, "One? " + HOSTILE)
    reply = store.answer(chat, first, EVENTS)
    store.do(SetComparison(reply, Comparison(3, None, 3, 3, 1.0, 0.5)))
    store.answer(chat, first, EVENTS, StoredReply(times=tuple(0.1 * n for n in range(len(EVENTS)))))
    second = store.say(chat, "推测？", reply)
    store.answer(chat, second, EVENTS)
    store.do(ChangeChat(chat, settings={"temperature": 0.5, "system_prompt": "Be brief.\nVery."}))
    return chat


def exported(store: Shelf, chat: int, path: Path) -> Path:
    with store.reading() as reader:
        export_json(reader, chat, path)
    return path


def read(path: Path) -> ImportedChat:
    return import_chat(path, Ids().next, 5.0)


def shape(found: ImportedChat) -> list[Any]:
    """All that matters of a chat, without its numbers."""
    numbers = {message.id: place for place, message in enumerate(found.chat.messages)}
    return [
        (numbers.get(m.parent) if m.parent else None, m.role, m.state, m.created, m.text, found.replies.get(m.id))
        for m in found.chat.messages
    ]


def test_what_is_exported_is_imported_as_it_was(tmp_path: Path) -> None:
    with shelf(tmp_path / "a") as store:
        path = exported(store, filled(store), tmp_path / "chat.json")
    found = read(path)
    assert found.chat.row.title == "A title / with: signs?" and found.chat.settings["temperature"] == 0.5
    assert [reply.events for reply in found.replies.values()] == [EVENTS] * 3
    assert [reply.comparison is not None for reply in found.replies.values()] == [True, False, False]
    assert found.chat.leaf == found.chat.messages[-1].id
    with shelf(tmp_path / "b") as store:
        store.do(AddWholeChat(found.chat, found.replies))
        again = read(exported(store, found.chat.row.id, tmp_path / "again.json"))
    assert shape(again) == shape(found)
    assert (tmp_path / "again.json").read_text() == path.read_text(), "nothing of the history it was in is in it"


def test_markdown_is_what_is_shown(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        chat = filled(store)
        with store.reading() as reader:
            export_markdown(reader, chat, tmp_path / "chat.md")
    text = (tmp_path / "chat.md").read_text(encoding="utf-8")
    assert text.startswith("# A title / with: signs?\n") and "\n> Be brief.\n> Very.\n" in text
    assert text.count("## You") == text.count("## Specular") == 2 and text.count(ANSWER) == 2
    assert "<script>" in text, "the text as it is: Markdown is read by people and programs that know what to do with it"


def test_a_reply_that_broke_off_in_code_does_not_take_the_rest_for_code() -> None:
    assert closed("a\n```python\nprint()") == "a\n```python\nprint()\n```"
    assert closed("~~~~\nx\n~~~\ny") == "~~~~\nx\n~~~\ny\n~~~~"
    assert closed("```\nx\n```\n") == "```\nx\n```\n"


@pytest.mark.parametrize(
    ("title", "name"),
    [("a/b\\c:d", "a b c d.md"), ("..", "chat.md"), ("con", "chat con.md"), ("", "chat.md"), ("推\u202e测", "推测.md")],
)
def test_file_names_are_fit_for_every_system(title: str, name: str) -> None:
    assert file_name(title, ".md") == name


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """A change of the file's JSON."""

    def apply(data: bytes) -> bytes:
        values = json.loads(data)
        change(values)
        return json.dumps(values).encode()

    return apply


def setting(*path: Any, to: Any) -> Callable[[bytes], bytes]:
    """The file with one value changed."""

    def change(values: Any) -> None:
        for step in path[:-1]:
            values = values[step]
        values[path[-1]] = to

    return changed(change)


BAD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "newer": (setting("version", to=2), "written by another version of Specular (format 2, not 1)"),
    "true": (setting("version", to=True), "another version"),
    "other kind": (setting("format", to="specular-replay"), "another kind of file"),
    "empty": (lambda data: b"", "damaged or cut short"),
    "half": (lambda data: data[: len(data) // 2], "damaged or cut short"),
    "broken UTF-8": (lambda data: data.replace(b"One?", b"\xff\xfe\xc0"), "damaged or cut short"),
    "deep": (lambda data: b"[" * 200_000, "damaged or cut short"),
    "NaN": (setting("messages", 0, "created", to=float("nan")), "damaged or cut short"),
    "long ago": (setting("messages", 0, "created", to=-1), "at no time that makes sense"),
    "list": (lambda data: b"[]", "another kind of file"),
    "unknown": (setting("pickle", to="x"), "unknown field 'pickle'"),
    "title": (setting("title", to=None), "it has no title"),
    "role": (setting("messages", 0, "role", to="system"), "said by nobody"),
    "two answers in a row": (setting("messages", 2, "parent", to=2), "said by nobody"),
    "circle": (setting("messages", 0, "parent", to=1), "follows none that comes before it"),
    "number": (setting("messages", 1, "id", to=1), "no number of its own"),
    "leaf": (setting("leaf", to=99), "leaf is none"),
    "text": (setting("messages", 1, "text", to="Another answer"), "says something else than its events"),
    "event": (setting("messages", 1, "reply", "events", 0, to={"kind": "eval"}), "unknown kind"),
    "cycle": (setting("messages", 1, "reply", "events", 2, "record", "accepted", to=-4), "contradicts itself"),
    "cut": (changed(lambda v: v["messages"][1]["reply"]["events"].pop()), "is cut short"),
    "settings": (setting("settings", to=[]), "settings are no object"),
    "reply": (setting("messages", 1, "reply", to="x"), "is no object"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_file_that_is_none_is_refused_by_name(tmp_path: Path, bad: str) -> None:
    with shelf(tmp_path) as store:
        path = exported(store, filled(store), tmp_path / "chat.json")
    change, complaint = BAD[bad]
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ChatFileError) as refused:
        read(path)
    assert str(refused.value).startswith("chat.json is no chat that can be imported: ")
    assert complaint in str(refused.value) and len(str(refused.value)) < 250


def test_times_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        path = exported(store, filled(store), tmp_path / "chat.json")
    path.write_bytes(setting("messages", 2, "reply", "times", 0, to=9e9)(path.read_bytes()))
    assert list(read(path).replies.values())[1].times is None


# In the window


def taken_in(benches: BenchMaker, path: Path) -> Bench:
    bench = benches()
    bench.qtbot.waitUntil(lambda: bench.window.history.is_open, timeout=10_000)
    bench.window.shelf.ask_import = lambda parent: str(path)
    bench.window.side_bar.import_wanted.emit()
    bench.qtbot.waitUntil(lambda: bool(bench.titles) or bench.banner != "", timeout=10_000)
    return bench


def test_hostile_texts_are_shown_as_they_are_and_nothing_more(benches: BenchMaker, tmp_path: Path) -> None:
    with shelf(tmp_path) as store:
        path = exported(store, filled(store), tmp_path / "chat.json")
    path.write_bytes(setting("title", to="<b>\u202eTitle</b>\n\x07" + "y" * 500)(path.read_bytes()))
    bench = taken_in(benches, path)
    assert bench.titles[0].startswith("<b>Title</b>yy") or bench.titles[0].startswith("<b>Title</b> yy")
    assert len(bench.titles[0]) <= 200 and "\u202e" not in bench.titles[0]
    shown = bench.said
    assert shown[0].startswith("One? <script>alert(1)</script> \u202eevil") and shown[2:] == ["推测？", ANSWER]
    width = bench.window.width()
    bench.qtbot.waitUntil(lambda: bench.window.width() == width, timeout=1000)
    assert bench.view.turns()[1]._figures.text().endswith("compared with plain: identical, 2.0× as fast")
    bench.ready()
    assert bench.settings.current.temperature == 0.5, "its own settings"
    bench.ask("More?")
    assert bench.engine.requests[0].messages[0] == Message("system", "Be brief.\nVery.")


def test_a_file_of_another_version_is_said_above_the_composer(benches: BenchMaker, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text('{"format": "specular-chat", "version": 99}')
    bench = taken_in(benches, path)
    assert bench.banner.startswith("old.json is no chat") and "format 99, not 1" in bench.banner and bench.titles == []


@pytest.mark.parametrize("ending", [".md", ".json"])
def test_a_chat_is_exported_as_it_is_now(benches: BenchMaker, tmp_path: Path, ending: str) -> None:
    bench = benches()
    bench.ready()
    bench.ask("What is the capital of France?")
    asked: list[str] = []

    def ask(parent: object, name: str) -> str:
        asked.append(name)
        return str(tmp_path / name)

    bench.window.shelf.ask_export = ask
    bench.window.shelf.menu_of(bench.listed(0)).actions()[4 if ending == ".md" else 5].trigger()
    assert asked == [f"What is the capital of France{ending}"]
    bench.qtbot.waitUntil(lambda: bench.window.shelf.toast.words == f"Exported to {asked[0]}", timeout=5000)
    assert not bench.window.shelf.toast.undo_button.isVisible()
    text = (tmp_path / asked[0]).read_text(encoding="utf-8")
    assert ANSWER in text if ending == ".md" else len(json.loads(text)["messages"]) == 2
    assert bench.host.state is HostState.READY


def test_an_export_that_cannot_be_written_says_so(benches: BenchMaker, tmp_path: Path) -> None:
    bench = benches()
    bench.ready()
    bench.ask("One?")
    bench.window.shelf.ask_export = lambda parent, name: str(tmp_path / "missing" / name)
    bench.window.shelf.export(bench.listed(0), ".md")
    bench.qtbot.waitUntil(lambda: "cannot be written" in bench.banner, timeout=5000)
