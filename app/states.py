"""Which command the window may give in which state, and what the engine's answers lead to. Plain tables, no Qt."""

from __future__ import annotations

from enum import Enum


class HostState(Enum):
    """What the engine is doing, as far as the window is concerned."""

    NO_MODEL = "no model"
    LOADING = "loading"
    READY = "ready"
    GENERATING = "generating"
    STOPPING = "stopping"
    PROVING = "proving"
    CALIBRATING = "calibrating"
    BENCHMARKING = "benchmarking"
    UNLOADING = "unloading"
    FAILED = "failed"
    CLOSED = "closed"

    @property
    def under_way(self) -> bool:
        """True while the engine thread works and answers are to be expected."""
        return self in _UNDER_WAY


_UNDER_WAY = frozenset(
    {
        HostState.LOADING,
        HostState.GENERATING,
        HostState.STOPPING,
        HostState.PROVING,
        HostState.CALIBRATING,
        HostState.BENCHMARKING,
        HostState.UNLOADING,
    }
)


class Command(Enum):
    """What the window may ask for."""

    LOAD = "load"
    CANCEL_LOAD = "cancel load"
    SEND = "send"
    STOP = "stop"
    PROVE = "prove"
    CALIBRATE = "calibrate"
    BENCH = "bench"
    INSPECT = "inspect"
    UNLOAD = "unload"
    RESTART = "restart"
    CLOSE = "close"


class Answer(Enum):
    """What the engine thread reports. `..._KEEPING` means that the model loaded before is still usable."""

    LOADED = "loaded"
    LOAD_FAILED = "load failed"
    LOAD_FAILED_KEEPING = "load failed, earlier model kept"
    LOAD_CANCELLED = "load cancelled"
    LOAD_CANCELLED_KEEPING = "load cancelled, earlier model kept"
    REPLY_ENDED = "reply ended"
    PROOF_ENDED = "proof ended"
    CALIBRATION_ENDED = "calibration ended"
    BENCH_ENDED = "bench ended"
    UNLOADED = "unloaded"
    FAULT = "fault"


_S = HostState
_C = Command

NEXT_STATE: dict[tuple[HostState, Command], HostState] = {
    (_S.NO_MODEL, _C.LOAD): _S.LOADING,
    (_S.READY, _C.LOAD): _S.LOADING,
    (_S.FAILED, _C.LOAD): _S.LOADING,
    # A cancelled load stays "loading" until the engine has given everything back.
    (_S.LOADING, _C.CANCEL_LOAD): _S.LOADING,
    (_S.READY, _C.SEND): _S.GENERATING,
    (_S.GENERATING, _C.STOP): _S.STOPPING,
    (_S.READY, _C.PROVE): _S.PROVING,
    (_S.PROVING, _C.STOP): _S.STOPPING,
    (_S.READY, _C.CALIBRATE): _S.CALIBRATING,
    (_S.CALIBRATING, _C.STOP): _S.STOPPING,
    (_S.READY, _C.BENCH): _S.BENCHMARKING,
    (_S.BENCHMARKING, _C.STOP): _S.STOPPING,
    # A look at a token takes one pass or two: the window stays ready, and whatever is asked next ends the look.
    (_S.READY, _C.INSPECT): _S.READY,
    (_S.READY, _C.UNLOAD): _S.UNLOADING,
    (_S.FAILED, _C.UNLOAD): _S.UNLOADING,
    # The engine ends, and another is there in its place: as unloading, from wherever it is.
    **{(state, _C.RESTART): _S.UNLOADING for state in HostState if state not in (_S.UNLOADING, _S.CLOSED)},
    **{(state, _C.CLOSE): _S.CLOSED for state in HostState if state is not _S.CLOSED},
}
"""The whole table of legal commands: a pair that is not here is refused."""

AFTER_ANSWER: dict[tuple[HostState, Answer], HostState] = {
    (_S.LOADING, Answer.LOADED): _S.READY,
    (_S.LOADING, Answer.LOAD_FAILED): _S.FAILED,
    (_S.LOADING, Answer.LOAD_FAILED_KEEPING): _S.READY,
    (_S.LOADING, Answer.LOAD_CANCELLED): _S.NO_MODEL,
    (_S.LOADING, Answer.LOAD_CANCELLED_KEEPING): _S.READY,
    (_S.GENERATING, Answer.REPLY_ENDED): _S.READY,
    (_S.STOPPING, Answer.REPLY_ENDED): _S.READY,
    (_S.PROVING, Answer.PROOF_ENDED): _S.READY,
    (_S.STOPPING, Answer.PROOF_ENDED): _S.READY,
    (_S.CALIBRATING, Answer.CALIBRATION_ENDED): _S.READY,
    (_S.STOPPING, Answer.CALIBRATION_ENDED): _S.READY,
    (_S.BENCHMARKING, Answer.BENCH_ENDED): _S.READY,
    (_S.STOPPING, Answer.BENCH_ENDED): _S.READY,
    (_S.UNLOADING, Answer.UNLOADED): _S.NO_MODEL,
    **{(state, Answer.FAULT): _S.FAILED for state in _UNDER_WAY},
}
"""Where an answer of the engine thread leads. Answers that come after `CLOSED` are dropped."""


def next_state(state: HostState, command: Command) -> HostState | None:
    """The state after `command`, or None where the command is refused."""
    return NEXT_STATE.get((state, command))


def is_legal(state: HostState, command: Command) -> bool:
    """Whether `command` may be given in `state`."""
    return (state, command) in NEXT_STATE


def after_answer(state: HostState, answer: Answer) -> HostState:
    """The state after an engine answer; an answer that does not fit (late, or after a close) changes nothing."""
    return AFTER_ANSWER.get((state, answer), state)
