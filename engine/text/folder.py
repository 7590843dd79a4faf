"""The text side of a model folder: special token names, end tokens and the chat template, as its files state them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError

# Markers that end a turn in the templates people use; only those that a template names and that the
# vocabulary holds as special tokens count.
TURN_ENDS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end|>",
    "<|eot|>",
    "<|return|>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end_of_text|>",
    "<|endoftext|>",
)


@dataclass(frozen=True, slots=True)
class TextFiles:
    """What the JSON files of a model folder say about text. Missing files leave empty values.

    bos, eos: texts of the begin and end token, None where no file names one.
    begin_id, end_ids: ids from generation_config.json and config.json; `end_ids` joins all of them.
    generation_names_end: whether generation_config.json names an end token.
    add_bos: tokenizer_config.json's `add_bos_token`, None where it is silent.
    template: source of the chat template, None where the folder has none.
    model_name: whatever names the model: folder, architecture, and the name kept in config.json.
    """

    bos: str | None
    eos: str | None
    begin_id: int | None
    end_ids: frozenset[int]
    generation_names_end: bool
    add_bos: bool | None
    template: str | None
    model_name: str


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; {} where the file is absent. Raises ModelFileError for anything else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(values, dict):
        raise ModelFileError(f"{path} should hold a JSON object, but holds a {type(values).__name__}.")
    return values


def read_text_files(folder: Path) -> TextFiles:
    """Read the small text-related files of `folder`. Raises ModelFileError when one is unreadable."""
    config = read_json(folder / "config.json")
    generation = read_json(folder / "generation_config.json")
    tokenizer = read_json(folder / "special_tokens_map.json") | read_json(folder / "tokenizer_config.json")
    inner = config.get("text_config")
    configs = [generation, config, inner if isinstance(inner, dict) else {}]
    begins = [i for values in configs for i in _ids(values.get("bos_token_id"))]
    add_bos = tokenizer.get("add_bos_token")
    return TextFiles(
        bos=_token_text(tokenizer.get("bos_token")),
        eos=_token_text(tokenizer.get("eos_token")),
        begin_id=begins[0] if begins else None,
        end_ids=frozenset(i for values in configs for i in _ids(values.get("eos_token_id"))),
        generation_names_end=bool(_ids(generation.get("eos_token_id"))),
        add_bos=add_bos if isinstance(add_bos, bool) else None,
        template=_template_source(folder, tokenizer),
        model_name=" ".join([folder.name, str(config.get("_name_or_path", "")), str(config.get("architectures", ""))]),
    )


def _template_source(folder: Path, tokenizer: dict[str, Any]) -> str | None:
    jinja = folder / "chat_template.jinja"
    if jinja.is_file():
        try:
            return jinja.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{jinja} cannot be read: {error}.") from error
    for values in (read_json(folder / "chat_template.json"), tokenizer):
        source = _one_template(values.get("chat_template"))
        if source is not None:
            return source
    return None


def _one_template(value: Any) -> str | None:
    """The default of a template entry: a string, a list of {name, template}, or a dictionary by name."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list):
        value = {v.get("name"): v.get("template") for v in value if isinstance(v, dict)}
    if isinstance(value, dict) and value:
        chosen = value.get("default", next(iter(value.values())))
        return chosen if isinstance(chosen, str) and chosen.strip() else None
    return None


def _token_text(value: Any) -> str | None:
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) and text else None


def _ids(value: Any) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0]
