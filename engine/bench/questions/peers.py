"""Other programs over the same weights and prompts: transformers, plain, with look-ups or leaving early; llama.cpp.

Each gets the ids that the engine would read and gives ids back, so that tokens are counted alike and the end token is
honoured by all. Prompts are read anew in every turn. A peer that is not installed is told by its name.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from engine.bench.questions.files import Question
from engine.bench.questions.measured import Turn, digest_of
from engine.bench.questions.ways import QuestionTooLong, Way, WayFailed
from engine.errors import BadSetting
from engine.settings import Message, Sampling

LOOKED_UP = 10  # tokens that transformers looks up at a time, its own usual number
NAMES = ("transformers", "transformers-lookup", "transformers-early-exit", "llama-cpp")


class Dialogue(Protocol):
    """How a model's messages become ids, and ids text."""

    def chat_ids(self, messages: Sequence[Message]) -> list[int]: ...
    def text_of(self, ids: Sequence[int]) -> str: ...
    @property
    def end_ids(self) -> frozenset[int]: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of a peer."""

    ids: tuple[int, ...]
    prefill_seconds: float
    decode_seconds: float


@dataclass(frozen=True, slots=True)
class PeerWay:
    """A peer as a way; `reply` answers a prompt's ids."""

    name: str
    dialogue: Dialogue
    most: int
    context: int
    reply: Callable[[list[int], int], Answer]

    def answer(self, question: Question) -> list[Turn]:
        """See Way."""
        messages: list[Message] = []
        turns: list[Turn] = []
        for number, text in enumerate(question.turns):
            messages.append(Message("user", text))
            prompt = self.dialogue.chat_ids(messages)
            if len(prompt) + 1 >= self.context:
                raise QuestionTooLong
            room = min(self.most, self.context - len(prompt))
            try:
                made = self.reply(prompt, room)
            except Exception as error:  # whatever another program may raise: it is told, and the others go on
                raise WayFailed(f"{type(error).__name__}: {error}") from error
            text = self.dialogue.text_of(_without_end(made.ids, self.dialogue.end_ids))
            messages.append(Message("assistant", text))
            answer = replace(made, ids=made.ids[:room])
            turns.append(replace(self._turn(question, number, len(prompt), answer), text=text))
        return turns

    def _turn(self, question: Question, number: int, prompt: int, made: Answer) -> Turn:
        ended = bool(made.ids) and made.ids[-1] in self.dialogue.end_ids
        return Turn(
            set=question.set,
            question=question.id,
            category=question.category,
            turn=number,
            way=self.name,
            prompt=prompt,
            reused=0,
            tokens=len(made.ids),
            prefill_seconds=made.prefill_seconds,
            decode_seconds=made.decode_seconds,
            digest=digest_of(made.ids),
            reason="end token" if ended else "length limit",
        )

    def close(self) -> None:
        """See Way: nothing is kept."""


def peers(
    names: Sequence[str], model: str, folder: Path, dialogue: Dialogue, sampling: Sampling, most: int, context: int
) -> tuple[list[Way], list[str]]:
    """The named peers, and a sentence for each that cannot take part.

    model: as the user named it; folder: what it was loaded from. Raises BadSetting for a name that is none.
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise BadSetting(f"{unknown[0]} is no peer; there are {', '.join(NAMES)}.")
    found: list[Way] = []
    missing: list[str] = []
    for name in dict.fromkeys(names):
        package = "llama_cpp" if name == "llama-cpp" else "transformers"
        if importlib.util.find_spec(package) is None:
            missing.append(f"{name} is skipped: {package.replace('_', '-')} is not installed")
            continue
        try:
            reply = _llama_cpp(model, sampling, context, dialogue) if package == "llama_cpp" else None
            reply = reply or _transformers(name, folder, sampling, dialogue)
        except Exception as error:  # as above
            missing.append(f"{name} is skipped: {type(error).__name__}: {error}")
            continue
        found.append(PeerWay(name, dialogue, most, context, reply))
    return found, missing


class _Clock:
    """Takes tokens as transformers' streamers do: the prompt, then what is made; notes when the first came."""

    def __init__(self) -> None:
        self.first: float | None = None
        self._prompt = True

    def put(self, _: Any) -> None:
        """Tokens."""
        if self._prompt:
            self._prompt = False
        elif self.first is None:
            self.first = time.perf_counter()

    def end(self) -> None:
        """The reply has ended."""


def _transformers(
    name: str, folder: Path, sampling: Sampling, dialogue: Dialogue
) -> Callable[[list[int], int], Answer]:
    import torch
    import transformers

    from engine.model.threads import thread_count

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(thread_count())
    dtype = "auto" if device == "cuda" else torch.float32  # its half-precision products are slow on most CPUs
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    model = model.to(device).eval()
    how: dict[str, Any] = {"do_sample": not sampling.greedy, "eos_token_id": sorted(dialogue.end_ids)}
    how["pad_token_id"] = min(dialogue.end_ids, default=0)
    if not sampling.greedy:
        how |= {"temperature": sampling.temperature, "top_k": sampling.top_k or None, "top_p": sampling.top_p}
    if name == "transformers-lookup":
        how["prompt_lookup_num_tokens"] = LOOKED_UP
    if name == "transformers-early-exit":
        how["assistant_early_exit"] = max(1, model.config.num_hidden_layers // 2)

    def reply(prompt: list[int], most: int) -> Answer:
        ids, clock = torch.tensor([prompt], device=device), _Clock()
        torch.manual_seed(sampling.seed or 0)
        began = time.perf_counter()
        made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=most, streamer=clock, **how)
        ended = time.perf_counter()
        first = clock.first or ended
        return Answer(tuple(made[0, len(prompt) :].tolist()), first - began, ended - first)

    return reply


def _llama_cpp(model: str, sampling: Sampling, context: int, dialogue: Dialogue) -> Callable[[list[int], int], Answer]:
    import llama_cpp

    from engine.files.resolve import locate

    path = locate(model)
    if path.suffix != ".gguf":
        raise BadSetting("it reads GGUF files only")
    llama: Any = llama_cpp.Llama(str(path), n_ctx=context, n_gpu_layers=-1, seed=sampling.seed or 0, verbose=False)
    temperature = 0.0 if sampling.greedy else sampling.temperature
    how = {"temp": temperature, "top_k": sampling.top_k, "top_p": sampling.top_p, "min_p": sampling.min_p}

    def reply(prompt: list[int], most: int) -> Answer:
        llama.reset()
        began = time.perf_counter()
        llama.eval(prompt)
        ids = [int(llama.sample(repeat_penalty=1.0, **how))]
        first = time.perf_counter()
        while len(ids) < most and ids[-1] not in dialogue.end_ids:
            llama.eval(ids[-1:])
            ids.append(int(llama.sample(repeat_penalty=1.0, **how)))
        return Answer(tuple(ids), first - began, time.perf_counter() - first)

    return reply


def _without_end(ids: Sequence[int], ends: frozenset[int]) -> list[int]:
    return list(ids[:-1]) if ids and ids[-1] in ends else list(ids)
