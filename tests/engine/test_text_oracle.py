"""Prompts of real templates equal those of transformers: text and ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import byte_tokenizer
from engine.settings import Message
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from text_builders import add_tokens, spm_tokenizer

SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
    " + message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
)
LLAMA3_TOKENS = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")

CHATS = (
    [("user", "hello")],
    [("user", "  the cat\n"), ("assistant", "sat 😀 on 일가"), ("user", "<b>the mat</b> & [1] \\n {{ x }}?")],
    [("system", "Be brief.\n"), ("user", "hello world"), ("assistant", ""), ("user", "now")],
)


def build(folder: Path, name: str) -> tuple[Path, str]:
    if name == "smollm2":
        return byte_tokenizer(folder, template=SMOLLM2), "<s>"
    if name == "llama3":
        built = add_tokens(byte_tokenizer(folder, template=LLAMA3), LLAMA3_TOKENS, begins="<|begin_of_text|>")
        config = built / "tokenizer_config.json"
        config.write_text(config.read_text().replace('"<s>"', '"<|begin_of_text|>"').replace("false", "true"))
        return built, "<|begin_of_text|>"
    return spm_tokenizer(folder, template=MISTRAL, added=("[INST]", "[/INST]")), "<s>"


def oracle(folder: Path, bos: str) -> Any:
    transformers = pytest.importorskip("transformers")
    template = Tokenizer.from_folder(folder).text_files.template
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token=bos, eos_token="</s>", chat_template=template
    )


@pytest.mark.parametrize("name", ["smollm2", "llama3", "mistral"])
def test_prompts_equal_those_of_transformers(tmp_path: Path, name: str) -> None:
    folder, bos = build(tmp_path, name)
    reference = oracle(folder, bos)
    tokenizer = Tokenizer.from_folder(folder)
    template = ChatTemplate.for_folder(folder, tokenizer)
    assert template.name == "the model's own"
    compared = 0
    for chat in CHATS:
        turns = [{"role": role, "content": content} for role, content in chat]
        messages = [Message(role, content) for role, content in chat]
        try:
            text = reference.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except Exception as refusal:  # the oracle passes the template's own refusal on
            assert name == "mistral" and chat[0][0] == "system", refusal
            folded = [{"role": "user", "content": "Be brief.\n\n\nhello world"}, *turns[2:]]
            text = reference.apply_chat_template(folded, tokenize=False, add_generation_prompt=True)
        ids = reference(text, add_special_tokens=False)["input_ids"]
        assert template.render_text(messages, tokenizer) == text
        assert template.render_ids(messages, tokenizer) == ids
        assert ids.count(reference.bos_token_id) == (0 if name == "smollm2" else 1)
        assert tokenizer.decode(ids) == reference.decode(ids, skip_special_tokens=True)
        compared += 1
    assert compared == len(CHATS)
