"""A reply that fails for NaN says which part of the model made it, on every runner, plain and with speculation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders import read_safetensors, tiny_llama, write_safetensors
from engine.errors import NumericFault
from engine.model.compiled_runner import CompiledRunner
from engine.model.fault import located
from engine.model.torch_runner import TorchRunner
from engine.records import StopReason
from engine_rig import (
    compiled_runner,
    loaded_engine,
    no_end_tokens,
    reply,
    request,
    same_bits,
    torch_runner,
)

LAYER = "model.layers.{}.{}"
PLACES = [
    ("model.embed_tokens", "the token embedding"),
    (LAYER.format(0, "input_layernorm"), "layer 0's attention"),
    (LAYER.format(1, "self_attn.k_proj"), "layer 1's attention"),
    (LAYER.format(2, "self_attn.o_proj"), "layer 2's attention"),
    (LAYER.format(1, "mlp.gate_proj"), "layer 1's MLP"),
    (LAYER.format(2, "mlp.down_proj"), "layer 2's MLP"),
    ("model.norm", "the final norm"),
    ("lm_head", "the output matrix"),
]
PROMPT = list(range(20, 100))  # more than one chunk of the CPU's passes
HIDDEN = {CompiledRunner: 64, TorchRunner: 60}  # heads of 12 are nothing for the compiled kernels


def damaged(folder: Path, tensor: str | None, *, hidden: int = 64, row: int = 7, value: float = np.nan) -> Path:
    """A model with one bad row in a matrix (of the embedding: that of token 27), or one bad value in a vector."""
    heads = hidden // 12 if hidden == 60 else 4
    kv_heads = 1 if hidden == 60 else 2
    no_end_tokens(tiny_llama(folder, layers=3, hidden=hidden, heads=heads, kv_heads=kv_heads, std=0.2))
    if tensor is not None:
        tensors = read_safetensors(folder)
        tensors[f"{tensor}.weight"][27 if "embed" in tensor else row] = value
        write_safetensors(folder / "model.safetensors", tensors)
    return folder


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize(("tensor", "place"), PLACES)
def test_the_message_names_the_part(tensor: str, place: str, kind: type, tmp_path: Path) -> None:
    with loaded_engine(damaged(tmp_path, tensor, hidden=HIDDEN[kind])) as engine:
        assert engine._loaded is not None and type(engine._loaded.runner) is kind
        for wanted in (request(PROMPT, 8, plain=True), request(PROMPT, 8, gamma=3)):
            finished = reply(engine, wanted).finished
            assert finished.reason is StopReason.FAILED
            assert finished.message == (
                f"The model computed NaN in {place}, for the token at position {len(PROMPT)}: "
                "its weights may be damaged or out of range."
            )


def test_a_fault_that_begins_within_the_reply_is_found_too(tmp_path: Path) -> None:
    """The embedding of one token is bad, and the reply reaches it; the text before it stands."""
    healthy = damaged(tmp_path / "healthy", None)
    with loaded_engine(healthy) as engine:
        ids = reply(engine, request(PROMPT[30:], 40, plain=True)).ids
    token = next(token for token in ids[5:] if token not in ids[:5] and token not in PROMPT[30:])
    before = ids.index(token) + 1
    tensors = read_safetensors(healthy)
    tensors["model.embed_tokens.weight"][token] = np.nan
    write_safetensors(healthy / "model.safetensors", tensors)
    with loaded_engine(healthy) as engine:
        for wanted in (request(PROMPT[30:], 40, plain=True), request(PROMPT[30:], 40, gamma=4)):
            made = reply(engine, wanted)
            assert made.ids == ids[:before]
            position = len(PROMPT[30:]) + before
            assert made.finished.message is not None
            assert f"in the token embedding, for the token at position {position}:" in made.finished.message


@pytest.mark.parametrize("kind", HIDDEN)
def test_values_too_large_are_found_as_nan_is(kind: type, tmp_path: Path) -> None:
    with loaded_engine(damaged(tmp_path, LAYER.format(1, "mlp.up_proj"), hidden=HIDDEN[kind], value=3e38)) as engine:
        message = reply(engine, request(PROMPT, 8, plain=True)).finished.message
    assert message is not None and "in layer 1's MLP" in message


def test_a_healthy_model_has_no_fault_and_keeps_its_cache(tmp_path: Path) -> None:
    with compiled_runner(damaged(tmp_path, None)) as runner:
        runner.full(PROMPT[:64], 0, 0)
        cache = [layer.copy() for layer in runner._memory.cache]
        assert runner.find_fault(PROMPT[:64], 0) is None
        assert same_bits(runner._memory.cache, cache)
    oracle = torch_runner(tmp_path)
    oracle.full(PROMPT[:40], 0, 0)
    before = [layer.clone().numpy() for layer in oracle._cache]
    assert oracle.find_fault(PROMPT[:40], 0) is None
    assert same_bits((layer.numpy() for layer in oracle._cache), before)


class SearchedRunner:
    """Finds a fault in the third chunk of ten tokens, or runs out of memory there."""

    chunk = 10

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.seen = error, []

    def find_fault(self, tokens: list[int], position: int) -> str | None:
        self.seen.append((tokens, position))
        if position < 20:
            return None
        if self.error is not None:
            raise self.error
        return "layer 4's MLP"


def test_the_search_reads_all_tokens_in_chunks_and_can_be_stopped() -> None:
    fault, ids = NumericFault("NaN", 35), list(range(35))
    runner = SearchedRunner()
    found = located(fault, runner, ids, lambda: False)
    assert (found.cause, found.position, found.place) == ("NaN", 35, "layer 4's MLP")
    assert runner.seen == [(ids[:10], 0), (ids[10:20], 10), (ids[20:30], 20)]
    stopped = SearchedRunner()
    assert located(fault, stopped, ids, lambda: len(stopped.seen) == 1) is fault
    assert located(fault, SearchedRunner(), ids[:15], lambda: False) is fault
    assert located(fault, SearchedRunner(MemoryError()), ids, lambda: False) is fault
    with pytest.raises(RuntimeError, match="a driver"):
        located(fault, SearchedRunner(RuntimeError("a driver")), ids, lambda: False)
