"""Small model files for the tests, written from nothing: LLaMA folders, a byte-level tokenizer, shards, GGUF.

Nothing here imports torch, transformers or the engine, so a test that reads these files checks the engine against
the public formats and not against itself.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

DTYPE_CODES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIALS = ("<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>")
_MERGE_TEXT = (
    "h e,a t,t he,Ġ s,Ġ he,c at,l d,l l,m at,n o,o n,o p,o r,r e,t op,w or,Ġ the,Ġ cat,Ġ mat,Ġ no,Ġ on,Ġ wor,"
    "Ġs at,Ġs top,Ġhe ll,Ġhe re,Ġno w,Ġwor ld,Ġhell o"
)
MERGES = tuple(_MERGE_TEXT.split(","))


def tiny_llama(
    folder: Path,
    *,
    layers: int = 2,
    hidden: int = 64,
    heads: int = 4,
    kv_heads: int = 2,
    vocab: int = 290,
    tied: bool = False,
    dtype: str = "float32",
    seed: int = 0,
    positions: int = 256,
    std: float = 0.3,
) -> Path:
    """A random LLaMA folder (config.json, generation_config.json, model.safetensors); returns `folder`.

    Matrices are N(0, std) except that norms are near 1; the MLP is twice as wide as `hidden`. A tied model has no
    lm_head in its file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": hidden // heads,
        "vocab_size": vocab,
        "max_position_embeddings": positions,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "torch_dtype": dtype,
    }
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 1})
    tensors = random_tensors(config, np.random.default_rng(seed), std)
    write_safetensors(folder / "model.safetensors", tensors, dtype)
    return folder


def random_tensors(config: Mapping[str, Any], random: np.random.Generator, std: float) -> dict[str, np.ndarray]:
    """Every float32 tensor of a LLaMA with this config.json content, by its usual name."""
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    q_rows = config["num_attention_heads"] * config["head_dim"]
    kv_rows = config["num_key_value_heads"] * config["head_dim"]

    def matrix(rows: int, columns: int) -> np.ndarray:
        return random.normal(0.0, std, (rows, columns)).astype(np.float32)

    def norm() -> np.ndarray:
        return (1.0 + random.normal(0.0, 0.1, hidden)).astype(np.float32)

    tensors = {"model.embed_tokens.weight": matrix(vocab, hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        tensors[at + "input_layernorm.weight"] = norm()
        tensors[at + "self_attn.q_proj.weight"] = matrix(q_rows, hidden)
        tensors[at + "self_attn.k_proj.weight"] = matrix(kv_rows, hidden)
        tensors[at + "self_attn.v_proj.weight"] = matrix(kv_rows, hidden)
        tensors[at + "self_attn.o_proj.weight"] = matrix(hidden, q_rows)
        tensors[at + "post_attention_layernorm.weight"] = norm()
        tensors[at + "mlp.gate_proj.weight"] = matrix(inner, hidden)
        tensors[at + "mlp.up_proj.weight"] = matrix(inner, hidden)
        tensors[at + "mlp.down_proj.weight"] = matrix(hidden, inner)
    tensors["model.norm.weight"] = norm()
    if not config["tie_word_embeddings"]:
        tensors["lm_head.weight"] = matrix(vocab, hidden)
    return tensors


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON text."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray], dtype: str = "float32") -> None:
    """Write float32 arrays as a safetensors file of `dtype` ("float32", "float16" or "bfloat16")."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    blobs, offset = [], 0
    for name, tensor in tensors.items():
        blob = _as_bytes(tensor, dtype)
        end = offset + len(blob)
        header[name] = {"dtype": DTYPE_CODES[dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        blobs.append(blob)
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def _as_bytes(tensor: np.ndarray, dtype: str) -> bytes:
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(tensor, np.float32).view(np.uint32)
        rounded = bits + 0x7FFF + ((bits >> 16) & 1)
        return (rounded >> 16).astype(np.uint16).tobytes()
    return tensor.astype(dtype).tobytes()


def read_safetensors(folder: Path) -> dict[str, np.ndarray]:
    """All tensors of a folder made here, as float32 arrays."""
    tensors: dict[str, np.ndarray] = {}
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        for name, entry in json.loads(data[8 : 8 + length]).items():
            if name != "__metadata__":
                start, end = entry["data_offsets"]
                tensors[name] = _as_floats(data[8 + length + start : 8 + length + end], entry["dtype"], entry["shape"])
    return tensors


def _as_floats(data: bytes, code: str, shape: list[int]) -> np.ndarray:
    if code == "BF16":
        wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape)
    return np.frombuffer(data, {"F32": np.float32, "F16": np.float16}[code]).astype(np.float32).reshape(shape)


def shard(folder: Path, count: int) -> dict[str, str]:
    """Split the folder's model.safetensors (float32) into `count` shards with an index; returns the weight map."""
    tensors = read_safetensors(folder)
    (folder / "model.safetensors").unlink()
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for part in range(count):
        file = f"model-{part + 1:05d}-of-{count:05d}.safetensors"
        mine = names[part * len(names) // count : (part + 1) * len(names) // count]
        write_safetensors(folder / file, {name: tensors[name] for name in mine})
        weight_map |= dict.fromkeys(mine, file)
    total = sum(tensor.nbytes for tensor in tensors.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})
    return weight_map


def byte_alphabet() -> list[str]:
    """The 256 characters that stand for bytes in byte-level BPE, ordered by character."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return sorted([chr(b) for b in printable] + [chr(0x100 + n) for n in range(256 - len(printable))])


def byte_vocabulary() -> list[str]:
    """The 290 tokens of `byte_tokenizer` by id: <s>, </s>, <pad>, 256 bytes, 29 merges, <|im_start|>, <|im_end|>."""
    return [*SPECIALS[:3], *byte_alphabet(), *(merge.replace(" ", "") for merge in MERGES), *SPECIALS[3:]]


def byte_tokenizer(folder: Path, *, template: str | None = CHATML, eos: str = "</s>") -> Path:
    """Write tokenizer.json and tokenizer_config.json of a 290-entry byte-level BPE with ChatML markers."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {token: index for index, token in enumerate(byte_vocabulary())}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model: dict[str, Any] = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    model |= {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocabulary[token], "content": token, **flags} for token in SPECIALS],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {**model, "vocab": vocabulary, "merges": [merge.split(" ") for merge in MERGES]},
    }
    write_json(folder / "tokenizer.json", tokenizer)
    config: dict[str, Any] = {"bos_token": "<s>", "eos_token": eos, "pad_token": "<pad>", "add_bos_token": False}
    if template is not None:
        config["chat_template"] = template
    write_json(folder / "tokenizer_config.json", config)
    return folder


def permute_heads(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a Q or K matrix in the order llama.cpp stores them: each head's halves interleaved."""
    split = matrix.reshape(heads, 2, matrix.shape[0] // heads // 2, *matrix.shape[1:])
    return split.swapaxes(1, 2).reshape(matrix.shape)


GGUF_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    """The GGUF name of a tensor of a LLaMA safetensors folder."""
    plain = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    stem = name.removesuffix(".weight")
    if stem in plain:
        return plain[stem] + ".weight"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[part]}.weight"


def write_gguf(path: Path, folder: Path, quant: str = "F16", *, template: str | None = None) -> Path:
    """Write a folder made here as GGUF the way llama.cpp does: Q/K rows reordered, vectors F32, matrices `quant`.

    quant: any type gguf can quantise to ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1").
    template: replaces the folder's chat template.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name(folder.name)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])
    if (folder / "tokenizer.json").is_file():
        _add_tokenizer(writer, folder, config["vocab_size"], template)
    kind = gguf.GGMLQuantizationType[quant]
    for name, tensor in read_safetensors(folder).items():
        if name.endswith("q_proj.weight"):
            tensor = permute_heads(tensor, config["num_attention_heads"])
        elif name.endswith("k_proj.weight"):
            tensor = permute_heads(tensor, config["num_key_value_heads"])
        if tensor.ndim == 1:
            writer.add_tensor(gguf_name(name), tensor)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(np.ascontiguousarray(tensor), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path, vocabulary: int, template: str | None) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    ids = tokenizer["model"]["vocab"]
    tokens = sorted(ids, key=ids.__getitem__)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    types = [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens]
    padding = range(len(tokens), vocabulary)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens + [f"[PAD{index}]" for index in padding])
    writer.add_token_types(types + [gguf.TokenType.UNUSED for _ in padding])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(ids[config["bos_token"]])
    writer.add_eos_token_id(ids[config["eos_token"]])
    writer.add_add_bos_token(config["add_bos_token"])
    chosen = template if template is not None else config.get("chat_template")
    if chosen is not None:
        writer.add_chat_template(chosen)


def split_gguf(whole: Path, stem: Path, counts: list[int], *, repeat: str = "") -> list[Path]:
    """Split a GGUF made here into parts of so many tensors each; `repeat` names one the last part has again."""
    reader = gguf.GGUFReader(str(whole))
    stem.parent.mkdir(parents=True, exist_ok=True)
    names = [tensor.name for tensor in reader.tensors]
    paths, begin = [], 0
    for part, count in enumerate(counts):
        mine = names[begin : begin + count]
        begin += count
        last = part == len(counts) - 1
        if repeat and last:
            mine = [*mine, repeat]
        paths.append(stem.with_name(f"{stem.name}-{part + 1:05d}-of-{len(counts):05d}.gguf"))
        _write_part(paths[-1], reader, mine, part, len(counts), len(names))
    return paths


def _write_part(path: Path, reader: gguf.GGUFReader, names: list[str], part: int, parts: int, tensors: int) -> None:
    writer = gguf.GGUFWriter(str(path), "llama")
    if part == 0:
        for field in reader.fields.values():
            if field.name.startswith("GGUF.") or field.name == "general.architecture":
                continue
            kind, inner = field.types[0], field.types[-1]
            writer.add_key_value(field.name, field.contents(), kind, inner if len(field.types) > 1 else None)
    else:
        del writer.kv_data[0]["general.architecture"]
    writer.add_uint16("split.no", part)
    writer.add_uint16("split.count", parts)
    writer.add_int32("split.tensors.count", tensors)
    for tensor in reader.tensors:
        if tensor.name in names:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
