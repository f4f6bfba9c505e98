"""Architectures of the package transformers, small and with random weights: exported, compiled, and compared with PyTorch.

    python -m tests.frontends.torch.architectures                     all, through torch.export and torch.compile
    python -m tests.frontends.torch.architectures bert gpt2 --how compile
    python -m tests.frontends.torch.architectures gpt2 llama t5 --how generate

`generate` writes a continuation with a cache of keys and values, by the decoder compiled by `torch.compile`, and by the encoder
if there is one: its tokens must be those of PyTorch. No token may come twice, as small models otherwise repeat one. The package
is not installed with Weft: `pip install transformers`. `every_architecture` tries all that the package has.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final, TypeAlias

import numpy as np
import torch

import weft
from weft.support.errors import WeftError

TEXT: Final = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
FEED: Final = {**TEXT, "intermediate_size": 37, "max_position_embeddings": 64}
GROUPED: Final = {**FEED, "num_key_value_heads": 2, "head_dim": 8}
TOLERANCE: Final = 1e-4
"""The difference allowed, of the largest element."""


def tokens() -> dict[str, Any]:
    """Returns a batch of sentences."""
    return {"input_ids": torch.randint(3, 99, (2, 11), generator=torch.Generator().manual_seed(1))}


def image(size: int = 64) -> dict[str, Any]:
    """Returns a batch of pictures."""
    return {"pixel_values": torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))}


def both() -> dict[str, Any]:
    """Returns a batch of sentences, and of the beginnings of others."""
    ids = tokens()["input_ids"]
    return {"input_ids": ids, "decoder_input_ids": ids[:, :7]}


def heard() -> dict[str, Any]:
    """Returns a batch of spectra, and of the beginnings of sentences."""
    spectra = image()["pixel_values"][:, 0, :16, :60]
    return {"input_features": spectra, "decoder_input_ids": both()["decoder_input_ids"]}


def sound() -> dict[str, Any]:
    """Returns a batch of waves."""
    return {"input_values": image()["pixel_values"].reshape(2, -1)[:, :2000]}


T5: Final = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
CLIP: Final = {**FEED, "eos_token_id": 98, "bos_token_id": 97}
WHISPER: Final = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "num_mel_bins": 16,
    "max_source_positions": 30,
    "max_target_positions": 40,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
WAVE: dict[str, Any] = {
    **TEXT,
    "intermediate_size": 37,
    "conv_dim": (32, 32),
    "conv_stride": (4, 4),
    "conv_kernel": (8, 8),
}
WAVE |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}
SEGFORMER: dict[str, Any] = {
    "num_encoder_blocks": 2,
    "depths": (1, 1),
    "sr_ratios": (2, 1),
    "hidden_sizes": (16, 32),
}
SEGFORMER |= {"patch_sizes": (7, 3), "strides": (4, 2), "num_attention_heads": (1, 2), "mlp_ratios": (2, 2)}
Architecture: TypeAlias = tuple[str, str, dict[str, Any], Callable[[], dict[str, Any]]]

ARCHITECTURES: Final[dict[str, Architecture]] = {
    "bert": ("BertModel", "BertConfig", FEED, tokens),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37},
        tokens,
    ),
    "roberta": ("RobertaModel", "RobertaConfig", FEED, tokens),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        tokens,
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, tokens),
    "mistral": ("MistralForCausalLM", "MistralConfig", GROUPED, tokens),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", {**FEED, "num_key_value_heads": 2}, tokens),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", GROUPED, tokens),
    "t5": ("T5Model", "T5Config", T5, both),
    "vit": ("ViTModel", "ViTConfig", {**TEXT, "intermediate_size": 37, "image_size": 64, "patch_size": 16}, image),
    "swin": (
        "SwinModel",
        "SwinConfig",
        {"image_size": 64, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        image,
    ),
    "resnet": (
        "ResNetModel",
        "ResNetConfig",
        {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 2]},
        image,
    ),
    "mobilenet_v2": ("MobileNetV2Model", "MobileNetV2Config", {"depth_multiplier": 0.25, "image_size": 64}, image),
    "convnext": (
        "ConvNextModel",
        "ConvNextConfig",
        {"hidden_sizes": [16, 32], "depths": [1, 2], "num_stages": 2},
        image,
    ),
    "efficientnet": (
        "EfficientNetModel",
        "EfficientNetConfig",
        {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320, "image_size": 64},
        image,
    ),
    "whisper": ("WhisperModel", "WhisperConfig", WHISPER, heard),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", WAVE, sound),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", CLIP, tokens),
    "segformer": ("SegformerModel", "SegformerConfig", SEGFORMER, image),
    "mamba": (
        "MambaModel",
        "MambaConfig",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        tokens,
    ),
    "mixtral": (
        "MixtralForCausalLM",
        "MixtralConfig",
        {**GROUPED, "intermediate_size": 64, "num_local_experts": 4, "num_experts_per_tok": 2},
        tokens,
    ),
}


class Outputs(torch.nn.Module):  # type: ignore[misc]
    """A model called with its inputs in order, whose results are a tuple of tensors."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: torch.Tensor) -> Any:
        options = {"use_cache": False} if hasattr(self.model.config, "use_cache") else {}
        made = self.model(**dict(zip(self.names, inputs, strict=True)), **options)
        return tuple([v for v in made.to_tuple() if isinstance(v, torch.Tensor)])


def made(name: str, head: str | None = None) -> tuple[torch.nn.Module, dict[str, Any]]:
    """Returns a model, or that of another class, with random weights, whose statistics are of a batch, and its inputs."""
    import transformers

    model_class, config_class, options, inputs = ARCHITECTURES[name]
    model_class = head or model_class
    torch.manual_seed(0)
    model = getattr(transformers, model_class)(getattr(transformers, config_class)(**options))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_var.data.uniform_(0.5, 2)
            module.running_mean.data.normal_()
    return model.eval(), inputs()


def difference(found: Any, wanted: Any) -> float:
    """Returns the largest difference, of the largest element."""
    worst = 0.0
    for a, b in zip(found, wanted, strict=True):
        x, y = np.asarray(a, np.float64), b.detach().double().numpy()
        assert x.shape == y.shape
        assert y.size == 1 or y.std() > 0, "a result that is all the same shows nothing"
        worst = max(worst, float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-6)))
    return worst


def through_export(name: str) -> str:
    """Exports to a file, compiles that and compares."""
    model, inputs = made(name)
    module = Outputs(model, list(inputs))
    with torch.no_grad():
        wanted = module(*inputs.values())
        file = BytesIO()
        torch.export.save(torch.export.export(module, tuple(inputs.values())), file)
    found = weft.compile(file.getvalue(), threads=1).run([v.numpy() for v in inputs.values()])
    return _judged(difference(found, wanted))


def through_compile(name: str) -> str:
    """Compiles by torch.compile and compares; graphs that only PyTorch can run count as refused."""
    model, inputs = made(name)
    module = Outputs(model, list(inputs))
    torch._dynamo.reset()
    with torch.no_grad():
        wanted = module(*inputs.values())
        fast = torch.compile(module, backend="weft", options={"fallback": False, "threads": 1})
        found = fast(*inputs.values())
    return _judged(difference([t.numpy() for t in found], wanted))


def through_generate(name: str) -> str:
    """Compares the tokens of a continuation."""
    model, inputs = made(name, WRITERS[name])
    torch._dynamo.reset()
    given = {k: v[:1] for k, v in inputs.items() if not k.startswith("decoder")}
    if "input_ids" in given:
        given["attention_mask"] = torch.ones_like(given["input_ids"])
    how = {"max_new_tokens": 12, "do_sample": False, "use_cache": True, "pad_token_id": 0, "eos_token_id": None}
    how["no_repeat_ngram_size"] = 1
    with torch.no_grad():
        wanted = model.generate(**given, **how)
        for part in (model, model.get_encoder()) if model.config.is_encoder_decoder else (model,):
            part.forward = torch.compile(
                part.forward, backend="weft", dynamic=True, options={"fallback": False, "threads": 1}
            )
        found = model.generate(**given, **how)
    return "agrees" if torch.equal(found, wanted) else f"other tokens: {found.tolist()}, not {wanted.tolist()}"


def _judged(worst: float) -> str:
    return f"agrees ({worst:.1e})" if worst <= TOLERANCE else f"differs by {worst:.2g}"


HOW: Final = {"export": through_export, "compile": through_compile, "generate": through_generate}
WRITERS: Final = {
    **dict.fromkeys(("gpt2", "llama", "mistral", "qwen2", "gemma", "mixtral")),
    "t5": "T5ForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration",
}
"""The architectures that write texts, and by what class where the one above does not."""


def main() -> None:
    """Tries architectures, prints one line each, and exits with 1 if one does not agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--how", choices=sorted(HOW), action="append")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    for name in given.names or ARCHITECTURES:
        for how in given.how or ("export", "compile"):
            if how == "generate" and name not in WRITERS:
                continue
            start = time.process_time()
            try:
                said = HOW[how](name)
            except WeftError as error:
                said = f"refused: {error}"
            except Exception as error:  # one that fails must not hide the others
                said = f"failed: {type(error).__name__}: {str(error)[:400]}"
            failed += not said.startswith("agrees")
            print(f"{name:14} {how:9} {time.process_time() - start:6.1f} s  {said}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
