"""The page that runs the bundled text-to-image model in the browser: its networks exported to ONNX, and a run
of Python's to compare with."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import shutil
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from diffusers.models.attention_processor import AttnProcessor
from onnx import TensorProto, helper, numpy_helper
from onnxscript.ir.passes.common import (
    CommonSubexpressionEliminationPass,
    LiftConstantsToInitializersPass,
    RemoveUnusedNodesPass,
)
from onnxscript.optimizer import fold_constants

from inferlab.models import load_pipeline
from inferlab.models.pictures import WEIGHTS

from . import SITE
from .npm import RUNTIME
from .templates import filled, wide_page

ASKED = {"caption": "a large red circle left of a small blue square", "steps": 10, "guidance": 4, "seed": 7}
"""What the page begins with, and what Python's recorded run was asked for."""
CAPTIONS = (
    ASKED["caption"],
    "a yellow star above a purple ring on a black background",
    "a small green triangle at the top on a brown background",
    "an orange cross right of a cyan circle",
    "a large pink square on a white background",
)
PLACES = ("tokenizer", "text_encoder", "prepare_latents", "unet", "guidance", "scheduler.step", "vae.decode")
BLOCKS = ("conv_in", "down_blocks.0", "down_blocks.1", "mid_block", "up_blocks.0", "up_blocks.1")
"""Parts of the UNet whose results its ONNX graph gives, too."""
SCHEDULER = ("num_train_timesteps", "beta_start", "beta_end", "steps_offset")
"""What `ddim.mjs` reads of the scheduler's config."""
ASSUMED = {
    "_class_name": "DDIMScheduler",
    "beta_schedule": "scaled_linear",
    "prediction_type": "epsilon",
    "timestep_spacing": "leading",
    "set_alpha_to_one": False,
    "clip_sample": False,
    "thresholding": False,
    "rescale_betas_zero_snr": False,
    "trained_betas": None,
}
"""What `ddim.mjs` takes for granted of it."""


class TextEncoder(torch.nn.Module):
    """(1, 16) int64 token ids -> (1, 16, 192) float32, the last layer after its norm."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """What the pipeline takes from the text encoder."""
        return self.encoder(input_ids, return_dict=True).last_hidden_state


class UNet(torch.nn.Module):
    """(rows, 4, 16, 16) latents, () int64 timestep, (rows, 16, 192) words -> (rows, 4, 16, 16) noise, what
    its blocks give, and (rows, 16, 16, 16) attention.

    The attention says for each of the 16 words how much each of the 16 x 16 places takes from it: the mean
    over the heads and layers of the last block. Over the words it sums to 1.
    """

    def __init__(self, unet: Any) -> None:
        super().__init__()
        self.unet = unet
        blocks: dict[str, torch.Tensor] = {}
        layers: list[torch.Tensor] = []
        self.noted = lambda: (dict(blocks), list(layers))
        for name in BLOCKS:
            unet.get_submodule(name).register_forward_hook(_noting(blocks, name))
        for block in unet.up_blocks[-1].attentions:
            attention = block.transformer_blocks[0].attn2
            attention.set_processor(AttnProcessor())  # the one that has its weights in hand
            attention.get_attention_scores = _watching(attention, layers)

    def forward(
        self, sample: torch.Tensor, timestep: torch.Tensor, encoder_hidden_states: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The predicted noise, and what stands inside."""
        noise = self.unet(sample, timestep, encoder_hidden_states, return_dict=False)[0]
        blocks, layers = self.noted()
        heads = torch.stack(layers[-len(self.unet.up_blocks[-1].attentions) :]).mean(0)
        words = heads.unflatten(0, (sample.shape[0], -1)).mean(1)  # (rows, places, words)
        return (noise, *(blocks[name] for name in BLOCKS), words.transpose(1, 2).unflatten(2, (16, 16)))


def _noting(blocks: dict[str, torch.Tensor], name: str) -> Any:
    def note(_module: Any, _inputs: Any, output: Any) -> None:
        blocks[name] = output[0] if isinstance(output, tuple) else output

    return note


def _watching(attention: Any, layers: list[torch.Tensor]) -> Any:
    def weights(query: torch.Tensor, key: torch.Tensor, _mask: None) -> torch.Tensor:
        layers.append(torch.softmax(attention.scale * (query @ key.transpose(-1, -2)), dim=-1))
        return layers[-1]

    return weights


class Decoder(torch.nn.Module):
    """(1, 4, 16, 16) latents, unscaled -> (1, 3, 128, 128) colors from -1 to 1."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """What ``vae.decode`` gives."""
        return self.vae.decode(z, return_dict=False)[0]


def with_half_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same graph with its weights stored as fp16, and cast to fp32 by the graph, wherever no bit is lost.

    The bundled weights are fp16 files, so this holds for all of them; constants that the export made stay.
    What the export notes about the graph's origin is dropped.
    """
    graph, casts = model.graph, []
    for index, tensor in enumerate(graph.initializer):
        if tensor.data_type != TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):
            half = values.astype(np.float16)
        if values.size < 16 or not np.array_equal(half.astype(np.float32), values):
            continue
        stored = f"{tensor.name}.fp16"
        casts.append(helper.make_node("Cast", [stored], [tensor.name], to=TensorProto.FLOAT))
        graph.initializer[index].CopyFrom(numpy_helper.from_array(half, stored))
    nodes = [*casts, *graph.node]
    for node in nodes:  # which line of Python each came from: a seventh of the file
        del node.metadata_props[:]
        node.doc_string = ""
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def export(folder: Path) -> None:
    """Write the three networks, the runtime they need, Python's run, and `model.json`, which names them.

    Raises:
        ValueError: the pipeline's scheduler is not the one that the page has in JavaScript.
    """
    pipe = load_pipeline("bundled", "cpu")
    pipe.set_progress_bar_config(disable=True)
    scheduler = dict(pipe.scheduler.config)
    if other := {name: scheduler.get(name) for name in ASSUMED if scheduler.get(name) != ASSUMED[name]}:
        raise ValueError(f"ddim.mjs does not know this scheduler: {other}, expected {ASSUMED}")
    (folder / "reference.f32").write_bytes(latents_of(pipe, ASKED).astype("<f4").tobytes())
    rows = {0: torch.export.Dim("rows", min=1, max=2)}
    latents, words = torch.zeros(2, 4, 16, 16), torch.zeros(2, 16, 192)
    networks: dict[str, tuple[torch.nn.Module, tuple[torch.Tensor, ...], list[str], Any]] = {
        "text_encoder": (
            TextEncoder(pipe.text_encoder),
            (torch.zeros(1, 16, dtype=torch.int64),),
            ["last_hidden_state"],
            None,
        ),
        "unet": (
            UNet(pipe.unet),
            (latents, torch.tensor(1), words),
            ["noise_pred", *BLOCKS, "cross_attention"],
            (rows, None, rows),
        ),
        "vae_decoder": (Decoder(pipe.vae), (latents[:1],), ["image"], None),
    }
    for name, (module, inputs, outputs, dynamic) in networks.items():
        model = _exported(module, inputs, outputs, dynamic)
        onnx.save(with_half_weights(model), folder / f"{name}.onnx")
    wasm = (RUNTIME / "ort-wasm-simd-threaded.wasm").read_bytes()
    (folder / "ort.wasm.gz").write_bytes(gzip.compress(wasm, 9, mtime=0))
    config = {
        "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
        "scheduler": {name: scheduler[name] for name in SCHEDULER},
        "scaling_factor": pipe.vae.config.scaling_factor,
        "length": pipe.tokenizer.model_max_length,
        "tokenizer": json.loads((WEIGHTS / "tokenizer" / "tokenizer.json").read_text("utf-8")),
        "reference": ASKED,
    }
    (folder / "model.json").write_text(json.dumps(config, separators=(",", ":")), "utf-8")


def _exported(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], outputs: list[str], dynamic: Any
) -> onnx.ModelProto:
    # What the exporter says about torchvision, which is not there, and about itself is no news for the build.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "# The axis name: rows", UserWarning)
        warnings.filterwarnings("ignore", ".*treespec, LeafSpec", FutureWarning)
        program = torch.onnx.export(
            module.eval(),
            inputs,
            output_names=outputs,
            dynamic_shapes=dynamic,
            dynamo=True,
            optimize=False,
            verbose=False,
        )
    assert program is not None, "without a file's name, the export is given back"
    # What `optimize` does apart from its search for patterns, which takes as long as all else and which ONNX
    # Runtime repeats when it opens the file.
    fold_constants(program.model)
    for step in (
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        CommonSubexpressionEliminationPass(),
        RemoveUnusedNodesPass(),
    ):
        step(program.model)
    return program.model_proto


def latents_of(pipe: Any, asked: Mapping[str, Any]) -> np.ndarray:
    """(steps + 1, 4, 16, 16) float32: the latents that Python's run begins with, and those after each
    step."""
    seen: list[torch.Tensor] = []

    def note(_pipe: Any, _step: int, _t: Any, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        seen.append(values["latents"])
        return {}

    generator = torch.Generator().manual_seed(asked["seed"])
    first = torch.randn(1, 4, 16, 16, generator=generator)
    with torch.no_grad():
        pipe(
            asked["caption"],
            num_inference_steps=asked["steps"],
            guidance_scale=float(asked["guidance"]),
            latents=first,
            output_type="latent",
            callback_on_step_end=note,
        )
    return torch.cat([first, *seen]).numpy()


def _digest() -> str:
    """Of all that the files follow from: weights, this file, and who exports and runs them."""
    total = hashlib.sha256(Path(__file__).read_bytes())
    total.update(json.loads((RUNTIME.parent / "package.json").read_text("utf-8"))["version"].encode())
    for package in ("torch", "onnx", "onnxscript", "diffusers", "transformers"):
        total.update(version(package).encode())
    for path in sorted(WEIGHTS.rglob("*")):
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def model_files(cache: Path) -> Path:
    """The folder of the model's files in `cache`, named by their digest; exported once for these weights."""
    kept = cache / f"model-{_digest()}"
    if not kept.exists():
        making = cache / "model-new"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        export(making)
        making.rename(kept)
    return kept


def write_model(kept: Path, pages: Path) -> None:
    """Write the page, with the model's files from their folder."""
    digest = kept.name.removeprefix("model-")
    shutil.copytree(kept, pages / "_static" / "model" / digest)
    size = sum(json.loads((kept / "model.json").read_text("utf-8"))["files"].values())
    html = filled(
        "model",
        folder=f"_static/model/{digest}/",
        asked=ASKED,
        captions=CAPTIONS,
        places=PLACES,
        size=f"{size / 1e6:.0f} MB",
    )
    below = (SITE / "model.md").read_text("utf-8")
    (pages / "model.md").write_text(wide_page("The model in the page", INTRO, html, below), "utf-8")


INTRO = """\
The course's text-to-image model, running in your browser: write a caption, and look at whatever crosses a
boundary. Nothing leaves your machine, and nothing is loaded before you ask for it."""
