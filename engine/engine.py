"""The engine's public face: load, generate (an iterator of events), stop, unload, estimate.

One thread owns an Engine and calls everything but `stop` and `cancel_load`, which may come from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from engine.bench.questions.small import BenchProgress, BenchReport, small_benchmark
from engine.bench.record import TRACED_TOKENS, record_trace
from engine.bench.traces import Trace
from engine.budget_request import BudgetRequest
from engine.calibration.report import CalibrationProgress, CalibrationReport, check_minutes
from engine.calibration.session import calibrate_loaded
from engine.candidates import Candidates
from engine.dialogue import Dialogue
from engine.errors import (
    EngineBusy,
    LoadCancelled,
    NoModel,
    NumericFault,
    SpecularError,
    is_out_of_memory,
)
from engine.files.resolve import SizeEstimate, estimate_bytes
from engine.find_candidates import find_candidates
from engine.memory.peak import PeakMeter
from engine.memory.report import KvMemory
from engine.model.fault import located
from engine.model.loaded import LoadedModel, basis_of, load_model
from engine.model.observed import PassObserver, observe
from engine.offload.basis import Basis
from engine.offload.report import Offload
from engine.probes.reading import Measure
from engine.proof import ProofProgress, ProofReport
from engine.prove import prove
from engine.prove_prompts import PROMPTS, ProofPrompt
from engine.records import Event, Finished, LoadProgress, ModelInfo, StopReason
from engine.sampling.sampler import Sampler
from engine.settings import GenerateRequest, Message, Sampling
from engine.speculation.choose_stepper import make_stepper
from engine.speculation.controller import GammaController
from engine.speculation.cycle import Limits, ReplyLoop
from engine.text.reply import ReplyText


class Engine:
    """One loaded model at a time, one reply at a time."""

    def __init__(self) -> None:
        self._loaded: LoadedModel | None = None
        self._budget = BudgetRequest()
        self._peak = PeakMeter()
        self._stop = threading.Event()
        self._cancel = threading.Event()
        self._busy = False

    @property
    def info(self) -> ModelInfo | None:
        """What is loaded, or None."""
        return self._loaded.info if self._loaded else None

    def load(
        self,
        model: str,
        *,
        context: int | None = None,
        device: str | None = None,
        virtual_memory: bool = True,
        budget_bytes: int | None = None,
        offload: bool = True,
        progress: Callable[[LoadProgress], None] = lambda _: None,
    ) -> ModelInfo:
        """Load "starter", a model folder or a .gguf file in place of the present model.

        context: positions of the KV cache, None for the model's own up to 8192. device: "cuda", "cpu" or None for
        the best. virtual_memory: whether the KV cache may lie in it; the tokens are the same either way.
        budget_bytes: of the device's memory that the model may take, None for what is free; offload: whether parts of
        it may be brought in for every full pass where it does not fit, which again changes no token. Raises
        SpecularError with one sentence; the model loaded before is then still there and usable.
        """
        self._require_idle()
        self._cancel.clear()
        self._busy = True
        peak = PeakMeter()
        try:
            loaded = load_model(
                model,
                context,
                device,
                progress,
                self._cancel.is_set,
                virtual_memory=virtual_memory,
                budget_bytes=budget_bytes,
                offload=offload,
            )
            if self._cancel.is_set():  # during the last tensor
                loaded.close()
                raise LoadCancelled("Loading was cancelled.")
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise SpecularError(f"There is not enough memory to load {model}.") from error
        finally:
            self._busy = False
        self.unload()
        peak.of_card(loaded.info.card)
        self._loaded, self._peak = loaded, peak
        return loaded.info

    def cancel_load(self) -> None:
        """Make a running load end with LoadCancelled at its next tensor. Any thread."""
        self._cancel.set()

    def generate(self, request: GenerateRequest) -> Iterator[Event]:
        """Start a reply; iterate to make it.

        Events: an Opening where the request gives the reply's first tokens, PrefillProgress, CycleEvent, and last one
        Finished.

        Raises NoModel, EngineBusy, PromptTooLong, BadSetting or TemplateError at once, before any work. A fault
        during the reply ends it with Finished(FAILED) and a message; what was written until then stands.
        Closing the iterator early is a stop.
        """
        loaded = self._require_model()
        self._require_idle()
        prompt = loaded.prompt_ids(request)
        self._use_recipe(loaded, request)
        sampler = self._sampler(loaded, request)
        controller = self._controller(loaded, request)
        loop = ReplyLoop(
            loaded.runner,
            make_stepper(loaded.runner, sampler, controller, self._stop.is_set, request.speculation),
            controller,
            request.speculation,
            Limits(loaded.end_ids(bool(request.messages)), request.max_new_tokens),
            self._text(loaded, request),
            self._stop.is_set,
            between=lambda: self._budget.try_to(loaded),
        )
        self._stop.clear()
        return self._reply(loaded, loop, prompt, sampler.seed, request)

    def stop(self) -> None:
        """End the running reply at the next pass; without one, nothing. Any thread."""
        self._stop.set()

    def candidates(
        self,
        request: GenerateRequest,
        token: int,
        *,
        drafted: int = 0,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Candidates | None:
        """What model and draft thought of `token` and its rivals after the request's prompt and reply_prefix_ids.

        drafted: as many of the last tokens were the draft's own proposals in the cycle at hand. cancelled: asked
        between passes; the answer is then None. A reply made later is the same as without this call. Raises NoModel,
        EngineBusy, BadSetting, PromptTooLong, TemplateError, and SpecularError where memory runs out or the model
        computes NaN.
        """
        loaded = self._require_model()
        self._require_idle()
        self._busy = True
        try:
            return find_candidates(loaded, request, token, drafted, cancelled)
        finally:
            self._busy = False

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens the messages take as a prompt, the reply's opening included."""
        return len(self._require_model().chat_ids(messages))

    @property
    def dialogue(self) -> Dialogue:
        """The model's messages and ids, for programs that are compared with it. Raises NoModel."""
        return Dialogue(self._require_model())

    @property
    def takes_text(self) -> bool:
        """Whether the model has a tokenizer; without one it takes and gives token ids only."""
        return self._require_model().tokenizer is not None

    def forget(self, conversation: int | None = None) -> None:
        """Drop what the KV cache holds of a conversation, or of all: its next reply reads the whole prompt, and the
        memory goes back. Without a model, nothing. Raises EngineBusy."""
        self._require_idle()
        if self._loaded is not None:
            self._loaded.runner.kv.forget(conversation)

    def memory(self) -> KvMemory | None:
        """How the KV cache stands; None without a model. Any thread."""
        loaded = self._loaded
        return None if loaded is None else loaded.runner.kv.report()

    def use_budget(self, budget_bytes: int | None, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """Move parts of the loaded model so that it takes at most so much of the device's memory; None: what is free.

        While a reply is being made, from any thread: it happens before the next cycle, whose record shows it, and the
        reply goes on; what cannot be done is told by `offload`. Otherwise, by the owner, at once: raises NoModel, and
        SpecularError with figures where the least does not fit. All then lies as before. No token changes.
        """
        loaded = self._require_model()
        self._budget.ask(budget_bytes, progress)
        if not self._busy:
            self._budget.carry_out(loaded)

    def ask_budget(
        self,
        budget_bytes: int | None,
        progress: Callable[[LoadProgress], None] = lambda _: None,
        done: Callable[[SpecularError | None], None] = lambda _: None,
    ) -> None:
        """As use_budget, from any thread and at any moment: it happens between two cycles of a reply, or when the
        owner next calls settle_budget. A newer request takes the place of one that has not been carried out.

        done: called in the owner's thread with None once it is in force, or with why it is not: ReloadNeeded where
        only loading the model again can bring it about.
        """
        self._budget.ask(budget_bytes, progress, done)

    def settle_budget(self) -> None:
        """Carry out what ask_budget left to be done, if anything. Without a model, or during a reply, nothing."""
        if self._loaded is not None and not self._busy:
            self._budget.try_to(self._loaded)

    def basis(self) -> Basis | None:
        """What forecasts of other budgets for the loaded model rest on; None without one. Any thread."""
        loaded = self._loaded
        return None if loaded is None else basis_of(loaded)

    def peak(self) -> Measure:
        """The most bytes of the device's memory that the program has taken for the model since its load began. Any
        thread."""
        return self._peak.read() if self._loaded is not None else Measure(None, "No model is loaded.")

    def offload(self) -> Offload | None:
        """How the model's parts lie; None without a model, or where all of it is in one memory. Any thread."""
        loaded = self._loaded
        plan = None if loaded is None else loaded.runner.plan
        if loaded is None or plan is None:
            return None
        return Offload(plan, loaded.runner.transfers, self._budget.refused, self._budget.yielded)

    @contextmanager
    def observed(self, observer: PassObserver) -> Iterator[None]:
        """While entered, `observer` sees the logits of every full pass. Raises NoModel, EngineBusy."""
        loaded = self._require_model()
        self._require_idle()
        runner = loaded.runner
        loaded.runner = observe(runner, observer)
        try:
            yield
        finally:
            loaded.runner = runner

    def prove(
        self,
        tokens: int,
        *,
        prompts: Sequence[ProofPrompt] = PROMPTS,
        sampling: Sampling | None = None,
        gamma: int | None = None,
        progress: Callable[[ProofProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ProofReport:
        """Compare plain decoding and speculation bit for bit: see engine.prove.prove."""
        return prove(
            self,
            tokens,
            prompts=prompts,
            sampling=sampling,
            gamma=gamma,
            progress=progress,
            cancelled=cancelled,
        )

    def benchmark(
        self,
        *,
        progress: Callable[[BenchProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> BenchReport:
        """Answer a few questions both ways, in turns: see engine.bench.questions.small.small_benchmark."""
        return small_benchmark(self, progress=progress, cancelled=cancelled)

    def calibrate(
        self,
        minutes: float = 2.0,
        *,
        progress: Callable[[CalibrationProgress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> CalibrationReport:
        """Measure which draft recipe serves the loaded model best on this device, use it, and keep it for later loads.

        cancelled: asked between passes; the report then says so, and the recipe is what it was. Raises NoModel,
        EngineBusy, BadSetting for minutes out of range, and SpecularError where memory runs out or a pass fails,
        with the recipe as it was.
        """
        check_minutes(minutes)
        loaded = self._require_model()
        self._require_idle()
        self._busy = True
        try:
            return calibrate_loaded(loaded, minutes, progress, cancelled)
        finally:
            self._busy = False

    def record_trace(self, request: GenerateRequest, set_name: str = "") -> Trace:
        """Make the reply of a request again, noting what the draft proposes at every token: see engine.bench.record.

        At most 256 tokens where the request has no limit. Raises what `generate` raises at once, and SpecularError
        where model or draft compute NaN.
        """
        loaded = self._require_model()
        self._require_idle()
        prompt = loaded.prompt_ids(request)
        self._use_recipe(loaded, request)
        self._busy = True
        try:
            with loaded.runner.kv.scratch():
                return record_trace(
                    loaded.runner,
                    self._sampler(loaded, request),
                    prompt,
                    TRACED_TOKENS if request.max_new_tokens is None else max(1, request.max_new_tokens),
                    end_ids=loaded.end_ids(bool(request.messages)),
                    model=loaded.info.name,
                    set_name=set_name,
                )
        finally:
            self._busy = False

    def estimate(self, model: str) -> SizeEstimate:
        """What a model would need in memory, from its headers alone. Raises ModelFileError as loading would."""
        return estimate_bytes(model)

    def unload(self) -> None:
        """Give back the model's memory and threads. Without a model, nothing."""
        self._require_idle()
        loaded, self._loaded = self._loaded, None
        self._budget.forget()
        if loaded is not None:
            loaded.close()

    def close(self) -> None:
        """Unload; the engine can load again after."""
        self._busy = False
        self.unload()

    def _reply(
        self, loaded: LoadedModel, loop: ReplyLoop, prompt: list[int], seed: int, request: GenerateRequest
    ) -> Iterator[Event]:
        self._require_idle()
        if loaded is not self._loaded:
            raise NoModel("The model was unloaded before its reply began.")
        self._busy = True
        kv = loaded.runner.kv
        reused = kv.enter(request.conversation, prompt[:-1])
        committed: list[int] = []  # nothing is trusted until this reply has ended in order
        began = decode_began = time.perf_counter()
        message = None
        try:
            with loaded.runner.interruptible(self._stop.is_set):
                if request.reply_prefix_ids:
                    yield loop.open(request.reply_prefix_ids)
                if loop.reason is None:
                    yield from loop.prefill(prompt, reused)
                decode_began = time.perf_counter()
                yield from loop.cycles()
            committed = loop.ids[:-1] or prompt[:reused]
        except (SpecularError, MemoryError, RuntimeError) as error:
            if not isinstance(error, SpecularError) and not is_out_of_memory(error):
                raise
            loop.reason = StopReason.FAILED
            if isinstance(error, NumericFault):
                error = located(error, loaded.runner, loop.ids, self._stop.is_set)
            message = str(error) if isinstance(error, SpecularError) else "There is not enough memory to go on."
        finally:
            kv.leave(committed)
            self._budget.try_to(loaded)  # what was asked for during the last cycle
            self._busy = False
        yield Finished(
            reason=loop.reason or StopReason.STOPPED,
            tail=loop.tail(),
            prompt_tokens=len(prompt),
            reused_tokens=reused,
            new_tokens=loop.new_tokens,
            prefill_seconds=decode_began - began,
            decode_seconds=time.perf_counter() - decode_began,
            seed=seed,
            message=message,
        )

    def _use_recipe(self, loaded: LoadedModel, request: GenerateRequest) -> None:
        """Draft by the recipe the request wants; what was learnt about another recipe's costs does not hold for it."""
        wanted = request.speculation.recipe or loaded.default_recipe
        if not request.speculation.enabled or wanted == loaded.runner.recipe:
            return
        try:
            loaded.runner.use_recipe(wanted)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise SpecularError("There is not enough memory for a draft by this recipe.") from error
        loaded.controller = loaded.fresh_controller()

    def _sampler(self, loaded: LoadedModel, request: GenerateRequest) -> Sampler:
        vocabulary = loaded.folder.config.vocabulary
        allowed = loaded.tokenizer.vocabulary if loaded.tokenizer is not None else None
        return Sampler(request.sampling, vocabulary, allowed_vocabulary=allowed, peak=loaded.runner.peak)

    def _controller(self, loaded: LoadedModel, request: GenerateRequest) -> GammaController:
        if request.speculation.gamma is None:
            return loaded.controller
        return loaded.fresh_controller(fixed=request.speculation.gamma)

    def _text(self, loaded: LoadedModel, request: GenerateRequest) -> ReplyText:
        chats = bool(request.messages) and loaded.template is not None
        own = loaded.template.stop_strings if chats and loaded.template is not None else ()
        return ReplyText(loaded.tokenizer, (*own, *request.stop_strings))

    def _require_idle(self) -> None:
        if self._busy:
            raise EngineBusy("The engine is busy: wait for the reply or the load to end, or stop it.")

    def _require_model(self) -> LoadedModel:
        if self._loaded is None:
            raise NoModel("No model is loaded.")
        return self._loaded
