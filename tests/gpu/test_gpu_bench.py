"""The GPU benchmark, rehearsed on a CPU at small sizes; its page; what it says of memory."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from transformers import DynamicCache

from ci.bench_trace import interval
from ci.gpu import __main__ as bench
from ci.gpu import fused, knobs, notebooks, page, tracing, vae
from ci.gpu.measure import environment, repeated, spread
from inferlab.lab.kits.memory.peaks import thin_vae
from inferlab.models import load_language_model
from tests import ROOT


def test_the_page_is_made_from_the_newest_results():
    assert page.main(["--check"]) == 0, "run python -m ci.gpu.page"


def test_newest_runs_win_by_card_and_by_lab(tmp_path):
    def run(name, time, card, labs, floors=None):
        about = environment("cpu") | {"time": time, "card": {"name": card, "count": 1}}
        rows = [{"lab": lab, "model": "bundled", "points": p, "maximum": 2.0, "problems": []}
                for lab, p in labs.items()]
        parts = {"notebooks": {"rows": rows}} | ({"floors": floors} if floors else {})
        (tmp_path / f"gpu-{name}.json").write_text(json.dumps({"environment": about, "parts": parts}))

    rates = {"copy_bytes_per_s": 1e12, "read_bytes_per_s": 1e12, "matrix_side": 8, "dtype": "float32",
             "matrix_flops_per_s": 1e12}
    run("b", "2026-01-02", "one", {"lab1": 2.0}, rates | {"copy_bytes_per_s": 2e12})
    run("a", "2026-01-01", "one", {"lab1": 0.0, "lab2": 1.0}, rates)
    run("c", "2026-01-01", "two", {}, rates | {"copy_bytes_per_s": 3e12})
    parts, used = page.newest(tmp_path)
    assert [(name, data["copy_bytes_per_s"]) for name, data in parts["floors"]] == [("gpu-b", 2e12),
                                                                                    ("gpu-c", 3e12)]
    assert [(r["lab"], r["points"], r["run"]) for r in parts["notebooks"][0][1]["rows"]] == [("lab1", 2.0,
                                                                                              "gpu-b"),
                                                                                             ("lab2", 1.0,
                                                                                              "gpu-a")]
    assert {name for name, _ in used} == {"gpu-a", "gpu-b", "gpu-c"}
    text = page.page(tmp_path)
    assert "2.00 TB/s" in text and "1 of 2" in text
    assert "1.00 TB/s | " not in text.replace("reading a matrix for one vector | 1.00", "")


@torch.no_grad()
@pytest.mark.parametrize("product", [fused.linear, fused.summed])
def test_the_fused_step_is_the_model(product):
    model, _ = load_language_model("bundled", "cpu")
    ids = torch.randint(0, 1000, (1, 20), generator=torch.Generator().manual_seed(0))
    cache = DynamicCache(config=model.config)
    model(ids[:, :-1], None, None, cache)
    want = model(ids[:, -1:], None, None, cache).logits[0, -1]
    cache.crop(-1)
    config = model.config
    weights = fused.fuse(model)
    step = fused.Step(model, weights, 64, product, compiled=False)
    step.fill(cache)
    step.token.fill_(int(ids[0, -1]))
    step()
    assert (step.logits - want).norm() < 1e-5 * want.norm()
    shares = [fused.share(weights[0], config.num_attention_heads, config.num_key_value_heads, config.head_dim,
                          r, 2) for r in (0, 1)]
    x = torch.randn(weights[0].down.shape[1], generator=torch.Generator().manual_seed(1))
    parts = sum(fused.linear(w.down, part) for w, part in zip(shares, x.chunk(2), strict=True))
    assert torch.allclose(parts, fused.linear(weights[0].down, x), atol=1e-4)
    assert sum(w.qkv.numel() for w in shares) == weights[0].qkv.numel()


def test_the_decoders_forecast():
    decoder = thin_vae((8, 16, 16, 24))
    assert vae.forecast(decoder, 2, 16, False, False) == 3 * 2 * 16 * 128 * 128 * 4
    assert vae.forecast(decoder, 2, 64, True, True) == 3 * 16 * 128 * 128 * 4
    assert vae.with_copies(decoder, 2, 16, False, False) == vae.forecast(decoder, 2, 16, False,
                                                                         False) * 4 // 3
    assert vae.with_copies(decoder, 2, 16, True, False) == 4.75 * 16 * 128 * 128 * 4


def test_parts_are_saved_and_a_failing_one_stops_nothing(tmp_path):
    out = tmp_path / "run.json"
    arguments = ["--device", "cpu", "--model", "bundled", "--tiny", "--out", str(out)]
    assert bench.main([*arguments, "--parts", "limits,floors,compile"]) == 1
    found = json.loads(out.read_text())
    assert set(found["parts"]) == {"floors"} and set(found["errors"]) == {"limits", "compile"}
    assert "allocator's limit is a GPU's" in found["errors"]["limits"]
    assert found["parts"]["floors"]["copy_bytes_per_s"] > 1e8
    assert bench.main([*arguments, "--parts", "offload"]) == 0
    assert bench.main([*arguments, "--parts", "floors", "--budget", "0"]) == 1
    assert "time was used up" in json.loads(out.read_text())["errors"]["floors"]


def test_unknown_parts_and_knobs_are_refused(capsys):
    with pytest.raises(SystemExit):
        bench.main(["--parts", "everything"])
    with pytest.raises(ValueError, match="vae tiling"):
        knobs.turn_on(None, "turbo", "cpu")


def test_which_labs_run_with_which_models():
    labs = ["lab02-denoising-step", "lab10-memory-optimization"]
    assert notebooks.jobs_for(labs, "each") == [(lab, "bundled")
                                                for lab in labs] + [("lab10-memory-optimization", "full")]
    assert notebooks.jobs_for(labs, "full") == [(lab, "full") for lab in labs]
    assert "lab10-memory-optimization" in notebooks.labs()


def test_a_notebook_that_is_neither_there_nor_can_be_built_says_what_to_bring(tmp_path):
    lab = "lab02-denoising-step"
    shutil.copytree(ROOT / "notebooks" / lab, tmp_path / "notebooks" / lab)
    ask = ("import sys; sys.modules['jupytext'] = None; from pathlib import Path; "
           "from ci.gpu import notebooks; notebooks.ROOT = Path(sys.argv[1]); "
           f"notebooks.instructor_notebook({lab!r})")
    done = subprocess.run([sys.executable, "-c", ask, str(tmp_path)], cwd=ROOT, capture_output=True,
                          text=True)
    assert done.returncode == 1
    assert "needs jupytext" in done.stderr and "bring source/ along" in done.stderr


def test_times_and_spreads():
    assert spread([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0, "n": 3}
    assert interval([1.0] * 9) == (1.0, 1.0, 1.0)
    calls = []
    assert repeated(lambda: calls.append(0), "cpu", 3)["n"] == 3 and len(calls) == 5


def test_large_notebooks_are_spread_over_the_cards(tmp_path, monkeypatch):
    seen = []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(notebooks.subprocess, "Popen",
                        lambda command, env, **_: seen.append(env.get("CUDA_VISIBLE_DEVICES")))
    jobs = [("lab12", "bundled"), ("lab12", "full"), ("lab18", "full"), ("lab13", "full"), ("lab14", "full")]
    begun = notebooks.start(jobs, "cuda", tmp_path, ("1", "0"))
    assert seen == ["1", "1", None, "0", "1"]
    assert [(lab, model) for lab, model, _, _ in begun] == jobs
    notebooks.start(jobs[:1], "cuda", tmp_path)
    assert seen[-1] is None


@pytest.mark.parametrize("statistic", [min, max])
def test_ratios_of_all_runs_have_an_interval(statistic):
    middle, low, high = tracing.of_all([2.0, 2.2], [1.0, 1.1], statistic)
    assert middle == 2.0 and low <= middle <= high
    row = {"start_ms": 5.0, "boundaries": 100}
    assert tracing.counted(row, 50.0, 1.0) == {"start_ms": 5.0, "boundaries_ms": 5.0, "ratio": 1.01}
