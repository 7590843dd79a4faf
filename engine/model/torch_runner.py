"""A model in torch: on a CUDA card, and the fallback and oracle on the CPU.

Exactness: on a card every pass of at most sixteen rows is padded to sixteen and every key range to a multiple of 256,
so plain steps and verify passes run the same kernels on the same shapes, whose rows do not depend on each other. On
the CPU, where library kernels give no such promise, rows are computed one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import torch

from engine.errors import LoadCancelled
from engine.files.folder import ModelFolder
from engine.kernels.reference import operations as op
from engine.kernels.reference.flash import flash_attend, flash_version
from engine.memory.kv_cache import KvCache
from engine.memory.storage import RowSize, Storage
from engine.memory.tensor_storage import place_of, tensor_storage
from engine.model import programme as p
from engine.model.ingredients import require_ingredients
from engine.model.neurons import NeuronChoice
from engine.model.rope import rope_tables
from engine.model.runner import MAX_DECODE_ROWS
from engine.model.unmoved import Unmoved
from engine.recipe import Ingredients, Recipe
from engine.records import LoadProgress
from engine.sampling.distribution import peak

KEY_BLOCK = 256  # keys are read in whole blocks of this many
PREFILL_ROWS = 256
DEFAULT_RECIPE = Recipe(weight_bits=16, neuron_share=0.5)
OBSERVED_SHARE = 0.1  # weight of the newest activation in the moving average, as in the compiled kernel


class TorchRunner(Unmoved):
    """Implements engine.model.runner.Runner. Not thread-safe: one thread owns it and the card."""

    ingredients = Ingredients(neurons=True)
    decode_rows = MAX_DECODE_ROWS
    _streamed: frozenset[str] = frozenset()  # names of tensors that stay in host memory

    def __init__(
        self,
        folder: ModelFolder,
        capacity: int,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None],
        cancelled: Callable[[], bool],
        device: str,
        *,
        virtual_memory: bool = True,
    ) -> None:
        self.config, self.capacity, self.device = folder.config, capacity, torch.device(device)
        self.chunk = PREFILL_ROWS
        self.draft_bytes = 0
        self._weights = self._read(folder, progress, cancelled)
        self._embedding = self._weights[p.EMBEDDING]
        config, type_ = folder.config, self._embedding.dtype
        padded = -(-(capacity + PREFILL_ROWS) // KEY_BLOCK) * KEY_BLOCK
        shape = (padded, 2, config.kv_heads, config.head_dim)
        kept = cache_type(type_, self.device)
        self.flash = flash_version(self.device, kept)
        reads_with = "SDPA" if self.flash is None else f"flash-attn {self.flash}"
        self.kernels = f"torch on CUDA, {reads_with}" if self.device.type == "cuda" else "torch on the CPU"
        row_bytes = 2 * config.kv_heads * config.head_dim * kept.itemsize
        storage = self._storage(RowSize(config.layers, padded, row_bytes), virtual_memory)
        self.kv = KvCache(storage, lambda layer: layer.view(kept).view(shape), place_of(self.device))
        try:
            cosine, sine = rope_tables(config, padded)
            self._cosine, self._sine = (torch.from_numpy(table).to(self.device) for table in (cosine, sine))
            self._statistics = self._no_statistics()
            self._full = p.build(config, frozenset(self._weights))
            self.use_recipe(recipe)
        except BaseException:
            self.kv.close()
            raise

    def _storage(self, size: RowSize, virtual: bool) -> Storage:
        """Where the rows of the KV cache lie."""
        return tensor_storage(size, self.device, virtual=virtual)

    def _no_statistics(self) -> Sequence[torch.Tensor]:
        """Of every layer's neurons how strong they were of late, float32: nothing yet."""
        return torch.zeros(self.config.layers, self.config.intermediate_size, device=self.device).unbind()

    def _observed(self) -> np.ndarray:
        return np.stack([layer.cpu().numpy() for layer in self._statistics])

    def rotations(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of all positions, where a layer's heads are."""
        return self._cosine, self._sine

    def hand_over(self, buffers: dict[p.Buffer, torch.Tensor], step: p.Instruction) -> None:
        """Have a pass's buffers where an instruction reads them: they are there on a single device."""

    @property
    def _cache(self) -> Sequence[torch.Tensor]:
        """Layers of the range in use, [positions, 2, kv heads, head dim] each."""
        return self.kv.layers

    @property
    def recipe(self) -> Recipe:
        """The recipe in force."""
        return self._recipe

    def full(self, tokens: Sequence[int], position: int, wanted: int) -> np.ndarray:
        """See Runner.full."""
        if self.device.type == "cpu":
            rows = [self._run(self._full, [t], position + i, 1, 1) for i, t in enumerate(tokens)]
            return _read_back(torch.cat(rows)[len(tokens) - wanted :])
        width = MAX_DECODE_ROWS if len(tokens) <= MAX_DECODE_ROWS else PREFILL_ROWS
        return _read_back(self._run(self._full, tokens, position, wanted, width))

    def draft(self, tokens: Sequence[int], position: int) -> np.ndarray:
        """See Runner.draft."""
        return _read_back(self._run(self._draft, tokens, position, len(tokens), len(tokens)))

    def use_recipe(
        self,
        recipe: Recipe,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """See Runner.use_recipe."""
        require_ingredients(recipe, "this device", self.ingredients)
        config = self.config
        steps = p.build(config, frozenset(self._weights), recipe)
        kept = p.kept_neurons(config, recipe)
        choice = NeuronChoice(config.layers, config.intermediate_size, kept, self._reach(kept))
        choice.refresh(self._observed())
        self._draft, self._choice, self._recipe = steps, choice, recipe
        self._upload_choice()

    def release_copies(self, kept: Collection[int]) -> None:
        """See Runner.release_copies: there are none."""

    def refresh_neurons(self) -> None:
        """See Runner.refresh_neurons."""
        self._choice.refresh(self._observed())
        self._upload_choice()

    def peak(self, row: np.ndarray, position: int | None) -> tuple[int, np.float32, float]:
        """See Runner.peak."""
        return peak(row, position)

    def find_fault(self, tokens: Sequence[int], position: int) -> str | None:
        """See Runner.find_fault. On the CPU token by token, as passes are."""
        if self.device.type == "cuda":
            return self._first_fault(tokens, position, PREFILL_ROWS)
        places = (self._first_fault([token], position + i, 1) for i, token in enumerate(tokens))
        return next((place for place in places if place is not None), None)

    @torch.inference_mode()
    def _first_fault(self, tokens: Sequence[int], position: int, width: int) -> str | None:
        count = len(tokens)
        ids = torch.tensor([*tokens, *[0] * (width - count)], device=self.device)
        state = _Pass(self, position, width, slice(count - 1, count))
        ends = {stage.last: stage for stage in p.stages(self._full)}
        for index, step in enumerate(self._full):
            state.execute(step, ids)
            stage = ends.get(index)
            if stage is not None and not bool(state.buffers[stage.buffer][:count].isfinite().all()):
                return stage.name
        return None

    def close(self) -> None:
        """See Runner.close."""
        self._weights.clear()
        self.kv.close()
        self._embedding = torch.empty(0)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    @torch.inference_mode()
    def sample_inputs(self, tokens: Sequence[int]) -> Iterator[torch.Tensor]:
        """The inputs of every matrix of a full pass over these tokens, in its order, float32 [tokens, K].

        Matrices that share an input have it once. Writes the first rows of the cache.
        """
        count = len(tokens)
        ids = torch.tensor(list(tokens), device=self.device)
        state = _Pass(self, 0, count, slice(0, count))
        begun = 0
        for read in p.shared_inputs(self._full):
            for step in self._full[begun : read.first]:
                state.execute(step, ids)
            begun = read.first
            yield state.buffers[read.buffer].float()

    @torch.inference_mode()
    def _run(self, steps: p.Programme, tokens: Sequence[int], position: int, wanted: int, width: int) -> torch.Tensor:
        """One pass, padded to `width` rows (padding rows write cache rows that the next pass overwrites)."""
        count = len(tokens)
        ids = torch.tensor([*tokens, *[0] * (width - count)], device=self.device)
        state = _Pass(self, position, width, slice(count - wanted, count))
        for step in steps:
            state.execute(step, ids)
        return state.buffers[p.Buffer.LOGITS]

    def _read(
        self, folder: ModelFolder, progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]
    ) -> dict[str, torch.Tensor]:
        weights: dict[str, torch.Tensor] = {}
        done, total, count = 0, folder.total_bytes, len(folder.entries)
        for number, (name, entry) in enumerate(folder.entries.items()):
            if cancelled():
                raise LoadCancelled("Loading was cancelled.")
            progress(LoadProgress("Reading tensors", number, count, done, total))
            tensor = folder.tensor(name)
            if name not in self._streamed:
                tensor = tensor.to(self.device)
            weights[name] = tensor if tensor.ndim > 1 else tensor.float()
            done += entry.nbytes
        progress(LoadProgress("Reading tensors", count, count, total, total))
        return weights

    def weight(self, name: str) -> torch.Tensor:
        """A matrix on the device; a copy of one that is streamed."""
        return self._weights[name].to(self.device)

    def _reach(self, kept: int) -> np.ndarray:
        config = self.config
        if kept == config.intermediate_size:
            return np.ones((config.layers, 1), np.float32)
        names = [f"model.layers.{layer}.mlp.down_proj.weight" for layer in range(config.layers)]
        return np.stack([self._weights[name].float().norm(dim=0).cpu().numpy() for name in names])

    def _upload_choice(self) -> None:
        self.chosen = [torch.from_numpy(ids.astype(np.int64)).to(self.device) for ids in self._choice.chosen]


class _Pass:
    """The buffers of one pass and how each instruction changes them."""

    def __init__(self, runner: TorchRunner, position: int, width: int, wanted: slice) -> None:
        self.runner, self.position, self.width, self.wanted = runner, position, width, wanted
        self.keys = position + width  # that attention reads; whole blocks on a card
        if runner.device.type == "cuda":
            self.keys = -(-self.keys // KEY_BLOCK) * KEY_BLOCK
        runner.kv.ensure(self.keys)
        self.buffers: dict[p.Buffer, torch.Tensor] = {}
        self.heads: torch.Tensor

    def execute(self, step: p.Instruction, ids: torch.Tensor) -> None:
        buffers, weights = self.buffers, self.runner._weights
        self.runner.hand_over(buffers, step)
        match step:
            case p.Embed():
                buffers[step.target] = op.embed(weights[step.weight], ids)
            case p.AddPositions():
                first = self.position + step.first
                buffers[p.Buffer.STREAM] = op.add_positions(buffers[p.Buffer.STREAM], weights[step.weight], first)
            case p.AddNorm():
                self._add_norm(step)
            case p.Linear():
                self._linear(step)
            case p.NeuronDown():
                weight = weights[step.weight][:, self.runner.chosen[step.layer]]
                bias = None if step.bias is None else weights[step.bias]
                buffers[p.Buffer.DELTA] = op.linear(buffers[p.Buffer.ACTIVATED], weight, bias)
            case p.RotateStore():
                self._rotate_store(step)
            case p.Attend():
                self._attend(step)
            case p.GatedSilu():
                both = buffers[p.Buffer.GATE_UP]
                self._activated(step, op.gated_silu(both[:, : step.count], both[:, step.count :]))
            case p.Relu():
                self._activated(step, op.relu(buffers[p.Buffer.GATE_UP]))

    def _add_norm(self, step: p.AddNorm) -> None:
        buffers, weights, epsilon = self.buffers, self.runner._weights, self.runner.config.rms_norm_eps
        stream = buffers[p.Buffer.STREAM]
        if step.bias is None:
            delta = buffers[p.Buffer.DELTA] if step.adds else None
            stream, normed = op.add_norm(stream, delta, weights[step.weight], epsilon)
        else:
            stream = stream + buffers[p.Buffer.DELTA] if step.adds else stream
            normed = op.layer_norm(stream, weights[step.weight], weights[step.bias], epsilon)
        buffers[p.Buffer.STREAM] = stream
        buffers[step.target] = normed

    def _linear(self, step: p.Linear) -> None:
        weights = self.runner._weights
        weight, bias = self.runner.weight(step.weight), None if step.bias is None else weights[step.bias]
        if step.neurons_of is not None:
            chosen = self.runner.chosen[step.neurons_of]
            weight, bias = weight[chosen], None if bias is None else bias[chosen]
        result = op.linear(self.buffers[step.source], weight, bias)
        if step.target is p.Buffer.LOGITS:
            result = result[self.wanted]
        if step.column:
            result = torch.cat((self.buffers[step.target], result), -1)
        self.buffers[step.target] = result

    def _rotate_store(self, step: p.RotateStore) -> None:
        runner, rows = self.runner, slice(self.position, self.position + self.width)
        config, weights = runner.config, runner._weights
        parts = (config.heads, config.kv_heads, config.kv_heads)
        query, key, value = self.buffers[p.Buffer.QKV].view(self.width, -1, config.head_dim).split(parts, 1)
        if step.query_norm is not None and step.key_norm is not None:
            query, key = (
                op.head_norm(heads, weights[name], config.rms_norm_eps)
                for heads, name in ((query, step.query_norm), (key, step.key_norm))
            )
        if step.rotates:
            cosine, sine = runner.rotations(step.layer)
            query, key = (op.rotate(heads, cosine[rows], sine[rows]) for heads in (query, key))
        cache = runner._cache[step.layer]
        cache[rows, 0] = key.to(cache.dtype)
        cache[rows, 1] = value.to(cache.dtype)
        self.heads = query

    def _attend(self, step: p.Attend) -> None:
        cache, scale = self.runner._cache[step.layer][: self.keys], self.runner.config.head_dim**-0.5
        reads_prompt = self.width > MAX_DECODE_ROWS
        attend = flash_attend if reads_prompt and self.runner.flash is not None else op.attend
        mixed = attend(self.heads, cache[:, 0], cache[:, 1], self.position, scale, step.window)
        self.buffers[p.Buffer.ATTENDED] = mixed.reshape(self.width, -1)

    def _activated(self, step: p.GatedSilu | p.Relu, activated: torch.Tensor) -> None:
        self.buffers[p.Buffer.ACTIVATED] = activated
        if step.observes:
            self.runner._statistics[step.layer].lerp_(activated[0].abs(), OBSERVED_SHARE)


def cache_type(stored: torch.dtype, device: torch.device) -> torch.dtype:
    """The cache's type: that of the weights, or float32 where the card's attention knows no bfloat16."""
    if stored == torch.bfloat16 and device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0):
        return torch.float32
    return stored


def _read_back(logits: torch.Tensor) -> np.ndarray:
    return logits.float().cpu().numpy()
