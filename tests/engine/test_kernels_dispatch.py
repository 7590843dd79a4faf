"""Which executor is chosen for a device and a model, and what is said where it is not the fastest."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from builders import read_safetensors, tiny_llama, write_safetensors
from engine.errors import BadSetting, LoadCancelled
from engine.files.folder import open_folder
from engine.kernels import dispatch
from engine.kernels.dispatch import Placement, choose_device, make_runner
from engine.memory.host_storage import host_storage
from engine.memory.kv_cache import KvCache
from engine.memory.storage import RowSize
from engine.model import torch_runner
from engine.model.compiled_runner import CompiledRunner
from engine.model.torch_runner import cache_type
from engine.recipe import Ingredients

CARD = Placement("cuda", "Test card")


class Built:
    """Stands for a runner on a card: remembers what it was made with."""

    notes = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments, self.options = arguments, options


class FakeCompilationError(Exception):
    """Like Triton's: the text begins with a listing, the sentence is apart."""

    error_message = "\nno such instruction\non this card"


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A machine with a card of some capability; runners on it are only noted. graph: what making graphs raises."""

    def prepare(capability: tuple[int, int] = (9, 0), *, triton: bool = True, graph: Exception | None = None) -> None:
        def make_graphs(*arguments: Any, **options: Any) -> Built:
            if graph is not None:
                raise graph
            return Built("graphs", *arguments, **options)

        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 36, 1 << 36))
        monkeypatch.setattr(torch_runner, "TorchRunner", partial(Built, "torch"))
        monkeypatch.setitem(sys.modules, "engine.model.graph_runner", SimpleNamespace(GraphRunner=make_graphs))
        find = importlib.util.find_spec

        def find_spec(name: str) -> object:
            return (object() if triton else None) if name == "triton" else find(name)

        monkeypatch.setattr(importlib.util, "find_spec", find_spec)

    return prepare


def model(folder: Path, dtype: str = "float16", **options: Any) -> Path:
    return tiny_llama(folder, hidden=64, heads=2, kv_heads=1, dtype=dtype, **options)


def make(folder: Path, placement: Placement = CARD) -> tuple[Any, tuple[str, ...]]:
    return make_runner(open_folder(folder), placement, 64, None, lambda _: None, lambda: False, 290)


def note(reason: str) -> tuple[str, ...]:
    return (f"The decode kernels cannot run here, because {reason}; torch computes instead, more slowly.",)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_card_runs_captured_graphs(dtype: str, card: Callable[..., None], tmp_path: Path) -> None:
    pytest.importorskip("triton")
    card()
    runner, notes = make(model(tmp_path, dtype))
    assert (runner.arguments[0], notes) == ("graphs", ())
    assert runner.arguments[2:4] == (64, None) and runner.arguments[-3:] == ("cuda", 290, ())
    assert set(runner.options) == {"planner", "budget", "virtual_memory"} and runner.options["virtual_memory"]


@pytest.mark.parametrize(
    ("capability", "dtype", "reason"),
    [
        ((7, 0), "float16", "the card is older than compute capability 7.5"),
        ((6, 1), "float16", "the card is older than compute capability 7.5"),
        ((7, 5), "bfloat16", "the card has no bfloat16 arithmetic of its own"),
        (
            (9, 0),
            "float32",
            "the model is not made for them (its weights are float32, not float16 or bfloat16)",
        ),
    ],
)
def test_what_the_kernels_cannot_do_runs_in_torch_with_a_note(
    capability: tuple[int, int], dtype: str, reason: str, card: Callable[..., None], tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    card(capability)
    runner, notes = make(model(tmp_path, dtype))
    assert (runner.arguments[0], notes) == ("torch", note(reason))
    assert runner.arguments[3] == torch_runner.DEFAULT_RECIPE and runner.arguments[-1] == "cuda"


def test_float16_on_an_older_card_is_for_the_kernels(card: Callable[..., None], tmp_path: Path) -> None:
    pytest.importorskip("triton")
    card((7, 5))
    assert make(model(tmp_path))[1] == ()


def test_matrices_of_two_types_run_in_torch(card: Callable[..., None], tmp_path: Path) -> None:
    pytest.importorskip("triton")
    folder = model(tmp_path)
    tensors = read_safetensors(folder)
    (folder / "model.safetensors").unlink()
    output = tensors.pop("lm_head.weight")
    write_safetensors(folder / "model-00001-of-00002.safetensors", tensors, "float16")
    write_safetensors(folder / "model-00002-of-00002.safetensors", {"lm_head.weight": output}, "float32")
    names = dict.fromkeys(tensors, "model-00001-of-00002.safetensors")
    index = {"metadata": {}, "weight_map": names | {"lm_head.weight": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(str(index).replace("'", '"'), encoding="utf-8")
    card()
    runner, notes = make(folder)
    assert (runner.arguments[0], notes) == ("torch", note("the model's matrices are of different types"))


def test_without_triton_torch_computes(card: Callable[..., None], tmp_path: Path) -> None:
    card(triton=False)
    runner, notes = make(model(tmp_path))
    assert (runner.arguments[0], notes) == ("torch", note("Triton is not installed"))


@pytest.mark.parametrize(
    ("error", "gist"),
    [
        (FakeCompilationError("at 12:4:\n  x = y"), "FakeCompilationError: no such instruction"),
        (RuntimeError("ptxas failed\nwith much text"), "RuntimeError: ptxas failed"),
        (ImportError("a library is missing"), "ImportError: a library is missing"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_kernels_that_fail_to_compile_say_why(
    error: Exception, gist: str, card: Callable[..., None], tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    card(graph=error)
    runner, notes = make(model(tmp_path))
    assert (runner.arguments[0], notes) == ("torch", note(f"they could not be made ready ({gist})"))


@pytest.mark.parametrize("error", [LoadCancelled("Cancelled."), BadSetting("No."), MemoryError()])
def test_a_cancel_a_bad_setting_and_full_memory_are_not_hidden(
    error: Exception, card: Callable[..., None], tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    card(graph=error)
    with pytest.raises(type(error)):
        make(model(tmp_path))


def test_the_cpu_has_kernels_of_its_own(tmp_path: Path) -> None:
    runner, notes = make(model(tmp_path), Placement("cpu", "CPU"))
    try:
        assert isinstance(runner, CompiledRunner) and notes == ()
    finally:
        runner.close()


def test_notes_reach_the_models_information(card: Callable[..., None], tmp_path: Path, monkeypatch: Any) -> None:
    from engine.engine import Engine

    card(triton=False)
    monkeypatch.setattr(dispatch, "_driver_sees_card", lambda: True)
    monkeypatch.setattr(dispatch, "_refusal", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Test card")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=f"test-{index}"))
    cache = KvCache(host_storage(RowSize(1, 16, 64), virtual=False), lambda layer: layer, "the test")
    able = {"recipe": None, "ingredients": Ingredients(), "kv": cache, "decode_rows": 16}
    made = SimpleNamespace(draft_bytes=0, plan=None, kernels="torch on CUDA", **able, close=cache.close)
    monkeypatch.setattr(torch_runner, "TorchRunner", lambda *arguments, **options: made)
    engine = Engine()
    info = engine.load(str(model(tmp_path)))
    engine.close()
    assert info.card == "test-0"
    assert info.device == "Test card" and info.notes[:1] == note("Triton is not installed")
    unpaged = "The KV cache is a plain tensor of full length, because virtual memory is switched off."
    assert info.notes[1] == unpaged


def pretend(monkeypatch: pytest.MonkeyPatch, *, cuda: str | None, available: bool, ones: Any = None) -> None:
    """A driver with a card, and a torch that answers so."""
    monkeypatch.setattr(dispatch, "_driver_sees_card", lambda: True)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Test card")
    if ones is not None:
        monkeypatch.setattr(torch, "ones", ones)


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise error

    return fail


NO_IMAGE = RuntimeError("CUDA error: no kernel image is available\nCompile with TORCH_USE_CUDA_DSA")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cuda": None, "available": False}, "the installed torch was built without CUDA"),
        (
            {"cuda": "12.8", "available": False},
            "its driver does not work with this torch, which needs CUDA 12.8",
        ),
        (
            {"cuda": "12.8", "available": True, "ones": raising(NO_IMAGE)},
            "torch cannot use it (RuntimeError: CUDA error: no kernel image is available)",
        ),
        (
            {"cuda": "12.8", "available": True, "ones": raising(torch.OutOfMemoryError("much text"))},
            "its memory is full",
        ),
    ],
)
def test_a_card_that_refuses_leaves_the_cpu_and_one_line(
    options: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, **options)
    sentence = f"An NVIDIA card is present, but {reason}: the CPU is used."
    placement = choose_device(None)
    assert (placement.device, placement.notes) == ("cpu", (sentence,))
    with pytest.raises(BadSetting) as refused:
        choose_device("cuda")
    assert str(refused.value) == sentence


def test_a_card_that_computes_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []

    def ones(count: int, device: str) -> torch.Tensor:
        computed.append(device)
        return torch.full((count,), 1.0)

    pretend(monkeypatch, cuda="12.8", available=True, ones=ones)
    assert choose_device(None) == choose_device("cuda") == CARD
    assert computed == ["cuda", "cuda"]


def test_no_card_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_driver_sees_card", lambda: False)
    assert choose_device(None) == choose_device("cpu")
    assert choose_device(None).notes == ()
    with pytest.raises(BadSetting, match="No NVIDIA card was found"):
        choose_device("cuda")


def test_a_cache_of_bfloat16_is_float32_where_attention_knows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    capability = (7, 5)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert cache_type(torch.bfloat16, gpu) == torch.float32
    assert cache_type(torch.float16, gpu) == torch.float16
    assert cache_type(torch.bfloat16, cpu) == torch.bfloat16
    capability = (8, 0)
    assert cache_type(torch.bfloat16, gpu) == torch.bfloat16
