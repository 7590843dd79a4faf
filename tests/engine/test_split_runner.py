"""A model over two devices: the tokens and rows of one, whatever is split where. Both devices are the host's here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from builders import tiny_llama
from engine.errors import BadSetting
from engine.files.folder import open_folder
from engine.memory.pages import PageError
from engine.memory.split_storage import SplitStorage
from engine.memory.storage import RowSize
from engine.memory.tensor_storage import tensor_storage
from engine.model import programme as p
from engine.model.split_runner import SplitRunner
from engine.offload.devices import DeviceRoom
from engine.offload.rates import default_rates
from engine.offload.split import layers_of_devices
from engine.recipe import Recipe
from engine_rig import no_end_tokens, torch_runner
from family_models import CASES, make

IDS = np.random.default_rng(3).integers(3, 290, 40).tolist()
SKIPS = Recipe(weight_bits=16, skipped_attention=(1,), skipped_mlp=(2,), neuron_share=0.5)
FAMILIES = ("llama", "qwen3", "smollm3", "opt", "opt 350m", "mistral")


@contextmanager
def split(folder: Path, layers: tuple[int, ...], recipe: Recipe = SKIPS) -> Iterator[SplitRunner]:
    devices = ["cpu"] * len(layers)
    runner = SplitRunner(open_folder(folder), 128, recipe, lambda _: None, lambda: False, devices, layers)
    try:
        yield runner
    finally:
        runner.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return no_end_tokens(tiny_llama(tmp_path_factory.mktemp("split"), layers=4))


@pytest.mark.parametrize("layers", [(2, 2), (1, 3), (3, 1), (1, 2, 1)], ids=str)
@pytest.mark.parametrize("tied", [False, True])
def test_passes_have_the_bits_of_one_device(layers: tuple[int, ...], tied: bool, tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path, layers=4, tied=tied)
    one = torch_runner(folder, capacity=128, recipe=SKIPS)
    with split(folder, layers) as several:
        for runner in (one, several):
            runner.full(IDS[:20], 0, 0)
        for first, stop in ((20, 21), (21, 29)):
            wanted = one.full(IDS[first:stop], first, stop - first)
            assert np.array_equal(several.full(IDS[first:stop], first, stop - first), wanted)
            assert np.array_equal(several.draft(IDS[first:stop], first), one.draft(IDS[first:stop], first))
        pairs = zip(several.kv.layers, one.kv.layers, strict=True)
        assert all(torch.equal(mine[:29], theirs[:29]) for mine, theirs in pairs)
        assert several.handovers >= len(layers) - 1 and several.handed_bytes > 0
        one.refresh_neurons()
        several.refresh_neurons()
        assert all(map(torch.equal, several.chosen, one.chosen))
    one.close()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_can_be_split(name: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    folder = make(case, tmp_path, num_hidden_layers=4).folder
    one = torch_runner(folder, capacity=128)
    with split(folder, (2, 2), Recipe(weight_bits=16)) as several:
        assert np.array_equal(several.full(IDS, 0, 16), one.full(IDS, 0, 16))
    one.close()


def test_each_device_has_its_layers_and_no_others(folder: Path) -> None:
    with split(folder, (1, 3)) as runner:
        assert runner.shares == (("cpu", range(1)), ("cpu", range(1, 4)))
        assert runner._names[p.EMBEDDING] == 0 and runner._names[p.OUTPUT] == runner._names[p.FINAL_NORM] == 1
        places = [runner._names[f"model.layers.{layer}.mlp.down_proj.weight"] for layer in range(4)]
        assert places == [0, 1, 1, 1]
        assert "layers 1 on cpu, 3 on cpu" in runner.kernels
        with pytest.raises(ValueError, match="all layers have a device"):
            SplitRunner(open_folder(folder), 8, SKIPS, lambda _: None, lambda: False, ["cpu", "cpu"], (1, 1))


def test_nothing_is_read_across_a_handover(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stayed behind is spoilt: a pass that read it would show it."""
    one = torch_runner(folder, capacity=128, recipe=SKIPS)
    wanted = one.full(IDS[:8], 0, 8)
    one.close()
    with split(folder, (2, 2)) as runner:
        on: Callable[[SplitRunner, int, torch.Tensor], torch.Tensor] = SplitRunner._on

        def spoilt(self: SplitRunner, place: int, tensor: torch.Tensor) -> torch.Tensor:
            moved = on(self, place, tensor)
            tensor.fill_(float("nan"))
            return moved

        monkeypatch.setattr(SplitRunner, "_on", spoilt)
        assert np.array_equal(runner.full(IDS[:8], 0, 8), wanted)


def test_a_device_without_memory_for_more_rows_has_the_others_shrink_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = RowSize(2, 8192, 256), RowSize(1, 8192, 256)
    shares = [tensor_storage(size, torch.device("cpu"), virtual=True) for size in sizes]
    storage = SplitStorage(shares)
    try:
        assert storage.size == RowSize(3, 8192, 256) and len(storage.layers(0)) == 3
        storage.resize(0, 10)
        assert storage.room(0) >= 10
        before, rooms = storage.mapped, [share.room(0) for share in shares]

        def refuse(index: int, rows: int) -> int:
            raise PageError("no more")

        with monkeypatch.context() as patch:
            patch.setattr(shares[1], "resize", refuse)
            with pytest.raises(PageError):
                storage.resize(0, 8000)
        assert storage.mapped == before and [share.room(0) for share in shares] == rooms
        storage.resize(0, 8000)
        assert storage.room(0) >= 8000
        assert storage.bytes_of(8000) == sum(share.bytes_of(8000) for share in shares)
        assert storage.reserved > 0 and storage.free_bytes() > 0 and storage.pooled == 0
        assert {made.name for made in storage.operations} == {made.name for made in shares[0].operations}
    finally:
        storage.close()


def test_budgets_decide_which_layers_are_where(folder: Path) -> None:
    opened = open_folder(folder)
    rates = default_rates("cpu")

    def layers(*budgets: int) -> tuple[int, ...]:
        return layers_of_devices(opened, 128, [DeviceRoom(budget, rates) for budget in budgets], device="cpu")

    whole = 200 << 20
    assert layers(whole) == (4,) and layers(whole, whole) == (4,), "one device does"
    least = next(size for size in range(8 << 20, whole, 1 << 14) if _holds(layers, size, size))
    found = layers(least, least)
    assert len(found) == 2 and sum(found) == 4
    unequal = layers(least - (1 << 17), least + (1 << 18))
    assert sum(unequal) == 4 and unequal[0] <= found[0]
    with pytest.raises(BadSetting, match=r"The budgets, 0\.00\d GB and 0\.00\d GB, are too small"):
        layers(1 << 20, 1 << 20)
    one = torch_runner(folder, capacity=128)
    with split(folder, found, Recipe(weight_bits=16)) as several:
        assert np.array_equal(several.full(IDS, 0, 16), one.full(IDS, 0, 16))
    one.close()


def _holds(layers: Callable[..., tuple[int, ...]], *budgets: int) -> bool:
    try:
        return bool(layers(*budgets))
    except BadSetting:
        return False
