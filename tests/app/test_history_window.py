"""Chats that are kept, in the real window: over restarts, in the list, by search, in branches."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fake_engine import FakeEngine, paris, text_of
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from window_bench import Bench, BenchMaker

from app.history import packing
from app.history.opening import FILE_NAME
from app.settings import AppSettings
from app.states import HostState
from app.ui.reply_view import ReplyView
from app.widgets.user_bubble import UserBubble
from engine.errors import PromptTooLong
from engine.files.paths import data_dir
from engine.records import CycleEvent
from engine.settings import Message

EVENTS = paris().events()
ANSWER = text_of(EVENTS)


def opened(bench: Bench) -> Bench:
    """Wait until the history can be read."""
    bench.qtbot.waitUntil(lambda: bench.window.history.is_open, timeout=10_000)
    return bench


def settled(bench: Bench) -> None:
    """Wait until all is on the disk."""
    bench.qtbot.waitUntil(lambda: bench.window.history.idle, timeout=10_000)


def asked(benches: BenchMaker, *questions: str, **options: object) -> Bench:
    bench = opened(benches(**options))
    bench.ready()
    for question in questions:
        bench.ask(question)
    return bench


def restarted(benches: BenchMaker, bench: Bench, **options: object) -> Bench:
    """The window closed, and another one opened on the same files."""
    bench.window.close()
    return opened(benches(**options))


def last_reply(bench: Bench) -> ReplyView:
    view = bench.view.turns()[-1]
    assert isinstance(view, ReplyView)
    return view


def stored() -> sqlite3.Connection:
    return sqlite3.connect(data_dir() / FILE_NAME)


# Over a restart


def test_a_chat_is_back_after_a_restart_with_every_cycle(benches: BenchMaker) -> None:
    first = asked(benches, "What is the capital of France?", "And of Spain?")
    bench = restarted(benches, first)
    assert bench.titles == ["What is the capital of France?"] and bench.said == []
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    assert bench.said == ["What is the capital of France?", ANSWER, "And of Spain?", ANSWER]
    view = last_reply(bench)
    assert [event.record for event in view.text.cycles] == [e.record for e in EVENTS if isinstance(e, CycleEvent)]
    assert view.counts.summary() == first_summary(first) and view.timeline.record(1) is not None
    bench.qtbot.waitUntil(lambda: bench.window.cockpit.cockpit is not None, timeout=10_000)
    figures = bench.window.cockpit.cockpit.figures  # type: ignore[union-attr]
    assert figures.reply is bench.window.chat.chats.current.turns[-1].reply, "the cockpit follows it"
    bench.ready()
    bench.ask("And of Italy?")
    assert [message.role for message in bench.engine.requests[0].messages] == ["user", "assistant"] * 2 + ["user"]


def first_summary(bench: Bench) -> str:
    return last_reply(bench).counts.summary()


def test_a_stored_reply_is_replayed_compared_and_looked_at(benches: BenchMaker) -> None:
    bench = restarted(benches, asked(benches, "What is the capital of France?"))
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    assert bench.window.replays.start_last()
    replay = bench.window.replays.replay
    assert replay is not None
    replay.step(2)
    assert ANSWER.startswith(bench.said[1]) and bench.said[1] != ANSWER
    bench.window.replays.close()
    bench.ready()
    view = last_reply(bench)
    view.pointer.hovered.emit(view.text.spans.span(2))
    bench.qtbot.waitUntil(lambda: len(bench.engine.looks) == 1, timeout=5000)
    assert bench.engine.looks[0][0].messages == (Message("user", "What is the capital of France?"),)
    view.compare_requested.emit()
    pane = bench.window.comparisons.pane
    bench.qtbot.waitUntil(lambda: not pane.run.running, timeout=10_000)
    pane.reject()
    settled(bench)
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert "compared with plain: identical" in last_reply(again)._figures.text()


def test_the_prompt_is_on_the_disk_before_the_engine_sees_it(benches: BenchMaker) -> None:
    found: list[list[tuple[str]]] = []

    class Curious(FakeEngine):
        def generate(self, request):  # type: ignore[no-untyped-def]
            file = stored()
            found.append(file.execute("SELECT text FROM messages").fetchall())
            file.close()
            return super().generate(request)

    asked(benches, "Where am I?", engine=Curious())
    assert found == [[("Where am I?",)]]


def test_a_reply_that_the_end_of_the_program_broke_off_is_shown_as_interrupted(benches: BenchMaker) -> None:
    bench = asked(benches, "One?")
    settled(bench)
    bench.window.close()
    file = stored()
    reply = file.execute("SELECT max(id) FROM messages").fetchone()[0]
    file.execute("UPDATE messages SET state = 'writing', text = 'The capital of France is' WHERE id = ?", (reply,))
    file.execute("DELETE FROM records WHERE message = ?", (reply,))
    file.execute("INSERT INTO records(message, part, data) VALUES(?, 0, ?)", (reply, packing.pack(EVENTS[:4])))
    file.commit()
    file.close()
    again = opened(benches())
    assert again.said == ["One?", "The capital of France is"], "it is opened by itself"
    view = last_reply(again)
    assert "Interrupted: Specular ended" in view._failure.text() and len(view.text.cycles) == 2
    again.ready()
    assert not view.continue_button.isHidden()
    view.continue_button.click()
    again.reach(HostState.READY)
    assert again.engine.requests[0].reply_prefix_ids == (100, 101, 102, 103, 105)
    assert last_reply(again).source_text() == "The capital of France is" + ANSWER, "written on in its place"
    assert again.window.chat.chats.current.turns[-1].reply.interrupted is False  # type: ignore[union-attr]


def test_closing_in_mid_reply_keeps_it_as_stopped(benches: BenchMaker) -> None:
    bench = asked(benches, engine=FakeEngine(hold_reply=True))
    bench.type_and_send("One?")
    bench.held()
    bench.qtbot.waitUntil(lambda: bench.said[-1] != "", timeout=5000)
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert again.said == ["One?", "The capital of France is"] and again.banner == ""
    assert last_reply(again)._figures.text().startswith("Stopped")


# Where it cannot be kept


def test_a_home_that_cannot_be_written_is_said_and_the_chat_works(benches: BenchMaker, own_data_folder: Path) -> None:
    (own_data_folder / "data").write_text("a file in the way")
    bench = asked(benches, "One?")
    assert "Chats of this run are not kept" in bench.banner or bench.window.side_bar._not_kept.isVisible()
    assert bench.said == ["One?", ANSWER] and bench.titles == ["One?"]
    bench.window.new_action.trigger()
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    assert bench.said == ["One?", ANSWER]
    assert bench.window.side_bar._not_kept.isVisible()


def test_a_damaged_file_is_said_and_the_window_goes_on(benches: BenchMaker) -> None:
    data_dir().mkdir(parents=True)
    (data_dir() / FILE_NAME).write_bytes(b"garbage " * 4000)
    bench = asked(benches, "One?")
    assert "was damaged" in bench.banner or bench.said == ["One?", ANSWER]
    settled(bench)
    assert len(list(data_dir().glob("history.broken-*.db"))) == 1
    again = restarted(benches, bench)
    assert again.titles == ["One?"]


def test_damage_found_while_reading_is_mended_and_the_list_is_read_again(benches: BenchMaker) -> None:
    first = asked(benches, "One?")
    first.window.new_action.trigger()
    first.ask("Two?")
    first.window.close()
    path = data_dir() / FILE_NAME
    file = stored()
    page = file.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages_of_chat'").fetchone()[0]
    file.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : (page - 1) * 4096 + 64] = b"\xff" * 64
    path.write_bytes(bytes(data))
    bench = opened(benches())
    assert len(bench.titles) == 2, "the list is whole"
    with bench.qtbot.waitSignal(bench.window.history.renewed, timeout=10_000):
        bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    assert "was damaged" in bench.banner and len(bench.titles) == 2
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    assert bench.said == ["Two?", ANSWER]


# The list


def test_rename_pin_and_duplicate(benches: BenchMaker) -> None:
    bench = asked(benches, "First?")
    bench.window.new_action.trigger()
    bench.ask("Second?")
    first, second = bench.listed(1), bench.listed(0)
    side = bench.window.side_bar
    index = side.model.index(side.model.place_of(first) or 0)
    assert side.model.setData(index, "  My \u202e name\n  ")
    assert bench.titles == ["Second?", "My name"]
    bench.window.shelf.pin(first, True)
    assert bench.titles == ["My name", "Second?"]
    shown = [side.model.index(row).data() for row in range(side.model.rowCount())]
    assert shown == ["Pinned", "My name", "Today", "Second?"]
    bench.window.shelf.duplicate(second)
    bench.qtbot.waitUntil(lambda: len(bench.titles) == 3, timeout=5000)
    assert bench.titles == ["My name", "Second? (copy)", "Second?"] and bench.said == ["Second?", ANSWER]
    bench.ask("Only in the copy")
    again = restarted(benches, bench)
    assert again.titles == ["My name", "Second? (copy)", "Second?"]
    again.window.side_bar.chat_chosen.emit(again.listed(2))
    assert again.said == ["Second?", ANSWER]


def test_a_title_is_edited_in_its_row(benches: BenchMaker) -> None:
    bench = asked(benches, "First?")
    side = bench.window.side_bar
    bench.window.shelf.menu_of(bench.listed(0)).actions()[0].trigger()
    editor = side.list.findChild(QLineEdit)
    assert editor is not None and editor.accessibleName() == "Title of the chat"
    editor.setText("Another name")
    bench.qtbot.keyClick(editor, Qt.Key.Key_Return)
    bench.qtbot.waitUntil(lambda: bench.titles == ["Another name"], timeout=3000)


def test_a_deleted_chat_can_be_brought_back(benches: BenchMaker) -> None:
    bench = asked(benches, "First?")
    chat = bench.listed(0)
    bench.window.shelf.menu_of(chat).actions()[-1].trigger()
    toast = bench.window.shelf.toast
    assert bench.titles == [] and bench.said == [] and toast.words == "Chat “First?” was deleted"
    bench.qtbot.mouseClick(toast.undo_button, Qt.MouseButton.LeftButton)
    bench.qtbot.waitUntil(lambda: bench.titles == ["First?"], timeout=5000)
    assert bench.said == ["First?", ANSWER] and toast.words == ""
    bench.window.shelf.delete(chat)
    toast.expire()
    settled(bench)
    file = stored()
    assert file.execute("SELECT count(*) FROM messages").fetchone() == (0,)
    file.close()
    assert restarted(benches, bench).titles == []


def test_the_chat_that_is_being_written_cannot_be_deleted(benches: BenchMaker) -> None:
    bench = asked(benches, engine=FakeEngine(hold_reply=True))
    bench.type_and_send("One?")
    bench.held()
    assert not bench.window.shelf.menu_of(bench.listed(0)).actions()[-1].isEnabled()


def test_search_finds_titles_and_messages_and_goes_there(benches: BenchMaker) -> None:
    bench = asked(benches, "Where are museums?")
    bench.window.new_action.trigger()
    bench.window.chat.send("推测解码是什么？")
    bench.reach(HostState.READY)
    settled(bench)
    side = bench.window.side_bar
    bench.window.search_action.trigger()
    assert side.search.hasFocus()
    bench.qtbot.keyClicks(side.search, "museums")
    bench.qtbot.waitUntil(lambda: len(side.found.hits()) == 2, timeout=5000)
    assert [hit.message is None for hit in side.found.hits()] == [True, False]
    assert side.found.hits()[1].match == "museums"
    bench.qtbot.keyClick(side.search, Qt.Key.Key_Return)
    assert bench.said == ["Where are museums?", ANSWER]
    side.search.setText("推测")
    bench.qtbot.waitUntil(lambda: len(side.found.hits()) == 1, timeout=5000)
    side.search.setText("nowhere to be found")
    bench.qtbot.waitUntil(lambda: side._nothing.isVisible(), timeout=5000)
    bench.qtbot.keyClick(side.search, Qt.Key.Key_Escape)
    assert side.search.text() == "" and side.list.isVisible()


# Branches


def test_a_question_put_differently_is_a_branch(benches: BenchMaker) -> None:
    bench = asked(benches, "One?", "Two?")
    bubble = bench.view.turns()[0]
    assert isinstance(bubble, UserBubble)
    bubble.edit_button.click()
    editor = bench.window.branches._editor
    assert editor is not None and editor.input.text() == "One?"
    editor.input.set_text("Uno?")
    bench.qtbot.keyClick(editor.input, Qt.Key.Key_Return)
    bench.reach(HostState.READY)
    assert bench.said == ["Uno?", ANSWER] and bench.engine.requests[-1].messages == (Message("user", "Uno?"),)
    pager = bench.view.turns()[0].pager
    assert pager.place() == "2/2" and pager.accessibleName() == "Version 2 of 2"
    pager.earlier.click()
    assert bench.said == ["One?", ANSWER, "Two?", ANSWER]
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert again.said == ["One?", ANSWER, "Two?", ANSWER], "what was shown last"
    again.view.turns()[0].pager.later.click()
    assert again.said == ["Uno?", ANSWER]


def test_escape_leaves_a_question_as_it_was(benches: BenchMaker) -> None:
    bench = asked(benches, "One?")
    bubble = bench.view.turns()[0]
    assert isinstance(bubble, UserBubble)
    bubble.edit_button.click()
    editor = bench.window.branches._editor
    assert editor is not None
    bench.qtbot.keyClick(editor.input, Qt.Key.Key_Escape)
    assert bench.window.branches._editor is None and bench.said == ["One?", ANSWER] and bubble._body.isVisible()


def test_regenerating_keeps_both_replies(benches: BenchMaker) -> None:
    bench = asked(benches, "One?")
    last_reply(bench).regenerate_button.click()
    bench.reach(HostState.READY)
    view = last_reply(bench)
    assert view.pager.place() == "2/2"
    view.pager.earlier.click()
    assert last_reply(bench).pager.place() == "1/2" and bench.said == ["One?", ANSWER]
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert last_reply(again).pager.place() == "1/2"


def test_the_middle_of_three_versions_survives_chats_and_restarts(benches: BenchMaker) -> None:
    bench = asked(benches, "One?")
    for _ in range(2):
        last_reply(bench).regenerate_button.click()
        bench.reach(HostState.READY)
    assert last_reply(bench).pager.place() == "3/3"
    last_reply(bench).pager.earlier.click()
    assert last_reply(bench).pager.place() == "2/3"
    bench.ask("Two?")
    bench.window.new_action.trigger()
    bench.ask("Elsewhere?")
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(1))
    assert again.said == ["One?", ANSWER, "Two?", ANSWER]
    view = again.view.turns()[1]
    assert isinstance(view, ReplyView) and view.pager.place() == "2/3"
    view.pager.later.click()
    assert again.said == ["One?", ANSWER], "what followed the second one is not said after the third"


def test_a_refused_reply_leaves_the_branch_that_was_there(benches: BenchMaker) -> None:
    bench = asked(benches, "One?", "Two?")
    bench.engine.refusal = PromptTooLong("Too long.")
    last_reply(bench).regenerate_button.click()
    bench.qtbot.waitUntil(lambda: bench.banner == "Too long.", timeout=5000)
    assert bench.said == ["One?", ANSWER, "Two?", ANSWER] and last_reply(bench).pager.place() == ""
    bench.type_and_send("Three?")
    bench.qtbot.waitUntil(lambda: bench.window.composer.text() == "Three?", timeout=5000)
    assert bench.said == ["One?", ANSWER, "Two?", ANSWER]
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert again.said == ["One?", ANSWER, "Two?", ANSWER]


def test_a_stopped_reply_is_written_on_in_its_place(benches: BenchMaker) -> None:
    bench = asked(benches, engine=FakeEngine(hold_reply=True))
    bench.type_and_send("One?")
    bench.held()
    bench.window.escape_action.trigger()
    bench.reach(HostState.READY)
    half = last_reply(bench)
    assert half.continue_button.isVisible()
    bench.engine.hold_reply = False
    half.continue_button.click()
    bench.reach(HostState.READY)
    view = last_reply(bench)
    assert bench.said == ["One?", "The capital of France is" + ANSWER]
    assert view.pager.place() == "" and not view.continue_button.isVisible(), "it came to its end"
    assert bench.engine.requests[1].messages == bench.engine.requests[0].messages
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert again.said == bench.said and len(last_reply(again).text.cycles) == 7


def test_a_branch_becomes_a_chat_of_its_own(benches: BenchMaker) -> None:
    bench = asked(benches, "One?", "Two?")
    view = bench.view.turns()[1]
    assert isinstance(view, ReplyView)
    view.branch_button.click()
    bench.qtbot.waitUntil(lambda: len(bench.titles) == 2, timeout=5000)
    assert bench.titles == ["One? (branch)", "One?"] and bench.said == ["One?", ANSWER]


def test_a_follow_up_in_a_replay_keeps_the_replay_too(benches: BenchMaker) -> None:
    bench = opened(benches())
    bench.window.show_demo()
    bench.window.replays.close()
    demo = bench.said
    bench.ready()
    bench.ask("And at night?")
    assert not bench.titles[0].startswith("Replay")
    again = restarted(benches, bench)
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert again.said == [*demo, "And at night?", ANSWER]
    first = again.view.turns()[1]
    assert isinstance(first, ReplyView) and "recorded with SmolLM2" in first._figures.text()


# Settings and drafts


def test_a_chat_keeps_its_settings_and_new_ones_take_the_defaults(benches: BenchMaker) -> None:
    bench = asked(benches, settings=AppSettings(system_prompt="Be brief."))
    bench.ask("One?")
    bench.settings.set("temperature", 0.7)
    bench.settings.set("system_prompt", "Be long.")
    bench.window.new_action.trigger()
    assert bench.settings.current.temperature == 0.0 and bench.settings.current.system_prompt == "Be brief."
    bench.ask("Two?")
    assert bench.engine.requests[-1].messages[0] == Message("system", "Be brief.")
    again = restarted(benches, bench, settings=AppSettings(top_k=5))
    again.ready()
    again.window.side_bar.chat_chosen.emit(again.listed(1))
    assert again.window.composer.sampling_chip.text() == "Temperature 0.7"
    again.ask("Three?")
    request = again.engine.requests[-1]
    assert request.messages[0] == Message("system", "Be long.") and request.sampling.top_k == 0
    again.settings.keep_lent()
    again.window.new_action.trigger()
    assert again.settings.current.temperature == 0.7, "made the default"


def test_what_was_not_sent_stays_with_its_chat(benches: BenchMaker) -> None:
    bench = asked(benches, "One?")
    composer = bench.window.composer
    composer.set_text("unsent in one")
    bench.window.new_action.trigger()
    assert composer.text() == ""
    composer.set_text("unsent in none")
    bench.window.side_bar.chat_chosen.emit(bench.listed(0))
    assert composer.text() == "unsent in one"
    again = restarted(benches, bench)
    assert again.window.composer.text() == "unsent in none"
    again.window.side_bar.chat_chosen.emit(again.listed(0))
    assert again.window.composer.text() == "unsent in one"
    again.ready()
    again.type_and_send("")
    again.reach(HostState.READY)
    assert again.said[-2:] == ["unsent in one", ANSWER] and again.window.composer.text() == ""
