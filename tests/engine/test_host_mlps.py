"""MLPs of a card's model that the CPU computes: against torch, row for row, and between the card's own kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.files.folder import open_folder
from engine.kernels.triton.step import PROMPT_ROWS, StepKernels
from engine.kernels.triton.step_memory import FusedModel, StepBuffers
from engine.model.host_mlps import HostMlps, measured_speed, suits
from engine.offload.parts import MLP, part_index
from step_rig import VOCABULARY, Step, make_step, small_model

IDS = [(7 * place + 5) % VOCABULARY for place in range(16)]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_model(tmp_path, torch.float16)


@pytest.fixture
def mlps(folder: Path) -> Iterator[HostMlps]:
    made = HostMlps(open_folder(folder), (0, 1))
    yield made
    made.close()


def oracle(folder: Path, layer: int, stream: torch.Tensor) -> torch.Tensor:
    """A layer's MLP added to the stream, in double precision."""
    model = open_folder(folder)

    def tensor(name: str) -> torch.Tensor:
        return model.tensor(f"model.layers.{layer}.{name}.weight").double()

    wide = stream.double()
    mean = wide.square().mean(-1, keepdim=True)
    x = wide / torch.sqrt(mean + model.config.rms_norm_eps) * tensor("post_attention_layernorm")
    gated = torch.nn.functional.silu(x @ tensor("mlp.gate_proj").T) * (x @ tensor("mlp.up_proj").T)
    return wide + gated @ tensor("mlp.down_proj").T


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_result_is_the_models(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = small_model(tmp_path, dtype)
    mlps = HostMlps(open_folder(folder), (1,))
    try:
        stream = torch.randn(5, 64, generator=torch.Generator().manual_seed(3))
        after, squares = mlps.add(part_index(1, MLP), stream)
        expected = oracle(folder, 1, stream)
    finally:
        mlps.close()
    assert torch.allclose(after.double(), expected, atol=2e-3 if dtype != torch.float32 else 1e-5)
    assert not torch.allclose(after, stream, atol=1e-2), "the MLP does something"
    assert torch.allclose(squares.double(), after.double().square().sum(-1), rtol=1e-6)


def test_a_row_has_the_same_bits_in_any_company(mlps: HostMlps) -> None:
    stream = torch.randn(PROMPT_ROWS, 64, generator=torch.Generator().manual_seed(4))
    for part in (part_index(0, MLP), part_index(1, MLP)):
        whole, squares = mlps.add(part, stream)
        for rows in (1, 2, 7, 16, 48):
            some, sums = mlps.add(part, stream[:rows])
            assert torch.equal(some, whole[:rows])
            assert torch.equal(sums, squares[:rows])
        alone, own = mlps.add(part, stream[40:41])
        assert torch.equal(alone[0], whole[40])
        assert torch.equal(own[0], squares[40])


def test_only_the_named_layers_are_computed_here(folder: Path) -> None:
    mlps = HostMlps(open_folder(folder), (1,))
    try:
        assert [part for part in range(5) if mlps.computes(part)] == [part_index(1, MLP)]
    finally:
        mlps.close()
    assert HostMlps.of(open_folder(folder), ()) is None


def with_host(step: Step, mlps: HostMlps) -> Step:
    """The same model, whose MLPs on the card must not be read."""
    config, tiles = step.runner.config, step.kernels._tiles
    model: FusedModel = step.kernels._model
    spoilt = replace(
        model,
        layers=tuple(
            replace(
                layer,
                gate_up=torch.full_like(layer.gate_up, float("nan")),
                down=torch.full_like(layer.down, float("nan")),
            )
            if mlps.computes(part_index(number, MLP))
            else layer
            for number, layer in enumerate(model.layers)
        ),
    )
    buffers, prompt = (
        StepBuffers(config, tiles, model.cosine.shape[0], spoilt, *rows) for rows in ((), (PROMPT_ROWS,))
    )

    def kernels(memory: StepBuffers) -> StepKernels:
        return StepKernels(config, spoilt, memory, tiles, config.vocabulary, host=mlps)

    return replace(
        step,
        buffers=buffers,
        kernels=kernels(buffers),
        prompt_buffers=prompt,
        prompt_kernels=kernels(prompt),
    )


@pytest.mark.parametrize(
    ("dtype", "layers"), [(torch.float16, (0,)), (torch.bfloat16, (1,)), (torch.float16, (0, 1))], ids=str
)
def test_a_pass_gives_each_row_the_same_bits_however_many_there_are(
    dtype: torch.dtype, layers: tuple[int, ...], tmp_path: Path
) -> None:
    folder = small_model(tmp_path, dtype)
    step, count = make_step(folder), 6
    on_card = step.full(0, IDS[:count])
    for layer in step.runner._cache:
        layer.zero_()
    mlps = HostMlps(open_folder(folder), layers)
    try:
        made = with_host(step, mlps)
        assert not made.kernels.captures
        together = made.full(0, IDS[:count])
        cache = made.cache(count)
        assert (together - on_card).abs().mean() < 0.02, "it is the same model"
        for layer in step.runner._cache:
            layer.zero_()
        for row in range(count):
            assert torch.equal(made.full(row, IDS[row : row + 1])[0], together[row])
        assert all(map(torch.equal, made.cache(count), cache))
        for layer in step.runner._cache:
            layer.zero_()
        made.prompt(0, IDS[:count])
        assert all(map(torch.equal, made.cache(count), cache)), "a prompt's pass writes the same rows"
    finally:
        mlps.close()


def test_kernels_without_such_parts_can_be_captured(folder: Path) -> None:
    step = make_step(folder)
    assert step.kernels.captures


def test_its_speed_is_measured(folder: Path) -> None:
    speed = measured_speed(open_folder(folder))
    assert 1e5 < speed.rate < 1e12
    assert 0 <= speed.row < 10


def test_what_the_cpu_takes_a_share_of(folder: Path) -> None:
    config = open_folder(folder).config
    assert suits(config)
    assert not suits(replace(config, intermediate_size=100))
    assert not suits(replace(config, family="opt"))
