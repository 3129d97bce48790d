"""The command that made the flow-matching model runs tiny, stops, goes on, and leaves a FluxPipeline."""

import json

import pytest
import torch
from diffusers import FluxPipeline

from inferlab.models.scenes import WORDS, sample_scenes
from training.captions import caption_words
from training.modern import flux, measure
from training.modern.networks import LENGTHS, make_t5, make_t5_tokenizer, near_words
from training.modern.passes import Course, GradientLearner, Passes, TokenWriter, noised, padded_length, sigmas

TINY = [
    "--device",
    "cpu",
    "--size",
    "tiny",
    "--steps",
    "3",
    "--distill-steps",
    "2",
    "--batch",
    "4",
    "--pool",
    "8",
    "--fresh",
    "2",
    "--longest",
    "32",
    "--prompts",
    "0",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished tiny run that was stopped at once, before its first step, and then given again."""
    out = tmp_path_factory.mktemp("run")
    assert flux.main(["--out", str(out), *TINY, "--minutes", "0"]) == 0
    stopped = steps_of(out)
    assert flux.main(["--out", str(out), *TINY]) == 0
    return out, stopped


def steps_of(out):
    return {path.name: torch.load(path, weights_only=True)["step"] for path in sorted(out.glob("*.pt"))}


def test_a_run_that_was_stopped_goes_on(run):
    out, stopped = run
    assert stopped == {"base.pt": 0, "distilled-0.pt": 0}
    assert steps_of(out) == {"base.pt": 3, "distilled-0.pt": 0, "distilled-3.pt": 2}, (
        "guidance began from the finished base"
    )
    assert json.loads((out / "training.json").read_text())["steps"] == 3


def test_what_it_leaves_is_a_flux_pipeline(run):
    pipeline = measure.opened(run[0] / "flux", "flux", "cpu")
    assert type(pipeline) is FluxPipeline
    shown = pipeline("a red circle", height=128, width=128, num_inference_steps=2, output_type="pt").images
    assert shown.shape == (1, 3, 128, 128)
    assert torch.isfinite(shown).all()
    assert not (run[0] / "flux" / "vae").exists(), "the picture model's files are used, not copied"


def test_training_goes_on_from_exported_weights(run, tmp_path):
    begun = flux.make_model(flux.Plan(size="tiny"), len(make_t5_tokenizer(WORDS)), run[0] / "flux")
    left = measure.opened(run[0] / "flux", "flux", "cpu")
    for name, parameter in left.transformer.state_dict().items():
        assert torch.equal(begun["transformer"].state_dict()[name], parameter)
    for name, parameter in left.text_encoder_2.state_dict().items():
        assert torch.equal(begun["text"].state_dict()[name], parameter)
    with pytest.raises(ValueError, match="does not fit"):
        flux.load_exported(
            torch.nn.Linear(2, 2), run[0] / "flux/transformer/diffusion_pytorch_model.safetensors"
        )


def test_the_same_seed_trains_the_same_model(run, tmp_path):
    assert flux.main(["--out", str(tmp_path), *TINY]) == 0
    once, again = (
        torch.load(folder / "distilled-3.pt", weights_only=True)["model"] for folder in (run[0], tmp_path)
    )
    assert all(torch.equal(once[name], again[name]) for name in once)


def test_its_figures_can_be_measured(run, tmp_path):
    out = tmp_path / "figures.json"
    measure.main(
        [
            "flux",
            str(run[0] / "flux"),
            "--device",
            "cpu",
            "--number",
            "2",
            "--only",
            "4 steps",
            "--json",
            str(out),
        ]
    )
    (row,) = json.loads(out.read_text())
    assert row["setting"] == "4 steps, guidance 3.5"
    assert 0 <= row["things_1"]["right"] <= 1 and "wrong" in row["things_2"]


def test_training_packs_latents_as_the_pipeline_unpacks_them():
    latents = torch.randn(2, 4, 16, 16)
    assert torch.equal(FluxPipeline._unpack_latents(flux.pack(latents), 128, 128, 8), latents)


def test_captions_are_written_as_the_tokenizer_writes_them():
    tokenizer = make_t5_tokenizer(WORDS)
    batch = sample_scenes(100, torch.Generator().manual_seed(0), keep="all")
    captions = [scene.caption for scene in batch.scenes()]
    for capitals in (0.0, 1.0):
        writer = TokenWriter(tokenizer, WORDS, torch.Generator().manual_seed(0), capitals)
        texts = [c[0].upper() + c[1:] if capitals else c for c in captions]
        for length in (16, 32):
            wanted = tokenizer(texts, padding="max_length", max_length=length).input_ids
            assert writer.write(caption_words(batch), length).tolist() == wanted
    assert tokenizer("a dog").input_ids[1:] != [tokenizer.unk_token_id, 1]
    with pytest.raises(ValueError, match="'dog' is"):
        TokenWriter(tokenizer, ("dog",), torch.Generator())


def test_a_new_text_encoder_tells_words_by_their_neighbours():
    """It once began without positions and became a bag of words: which color is which shape's was lost for
    good."""
    tokenizer = make_t5_tokenizer(WORDS)
    for kind in ("t5", "umt5"):
        text = make_t5(kind, len(tokenizer)).eval()
        one, other = (
            text(tokenizer(caption, return_tensors="pt").input_ids).last_hidden_state[0]
            for caption in ("a red circle above a blue square", "a blue square above a red circle")
        )
        assert (one[1] - other[5]).norm() > 0.2 * one[1].norm(), "red stands elsewhere"
    table = near_words(32, 4)
    assert table[1].tolist() == [0, -2, -2, -4]  # the bucket of the word before: what the first head prefers
    assert table[17].tolist() == [-2, 0, -4, -2]  # of the word after: the second head


def test_every_length_of_prompt_is_met_in_training():
    met = [padded_length(step, LENGTHS) for step in range(180)]
    assert set(met) == set(LENGTHS) and max(LENGTHS) == 512
    assert met.count(LENGTHS[0]) == 130


def test_noise_levels_and_velocity_are_flow_matchings():
    random = torch.Generator().manual_seed(0)
    level = sigmas(4000, random, 2.0)
    assert 0 < level.min() and level.max() <= 1
    assert torch.equal(level, level.bfloat16().float())
    clean = torch.randn(4000, 2, 3)
    latents, velocity = noised(clean, level, random)
    assert torch.allclose(latents - level[:, None, None] * velocity, clean, atol=1e-5)


def test_a_recorded_loss_has_the_gradients_of_its_own_backward():
    layer, given = torch.nn.Linear(3, 1), torch.randn(5, 3)
    loss, gradients = Passes(lambda x: layer(x).square().mean(), layer.parameters())(given)
    layer(given).square().mean().backward()
    assert loss.item() == pytest.approx(layer(given).square().mean().item())
    assert all(torch.equal(a, p.grad) for a, p in zip(gradients, layer.parameters(), strict=True))


def test_the_rate_climbs_falls_and_ends_with_the_time_or_the_steps():
    learner = GradientLearner(
        torch.nn.ModuleDict({"text": torch.nn.Linear(2, 2), "transformer": torch.nn.Linear(2, 2)}), "cpu", 0.9
    )
    course = Course("a stage", learner, 1000, 1.0)
    rates = []
    while course.done() < 1:
        rates.append(course.rate())
        learner.step += 1
    assert len(rates) == 1000
    assert rates[0] < 0.02 and 0.85 < max(rates) <= 1 and rates[-1] < 0.011
    learner.apply(tuple(torch.ones_like(p) for p in learner.copies), 1e-3)
    text, other = (
        learner.model[name].weight - learner.average[name].weight for name in ("text", "transformer")
    )
    assert text.abs().mean() < 0.5 * other.abs().mean(), "the text encoder learns more slowly"
    learner.step = 0
    assert Course("no time", learner, 1000, 1.0, seconds=0.0).done() == 1
    brief = Course("hardly any", learner, 1000, 1.0, seconds=1e-9)
    brief.look(torch.device("cpu"))
    assert brief.done() == 1
