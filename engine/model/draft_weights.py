"""The weights a CPU draft multiplies with: packed low-bit copies, int8 rows of chosen neurons, kept output rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import LoadCancelled
from engine.files.config import ModelConfig
from engine.kernels.compiled.memory import PlanedMlp, Weights
from engine.kernels.compiled.team import Team
from engine.lowbit.copies import CopyPlan, Watch, make_copies
from engine.lowbit.neuron_planes import PlaneLayer, make_planes
from engine.lowbit.packed import PackedMatrix, kept_rows, replace_row
from engine.lowbit.statistics import Statistics
from engine.lowbit.store import copy_path, keep_copies, read_copies
from engine.model import draft_copy
from engine.model import programme as p
from engine.model.matrix import Matrix
from engine.model.weights import HostWeights
from engine.recipe import Recipe
from engine.records import LoadProgress


@dataclass(slots=True)
class DraftWeights:
    """Makes what a recipe needs and keeps it, so that turning a dial back costs nothing.

    fingerprint: of the model, for the copies on disk. statistics: computes those of the full model's inputs.
    mlp_inputs: computes float32 [tokens, hidden] inputs of every layer's MLP.
    notes: sentences for people about copies that could not be kept on disk.
    """

    full: HostWeights
    config: ModelConfig
    team: Team
    fingerprint: str
    statistics: Callable[[Callable[[], bool]], Statistics]
    mlp_inputs: Callable[[Callable[[], bool]], tuple[np.ndarray, ...]]
    notes: list[str] = field(default_factory=list)
    packed: dict[int, dict[str, PackedMatrix]] = field(default_factory=dict)
    int8: dict[str, Matrix] = field(default_factory=dict)
    neuron_major: dict[str, Matrix] = field(default_factory=dict)
    planes: tuple[PlaneLayer, ...] = ()

    @property
    def nbytes(self) -> int:
        """Memory of all copies."""
        packed = sum(matrix.nbytes for copy in self.packed.values() for matrix in copy.values())
        packed += sum(layer.nbytes for layer in self.planes)
        return packed + draft_copy.size_of(self.int8) + draft_copy.size_of(self.neuron_major)

    def prepare(self, steps: p.Programme, recipe: Recipe, watch: Watch) -> None:
        """Make what `table` and `kept` will ask for. Raises LoadCancelled."""
        if recipe.weight_bits == 16:
            return
        if recipe.weight_bits not in self.packed:
            self.packed[recipe.weight_bits] = self._copy(recipe.weight_bits, watch)
        if not self.planes and any(isinstance(step, p.PlaneMlp) for step in steps):
            self.planes = self._make_planes(watch)
        chosen = [step.weight for step in steps if isinstance(step, p.Linear) and step.neurons_of is not None]
        missing = tuple(name for name in chosen if name not in self.int8)
        if missing:
            own = self.full.matrix
            self.int8 |= draft_copy.quantised_all(own, missing, self.team, watch.progress, watch.cancelled)

    def release(self, kept: Collection[int]) -> None:
        """Give back the copies of all other widths."""
        self.packed = {bits: copy for bits, copy in self.packed.items() if bits in kept}
        if 4 not in kept:
            self.planes = ()

    def table(self, recipe: Recipe, chosen: Sequence[np.ndarray], kept: Matrix | PackedMatrix | None) -> Weights:
        """How a draft's table finds its weights. chosen: MLP neurons of each layer; kept: see `kept`."""
        own = self.full.matrix
        low_bit = recipe.weight_bits < 16
        planed = [PlanedMlp(layer, layer.parameters(recipe.neuron_share)) for layer in self.planes]
        return Weights(
            embedding=own,
            matrix=self.packed[recipe.weight_bits].__getitem__ if low_bit else own,
            vector=self.full.vector,
            neuron_major=lambda name: self._neuron_rows(name, low_bit),
            chosen=tuple(chosen),
            chosen_of=self.int8.__getitem__ if low_bit else own,
            planes=planed.__getitem__,
            kept=kept,
        )

    def kept(self, recipe: Recipe, ids: np.ndarray) -> Matrix | PackedMatrix:
        """A copy of the output matrix's rows of these tokens, in their order."""
        name = p.output_matrix(self.config, self.full.names)
        if recipe.weight_bits < 16:
            return kept_rows(self.packed[recipe.weight_bits][name], ids)
        whole = self.full.matrix(name)
        return Matrix.of(np.ascontiguousarray(whole.owner[0][ids]), whole.kind)

    def replace(self, recipe: Recipe, kept: Matrix | PackedMatrix, place: int, token: int) -> None:
        """Put another token's row at a place of `kept`."""
        name = p.output_matrix(self.config, self.full.names)
        if isinstance(kept, PackedMatrix):
            replace_row(self.packed[recipe.weight_bits][name], kept, token, place)
        else:
            kept.owner[0][place] = self.full.matrix(name).owner[0][token]

    def _copy(self, bits: int, watch: Watch) -> dict[str, PackedMatrix]:
        """The low-bit copy of the whole model, from disk where it was made before."""
        inputs = tuple(read.weights for read in p.shared_inputs(p.build(self.config, self.full.names)))
        sizes = {name: self.full.matrix(name) for names in inputs for name in names}
        path = copy_path(self.fingerprint, bits)
        kept = read_copies(path, self.fingerprint, {name: (m.rows, m.columns) for name, m in sizes.items()})
        if kept is not None:
            return kept
        plan = CopyPlan(inputs, bits, p.output_matrix(self.config, self.full.names))
        made = make_copies(self.full.matrix, plan, self.statistics, self.team.size, watch)
        note = keep_copies(path, self.fingerprint, made)
        if note is not None:
            self.notes.append(note)
        return made

    def _make_planes(self, watch: Watch) -> tuple[PlaneLayer, ...]:
        """Every layer's planes, from the 4-bit copy and the full model's down matrices."""
        inputs, four = self.mlp_inputs(watch.cancelled), self.packed[4]
        made: list[PlaneLayer] = []
        for layer in range(self.config.layers):
            if watch.cancelled():
                raise LoadCancelled("Loading was cancelled.")
            watch.progress(LoadProgress("Preparing the draft's neurons", layer, self.config.layers, 0, 0))
            gate, up, down = (f"model.layers.{layer}.mlp.{part}_proj.weight" for part in ("gate", "up", "down"))
            rows = draft_copy.neuron_major_codes(self.full.matrix(down))
            made.append(make_planes(layer, four[gate], four[up], rows, inputs[layer]))
        return tuple(made)

    def _neuron_rows(self, name: str, low_bit: bool) -> Matrix:
        key = f"{name} {8 if low_bit else 16}"
        if key not in self.neuron_major:
            turned = draft_copy.transposed(self.full.matrix(name))
            self.neuron_major[key] = draft_copy.quantised(turned, self.team) if low_bit else turned
        return self.neuron_major[key]
