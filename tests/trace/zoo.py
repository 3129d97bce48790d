"""Tiny pipelines and models of many families, built from configs with random weights: what the tracer is
tried on."""

import functools

import diffusers as df
import numpy as np
import PIL.Image
import torch
import transformers as tf
from tokenizers import Tokenizer, models, pre_tokenizers, processors

PIPELINES: dict = {}
CHAT = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"


def pipeline(build):
    """Registers a builder of (pipeline, keyword arguments of its call) under its function's name."""

    @functools.wraps(build)
    def seeded():
        torch.manual_seed(0)
        pipe, arguments = build()
        for part in pipe.components.values():
            if isinstance(part, torch.nn.Module):
                part.eval()
        pipe.set_progress_bar_config(disable=True)
        return pipe, dict(arguments)

    PIPELINES[build.__name__] = seeded
    return seeded


# -- parts ---------------------------------------------------------------------------------------------------


def tokenizer(length=16, cls=tf.PreTrainedTokenizerFast):
    words = [
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
        *"abcdefghijklmnopqrstuvwxyz",
        "red",
        "circle",
        "user",
        "system",
        ":",
        ".",
    ]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    made = cls(
        tokenizer_object=inner,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=length,
    )
    made.chat_template = CHAT
    return made


def clip_text(cls=tf.CLIPTextModel, hidden=32, length=16, **kwargs):
    config = tf.CLIPTextConfig(
        vocab_size=64,
        hidden_size=hidden,
        intermediate_size=37,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=length,
        projection_dim=kwargs.pop("projection_dim", 32),
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        **kwargs,
    )
    return cls(config)


def clip_vision(cls=tf.CLIPVisionModelWithProjection, hidden=32, projection=32, size=32):
    return cls(
        tf.CLIPVisionConfig(
            hidden_size=hidden,
            intermediate_size=37,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=size,
            patch_size=size // 4,
            projection_dim=projection,
        )
    )


def clip_images(size=32):
    return tf.CLIPImageProcessor(size={"shortest_edge": size}, crop_size={"height": size, "width": size})


def t5(cls=tf.T5EncoderModel, d=32):
    kind = tf.UMT5Config if cls is tf.UMT5EncoderModel else tf.T5Config
    return cls(kind(vocab_size=64, d_model=d, d_kv=8, d_ff=37, num_layers=2, num_heads=4))


def unet(**kwargs):
    base = {
        "sample_size": 8,
        "block_out_channels": (16, 32),
        "layers_per_block": 1,
        "in_channels": 4,
        "out_channels": 4,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 32,
        "attention_head_dim": 8,
        "norm_num_groups": 8,
    }
    return df.UNet2DConditionModel(**(base | kwargs))


def vae(**kwargs):
    base = {
        "block_out_channels": (16, 32),
        "in_channels": 3,
        "out_channels": 3,
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
        "latent_channels": 4,
        "norm_num_groups": 8,
        "sample_size": 16,
    }
    return df.AutoencoderKL(**(base | kwargs))


def picture(size=32):
    return PIL.Image.fromarray((np.arange(size * size * 3) % 255).astype("uint8").reshape(size, size, 3))


def wan_vae():
    return df.AutoencoderKLWan(
        base_dim=4, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
    )


SD = {"safety_checker": None, "feature_extractor": None}


def sd_parts(**changed):
    parts = {
        "unet": unet(),
        "vae": vae(),
        "text_encoder": clip_text(),
        "tokenizer": tokenizer(),
        "scheduler": df.DDIMScheduler(),
        **SD,
    }
    return parts | changed


CALL = {"prompt": "red circle a", "num_inference_steps": 3, "output_type": "np"}


# -- UNet families -------------------------------------------------------------------------------------------


@pipeline
def stable_diffusion():
    return df.StableDiffusionPipeline(**sd_parts()), CALL


@pipeline
def stable_diffusion_heun():
    return df.StableDiffusionPipeline(**sd_parts(scheduler=df.HeunDiscreteScheduler())), CALL


@pipeline
def stable_diffusion_plms():
    return df.StableDiffusionPipeline(**sd_parts(scheduler=df.PNDMScheduler(skip_prk_steps=True))), CALL


@pipeline
def stable_diffusion_img2img():
    return df.StableDiffusionImg2ImgPipeline(**sd_parts()), {**CALL, "image": picture(16), "strength": 0.9}


@pipeline
def stable_diffusion_inpaint():
    parts = sd_parts(unet=unet(in_channels=9))
    mask = picture(16).convert("L")
    return df.StableDiffusionInpaintPipeline(**parts), {
        **CALL,
        "image": picture(16),
        "mask_image": mask,
        "height": 16,
        "width": 16,
    }


@pipeline
def instruct_pix2pix():
    return (
        df.StableDiffusionInstructPix2PixPipeline(**sd_parts(unet=unet(in_channels=8), image_encoder=None)),
        {**CALL, "image": picture(16), "image_guidance_scale": 1.5},
    )


@pipeline
def stable_diffusion_upscale():
    parts = sd_parts(unet=unet(in_channels=7, num_class_embeds=1000), low_res_scheduler=df.DDPMScheduler())
    for name in ("feature_extractor", "safety_checker"):
        parts.pop(name)
    return df.StableDiffusionUpscalePipeline(**parts, max_noise_level=350), {**CALL, "image": picture(8)}


@pipeline
def latent_upscale():
    parts = {
        "vae": vae(),
        "text_encoder": clip_text(),
        "tokenizer": tokenizer(),
        "unet": unet(in_channels=8, out_channels=5, time_cond_proj_dim=160),
        "scheduler": df.EulerDiscreteScheduler(prediction_type="sample"),
    }
    return df.StableDiffusionLatentUpscalePipeline(**parts), {**CALL, "image": torch.zeros(1, 4, 8, 8)}


@pipeline
def ip_adapter_sd():
    pipe = df.StableDiffusionPipeline(
        **sd_parts(image_encoder=clip_vision(), feature_extractor=clip_images())
    )
    state = {"image_proj": {}, "ip_adapter": {}}
    state["image_proj"] = {
        "proj.weight": torch.randn(4 * 32, 32) * 0.1,
        "proj.bias": torch.zeros(4 * 32),
        "norm.weight": torch.ones(32),
        "norm.bias": torch.zeros(32),
    }
    key = 1
    for name in pipe.unet.attn_processors:
        if name.endswith("attn2.processor"):
            size = 16 if "down_blocks.0" in name or "up_blocks.1" in name else 32
            state["ip_adapter"][f"{key}.to_k_ip.weight"] = torch.randn(size, 32) * 0.1
            state["ip_adapter"][f"{key}.to_v_ip.weight"] = torch.randn(size, 32) * 0.1
        key += 2 if name.endswith("attn2.processor") else 0
    pipe.unet._load_ip_adapter_weights([state])
    return pipe, {**CALL, "ip_adapter_image": picture(32)}


@pipeline
def controlnet():
    model = df.ControlNetModel(
        block_out_channels=(16, 32),
        layers_per_block=1,
        in_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        conditioning_embedding_out_channels=(8, 16),
        cross_attention_dim=32,
        attention_head_dim=8,
        norm_num_groups=8,
    )
    return df.StableDiffusionControlNetPipeline(**sd_parts(controlnet=model)), {**CALL, "image": picture(16)}


@pipeline
def multi_controlnet():
    def one():
        return df.ControlNetModel(
            block_out_channels=(16, 32),
            layers_per_block=1,
            in_channels=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            conditioning_embedding_out_channels=(8, 16),
            cross_attention_dim=32,
            attention_head_dim=8,
            norm_num_groups=8,
        )

    return (
        df.StableDiffusionControlNetPipeline(**sd_parts(controlnet=[one(), one()])),
        {**CALL, "image": [picture(16), picture(16)], "controlnet_conditioning_scale": [0.5, 0.5]},
    )


@pipeline
def t2i_adapter():
    swapped = {
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    }
    adapter = df.T2IAdapter(
        in_channels=3, channels=[16, 32], num_res_blocks=1, downscale_factor=2, adapter_type="full_adapter"
    )
    return df.StableDiffusionAdapterPipeline(**sd_parts(adapter=adapter, unet=unet(**swapped))), {
        **CALL,
        "image": picture(16),
    }


def sdxl_parts(**changed):
    parts = {
        "unet": unet(
            transformer_layers_per_block=(1, 2),
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=80,
            cross_attention_dim=64,
        ),
        "scheduler": df.EulerDiscreteScheduler(),
        "vae": vae(),
        "text_encoder": clip_text(),
        "tokenizer": tokenizer(),
        "text_encoder_2": clip_text(tf.CLIPTextModelWithProjection),
        "tokenizer_2": tokenizer(),
        "add_watermarker": False,
    }
    return parts | changed


@pipeline
def sdxl():
    return df.StableDiffusionXLPipeline(**sdxl_parts()), CALL


@pipeline
def sdxl_img2img_denoising_start():
    return (
        df.StableDiffusionXLImg2ImgPipeline(**sdxl_parts()),
        {**CALL, "image": picture(16), "denoising_start": 0.3, "num_inference_steps": 5},
    )


@pipeline
def latent_consistency():
    return (
        df.LatentConsistencyModelPipeline(
            **sd_parts(unet=unet(time_cond_proj_dim=32), scheduler=df.LCMScheduler())
        ),
        CALL,
    )


@pipeline
def animatediff():
    adapter = df.MotionAdapter(
        block_out_channels=(16, 32),
        motion_layers_per_block=1,
        motion_norm_num_groups=2,
        motion_num_attention_heads=4,
    )
    parts = sd_parts(motion_adapter=adapter, feature_extractor=None)
    parts.pop("safety_checker")
    return df.AnimateDiffPipeline(**parts), {**CALL, "num_frames": 4}


@pipeline
def stable_video_diffusion():
    pipe = df.StableVideoDiffusionPipeline(
        unet=df.UNetSpatioTemporalConditionModel(
            block_out_channels=(32, 64),
            layers_per_block=1,
            sample_size=8,
            in_channels=8,
            out_channels=4,
            down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
            up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
            cross_attention_dim=32,
            num_attention_heads=8,
            projection_class_embeddings_input_dim=96,
            addition_time_embed_dim=32,
        ),
        vae=df.AutoencoderKLTemporalDecoder(
            block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2, latent_channels=4
        ),
        image_encoder=clip_vision(size=224),
        scheduler=df.EulerDiscreteScheduler(prediction_type="v_prediction", use_karras_sigmas=True),
        feature_extractor=clip_images(),
    )
    return pipe, {
        "image": picture(32),
        "num_inference_steps": 2,
        "output_type": "np",
        "height": 32,
        "width": 32,
        "num_frames": 2,
        "decode_chunk_size": 1,
    }


@pipeline
def ddpm():
    model = df.UNet2DModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        sample_size=8,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    return df.DDPMPipeline(model, df.DDPMScheduler()), {"num_inference_steps": 3, "output_type": "np"}


@pipeline
def latent_super_resolution():
    vq = df.VQModel(
        block_out_channels=(16, 32),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=3,
        norm_num_groups=8,
    )
    return df.LDMSuperResolutionPipeline(
        vq,
        df.UNet2DModel(
            block_out_channels=(16, 32),
            layers_per_block=1,
            sample_size=16,
            norm_num_groups=8,
            in_channels=6,
            out_channels=3,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
        df.DDIMScheduler(),
    ), {"image": picture(32), "num_inference_steps": 2, "output_type": "np"}


@pipeline
def consistency_model():
    model = df.UNet2DModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        sample_size=8,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    return df.ConsistencyModelPipeline(model, df.CMStochasticIterativeScheduler(num_train_timesteps=40)), {
        "num_inference_steps": 2,
        "output_type": "np",
    }


@pipeline
def marigold_depth():
    pipe = df.MarigoldDepthPipeline(
        unet=unet(in_channels=8),
        vae=vae(),
        scheduler=df.DDIMScheduler(),
        text_encoder=clip_text(),
        tokenizer=tokenizer(),
        scale_invariant=True,
        shift_invariant=True,
        default_denoising_steps=2,
        default_processing_resolution=16,
    )
    return pipe, {"image": picture(16), "num_inference_steps": 2, "processing_resolution": 0}


def kandinsky_prior():
    return {
        "prior": df.PriorTransformer(
            num_attention_heads=2, attention_head_dim=12, embedding_dim=32, num_layers=1, num_embeddings=16
        ),
        "image_encoder": clip_vision(),
        "text_encoder": clip_text(tf.CLIPTextModelWithProjection),
        "tokenizer": tokenizer(),
        "scheduler": df.UnCLIPScheduler(
            variance_type="fixed_small_log",
            prediction_type="sample",
            num_train_timesteps=1000,
            clip_sample=True,
        ),
        "image_processor": clip_images(),
    }


def kandinsky_decoder():
    return {
        "unet": df.UNet2DConditionModel(
            in_channels=4,
            out_channels=8,
            addition_embed_type="image",
            down_block_types=("ResnetDownsampleBlock2D", "SimpleCrossAttnDownBlock2D"),
            up_block_types=("SimpleCrossAttnUpBlock2D", "ResnetUpsampleBlock2D"),
            mid_block_type="UNetMidBlock2DSimpleCrossAttn",
            block_out_channels=(32, 64),
            layers_per_block=1,
            encoder_hid_dim=32,
            encoder_hid_dim_type="image_proj",
            cross_attention_dim=32,
            attention_head_dim=4,
            resnet_time_scale_shift="scale_shift",
            class_embed_type=None,
        ),
        "scheduler": df.DDIMScheduler(
            set_alpha_to_one=False, steps_offset=1, prediction_type="epsilon", thresholding=False
        ),
        "movq": df.VQModel(
            block_out_channels=(32, 64),
            down_block_types=("DownEncoderBlock2D", "AttnDownEncoderBlock2D"),
            latent_channels=4,
            layers_per_block=1,
            norm_num_groups=8,
            norm_type="spatial",
            num_vq_embeddings=12,
            up_block_types=("AttnUpDecoderBlock2D", "UpDecoderBlock2D"),
            vq_embed_dim=4,
        ),
    }


@pipeline
def kandinsky22_combined():
    parts = kandinsky_decoder() | {f"prior_{name}": part for name, part in kandinsky_prior().items()}
    return df.KandinskyV22CombinedPipeline(**parts), {
        **CALL,
        "num_inference_steps": 2,
        "prior_num_inference_steps": 2,
        "height": 32,
        "width": 32,
    }


@pipeline
def wuerstchen_prior():
    from diffusers.pipelines.deprecated.wuerstchen import WuerstchenPrior

    pipe = df.WuerstchenPriorPipeline(
        tokenizer=tokenizer(),
        text_encoder=clip_text(),
        prior=WuerstchenPrior(c_in=2, c=8, depth=2, c_cond=32, c_r=8, nhead=2),
        scheduler=df.DDPMWuerstchenScheduler(),
    )
    return pipe, {"prompt": "red circle", "num_inference_steps": 2, "output_type": "np"}


@pipeline
def amused():
    model = df.UVit2DModel(
        hidden_size=8,
        use_bias=False,
        hidden_dropout=0.0,
        cond_embed_dim=32,
        micro_cond_encode_dim=2,
        micro_cond_embed_dim=10,
        encoder_hidden_size=32,
        vocab_size=32,
        codebook_size=8,
        in_channels=8,
        block_out_channels=8,
        num_res_blocks=1,
        downsample=True,
        upsample=True,
        block_num_heads=1,
        num_hidden_layers=1,
        num_attention_heads=1,
        attention_dropout=0.0,
        intermediate_size=8,
        layer_norm_eps=1e-6,
        ln_elementwise_affine=True,
    )
    vq = df.VQModel(
        act_fn="silu",
        block_out_channels=[8],
        down_block_types=["DownEncoderBlock2D"],
        in_channels=3,
        latent_channels=8,
        layers_per_block=1,
        norm_num_groups=8,
        num_vq_embeddings=8,
        out_channels=3,
        sample_size=8,
        up_block_types=["UpDecoderBlock2D"],
        mid_block_add_attention=False,
        lookup_from_codebook=True,
    )
    text = clip_text(tf.CLIPTextModelWithProjection, projection_dim=32)
    return df.AmusedPipeline(vq, tokenizer(), text, model, df.AmusedScheduler(mask_token_id=31)), {
        **CALL,
        "height": 4,
        "width": 4,
    }


# -- transformer families ------------------------------------------------------------------------------------


@pipeline
def dit():
    model = df.DiTTransformer2DModel(
        sample_size=8,
        num_layers=2,
        patch_size=2,
        attention_head_dim=8,
        num_attention_heads=2,
        in_channels=4,
        out_channels=8,
        attention_bias=True,
        activation_fn="gelu-approximate",
        num_embeds_ada_norm=1000,
        norm_type="ada_norm_zero",
        norm_elementwise_affine=False,
    )
    return df.DiTPipeline(model, vae(), df.DDIMScheduler()), {
        "class_labels": [1],
        "num_inference_steps": 2,
        "output_type": "np",
    }


@pipeline
def pixart_sigma():
    model = df.PixArtTransformer2DModel(
        sample_size=8,
        num_layers=2,
        patch_size=2,
        attention_head_dim=8,
        num_attention_heads=3,
        caption_channels=32,
        in_channels=4,
        cross_attention_dim=24,
        out_channels=8,
        attention_bias=True,
        activation_fn="gelu-approximate",
        num_embeds_ada_norm=1000,
        norm_type="ada_norm_single",
        norm_elementwise_affine=False,
        norm_eps=1e-6,
    )
    pipe = df.PixArtSigmaPipeline(tokenizer(), t5(), vae(), model, df.DDIMScheduler())
    return pipe, {**CALL, "use_resolution_binning": False, "height": 16, "width": 16}


@pipeline
def sd3():
    clip = functools.partial(clip_text, tf.CLIPTextModelWithProjection)
    pipe = df.StableDiffusion3Pipeline(
        transformer=df.SD3Transformer2DModel(
            sample_size=16,
            patch_size=1,
            in_channels=4,
            num_layers=1,
            attention_head_dim=8,
            num_attention_heads=4,
            caption_projection_dim=32,
            joint_attention_dim=64,
            pooled_projection_dim=64,
            out_channels=4,
        ),
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
        vae=vae(use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
        text_encoder=clip(),
        tokenizer=tokenizer(),
        text_encoder_2=clip(),
        tokenizer_2=tokenizer(),
        text_encoder_3=t5(d=64),
        tokenizer_3=tokenizer(),
    )
    return pipe, {**CALL, "height": 16, "width": 16, "max_sequence_length": 16}


def flux_parts():
    return {
        "transformer": df.FluxTransformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=32,
            axes_dims_rope=[4, 4, 8],
        ),
        "scheduler": df.FlowMatchEulerDiscreteScheduler(),
        "vae": vae(
            latent_channels=1,
            use_quant_conv=False,
            use_post_quant_conv=False,
            shift_factor=0.06,
            scaling_factor=1.5,
        ),
        "text_encoder": clip_text(),
        "tokenizer": tokenizer(),
        "text_encoder_2": t5(),
        "tokenizer_2": tokenizer(),
    }


@pipeline
def flux():
    return df.FluxPipeline(**flux_parts()), {**CALL, "height": 16, "width": 16, "max_sequence_length": 16}


@pipeline
def flux_true_cfg():
    return df.FluxPipeline(**flux_parts()), {
        **CALL,
        "height": 16,
        "width": 16,
        "max_sequence_length": 16,
        "negative_prompt": "b",
        "true_cfg_scale": 3.0,
    }


@pipeline
def sana():
    model = df.SanaTransformer2DModel(
        patch_size=1,
        in_channels=4,
        out_channels=4,
        num_layers=1,
        num_attention_heads=2,
        attention_head_dim=4,
        num_cross_attention_heads=2,
        cross_attention_head_dim=4,
        cross_attention_dim=8,
        caption_channels=8,
        sample_size=32,
    )
    auto = df.AutoencoderDC(
        in_channels=3,
        latent_channels=4,
        attention_head_dim=2,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=[1, 1],
        downsample_block_type="conv",
        upsample_block_type="interpolate",
        decoder_norm_types="rms_norm",
        decoder_act_fns="silu",
        scaling_factor=0.41407,
    )
    text = tf.Gemma2Model(
        tf.Gemma2Config(
            head_dim=16,
            hidden_size=8,
            intermediate_size=8,
            max_position_embeddings=64,
            num_attention_heads=2,
            num_hidden_layers=1,
            num_key_value_heads=2,
            vocab_size=64,
        )
    )
    pipe = df.SanaPipeline(tokenizer(), text, auto, model, df.FlowMatchEulerDiscreteScheduler(shift=7.0))
    return pipe, {
        **CALL,
        "height": 32,
        "width": 32,
        "max_sequence_length": 16,
        "use_resolution_binning": False,
        "complex_human_instruction": None,
    }


@pipeline
def lumina2():
    model = df.Lumina2Transformer2DModel(
        sample_size=4,
        patch_size=2,
        in_channels=4,
        hidden_size=8,
        num_layers=2,
        num_attention_heads=1,
        num_kv_heads=1,
        multiple_of=16,
        ffn_dim_multiplier=None,
        norm_eps=1e-5,
        scaling_factor=1.0,
        axes_dim_rope=[4, 2, 2],
        cap_feat_dim=8,
    )
    text = tf.Gemma2Model(
        tf.Gemma2Config(
            head_dim=4,
            hidden_size=8,
            intermediate_size=8,
            max_position_embeddings=64,
            num_attention_heads=2,
            num_hidden_layers=2,
            num_key_value_heads=2,
            vocab_size=64,
        )
    )
    pipe = df.Lumina2Pipeline(
        transformer=model,
        vae=vae(shift_factor=0.0),
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
        text_encoder=text,
        tokenizer=tokenizer(),
    )
    return pipe, {**CALL, "height": 32, "width": 32, "max_sequence_length": 16, "num_inference_steps": 2}


@pipeline
def auraflow():
    text = t5(tf.UMT5EncoderModel)
    model = df.AuraFlowTransformer2DModel(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_mmdit_layers=1,
        num_single_dit_layers=1,
        attention_head_dim=8,
        num_attention_heads=4,
        caption_projection_dim=32,
        joint_attention_dim=32,
        out_channels=4,
        pos_embed_max_size=256,
    )
    pipe = df.AuraFlowPipeline(tokenizer(), text, vae(), model, df.FlowMatchEulerDiscreteScheduler())
    return pipe, {**CALL, "height": 16, "width": 16, "max_sequence_length": 16}


@pipeline
def wan():
    model = df.WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=16,
        out_channels=16,
        text_dim=32,
        freq_dim=32,
        ffn_dim=32,
        num_layers=2,
        cross_attn_norm=True,
        qk_norm="rms_norm_across_heads",
        rope_max_seq_len=32,
    )
    pipe = df.WanPipeline(
        tokenizer=tokenizer(),
        text_encoder=t5(tf.UMT5EncoderModel),
        transformer=model,
        vae=wan_vae(),
        scheduler=df.UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
        ),
    )
    return pipe, {**CALL, "height": 16, "width": 16, "num_frames": 5, "max_sequence_length": 16}


@pipeline
def skyreels_diffusion_forcing():
    model = df.SkyReelsV2Transformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=16,
        out_channels=16,
        text_dim=32,
        freq_dim=256,
        ffn_dim=32,
        num_layers=2,
        cross_attn_norm=True,
        qk_norm="rms_norm_across_heads",
        rope_max_seq_len=32,
    )
    pipe = df.SkyReelsV2DiffusionForcingPipeline(
        tokenizer=tokenizer(),
        text_encoder=t5(tf.UMT5EncoderModel),
        transformer=model,
        vae=wan_vae(),
        scheduler=df.UniPCMultistepScheduler(flow_shift=8.0, use_flow_sigmas=True),
    )
    return pipe, {
        "prompt": None,
        "prompt_embeds": torch.randn(1, 16, 32),
        "negative_prompt_embeds": torch.randn(1, 16, 32),
        "output_type": "np",
        "height": 16,
        "width": 16,
        "num_frames": 9,
        "num_inference_steps": 2,
    }


@pipeline
def ltx_video():
    model = df.LTXVideoTransformer3DModel(
        in_channels=8,
        out_channels=8,
        patch_size=1,
        patch_size_t=1,
        num_attention_heads=4,
        attention_head_dim=8,
        cross_attention_dim=32,
        num_layers=1,
        caption_channels=32,
    )
    auto = df.AutoencoderKLLTXVideo(
        in_channels=3,
        out_channels=3,
        latent_channels=8,
        block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
        spatio_temporal_scaling=(True, True, False, False),
        decoder_spatio_temporal_scaling=(True, True, False, False),
        decoder_inject_noise=(False, False, False, False, False),
        upsample_residual=(False, False, False, False),
        upsample_factor=(1, 1, 1, 1),
        timestep_conditioning=False,
        patch_size=1,
        patch_size_t=1,
        encoder_causal=True,
        decoder_causal=False,
    )
    pipe = df.LTXPipeline(df.FlowMatchEulerDiscreteScheduler(), auto, t5(), tokenizer(), model)
    return pipe, {
        **CALL,
        "height": 32,
        "width": 32,
        "num_frames": 9,
        "max_sequence_length": 16,
        "guidance_scale": 3.0,
    }


@pipeline
def cogvideox():
    model = df.CogVideoXTransformer3DModel(
        num_attention_heads=4,
        attention_head_dim=8,
        in_channels=4,
        out_channels=4,
        time_embed_dim=2,
        text_embed_dim=32,
        num_layers=1,
        sample_width=2,
        sample_height=2,
        sample_frames=9,
        patch_size=2,
        temporal_compression_ratio=4,
        max_text_seq_length=16,
    )
    auto = df.AutoencoderKLCogVideoX(
        in_channels=3,
        out_channels=3,
        down_block_types=("CogVideoXDownBlock3D",) * 4,
        up_block_types=("CogVideoXUpBlock3D",) * 4,
        block_out_channels=(8, 8, 8, 8),
        latent_channels=4,
        layers_per_block=1,
        norm_num_groups=2,
        temporal_compression_ratio=4,
    )
    pipe = df.CogVideoXPipeline(tokenizer(), t5(), auto, model, df.CogVideoXDDIMScheduler())
    return pipe, {**CALL, "height": 16, "width": 16, "num_frames": 8, "max_sequence_length": 16}


@pipeline
def qwen_image():
    config = tf.Qwen2_5_VLConfig(
        text_config={
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "rope_parameters": {
                "mrope_section": [1, 1, 2],
                "rope_type": "default",
                "type": "default",
                "rope_theta": 1e6,
            },
            "vocab_size": 64,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "out_hidden_size": 16,
        },
    )
    pipe = df.QwenImagePipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
        vae=df.AutoencoderKLQwenImage(
            base_dim=24,
            z_dim=4,
            dim_mult=[1, 2, 4],
            num_res_blocks=1,
            temperal_downsample=[False, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        ),
        text_encoder=tf.Qwen2_5_VLForConditionalGeneration(config),
        tokenizer=tokenizer(128),
        transformer=df.QwenImageTransformer2DModel(
            patch_size=2,
            in_channels=16,
            out_channels=4,
            num_layers=2,
            attention_head_dim=16,
            num_attention_heads=3,
            joint_attention_dim=16,
            guidance_embeds=False,
            axes_dims_rope=(8, 4, 4),
        ),
    )
    pipe.prompt_template_encode_start_idx = 0
    return pipe, {
        **CALL,
        "negative_prompt": "b",
        "true_cfg_scale": 2.0,
        "height": 32,
        "width": 32,
        "max_sequence_length": 16,
    }


@pipeline
def stable_audio():
    from diffusers.pipelines.stable_audio.modeling_stable_audio import StableAudioProjectionModel

    pipe = df.StableAudioPipeline(
        transformer=df.StableAudioDiTModel(
            sample_size=4,
            in_channels=3,
            num_layers=2,
            attention_head_dim=4,
            num_key_value_attention_heads=2,
            out_channels=3,
            cross_attention_dim=4,
            time_proj_dim=8,
            global_states_input_dim=8,
            cross_attention_input_dim=4,
            num_attention_heads=2,
        ),
        scheduler=df.EDMDPMSolverMultistepScheduler(
            solver_order=2, prediction_type="v_prediction", sigma_data=1.0
        ),
        vae=df.AutoencoderOobleck(
            encoder_hidden_size=6,
            downsampling_ratios=[1, 2],
            decoder_channels=3,
            decoder_input_channels=3,
            audio_channels=2,
            channel_multiples=[2, 4],
            sampling_rate=4,
        ),
        text_encoder=t5(d=4),
        tokenizer=tokenizer(),
        projection_model=StableAudioProjectionModel(
            text_encoder_dim=4, conditioning_dim=4, min_value=0, max_value=32
        ),
    )
    return pipe, {
        "prompt": "red circle",
        "num_inference_steps": 3,
        "output_type": "np",
        "audio_end_in_s": 1.0,
    }


@pipeline
def flux2_klein_kv_cache():
    text = tf.Qwen3ForCausalLM(
        tf.Qwen3Config(
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=8,
            vocab_size=64,
            max_position_embeddings=128,
        )
    )
    pipe = df.Flux2KleinKVPipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
        vae=df.AutoencoderKLFlux2(
            sample_size=16,
            down_block_types=("DownEncoderBlock2D",),
            up_block_types=("UpDecoderBlock2D",),
            block_out_channels=(4,),
            layers_per_block=1,
            latent_channels=1,
            norm_num_groups=1,
            use_quant_conv=False,
            use_post_quant_conv=False,
        ),
        text_encoder=text,
        tokenizer=tokenizer(64),
        transformer=df.Flux2Transformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=16,
            timestep_guidance_channels=256,
            axes_dims_rope=[4, 4, 4, 4],
            guidance_embeds=False,
        ),
    )
    return pipe, {
        "prompt": "red circle",
        "image": picture(64),
        "num_inference_steps": 3,
        "height": 8,
        "width": 8,
        "max_sequence_length": 32,
        "text_encoder_out_layers": (1,),
        "output_type": "np",
    }


@pipeline
def ltx2_video_and_audio():
    from diffusers.pipelines.ltx2 import LTX2TextConnectors
    from diffusers.pipelines.ltx2.vocoder import LTX2Vocoder

    text = tf.Gemma3ForConditionalGeneration(
        tf.Gemma3Config(
            text_config={**TEXT, **KV, "head_dim": 8},
            vision_config={
                "hidden_size": 16,
                "intermediate_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "image_size": 16,
                "patch_size": 8,
            },
            mm_tokens_per_image=4,
        )
    )
    pipe = df.LTX2Pipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
        vae=df.AutoencoderKLLTX2Video(
            latent_channels=4,
            block_out_channels=(8,),
            decoder_block_out_channels=(8,),
            layers_per_block=(1,),
            decoder_layers_per_block=(1, 1),
            spatio_temporal_scaling=(True,),
            decoder_spatio_temporal_scaling=(True,),
            decoder_inject_noise=(False, False),
            downsample_type=("spatial",),
            upsample_residual=(False,),
            upsample_factor=(1,),
            timestep_conditioning=False,
            patch_size=1,
            patch_size_t=1,
            encoder_causal=True,
            decoder_causal=False,
        ),
        audio_vae=df.AutoencoderKLLTX2Audio(
            base_channels=4,
            output_channels=2,
            ch_mult=(1,),
            num_res_blocks=1,
            attn_resolutions=None,
            in_channels=2,
            resolution=32,
            latent_channels=2,
            norm_type="pixel",
            causality_axis="height",
            mid_block_add_attention=False,
            sample_rate=16000,
            mel_hop_length=160,
            is_causal=True,
            mel_bins=8,
        ),
        text_encoder=text,
        tokenizer=tokenizer(16),
        connectors=LTX2TextConnectors(
            caption_channels=32,
            text_proj_in_factor=3,
            video_connector_num_attention_heads=4,
            video_connector_attention_head_dim=8,
            video_connector_num_layers=1,
            video_connector_num_learnable_registers=None,
            audio_connector_num_attention_heads=4,
            audio_connector_attention_head_dim=8,
            audio_connector_num_layers=1,
            audio_connector_num_learnable_registers=None,
            connector_rope_base_seq_len=32,
            rope_theta=10000.0,
            rope_double_precision=False,
            causal_temporal_positioning=False,
            rope_type="split",
        ),
        transformer=df.LTX2VideoTransformer3DModel(
            in_channels=4,
            out_channels=4,
            patch_size=1,
            patch_size_t=1,
            num_attention_heads=2,
            attention_head_dim=8,
            cross_attention_dim=16,
            audio_in_channels=4,
            audio_out_channels=4,
            audio_num_attention_heads=2,
            audio_attention_head_dim=4,
            audio_cross_attention_dim=8,
            num_layers=1,
            qk_norm="rms_norm_across_heads",
            caption_channels=32,
            rope_double_precision=False,
            rope_type="split",
        ),
        vocoder=LTX2Vocoder(
            in_channels=16,
            hidden_channels=32,
            out_channels=2,
            upsample_kernel_sizes=[4, 4],
            upsample_factors=[2, 2],
            resnet_kernel_sizes=[3],
            resnet_dilations=[[1, 3, 5]],
            leaky_relu_negative_slope=0.1,
            output_sampling_rate=16000,
        ),
    )
    return pipe, {
        "prompt": "red circle",
        "negative_prompt": "",
        "num_inference_steps": 2,
        "guidance_scale": 2.0,
        "stg_scale": 0.0,
        "modality_scale": 1.0,
        "guidance_rescale": 0.0,
        "audio_guidance_scale": 2.0,
        "audio_stg_scale": 0.0,
        "audio_modality_scale": 1.0,
        "audio_guidance_rescale": 0.0,
        "spatio_temporal_guidance_blocks": None,
        "use_cross_timestep": False,
        "height": 32,
        "width": 32,
        "num_frames": 5,
        "frame_rate": 25.0,
        "max_sequence_length": 16,
        "output_type": "np",
    }


@pipeline
def hunyuan_video():
    pipe = df.HunyuanVideoPipeline(
        text_encoder=tf.LlamaModel(tf.LlamaConfig(**{**TEXT, "hidden_size": 16}, max_position_embeddings=64)),
        tokenizer=tokenizer(16),
        transformer=df.HunyuanVideoTransformer3DModel(
            in_channels=4,
            out_channels=4,
            num_attention_heads=2,
            attention_head_dim=10,
            num_layers=1,
            num_single_layers=1,
            num_refiner_layers=1,
            patch_size=1,
            patch_size_t=1,
            guidance_embeds=True,
            text_embed_dim=16,
            pooled_projection_dim=32,
            rope_axes_dim=(2, 4, 4),
        ),
        vae=df.AutoencoderKLHunyuanVideo(
            latent_channels=4,
            down_block_types=("HunyuanVideoDownBlock3D",) * 4,
            up_block_types=("HunyuanVideoUpBlock3D",) * 4,
            block_out_channels=(8, 8, 8, 8),
            layers_per_block=1,
            norm_num_groups=4,
        ),
        scheduler=df.FlowMatchEulerDiscreteScheduler(shift=7.0),
        text_encoder_2=clip_text(length=77),
        tokenizer_2=tokenizer(77),
    )
    return pipe, {
        "prompt": "red circle",
        "prompt_template": {"template": "{}", "crop_start": 0},
        "num_inference_steps": 2,
        "height": 16,
        "width": 16,
        "num_frames": 5,
        "max_sequence_length": 16,
        "output_type": "np",
    }


@pipeline
def stable_cascade_combined():
    from diffusers.models.unets import StableCascadeUNet
    from diffusers.pipelines.deprecated.wuerstchen import PaellaVQModel

    shared = {
        "conditioning_dim": 32,
        "block_out_channels": (16,),
        "num_attention_heads": (2,),
        "down_num_layers_per_block": (1,),
        "up_num_layers_per_block": (1,),
        "down_blocks_repeat_mappers": (1,),
        "up_blocks_repeat_mappers": (1,),
        "kernel_size": 3,
        "switch_level": (False,),
        "clip_text_pooled_in_channels": 32,
    }
    text = functools.partial(clip_text, tf.CLIPTextModelWithProjection)
    words, order = tokenizer(), df.DDPMWuerstchenScheduler()
    pipe = df.StableCascadeCombinedPipeline(
        tokenizer=words,
        text_encoder=text(),
        decoder=StableCascadeUNet(
            in_channels=4,
            out_channels=4,
            patch_size=1,
            block_types_per_layer=(("SDCascadeResBlock", "SDCascadeTimestepBlock", "SDCascadeAttnBlock"),),
            **shared,
        ),
        scheduler=order,
        vqgan=PaellaVQModel(bottleneck_blocks=1, num_vq_embeddings=2),
        prior_prior=StableCascadeUNet(
            clip_text_in_channels=32,
            clip_image_in_channels=32,
            in_channels=16,
            out_channels=16,
            patch_size=1,
            block_types_per_layer=(("SDCascadeResBlock", "SDCascadeTimestepBlock", "SDCascadeAttnBlock"),),
            **shared,
        ),
        prior_text_encoder=text(),
        prior_tokenizer=words,
        prior_scheduler=order,
    )
    return pipe, {
        **CALL,
        "num_inference_steps": 2,
        "prior_num_inference_steps": 2,
        "height": 128,
        "width": 128,
    }


@pipeline
def z_image():
    text = tf.Qwen3Model(tf.Qwen3Config(**TEXT, **KV, head_dim=8))
    pipe = df.ZImagePipeline(
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
        vae=vae(latent_channels=4, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1),
        text_encoder=text,
        tokenizer=tokenizer(64),
        transformer=df.ZImageTransformer2DModel(
            in_channels=4,
            dim=32,
            n_layers=1,
            n_refiner_layers=1,
            n_heads=2,
            n_kv_heads=2,
            cap_feat_dim=32,
            axes_dims=[8, 4, 4],
            axes_lens=[256, 32, 32],
        ),
    )
    return pipe, {**CALL, "height": 32, "width": 32, "max_sequence_length": 16, "num_inference_steps": 2}


@pipeline
def cogview4():
    text = tf.GlmModel(tf.GlmConfig(**TEXT, num_key_value_heads=2, head_dim=8, max_position_embeddings=64))
    pipe = df.CogView4Pipeline(
        tokenizer=tokenizer(16),
        text_encoder=text,
        vae=vae(),
        transformer=df.CogView4Transformer2DModel(
            patch_size=2,
            in_channels=4,
            out_channels=4,
            num_layers=1,
            attention_head_dim=4,
            num_attention_heads=4,
            text_embed_dim=32,
            time_embed_dim=8,
            condition_dim=4,
        ),
        scheduler=df.FlowMatchEulerDiscreteScheduler(),
    )
    return pipe, {**CALL, "height": 16, "width": 16, "max_sequence_length": 16, "num_inference_steps": 2}


@pipeline
def deepfloyd_if():
    parts = {
        "tokenizer": tokenizer(77),
        "text_encoder": t5(),
        "unet": df.UNet2DConditionModel(
            sample_size=16,
            layers_per_block=1,
            block_out_channels=(32, 64),
            in_channels=3,
            out_channels=6,
            down_block_types=("ResnetDownsampleBlock2D", "SimpleCrossAttnDownBlock2D"),
            mid_block_type="UNetMidBlock2DSimpleCrossAttn",
            up_block_types=("SimpleCrossAttnUpBlock2D", "ResnetUpsampleBlock2D"),
            cross_attention_dim=32,
            encoder_hid_dim=32,
            attention_head_dim=8,
            addition_embed_type="text",
            addition_embed_type_num_heads=2,
            cross_attention_norm="group_norm",
            resnet_time_scale_shift="scale_shift",
            act_fn="gelu",
        ),
        "scheduler": df.DDPMScheduler(variance_type="learned_range"),
        "safety_checker": None,
        "feature_extractor": None,
        "watermarker": None,
    }
    return df.IFPipeline(**parts, requires_safety_checker=False), {
        **CALL,
        "num_inference_steps": 2,
        "height": 16,
        "width": 16,
    }


@pipeline
def modular_sdxl():
    from diffusers.modular_pipelines import StableDiffusionXLAutoBlocks

    parts = sdxl_parts()
    parts.pop("add_watermarker")
    pipe = StableDiffusionXLAutoBlocks().init_pipeline()
    pipe.update_components(**parts)
    return pipe, {**CALL, "height": 16, "width": 16, "output": "images"}


# -- language, vision and other models -----------------------------------------------------------------------

MODELS: dict = {}
TEXT = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
KV = {"num_key_value_heads": 2, "max_position_embeddings": 64}
IDS = torch.tensor([[1, 5, 6, 7, 8], [1, 9, 10, 11, 12]])
PIXELS = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)


def model(build):
    """Registers a builder of (model, call) under its function's name; `call(model)` runs it."""

    @functools.wraps(build)
    def seeded():
        torch.manual_seed(0)
        made, call = build()
        return made.eval(), call

    MODELS[build.__name__] = seeded
    return seeded


def generated(made):
    return made.generate(
        IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=4, do_sample=False, pad_token_id=0
    )


@model
def llama():
    return tf.LlamaForCausalLM(tf.LlamaConfig(**TEXT, **KV)), generated


@model
def gpt2():
    return tf.GPT2LMHeadModel(
        tf.GPT2Config(
            vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2
        )
    ), generated


@model
def qwen3_moe():
    config = tf.Qwen3MoeConfig(
        **TEXT, **KV, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16
    )
    return tf.Qwen3MoeForCausalLM(config), generated


@model
def mixtral():
    return tf.MixtralForCausalLM(
        tf.MixtralConfig(
            **{**TEXT, "intermediate_size": 32}, **KV, num_local_experts=4, num_experts_per_tok=2
        )
    ), generated


@model
def gemma2_sliding_window():
    return tf.Gemma2ForCausalLM(tf.Gemma2Config(**TEXT, **KV, head_dim=8, sliding_window=4)), generated


@model
def mamba():
    return tf.MambaForCausalLM(
        tf.MambaConfig(
            vocab_size=64,
            hidden_size=32,
            state_size=4,
            num_hidden_layers=2,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    ), generated


@model
def t5_seq2seq():
    config = tf.T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=37,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=2,
    )
    return tf.T5ForConditionalGeneration(config), generated


@model
def bart():
    config = tf.BartConfig(
        vocab_size=64,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=37,
        decoder_ffn_dim=37,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=2,
    )
    return tf.BartForConditionalGeneration(config), generated


@model
def bert():
    return tf.BertModel(tf.BertConfig(**{k: v for k, v in TEXT.items() if "os_token" not in k})), lambda m: m(
        input_ids=IDS
    )


@model
def vit():
    config = tf.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=37,
        image_size=32,
        patch_size=8,
    )
    return tf.ViTForImageClassification(config), lambda m: m(PIXELS)


@model
def convnext():
    config = tf.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    return tf.ConvNextModel(config), lambda m: m(pixel_values=PIXELS)


@model
def clip():
    config = tf.CLIPConfig(
        text_config={**TEXT, "max_position_embeddings": 16},
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 37,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 32,
            "patch_size": 8,
        },
        projection_dim=16,
    )
    return tf.CLIPModel(config), lambda m: m(
        input_ids=IDS, pixel_values=PIXELS, attention_mask=torch.ones_like(IDS)
    )


@model
def whisper():
    config = tf.WhisperConfig(
        vocab_size=64,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=37,
        decoder_ffn_dim=37,
        num_mel_bins=8,
        max_source_positions=16,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    return tf.WhisperForConditionalGeneration(config), lambda m: m(
        input_features=torch.zeros(1, 8, 32), decoder_input_ids=IDS[:1]
    )


@model
def wav2vec2():
    config = tf.Wav2Vec2Config(
        vocab_size=32,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
        conv_dim=(8, 8),
        conv_stride=(4, 4),
        conv_kernel=(8, 8),
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )
    return tf.Wav2Vec2Model(config), lambda m: m(torch.linspace(-1, 1, 400)[None])


@model
def qwen2_vl():
    config = tf.Qwen2_5_VLConfig(
        text_config={
            **TEXT,
            **KV,
            "rope_parameters": {
                "mrope_section": [1, 1, 2],
                "rope_type": "default",
                "type": "default",
                "rope_theta": 1e6,
            },
        },
        vision_config={
            "depth": 1,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "out_hidden_size": 32,
        },
    )
    return tf.Qwen2_5_VLForConditionalGeneration(config), generated


@model
def torch_transformer_encoder():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 37, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2), lambda m: m(torch.ones(2, 5, 32))
