"""The page that runs the bundled text-to-image models in the browser: their networks exported to ONNX, and
runs of Python's to compare with."""

from __future__ import annotations

import gzip
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
from inferlab.models.pictures import FLUX, WEIGHTS

from . import SITE
from .digests import digest
from .npm import RUNTIME
from .templates import filled, wide_page

ASKED = {
    "model": "sd",
    "caption": "a large red circle left of a small blue square",
    "steps": 10,
    "guidance": 4,
    "seed": 7,
}
"""What the page begins with, and what Python's recorded run was asked for."""
FLUX_ASKED = {**ASKED, "model": "flux", "guidance": 3.5}
"""The same for the other model."""
MODELS = {"sd": "Stable Diffusion, a UNet", "flux": "FLUX, a transformer"}
CAPTIONS = (
    ASKED["caption"],
    "a yellow star above a purple ring on a black background",
    "a small green triangle at the top on a brown background",
    "an orange cross right of a cyan circle",
    "a large pink square on a white background",
)
PLACES = {
    "tokenizer": "",
    "text_encoder": "",
    "tokenizer_2": "flux",
    "text_encoder_2": "flux",
    "prepare_latents": "",
    "unet": "sd",
    "transformer": "flux",
    "guidance": "sd",
    "scheduler.step": "",
    "vae.decode": "",
}
"""Where a run can be stopped -> the one model that has this boundary; empty: both have it."""
LOOP = ("unet", "transformer", "guidance", "scheduler.step")
SHARED = ("ort.wasm.gz", "text_encoder.onnx", "vae_decoder.onnx")
"""Files that both models need."""
TOKENS_2 = 64
"""So many tokens T5 gets, as in lab 07; the pipeline's own default is 512."""
PICTURE_TOKENS = 8
"""FLUX's tokens along a side."""
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
FLOW = ("base_image_seq_len", "max_image_seq_len", "base_shift", "max_shift")
"""What `flux.mjs` reads of the other scheduler's config."""
FLOW_ASSUMED = {
    "_class_name": "FlowMatchEulerDiscreteScheduler",
    "num_train_timesteps": 1000,
    "use_dynamic_shifting": True,
    "time_shift_type": "exponential",
    "shift_terminal": None,
    "stochastic_sampling": False,
    "invert_sigmas": False,
    "use_karras_sigmas": False,
    "use_exponential_sigmas": False,
    "use_beta_sigmas": False,
}


class TextEncoder(torch.nn.Module):
    """(1, 16) int64 token ids -> (1, 16, 192) float32, the last layer after its norm, and (1, 192), its row
    at the caption's end."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the pipelines take from the text encoder: one the rows, the other the last one."""
        found = self.encoder(input_ids, return_dict=True)
        return found.last_hidden_state, found.pooler_output


class T5(torch.nn.Module):
    """(1, 64) int64 token ids -> (1, 64, 128) float32."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        # torch's own attention kernel does not survive the exporter's decompositions: "Cannot view a tensor
        # with shape torch.Size([1, 64, 4, 32]) and strides (8192, 32, 2048, 1) as (1, 64, 128)".
        encoder.set_attn_implementation("eager")
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """What the pipeline takes from its second text encoder."""
        return self.encoder(input_ids, return_dict=True).last_hidden_state


class Transformer(torch.nn.Module):
    """FLUX's transformer without what never changes here: the places of the tokens.

    (1, 64, 16) packed latents, (1,) timestep from 0 to 1, (1,) guidance, (1, 192) CLIP, (1, 64, 128) T5 ->
    (1, 64, 16) velocity, and the (1, 64, 128) picture tokens behind each block.
    """

    def __init__(self, transformer: Any) -> None:
        super().__init__()
        self.transformer = transformer
        places = torch.zeros(PICTURE_TOKENS, PICTURE_TOKENS, 3)
        places[..., 1] = torch.arange(PICTURE_TOKENS)[:, None]
        places[..., 2] = torch.arange(PICTURE_TOKENS)[None]
        self.register_buffer("img_ids", places.flatten(0, 1), persistent=False)
        self.register_buffer("txt_ids", torch.zeros(TOKENS_2, 3), persistent=False)
        blocks: dict[str, torch.Tensor] = {}
        self.noted = lambda: dict(blocks)
        self.names = [
            f"{kind}.{number}"
            for kind in ("transformer_blocks", "single_transformer_blocks")
            for number in range(len(transformer.get_submodule(kind)))
        ]
        for name in self.names:
            transformer.get_submodule(name).register_forward_hook(_noting(blocks, name, -1))

    def forward(
        self,
        hidden_states: torch.Tensor,
        timestep: torch.Tensor,
        guidance: torch.Tensor,
        pooled_projections: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """The velocity, and what stands inside."""
        velocity = self.transformer(
            hidden_states=hidden_states,
            timestep=timestep,
            guidance=guidance,
            pooled_projections=pooled_projections,
            encoder_hidden_states=encoder_hidden_states,
            img_ids=self.img_ids,
            txt_ids=self.txt_ids,
            return_dict=False,
        )[0]
        blocks = self.noted()
        return (velocity, *(blocks[name] for name in self.names))


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


def _noting(blocks: dict[str, torch.Tensor], name: str, which: int = 0) -> Any:
    def note(_module: Any, _inputs: Any, output: Any) -> None:
        blocks[name] = output[which] if isinstance(output, tuple) else output

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
    """Write the networks, the runtime they need, Python's runs, and `model.json`, which names them.

    Raises:
        ValueError: a pipeline's scheduler is not the one that the page has in JavaScript.
    """
    pipe = load_pipeline("bundled", "cpu")
    flux = load_pipeline("bundled", "cpu", family="flux")
    schedulers = {"sd": (SCHEDULER, ASSUMED, pipe), "flux": (FLOW, FLOW_ASSUMED, flux)}
    for name, (_, assumed, one) in schedulers.items():
        one.set_progress_bar_config(disable=True)
        config = dict(one.scheduler.config)
        if other := {key: config.get(key) for key in assumed if config.get(key) != assumed[key]}:
            raise ValueError(f"JavaScript does not know the scheduler of {name}: {other}, not {assumed}")
    for asked, one in ((ASKED, pipe), (FLUX_ASKED, flux)):
        latents_of(one, asked).astype("<f4").tofile(folder / f"reference-{asked['model']}.f32")
    transformer = Transformer(flux.transformer)
    rows = {0: torch.export.Dim("rows", min=1, max=2)}
    latents, words = torch.zeros(2, 4, 16, 16), torch.zeros(2, 16, 192)
    networks: dict[str, tuple[torch.nn.Module, tuple[torch.Tensor, ...], list[str], Any]] = {
        "text_encoder": (
            TextEncoder(pipe.text_encoder),
            (torch.zeros(1, 16, dtype=torch.int64),),
            ["last_hidden_state", "pooler_output"],
            None,
        ),
        "text_encoder_2": (
            T5(flux.text_encoder_2),
            (torch.zeros(1, TOKENS_2, dtype=torch.int64),),
            ["last_hidden_state"],
            None,
        ),
        "transformer": (
            transformer,
            (
                torch.zeros(1, PICTURE_TOKENS**2, 16),
                torch.ones(1),
                torch.ones(1),
                torch.zeros(1, 192),
                torch.zeros(1, TOKENS_2, 128),
            ),
            ["noise_pred", *transformer.names],
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
    own = {"sd": ["unet.onnx"], "flux": ["text_encoder_2.onnx", "transformer.onnx"]}
    config = {
        "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
        "families": {
            asked["model"]: {
                "files": [*SHARED, *own[asked["model"]], f"reference-{asked['model']}.f32"],
                "scheduler": {key: one.scheduler.config[key] for key in read},
                "reference": asked,
            }
            for asked, (read, _, one) in zip((ASKED, FLUX_ASKED), schedulers.values(), strict=True)
        },
        "scaling_factor": pipe.vae.config.scaling_factor,
        "length": pipe.tokenizer.model_max_length,
        "length_2": TOKENS_2,
        "tokenizer": _tokenizer(WEIGHTS / "tokenizer"),
        "tokenizer_2": _tokenizer(FLUX / "tokenizer_2"),
    }
    (folder / "model.json").write_text(json.dumps(config, separators=(",", ":")), "utf-8")


def _tokenizer(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "tokenizer.json").read_text("utf-8"))


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
    with np.errstate(divide="ignore", invalid="ignore"):  # T5 takes the logarithm of 0, and does not use it
        fold_constants(program.model)
    for step in (
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        CommonSubexpressionEliminationPass(),
        RemoveUnusedNodesPass(),
    ):
        step(program.model)
    return program.model_proto


def latents_of(pipe: Any, asked: Mapping[str, Any]) -> np.ndarray:
    """(steps + 1, 4, 16, 16), of FLUX (steps + 1, 64, 16) float32: the latents that Python's run begins with,
    and those after each step."""
    seen: list[torch.Tensor] = []

    def note(_pipe: Any, _step: int, _t: Any, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        seen.append(values["latents"])
        return {}

    generator = torch.Generator().manual_seed(asked["seed"])
    first = torch.randn(1, 4, 16, 16, generator=generator)
    more: dict[str, Any] = {}
    if asked["model"] == "flux":
        first = pipe._pack_latents(first, 1, 4, 16, 16)
        more = {"max_sequence_length": TOKENS_2}
    with torch.no_grad():
        pipe(
            asked["caption"],
            num_inference_steps=asked["steps"],
            guidance_scale=float(asked["guidance"]),
            latents=first,
            output_type="latent",
            callback_on_step_end=note,
            **more,
        )
    return torch.cat([first, *seen]).numpy()


def _digest() -> str:
    """Of all that the files follow from: weights, this file, and who exports and runs them."""
    runtime = json.loads((RUNTIME.parent / "package.json").read_text("utf-8"))["version"]
    packages = map(version, ("torch", "onnx", "onnxscript", "diffusers", "transformers"))
    return digest(Path(__file__), WEIGHTS, FLUX, also=" ".join([runtime, *packages]))


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
    name = kept.name.removeprefix("model-")
    shutil.copytree(kept, pages / "_static" / "model" / name)
    html = filled(
        "model",
        folder=f"_static/model/{name}/",
        asked=ASKED,
        captions=CAPTIONS,
        places=PLACES,
        repeated=LOOP,
        models=MODELS,
    )
    below = (SITE / "model.md").read_text("utf-8")
    (pages / "model.md").write_text(wide_page("The model in the page", INTRO, html, below), "utf-8")


INTRO = """\
The course's text-to-image models, running in your browser: write a caption, and look at whatever crosses a
boundary. Nothing leaves your machine, and nothing is loaded before you ask for it."""
