"""The bytes that a lab needs, and what is said when the device has fewer."""

import pytest
import torch

from ci.gpu import published
from inferlab.lab import start
from inferlab.lab.needs import check_lab, lab_needs
from inferlab.models import fit, full_size, language


class Card:
    """Stands in for torch.cuda's memory numbers: a card of `total` bytes, limited to a fraction of it."""

    def __init__(self, total, used=0, held=0, fraction=1.0, others=0):
        self.total, self.used, self.held, self.fraction, self.others = total, used, held, fraction, others

    def put(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda d: (self.total - self.held - self.others,
                                                                   self.total))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda d: self.held)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda d: self.used)
        monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda d: self.fraction)


GB = 10**9


@pytest.mark.parametrize(
    ("card", "free"),
    [
        (Card(80 * GB), 80 * GB),
        # what the allocator holds unused can be used again
        (Card(80 * GB, used=1 * GB, held=5 * GB), 79 * GB),
        (Card(80 * GB, others=70 * GB), 10 * GB),
        (Card(80 * GB, fraction=0.1), 8 * GB),  # the driver still says 80
        (Card(80 * GB, used=6 * GB, held=6 * GB, fraction=0.1), 2 * GB),
        (Card(80 * GB, used=9 * GB, held=9 * GB, fraction=0.1), 0),
    ],
)
def test_free_memory_counts_the_allocator_and_its_limit(monkeypatch, card, free):
    card.put(monkeypatch)
    assert fit.free_memory("cuda:0") == free


def test_needs_are_the_published_sizes():
    pictures = full_size.picture_needs(torch.float16)
    assert pictures["unet"] == 2 * 859_520_964 and pictures["vae"] == 2 * 83_653_863
    assert pictures["a decode"] == 3 * 2 * 256 * 512 * 512 * 2
    sizes = language.language_needs(torch.bfloat16, draft=True)
    assert sizes["target"] == 2 * 8_030_261_248
    assert 0.8e9 < sizes["draft"] < 1.2e9
    assert sizes["cache"] == 2 * 32 * 8 * 128 * language.CACHED_TOKENS * 2
    flux = lab_needs("lab07-transformer-denoiser", "cuda:0")
    assert flux["transformer"] == 2 * 11_901_408_320 and flux["a decode"] == 3 * 256 * 1024 * 1024 * 2
    wan = lab_needs("lab20-video-latents", "cuda:0")
    assert 2.8e9 < wan["transformer"] < 2.9e9 and wan["a decode"] == 3 * 4 * 192 * 480 * 832 * 2
    lowbits = lab_needs("lab17-quantization", "cuda:0")
    assert lowbits["target"] == 4 * 8_030_261_248  # float32 on a GPU, too
    # held by the allocator at the end of the run on an H100
    assert 55.1e9 < sum(lowbits.values()) < 1.1 * 55.1e9


@pytest.mark.parametrize(
    ("gigabytes", "refused"), [(8, ("lab12-x",)), (16, ("lab12-x",)), (24, ()), (2, ("lab10-x", "lab12-x"))]
)
def test_which_labs_a_card_takes(monkeypatch, gigabytes, refused):
    Card(80 * GB, fraction=gigabytes / 80).put(monkeypatch)
    for lab in ("lab10-x", "lab12-x"):
        if lab in refused:
            with pytest.raises(MemoryError,
                               match=rf'{lab}.*need \d+\.\d GB \(.*has \d\.\d GB|.*MODEL = "bundled"'):
                check_lab(lab, "full", "cuda:0")
        else:
            check_lab(lab, "full", "cuda:0")
        check_lab(lab, "bundled", "cuda:0")


def test_a_lab_says_so_before_it_starts(monkeypatch):
    monkeypatch.setattr(fit, "free_memory", lambda device: 2 * GB)
    with pytest.raises(MemoryError,
                       match=r'lab10-memory.*unet 3\.4.*cpu has 2\.0 GB free.*MODEL = "bundled"'):
        start("lab10-memory", "someone", "full", "cpu")


def test_sdxl_and_the_dit_have_their_published_sizes():
    with torch.device("meta"):
        parts = published.xl_networks() | published.dit_networks()
    sizes = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    assert sizes["unet"] == 2_567_463_684
    assert sizes["vae"] == 83_653_863
    assert sizes["transformer"] == 749_826_464


def test_sdxl_runs_on_random_embeddings(monkeypatch):
    tiny = {"block_out_channels": (32, 32, 32), "transformer_layers_per_block": (1, 1, 1),
            "attention_head_dim": (2, 2, 2),
            "layers_per_block": 1, "sample_size": 8}
    monkeypatch.setattr(published, "XL_UNET", published.XL_UNET | tiny)
    monkeypatch.setattr(published, "XL_VAE", published.XL_VAE
                        | {"block_out_channels": (32,) * 4, "layers_per_block": 1})
    pipe = published.xl_pipeline("cpu", torch.float32)
    pipe.set_progress_bar_config(disable=True)
    out = pipe(**published.xl_embeddings(2, "cpu", torch.float32), num_inference_steps=1, guidance_scale=1.0,
               height=64,
               width=64, output_type="np").images
    assert out.shape == (2, 64, 64, 3)
