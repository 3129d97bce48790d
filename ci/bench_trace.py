"""What tracing costs: interleaved pairs of traced and untraced runs of the bundled pipeline, and the tools beside it.

    python -m ci.bench_trace                  the figures of `make bench`: a table, and "trace" in ci/out/bench.json
    python -m ci.bench_trace --rounds 5       quicker, less exact
    python -m ci.bench_trace --device cuda --model full --steps 20 --size 512

A ratio is the median over rounds of (seconds traced / seconds untraced in the same round), with the interval in which
95% of bootstrap medians lie. The order within a round rotates, so that a drifting clock speed favors nobody. The column
"cpu" is the same ratio of the process's own CPU seconds, which other programs on the machine disturb less; starting and
ending the trace is part of both. Microseconds are CPU time: what a run costs more, less the start and end of the trace
(measured around an empty block, in the column "start ms"), divided by its boundaries.
"""

import argparse
import contextlib
import gc
import json
import platform
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import torch

from inferlab.models import load_pipeline
from inferlab.trace import trace

OUT = Path(__file__).parent / "out" / "bench.json"
GOALS = {"default depth": 1.02, "all modules": 1.05}
GOAL_US = 15.0


def interval(values: list, rounds: int = 2000) -> tuple:
    """(median, low, high): the 95% bootstrap interval of the median."""
    chooser = random.Random(0)
    medians = sorted(statistics.median(chooser.choices(values, k=len(values))) for _ in range(rounds))
    return statistics.median(values), medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def timed(run, device: str) -> tuple:
    """(wall seconds, CPU seconds of this process) of one run; on CUDA the device is waited for before and after."""
    if device == "cuda":
        torch.cuda.synchronize()
    start, start_cpu = time.perf_counter(), time.process_time()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, time.process_time() - start_cpu


def interleaved(variants: dict, rounds: int, device: str) -> dict:
    """name -> list of (wall, CPU) seconds, one per round; `variants` maps names to functions that run once."""
    seconds: dict = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            gc.collect()
            seconds[name].append(timed(variants[name], device))
        print(f"  round {number + 1}/{rounds}", file=sys.stderr, flush=True)
    return seconds


def traced(target, run, **options):
    """A function that runs once inside a trace, and remembers how many boundaries that had."""

    def once():
        with trace(target, **options) as t:
            run()
        once.boundaries = t

    return once


def profiled(run, device: str):
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])

    def once():
        with profile(activities=activities, record_shapes=True) as seen:
            run()
        once.events = len(seen.events())

    return once


def hooked(modules, run):
    """The naive way: a pre and a post hook on every module that note nothing."""

    def once():
        with contextlib.ExitStack() as stack:
            for module in modules:
                stack.callback(
                    module.register_forward_pre_hook(lambda m, a, k: None, with_kwargs=True).remove
                )
                stack.callback(module.register_forward_hook(lambda m, a, k, o: None, with_kwargs=True).remove)
            run()

    return once


def start_ms(pipe, **options) -> float:
    """CPU milliseconds to start and end a trace around nothing."""

    def empty():
        with trace(pipe, **options):
            pass

    return statistics.median(timed(empty, "cpu")[1] for _ in range(9)) * 1e3


def row(name: str, seconds: dict, base: str, boundaries: int | None = None, start: float = 0.0) -> dict:
    """One line of the table: ratio with interval, and microseconds for each boundary."""
    pairs = list(zip(seconds[name], seconds[base]))
    median, low, high = interval([ours[0] / plain[0] for ours, plain in pairs])
    cpu = statistics.median(ours[1] / plain[1] for ours, plain in pairs)
    found = {"name": name, "ratio": median, "low": low, "high": high, "cpu_ratio": cpu, "rounds": len(pairs)}
    if boundaries and boundaries < 500:
        found |= {"boundaries": boundaries, "start_ms": start}  # too few for microseconds each to mean anything
    elif boundaries:
        extra = [(ours[1] - plain[1] - start / 1e3) / boundaries * 1e6 for ours, plain in pairs]
        found |= {"boundaries": boundaries, "us_per_boundary": statistics.median(extra), "start_ms": start}
    if name in GOALS:
        found |= {"goal": GOALS[name], "met": median <= GOALS[name]}
    return found


def hot_loop_us(count: int = 200, repeats: int = 60) -> float:
    """Microseconds a module boundary in a loop of modules that do nothing: best of `repeats` minus the best without."""
    model = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(count)])
    x = torch.ones(2, 4, 16, 16)

    def best():
        return min(timed(lambda: model(x), "cpu")[0] for _ in range(repeats))

    plain = best()
    with trace(model, depth="all"):
        return (best() - plain) / count * 1e6


def memory_growth(steps: int = 1000) -> dict:
    """Bytes that a trace of all modules gains per boundary between step 100 and step 1,000 of a small denoiser.

    Counted by tracemalloc after a collection; a record is 64 bytes and its array grows ahead by an eighth.
    """
    from diffusers import DDIMScheduler, UNet2DModel

    unet = UNet2DModel(
        sample_size=4,
        block_out_channels=(8, 8),
        layers_per_block=1,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(50)
    latents = torch.zeros(1, 3, 4, 4)
    held, counts = {}, {}
    tracemalloc.start()
    with torch.no_grad(), trace(unet, scheduler, depth="all") as t:
        for number, timestep in enumerate(list(scheduler.timesteps) * (steps // 50), 1):
            noise = unet(latents, timestep).sample
            latents = scheduler.step(noise, timestep, latents).prev_sample
            if number in (100, steps):
                gc.collect()
                held[number] = tracemalloc.get_traced_memory()[0]
                counts[number] = sum(log.count for log in t._recorder.logs.values())
    tracemalloc.stop()
    gained, boundaries = held[steps] - held[100], counts[steps] - counts[100]
    return {
        "steps": steps,
        "boundaries": counts[steps],
        "bytes_per_boundary": gained / boundaries,
        "signatures": len(t._recorder.keys),
    }


def beside(pipe, device: str, rounds: int) -> list:
    """torchlens sees one module's forward: both trace the UNet's, ratio to the plain forward."""
    sample = torch.zeros(2, pipe.unet.config.in_channels, 16, 16, device=device, dtype=pipe.unet.dtype)
    embeds = torch.zeros(2, 16, pipe.unet.config.cross_attention_dim, device=device, dtype=pipe.unet.dtype)
    arguments = {"encoder_hidden_states": embeds}

    def run():
        with torch.no_grad():
            pipe.unet(sample, 1, **arguments)

    variants = {"UNet, untraced": run, "UNet, all modules": traced(pipe.unet, run, depth="all")}
    try:
        import torchlens
    except ImportError:
        print("torchlens is not installed: its line is left out", file=sys.stderr)
    else:

        def lens():
            with torch.no_grad():
                tracer = getattr(torchlens, "log_forward_pass", None) or torchlens.trace
                history = tracer(pipe.unet, [sample, 1], arguments)
                if hasattr(history, "cleanup"):
                    history.cleanup()

        variants["UNet, torchlens"] = lens
    seconds = interleaved(variants, rounds, device)
    return [row(name, seconds, "UNet, untraced") for name in list(variants)[1:]]


def environment(device: str) -> dict:
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name()
        if device == "cuda"
        else platform.processor() or platform.machine(),
        "commit": commit.strip(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds (15)")
    parser.add_argument("--steps", type=int, default=10, help="denoising steps of one run (10)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--model", default="bundled", help="bundled, full or hub (bundled)")
    parser.add_argument("--size", type=int, default=None, help="pixels (the model's own)")
    parser.add_argument("--slow-rounds", type=int, default=3, help="rounds of the tools beside (3)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pipe = load_pipeline(options.model, options.device)
    pipe.set_progress_bar_config(disable=True)
    arguments = {"num_inference_steps": options.steps, "output_type": "np"}
    if options.size:
        arguments |= {"height": options.size, "width": options.size}

    def run():
        pipe("a red circle", generator=torch.Generator("cpu").manual_seed(0), **arguments)

    run()
    print("tracing the bundled pipeline" if options.model == "bundled" else "tracing", file=sys.stderr)
    variants = {
        "untraced": run,
        "default depth": traced(pipe, run),
        "all modules": traced(pipe, run, depth="all"),
    }
    seconds = interleaved(variants, options.rounds, options.device)
    counts = {name: len(variants[name].boundaries) for name in ("default depth", "all modules")}
    starts = {"default depth": start_ms(pipe), "all modules": start_ms(pipe, depth="all")}
    rows = [row(name, seconds, "untraced", counts[name], starts[name]) for name in counts]
    modules = [m for part in (pipe.unet, pipe.vae, pipe.text_encoder) for m in part.modules()]
    slow = {
        "untraced": run,
        "empty hooks, all modules": hooked(modules, run),
        "torch.profiler": profiled(run, options.device),
    }
    seconds_slow = interleaved(slow, options.slow_rounds, options.device)
    rows += [row(name, seconds_slow, "untraced") for name in list(slow)[1:]]
    rows += beside(pipe, options.device, options.slow_rounds)
    result = {
        "environment": environment(options.device),
        "untraced_seconds": statistics.median(wall for wall, _ in seconds["untraced"]),
        "run": {"model": options.model, "steps": options.steps, "size": options.size or "own"},
        "rows": rows,
        "hot_loop_us_per_boundary": hot_loop_us(),
        "hot_loop_goal_us": GOAL_US,
        "memory": memory_growth(),
    }
    show(result)
    save(result)
    return 0


def show(result: dict) -> None:
    print(
        f"\nTracing, {result['run']['model']} model, {result['run']['steps']} steps, untraced {result['untraced_seconds']:.3f} s"
    )
    print(
        f"{'':<28}{'ratio':>8}{'95% interval':>18}{'cpu':>8}{'goal':>8}{'boundaries':>12}{'us each':>9}{'start ms':>10}{'rounds':>8}"
    )
    for line in result["rows"]:
        between = f"{line['low']:.3f} to {line['high']:.3f}"
        print(
            f"{line['name']:<28}{line['ratio']:>8.3f}{between:>18}{line['cpu_ratio']:>8.3f}{line.get('goal', ''):>8}"
            f"{line.get('boundaries', ''):>12}{_number(line.get('us_per_boundary')):>9}{_number(line.get('start_ms')):>10}{line['rounds']:>8}"
        )
    memory = result["memory"]
    print(
        f"a module boundary in a hot loop: {result['hot_loop_us_per_boundary']:.1f} us (goal {result['hot_loop_goal_us']:.0f})"
    )
    print(
        f"memory over {memory['steps']} steps: {memory['bytes_per_boundary']:.0f} bytes for each of {memory['boundaries']} "
        f"boundaries, {memory['signatures']} signatures in all"
    )


def _number(value) -> str:
    return "" if value is None else f"{value:.1f}"


def save(result: dict) -> None:
    """Writes the "trace" part of ci/out/bench.json and leaves the other parts as they are."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(OUT.read_text()) if OUT.exists() else {}
    known["trace"] = result
    OUT.write_text(json.dumps(known, indent=2) + "\n")
    print(f"written to {OUT.parent.name}/{OUT.name}")


if __name__ == "__main__":
    sys.exit(main())
