"""A model ready to talk: its runner with the KV cache, and its text side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from engine.calibration import store
from engine.calibration.device import device_identity
from engine.errors import BadSetting, PromptTooLong
from engine.files.config import ModelConfig
from engine.files.fingerprint import fingerprint
from engine.files.folder import ModelFolder, open_folder
from engine.files.not_numbers import not_numbers
from engine.files.resolve import resolve
from engine.kernels.dispatch import card_of, choose_device, make_runner
from engine.lowbit.sample_text import sample_ids
from engine.model.runner import Runner
from engine.offload.basis import Basis
from engine.recipe import Recipe
from engine.records import LoadProgress, ModelInfo
from engine.settings import GenerateRequest, Message
from engine.speculation.controller import GammaController
from engine.speculation.estimates import CostProfile
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer, load_tokenizer

DEFAULT_CONTEXT = 8192  # positions; longer only when asked, because the KV cache is sized by it


@dataclass(slots=True)
class LoadedModel:
    """Everything of one load.

    default_recipe: how the draft is made where a request does not say. costs: what was measured with it, if it was.
    key: under which a calibration of the model on this device is kept.
    """

    info: ModelInfo
    folder: ModelFolder
    runner: Runner
    tokenizer: Tokenizer | None
    template: ChatTemplate | None
    controller: GammaController
    default_recipe: Recipe
    key: store.Key
    costs: CostProfile | None = None

    def fresh_controller(self, fixed: int | None = None) -> GammaController:
        """A controller for the recipe in force, which begins with the costs measured for it, if they were."""
        costs = self.costs if self.runner.recipe == self.default_recipe else None
        return GammaController(self.runner.decode_rows - 1, fixed=fixed, costs=costs)

    def close(self) -> None:
        """Give back memory and threads; the model is unusable after."""
        self.runner.close()
        self.folder.close()

    def prompt_ids(self, request: GenerateRequest) -> list[int]:
        """The request's prompt as token ids, with those that the reply is to begin with.

        Raises BadSetting where the model has no tokenizer or an id is unknown, PromptTooLong where the ids leave no
        room for a reply or there are none.
        """
        prompt = self._checked([*self._any_ids(request), *request.reply_prefix_ids])
        if len(prompt) >= self.runner.capacity:
            raise PromptTooLong(
                f"The prompt has {len(prompt)} tokens, but the context holds {self.runner.capacity}, "
                "and the reply needs room too."
            )
        if not prompt:
            raise PromptTooLong("The prompt is empty: there is no token to start from.")
        return prompt

    def _any_ids(self, request: GenerateRequest) -> list[int]:
        if request.prompt_ids is not None:
            return list(request.prompt_ids)
        if self.tokenizer is None:
            raise BadSetting(f"{self.info.name} has no tokenizer: give token ids instead of text.")
        if request.prompt is not None:
            return self.tokenizer.encode_prompt(request.prompt)
        return self.chat_ids(request.messages)

    def chat_ids(self, messages: Sequence[Message]) -> list[int]:
        """Messages as token ids through the template, ending where the reply begins."""
        if self.tokenizer is None or self.template is None:
            raise BadSetting(f"{self.info.name} has no tokenizer: give token ids instead of messages.")
        return self.template.render_ids(messages, self.tokenizer)

    def end_ids(self, chats: bool) -> frozenset[int]:
        """Tokens that end a reply."""
        ends = frozenset(self.folder.config.eos_ids)
        if self.tokenizer is not None:
            ends |= self.tokenizer.end_ids
        return ends | self.template.end_ids if chats and self.template is not None else ends

    def _checked(self, ids: list[int]) -> list[int]:
        """The ids, each with a row in the embedding matrix: a tokenizer may know more tokens than its model."""
        vocabulary = self.folder.config.vocabulary
        for token in ids:
            if not 0 <= token < vocabulary:
                raise BadSetting(f"The token id {token} is not in the model's vocabulary of {vocabulary}.")
        return ids


def load_model(
    model: str,
    context: int | None,
    device: str | None,
    progress: Callable[[LoadProgress], None],
    cancelled: Callable[[], bool],
    *,
    virtual_memory: bool = True,
    budget_bytes: int | None = None,
    offload: bool = True,
) -> LoadedModel:
    """Find, convert, check and load a model: "starter", a folder or a GGUF file.

    budget_bytes, offload: as make_runner's.
    Raises SpecularError subclasses with one sentence; nothing stays loaded then.
    """
    path = resolve(model, progress, cancelled)
    folder = open_folder(path)
    tokenizer = load_tokenizer(path)
    name = display_name(model, folder)
    template = None if tokenizer is None else ChatTemplate.for_folder(path, tokenizer, name)
    placement = choose_device(device)
    capacity = capacity_of(folder.config, context)
    config = folder.config
    allowed = config.vocabulary if tokenizer is None else min(config.vocabulary, tokenizer.vocabulary)
    key = store.Key(fingerprint(folder), placement.device, device_identity(placement))
    saved, refused = store.load(key, config)
    sample = sample_ids(tokenizer, config.vocabulary)
    make = partial(
        make_runner, folder, placement, capacity, virtual_memory=virtual_memory, budget=budget_bytes, offload=offload
    )
    runner, remarks = _runner(
        lambda recipe: make(recipe, progress, cancelled, allowed, sample), None if saved is None else saved.recipe
    )
    runner.kv.leave(())
    unpaged = runner.kv.reason if virtual_memory else None
    if unpaged is not None:
        remarks = (*remarks, f"The KV cache is a plain tensor of full length, because {unpaged}.")
    calibrated = saved is not None and runner.recipe == saved.recipe
    streams = runner.plan is not None and bool(runner.plan.streamed)
    costs = saved.costs if saved is not None and calibrated and not streams else None  # passes then cost other times
    note = template.note if template is not None else "The model has no tokenizer: it takes and gives token ids only."
    notes = tuple(
        text for text in (*placement.notes, *remarks, *folder.notes, *not_numbers(folder), note, refused) if text
    )
    info = ModelInfo(
        name=name,
        path=str(path),
        family=config.family,
        layers=config.layers,
        hidden_size=config.hidden_size,
        vocabulary=config.vocabulary,
        context=capacity,
        weights_dtype=_main_dtype(folder),
        weights_bytes=folder.total_bytes,
        draft_bytes=runner.draft_bytes,
        device=placement.name,
        kernels=runner.kernels,
        template=template.name if template is not None else "none",
        notes=notes,
        recipe=runner.recipe,
        calibrated=calibrated,
        ingredients=runner.ingredients,
        card=card_of(placement),
    )
    controller = GammaController(runner.decode_rows - 1, costs=costs)
    return LoadedModel(info, folder, runner, tokenizer, template, controller, runner.recipe, key, costs)


def _runner(
    make: Callable[[Recipe | None], tuple[Runner, tuple[str, ...]]], saved: Recipe | None
) -> tuple[Runner, tuple[str, ...]]:
    """The runner with the saved recipe, or with the device's default where there is none or it cannot be used."""
    notes: tuple[str, ...] = ()
    if saved is not None:
        try:
            return make(saved)
        except BadSetting as error:  # say, a card whose kernels are not to be had any more
            notes = (f"The saved recipe cannot be used, so the default draft is: {error}",)
    runner, remarks = make(None)
    return runner, (*remarks, *notes)


def basis_of(loaded: LoadedModel) -> Basis:
    """What forecasts of other budgets for a loaded model rest on."""
    info, plan, bits = loaded.info, loaded.runner.plan, loaded.runner.recipe.weight_bits
    kv = loaded.runner.kv.report().mapped
    if info.card is not None:
        held = plan.peak if plan is not None else info.weights_bytes + info.draft_bytes + kv
    else:  # pages of mapped files count as free, the rest does not
        held = info.draft_bytes + kv if plan is None else plan.workspace + plan.draft + plan.slots * plan.slot_bytes
    return Basis(
        loaded.folder.config,
        {name: entry.nbytes for name, entry in loaded.folder.entries.items()},
        "cpu" if info.card is None else "cuda",
        loaded.runner.capacity,
        (bits,) if bits < 16 else (),
        info.card,
        held,
    )


def display_name(model: str, folder: ModelFolder) -> str:
    """What to call the model: the GGUF's or folder's name without its hash or extension."""
    if model == "starter":
        return "SmolLM2 135M Instruct"
    from pathlib import Path

    path = Path(model)
    return path.stem if path.suffix.lower() == ".gguf" else (path.name or folder.path.name)


def capacity_of(config: ModelConfig, context: int | None) -> int:
    """Positions of the KV cache for a wish, None for the default. Raises BadSetting, naming the model's range."""
    most = config.context
    if context is None:
        return min(most, DEFAULT_CONTEXT)
    if not 16 <= context <= most:
        raise BadSetting(f"The context is {context}, but this model takes 16 to {most} tokens.")
    return context


def _main_dtype(folder: ModelFolder) -> str:
    """The stored type that most bytes have, as people write it."""
    sizes: dict[str, int] = {}
    for entry in folder.entries.values():
        sizes[entry.dtype] = sizes.get(entry.dtype, 0) + entry.nbytes
    return max(sizes, key=lambda name: sizes[name])
