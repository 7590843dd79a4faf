"""The threads of a pass: all run, all are waited for, failures reach the owner, and late threads do no harm."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import engine.model.compiled_runner as compiled_runner_module
from builders import tiny_llama
from engine.kernels.compiled.team import Team
from engine_rig import compiled_runner, step_logits


@pytest.mark.parametrize("size", [1, 2, 5])
def test_every_member_runs_once_and_is_waited_for(size: int) -> None:
    team = Team(size)
    for _ in range(200):
        seen: list[int] = []
        team.run(seen.append)
        assert sorted(seen) == list(range(size))
    team.close()


@pytest.mark.parametrize("member", [0, 1, 2])
def test_a_members_failure_reaches_the_owner_once(member: int) -> None:
    team = Team(3)
    finished: list[int] = []

    def fail(which: int) -> None:
        finished.append(which)
        if which == member:
            raise ArithmeticError(f"member {which}")

    with pytest.raises(ArithmeticError, match=f"member {member}"):
        team.run(fail)
    assert sorted(finished) == [0, 1, 2]
    team.run(finished.append)
    assert sorted(finished) == [0, 0, 1, 1, 2, 2]
    team.close()


def test_when_all_members_fail_the_next_run_is_clean() -> None:
    team = Team(3)

    def fail(which: int) -> None:
        raise ArithmeticError(f"member {which}")

    with pytest.raises(ArithmeticError):
        team.run(fail)
    seen: list[int] = []
    team.run(seen.append)
    assert sorted(seen) == [0, 1, 2]
    team.close()


def test_an_interrupt_of_the_owner_still_waits_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of the next pass must not be reset under a thread that is still in this one."""
    team = Team(2)
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()
    wait = team._end.wait

    def interrupted_once() -> None:
        monkeypatch.setattr(team._end, "wait", wait)
        may_end.set()
        raise KeyboardInterrupt

    def task(member: int) -> None:
        if member:
            begun.set()
            may_end.wait(10)
            ended.set()
        else:
            begun.wait(10)

    monkeypatch.setattr(team._end, "wait", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        team.run(task)
    assert ended.is_set()
    seen: list[int] = []
    team.run(seen.append)
    assert sorted(seen) == [0, 1]
    team.close()


def test_close_ends_the_threads() -> None:
    before = threading.active_count()
    team = Team(4)
    assert threading.active_count() == before + 3
    team.close()
    assert threading.active_count() == before


def test_more_threads_than_cores_under_load_never_change_a_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six threads a pass, beside two that hold the cores: members come late to most passes."""
    folder = tiny_llama(tmp_path, layers=3, std=0.2)
    ids = np.random.default_rng(1).integers(0, 290, 60).tolist()
    monkeypatch.setattr(compiled_runner_module, "thread_count", lambda: 1)
    with compiled_runner(folder) as single:
        wanted = step_logits(single, ids)
    monkeypatch.setattr(compiled_runner_module, "thread_count", lambda: 6)
    done = threading.Event()
    big = np.ones((300, 300), np.float32)

    def hold_a_core() -> None:
        while not done.is_set():
            np.sort(big, axis=None)  # releases the GIL

    load = [threading.Thread(target=hold_a_core) for _ in range(2)]
    for thread in load:
        thread.start()
    try:
        with compiled_runner(folder) as crowded:
            for position in range(0, 45):
                got = crowded.full(ids[position : position + 15], position, 15)
                assert np.array_equal(got, wanted[position : position + 15]), position
    finally:
        done.set()
        for thread in load:
            thread.join()
