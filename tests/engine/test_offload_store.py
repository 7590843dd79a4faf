"""Parts of a model that change their place: nothing is lost on the way, and what fails leaves all as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.errors import SpecularError
from engine.offload import part_store, pinned
from engine.offload.part_store import ALIGNMENT, Blocks, PartStore
from engine.offload.plan import Residency
from triton_rig import DEVICE

SHAPES: dict[int, tuple[tuple[int, int], ...]] = {0: ((3, 5), (7, 2)), 1: ((40, 9),), 4: ((8, 8), (1, 300), (2, 2))}
STREAMED = Residency.STREAMED
Parts = dict[int, tuple[torch.Tensor, ...]]
Told = dict[int, tuple[Blocks, ...]]


def made() -> tuple[PartStore, Parts]:
    """A store of three parts, the second of them streamed, and what they hold."""
    torch.manual_seed(5)
    store, truth = PartStore(DEVICE), {}
    for index, shapes in SHAPES.items():
        truth[index] = tuple(torch.randn(*shape).half() for shape in shapes)
        store.put(index, [matrix.to(DEVICE) for matrix in truth[index]], STREAMED if index == 1 else Residency.RESIDENT)
    return store, truth


def holds(store: PartStore, truth: Parts) -> bool:
    """Whether every part is what it was, at home and where a pass would read it."""
    stream, equal = store.stream, True
    if stream is not None:
        stream.wait()
        stream.begin()
    for index, matrices in truth.items():
        if stream is not None:
            stream.before(index)
        for there in (store.home(index), store.ready(index)):
            equal &= all(torch.equal(a.cpu(), b) for a, b in zip(there, matrices, strict=True))
        if stream is not None:
            stream.after(index)
    return equal


def silent(done: int, total: int) -> None:
    """Progress that nobody looks at."""


def test_parts_are_what_they_were_wherever_they_move() -> None:
    store, truth = made()
    store.start(2)
    assert holds(store, truth)
    told: Told = {}
    streamed: tuple[int, ...]
    for streamed in ((0, 1), (4,), (), (0, 1, 4), (1,)):
        store.stop()
        store.move(dict.fromkeys(streamed, STREAMED), told.__setitem__, silent)
        store.start(2)
        assert [store.residency(index) is STREAMED for index in SHAPES] == [index in streamed for index in SHAPES]
        assert (store.stream is None) is (not streamed)
        assert holds(store, truth), streamed
        assert all(told[index] == store._homes[index].matrices for index in told), "who was told has what is in force"
    assert set(told) == set(SHAPES)
    store.close()


def test_progress_is_told_part_by_part() -> None:
    store, _ = made()
    seen: list[tuple[int, int]] = []
    store.move(
        dict.fromkeys((0, 4), STREAMED), lambda index, matrices: None, lambda done, total: seen.append((done, total))
    )
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    store.close()


def test_matrices_begin_where_kernels_may_read_whole_lines() -> None:
    store, _ = made()
    store.move(dict.fromkeys((0, 1, 4), STREAMED), lambda index, matrices: None, silent)
    store.start(3)
    for index in SHAPES:
        begins = [matrix.data_ptr() for matrix in store.ready(index)]
        assert all((begin - begins[0]) % ALIGNMENT == 0 for begin in begins)
    store.close()


def test_a_move_that_fails_on_the_way_out_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store, truth = made()
    told: Told = {}
    real, sizes = part_store.PinnedBuffer, []

    def one_only(size: int) -> pinned.PinnedBuffer:
        sizes.append(size)
        if len(sizes) == 2:
            raise MemoryError("no RAM for this one")
        return real(size)

    monkeypatch.setattr(part_store, "PinnedBuffer", one_only)
    with pytest.raises(MemoryError):
        store.move(dict.fromkeys((0, 1, 4), STREAMED), told.__setitem__, silent)
    store.start(2)
    assert [store.residency(index) is STREAMED for index in SHAPES] == [False, True, False]
    assert holds(store, truth) and told[0] == store._homes[0].matrices
    store.close()


def test_a_move_that_fails_on_the_way_in_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store, truth = made()
    told: Told = {}
    real: Any = torch.Tensor.to

    def full(tensor: torch.Tensor, *place: object, **options: object) -> torch.Tensor:
        if tensor.shape == SHAPES[1][0]:
            raise torch.OutOfMemoryError("the card is full")
        return real(tensor, *place, **options)

    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "to", full)
        with pytest.raises(torch.OutOfMemoryError):
            store.move({0: STREAMED}, told.__setitem__, silent)
    store.start(2)
    assert [store.residency(index) is STREAMED for index in SHAPES] == [False, True, False]
    assert holds(store, truth) and told[0] == store._homes[0].matrices and 1 not in told
    store.close()


def test_ram_is_asked_for_before_anything_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    store, truth = made()
    monkeypatch.setattr(pinned.psutil, "virtual_memory", lambda: type("Free", (), {"available": pinned.MARGIN}))
    told: Told = {}
    with pytest.raises(SpecularError, match=r"Streaming needs 0\.0 GB of RAM"):
        store.move(dict.fromkeys((0, 1, 4), STREAMED), told.__setitem__, silent)
    store.start(2)
    assert not told and holds(store, truth)
    store.close()


def test_parts_that_ram_is_too_short_for_are_read_from_files(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    truth = {index: tuple(torch.randn(*shape).half() for shape in shapes) for index, shapes in SHAPES.items()}
    files = {index: tuple(matrix.split(3) for matrix in matrices) for index, matrices in truth.items()}
    store = PartStore(DEVICE, files.__getitem__)
    monkeypatch.setattr(part_store, "has_ram", lambda size: size < 1000)
    for index, matrices in truth.items():
        store.put(index, matrices, STREAMED)
    assert [home.in_files for home in store._homes.values()] == [False, False, True]
    assert store.notes == ("RAM is short: 0.00 GB of the model are read from its files for every full pass.",)
    store.start(2)
    assert store.stream is not None and not store.stream.captures
    assert holds(store, truth)
    for streamed in ((0, 1), (0, 1, 4), ()):
        store.stop()
        store.move(dict.fromkeys(streamed, STREAMED), lambda index, matrices: None, silent)
        store.start(2)
        assert holds(store, truth) and bool(store.notes) is (4 in streamed)
    store.close()
