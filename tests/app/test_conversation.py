"""Chats as data: messages for the engine, titles, replies that broke off."""

from __future__ import annotations

import pytest
from fake_engine import paris, text_of

from app.conversation import Chat, Chats, Reply, Turn
from app.settings import AppSettings
from engine.records import CycleEvent, Finished, StopReason
from engine.settings import Message


def replied(reply_id: int, cycles: int = 5) -> Reply:
    """A reply that was stopped after so many cycles."""
    recording = paris()
    reply = Reply(reply_id)
    for event in recording.cycles[:cycles]:
        reply.append(event)
    reply.append(recording.finished(StopReason.STOPPED, cycles))
    return reply


def test_a_reply_is_the_text_of_its_events() -> None:
    events = paris().events()
    reply = Reply(1)
    for event in events:
        reply.append(event)
    assert reply.text == text_of(events)
    assert reply.finished is events[-1]
    cycles = [event for event in events if isinstance(event, CycleEvent)]
    assert reply.statistics.cycles == len(cycles)
    assert reply.context_tokens == cycles[-1].record.kv_length
    assert Reply(2).context_tokens is None


def test_the_tail_of_the_end_belongs_to_the_text() -> None:
    reply = Reply(1)
    reply.append(Finished(StopReason.END_TOKEN, " held", 1, 0, 1, 0.1, 0.1, 0))
    assert reply.text == " held"


def test_messages_alternate_and_a_half_reply_counts() -> None:
    chat = Chat(1, [Turn("One?", replied(1, 2)), Turn("Two?")])
    assert list(chat.messages("")) == [
        Message("user", "One?"),
        Message("assistant", "The capital of France is"),
        Message("user", "Two?"),
    ]


def test_the_system_prompt_comes_first_and_only_when_there_is_one() -> None:
    chat = Chat(1, [Turn("One?")])
    assert next(iter(chat.messages("Be brief."))) == Message("system", "Be brief.")
    assert list(chat.messages("  \n")) == [Message("user", "One?")]


def test_a_question_without_an_answer_goes_before_the_next() -> None:
    chat = Chat(
        1, [Turn("One?", replied(1, 0)), Turn("Two?", replied(2)), Turn("Three?", replied(3, 0)), Turn("Four?")]
    )
    messages = list(chat.messages(""))
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert messages[0].content == "One?\n\nTwo?"
    assert messages[2].content == "Three?\n\nFour?"


def test_a_request_carries_the_settings() -> None:
    settings = AppSettings(temperature=0.5, seed=3, max_new_tokens=9, system_prompt="S", speculation=False)
    request = Chat(1, [Turn("One?")]).request(settings, None)
    assert request.messages == (Message("system", "S"), Message("user", "One?"))
    assert request.sampling.temperature == 0.5 and request.sampling.seed == 3
    assert request.max_new_tokens == 9 and not request.speculation.enabled
    assert request.conversation == 1, "so that its rows of the KV cache are its own"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("\n\n  Two\nlines", "Two"),
        ("Why is the sky blue in the middle of the day?", "Why is the sky blue in the middle of…"),
        ("x" * 50, "x" * 40 + "…"),
        ("   ", ""),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert Chat(1, [Turn(text)]).title == title


def test_chats_are_listed_from_their_first_question() -> None:
    chats = Chats()
    assert chats.new() is chats.current and chats.chats == []
    first = chats.current
    chats.ask("One?").reply = replied(1)
    second = chats.new()
    assert second is not first and chats.new() is second and chats.chats == [first]
    chats.ask("Two?").reply = replied(2)
    assert chats.chats == [second, first]
    assert chats.owner(1) is first and chats.owner(2) is second and chats.owner(3) is None
    assert chats.open(first.chat_id) is first and chats.current is first
    with pytest.raises(KeyError):
        chats.open(99)


def test_a_refused_question_is_given_back_and_its_empty_chat_forgotten() -> None:
    chats = Chats()
    chats.ask("One?")
    assert chats.current.take_back() == "One?"
    chats.drop_if_empty(chats.current)
    assert chats.chats == []
