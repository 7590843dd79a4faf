"""The command line of `specular-cli`: its options, and the request they amount to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from engine.cli.models_arguments import add_models_options
from engine.settings import GenerateRequest, Message, Sampling, Speculation

BAD_INPUT = 2
SHAPE_NAMES = (
    "llama2-7b",
    "llama3-8b",
    "mistral-7b",
    "opt-6.7b",
    "qwen3-0.6b",
    "qwen3-8b",
    "smollm2-135m",
    "wide-8192",
)

DESCRIPTION = "Answers with a language model that drafts with a cheap variant of itself; the text is the model's own."


class OneSentenceParser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence on stderr."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(BAD_INPUT)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parsed options; exits with status 2 and one sentence for what cannot be understood."""
    parser = OneSentenceParser(prog="specular-cli", description=DESCRIPTION)
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="generate | chat | prove | calibrate | doctor | bench | estimate | models",
    )

    generate = commands.add_parser("generate", help="answer one prompt and exit")
    generate.add_argument("--prompt", required=True, metavar="TEXT", help="what the user says")
    generate.add_argument("--raw", action="store_true", help="continue the prompt as it is, without a chat template")
    generate.add_argument("--json", action="store_true", help="print one JSON object: text, ids, cycles and figures")
    generate.add_argument(
        "--record-trace",
        type=Path,
        metavar="FILE",
        help="note there what the draft proposes, for bench --trace",
    )
    chat = commands.add_parser("chat", help="hold a conversation in the terminal")
    prove = commands.add_parser("prove", help="compare speculation with plain decoding, bit for bit")
    calibrate = commands.add_parser("calibrate", help="measure how the draft is best made on this computer")
    doctor = commands.add_parser("doctor", help="see what this computer gives the engine, by a short reply")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    add_bench_options(commands.add_parser("bench", help="measure decode steps of a model shape on the card"))
    add_estimate_options(commands.add_parser("estimate", help="see what a model takes of a budget, and how fast it is"))
    add_models_options(commands.add_parser("models", help="list, look at, download and remove models"))
    for command in (generate, chat, prove, calibrate, doctor):
        add_model_options(command)
    for command in (generate, chat):
        add_reply_options(command)
    add_proof_options(prove)
    add_calibration_options(calibrate)
    return parser.parse_args(arguments)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Options of all commands: the model and where it runs."""
    model = parser.add_argument_group("model")
    model.add_argument("--model", default="starter", help="a folder, a .gguf file, or starter (the default)")
    model.add_argument("--context", type=int, metavar="N", help="tokens the conversation may hold")
    model.add_argument("--no-vattention", action="store_true", help="keep the KV cache in one plain block of full size")
    model.add_argument(
        "--budget-gb",
        type=float,
        metavar="GB",
        help="of the card's memory, or of RAM without one, that the model may take; what is free when left out",
    )
    model.add_argument("--no-offload", action="store_true", help="do not load a model that has to be streamed to fit")
    model.add_argument("--device", choices=("cpu", "cuda"), help="where to compute; chosen by itself when left out")


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Options of `bench`. The shapes are named here, because looking them up would import torch."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--shape", choices=SHAPE_NAMES, help="measure steps of these sizes, with random weights")
    what.add_argument("--data", metavar="DIR", help="hold the conversations of question files (SET.jsonl) both ways")
    what.add_argument("--fetch", metavar="DIR", help="write the public question sets there, from the hub")
    what.add_argument("--compare", nargs=2, metavar="REPORT", help="show two reports of --data side by side")
    add_question_options(parser)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16"), help="of weights and cache")
    parser.add_argument("--kv-length", type=int, default=512, metavar="N", help="tokens in the KV cache; 512")
    parser.add_argument("--trace", metavar="FILE", nargs="+", help="replay acceptance traces instead: --record-trace")
    parser.add_argument("--alpha", type=float, metavar="A", help="replay a made-up trace of this acceptance instead")
    parser.add_argument("--budget-gb", type=float, metavar="GB", help="with so much of the device's memory only")
    parser.add_argument("--context", type=int, metavar="N", help="tokens there is room for")
    parser.add_argument("--kv-report", action="store_true", help="measure the KV cache on virtual memory instead")
    parser.add_argument("--tune", action="store_true", help="try tile sizes and keep the best for this card")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Options of `bench --data`."""
    group = parser.add_argument_group("questions (exit status 1 where speculation changed a text)")
    group.add_argument("--model", default="starter", help="a folder, a .gguf file, or starter (the default)")
    group.add_argument("--sets", metavar="A,B", help="mt_bench,humaneval,gsm8k,alpaca,spec_bench: those that are there")
    group.add_argument("--limit", type=int, metavar="N", help="first questions of each set; all when left out")
    group.add_argument("--max-new-tokens", type=int, default=256, metavar="N", help="longest reply; 256")
    group.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the best token (default)")
    group.add_argument("--seed", type=int, default=0, metavar="S", help="of all ways, above temperature 0; 0")
    group.add_argument("--peers", metavar="A,B", help="others to compare: transformers[-lookup|-early-exit], llama-cpp")
    group.add_argument("--score", action="store_true", help="also count right answers of gsm8k")
    group.add_argument("--run-code", action="store_true", help="with --score: run humaneval's programs; asks first")
    group.add_argument("--yes", action="store_true", help="do not ask before programs are run")
    group.add_argument("--out", default="bench", metavar="DIR", help="results and report; a run stopped there goes on")
    group.add_argument("--no-vattention", action="store_true", help="keep the KV cache in one plain block of full size")
    group.add_argument("--no-offload", action="store_true", help="do not load a model that has to be streamed to fit")
    group.add_argument("--device", choices=("cpu", "cuda"), help="where to compute; chosen by itself when left out")


def add_estimate_options(parser: argparse.ArgumentParser) -> None:
    """Options of `estimate`, which reads headers only."""
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", default="starter", help="a folder, a .gguf file, or starter (the default)")
    model.add_argument("--shape", choices=SHAPE_NAMES, help="a well-known size, 16-bit, in place of a model")
    parser.add_argument(
        "--budget-gb", type=float, metavar="GB", help="of VRAM, or of RAM without a card; all that is free"
    )
    parser.add_argument("--context", type=int, metavar="N", help="tokens the conversation may hold")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where it would compute; a card need not be there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_proof_options(parser: argparse.ArgumentParser) -> None:
    """Options of `prove`."""
    proof = parser.add_argument_group("proof (exit status 1 on a difference)")
    proof.add_argument("--tokens", type=int, default=1024, metavar="N", help="tokens to compare; 1024 when left out")
    proof.add_argument("--prompts", metavar="FILE", help="text file with one prompt a line, in place of the built-in")
    proof.add_argument("--gamma", type=int, metavar="G", help="tokens drafted a cycle; 1 to 8 and auto when left out")
    proof.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the best token (default)")
    proof.add_argument("--seed", type=int, default=0, metavar="S", help="of both ways, above temperature 0; 0")
    proof.add_argument("--json", action="store_true", help="print one JSON object")


def add_calibration_options(parser: argparse.ArgumentParser) -> None:
    """Options of `calibrate`."""
    calibration = parser.add_argument_group("calibration (the draft changes the speed, never the text)")
    calibration.add_argument(
        "--minutes",
        type=float,
        default=2.0,
        metavar="M",
        help="to take, about; 2 (more the first time)",
    )
    calibration.add_argument("--json", action="store_true", help="print one JSON object")


def add_reply_options(parser: argparse.ArgumentParser) -> None:
    """Options of `generate` and `chat`: sampling, speculation, and the terminal."""
    reply = parser.add_argument_group("reply")
    reply.add_argument("--system", metavar="TEXT", help="instructions that stand before the conversation")
    reply.add_argument("--max-new-tokens", type=int, metavar="N", help="longest reply in tokens")
    reply.add_argument("--stop", action="append", default=[], metavar="TEXT", help="ends the reply; may be repeated")
    reply.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the best token (default)")
    reply.add_argument("--top-k", type=int, default=0, metavar="N", help="sample from the N best tokens; 0 for all")
    reply.add_argument("--top-p", type=float, default=1.0, metavar="P", help="sample from the best tokens of mass P")
    reply.add_argument("--min-p", type=float, default=0.0, metavar="P", help="drop tokens below P times the best")
    reply.add_argument("--repetition-penalty", type=float, default=1.0, metavar="R", help="above 1 repeats less")
    reply.add_argument("--seed", type=int, metavar="S", help="same seed, same reply; drawn when left out")
    speed = parser.add_argument_group("speculation (changes the speed, never the text)")
    speed.add_argument("--plain", action="store_true", help="no drafting: one full pass a token")
    speed.add_argument("--gamma", type=int, metavar="G", help="tokens drafted a cycle; follows the gain when left out")
    parser.add_argument("--no-color", action="store_true", help="no colours (also: NO_COLOR in the environment)")


def request_for(options: argparse.Namespace, messages: tuple[Message, ...] = ()) -> GenerateRequest:
    """The reply asked for: to `messages`, or to the prompt of `generate`. Raises BadSetting naming a wrong value."""
    raw = bool(getattr(options, "raw", False))
    if not messages and not raw:
        messages = (*system_message(options), Message("user", options.prompt))
    return GenerateRequest(
        messages=() if raw else messages,
        prompt=options.prompt if raw else None,
        sampling=Sampling(
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            min_p=options.min_p,
            repetition_penalty=options.repetition_penalty,
            seed=options.seed,
        ),
        speculation=Speculation(enabled=not options.plain, gamma=options.gamma),
        max_new_tokens=options.max_new_tokens,
        stop_strings=tuple(options.stop),
    )


def system_message(options: argparse.Namespace) -> tuple[Message, ...]:
    """The system prompt as messages: one, or none when it is left out or empty."""
    return (Message("system", options.system),) if options.system else ()
