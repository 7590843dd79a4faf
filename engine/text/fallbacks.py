"""Chat formats for models that bring no template of their own."""

from __future__ import annotations

from dataclasses import dataclass

from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """A chat format: its name, its Jinja source, and the strings that end a reply in it besides end tokens."""

    name: str
    source: str
    stop_strings: tuple[str, ...] = ()
    end_markers: tuple[str, ...] = ()


# lm-sys/FastChat, conversation template "vicuna_v1.1": turns end in a space and in </s> by turns.
VICUNA = ChatFormat(
    "Vicuna",
    "{%- if messages and messages[0].role == 'system' -%}{{ messages[0].content }}"
    "{%- else -%}"
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, "
    "and polite answers to the user's questions.{%- endif -%}{{ ' ' }}"
    "{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}USER: {{ m.content }}{{ ' ' }}"
    "{%- elif m.role == 'assistant' -%}ASSISTANT: {{ m.content }}</s>"
    "{%- elif not loop.first -%}{{ m.content }}{{ ' ' }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}ASSISTANT:{%- endif -%}",
)

CHATML = ChatFormat(
    "ChatML",
    "{%- for m in messages -%}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}",
    end_markers=("<|im_end|>",),
)

PLAIN = ChatFormat(
    "plain",
    "{%- for m in messages -%}"
    "{%- if m.role == 'system' -%}{{ m.content ~ '\\n\\n' }}"
    "{%- else -%}{{ ('User: ' if m.role == 'user' else 'Assistant: ') ~ m.content ~ '\\n' }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}Assistant:{%- endif -%}",
    stop_strings=("\nUser:",),
)

FORMATS = {chat_format.name: chat_format for chat_format in (VICUNA, CHATML, PLAIN)}


def fallback_format(tokenizer: Tokenizer) -> ChatFormat:
    """The format to use for a model without a usable template, from its name and its vocabulary."""
    if "vicuna" in tokenizer.text_files.model_name.lower():
        return VICUNA
    if {tokenizer.token_id("<|im_start|>"), tokenizer.token_id("<|im_end|>")} <= tokenizer.control_ids:
        return CHATML
    return PLAIN
