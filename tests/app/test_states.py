"""The tables of commands and answers, state by state."""

from __future__ import annotations

import pytest

from app.states import AFTER_ANSWER, NEXT_STATE, Answer, Command, HostState, after_answer, is_legal, next_state

S, C = HostState, Command
ENDS = S.CLOSED, S.UNLOADING

# By state, the next for each command of COLUMNS; or None.
EXPECTED = {
    S.NO_MODEL: (S.LOADING, None, None, None, None, None, None, None, None, *ENDS),
    S.LOADING: (None, S.LOADING, None, None, None, None, None, None, None, *ENDS),
    S.READY: (
        S.LOADING,
        None,
        S.GENERATING,
        None,
        S.UNLOADING,
        S.PROVING,
        S.CALIBRATING,
        S.BENCHMARKING,
        S.READY,
        S.CLOSED,
        S.UNLOADING,
    ),
    S.GENERATING: (None, None, None, S.STOPPING, None, None, None, None, None, *ENDS),
    S.STOPPING: (None, None, None, None, None, None, None, None, None, *ENDS),
    S.PROVING: (None, None, None, S.STOPPING, None, None, None, None, None, *ENDS),
    S.CALIBRATING: (None, None, None, S.STOPPING, None, None, None, None, None, *ENDS),
    S.BENCHMARKING: (None, None, None, S.STOPPING, None, None, None, None, None, *ENDS),
    S.UNLOADING: (None, None, None, None, None, None, None, None, None, S.CLOSED, None),
    S.FAILED: (S.LOADING, None, None, None, S.UNLOADING, None, None, None, None, *ENDS),
    S.CLOSED: (None, None, None, None, None, None, None, None, None, None, None),
}
COLUMNS = (
    *(C.LOAD, C.CANCEL_LOAD, C.SEND, C.STOP, C.UNLOAD),
    *(C.PROVE, C.CALIBRATE, C.BENCH, C.INSPECT, C.CLOSE, C.RESTART),
)


@pytest.mark.parametrize("state", list(HostState))
@pytest.mark.parametrize("command", list(Command))
def test_every_command_in_every_state(state: HostState, command: Command) -> None:
    expected = EXPECTED[state][COLUMNS.index(command)]
    assert next_state(state, command) is expected
    assert is_legal(state, command) is (expected is not None)


def test_the_expectation_covers_the_whole_table() -> None:
    assert set(EXPECTED) == set(HostState)
    assert set(COLUMNS) == set(Command)
    assert len(NEXT_STATE) == sum(cell is not None for row in EXPECTED.values() for cell in row)


@pytest.mark.parametrize("answer", list(Answer))
def test_a_late_answer_never_leaves_closed(answer: Answer) -> None:
    assert after_answer(S.CLOSED, answer) is S.CLOSED


def test_every_state_under_way_is_left_by_some_answer() -> None:
    left = {state for state, _ in AFTER_ANSWER}
    assert left == {state for state in HostState if state.under_way}
    assert all(not after.under_way for after in AFTER_ANSWER.values())


def test_a_failed_load_with_an_earlier_model_is_ready_again() -> None:
    assert after_answer(S.LOADING, Answer.LOAD_FAILED_KEEPING) is S.READY
    assert after_answer(S.LOADING, Answer.LOAD_FAILED) is S.FAILED
    assert after_answer(S.LOADING, Answer.LOAD_CANCELLED) is S.NO_MODEL


def test_an_answer_that_does_not_fit_changes_nothing() -> None:
    assert after_answer(S.READY, Answer.REPLY_ENDED) is S.READY
    assert after_answer(S.GENERATING, Answer.LOADED) is S.GENERATING
