"""The hidden tests of lab08-lora:
a block fills the `### HIDDEN TESTS` line of the check it names."""

# %% check="forecast"
@reference
def traced(steps, weights, rank, ends, fused):
    """(shapes of the adapted projections, the truth): such a call of the bundled pipeline, traced."""
    import tempfile
    from pathlib import Path

    import torch
    from inferlab.models import load_pipeline
    from inferlab.models.adapters import write_adapter
    from inferlab.models.quiet import quiet
    from inferlab.trace import trace

    model = load_pipeline("bundled", "cpu")
    model.set_progress_bar_config(disable=True)
    had = sum(p.numel() for p in model.unet.parameters())
    shapes = [tuple(layer.weight.shape) for name, layer in model.unet.named_modules() if name.endswith(ends)]
    names = [f"style{number}" for number in range(len(weights))]
    with torch.no_grad(), tempfile.TemporaryDirectory() as made, quiet():
        for number, name in enumerate(names):
            write_adapter(model.unet, Path(made) / f"{name}.safetensors", rank=rank, projections=ends,
                          seed=number)
        for name in names:
            model.load_lora_weights(made, weight_name=f"{name}.safetensors", adapter_name=name)
        model.set_adapters(names, list(weights))
        if fused:
            model.fuse_lora()
        with trace(model, depth="all") as seen:
            model("a red circle", num_inference_steps=steps, height=32, width=32,
                  output_type="latent")
    return shapes, {
        "factors": len(seen.find("*.lora_A.*")) + len(seen.find("*.lora_B.*")),
        "added": sum(p.numel() for p in model.unet.parameters()) - had,
    }

ENDS_OF_ALL = ("to_q", "to_k", "to_v", "to_out.0")

def compare_forecast(steps, weights, rank, ends, fused):
    """Holds the learner's forecast against such a run, and names what it believes."""
    shapes, want = traced(steps, weights, rank, ends, fused)
    got = ask_forecast(steps, list(weights), rank, shapes, fused)
    check.mistake("fused, the factors take no part in the run: their product is in the matrix",
                  when=fused and got["factors"] > 0)
    check.mistake("fusing frees no memory: the factors are kept, so that they can be subtracted again",
                  when=fused and got["added"] <= 0)
    check.mistake("a weight of 0 is multiplied like any other: the adapter is active, so it is computed",
                  when=got["factors"] == want["factors"] * sum(w != 0 for w in weights) // len(weights)
                  and got["factors"] != want["factors"])
    check.mistake("each adapter has two factors, A and B, and both are called",
                  when=2 * got["factors"] == want["factors"] > 0)
    check.equal(got, want)

with check.part("two steps, three adapters of rank 2, one of them at 0", weight=2):
    compare_forecast(2, (1.0, 0.0, 0.3), 2, ENDS_OF_ALL, False)
with check.part("fused: two adapters of rank 16", weight=2):
    compare_forecast(2, (0.7, 0.7), 16, ENDS_OF_ALL, True)
with check.part("one adapter, on queries and values only", weight=1):
    compare_forecast(1, (1.0,), 8, ("to_q", "to_v"), False)

# %% check="delta"
with check.part("another rank and alpha, a square matrix, half the weight", weight=2):
    for rank_of, alpha_of, tall, broad, amount in ((4, 8, 6, 6, 0.5), (8, 4, 6, 9, -1.5), (3, 3, 7, 7, 1.0)):
        parts, told = small_file(rank_of, alpha_of, tall, broad)
        low = parts["unet.a.to_q.lora.down.weight"]
        top = parts["unet.a.to_q.lora.up.weight"]
        mine = check.learner.delta(parts, told, "a.to_q", amount)
        plain = top.float() @ low.float()
        counted = amount * alpha_of / rank_of
        check.mistake("the product is turned: on a square matrix the shape does not show it",
                      when=tall == broad and close(mine, plain.T * counted, tol=1e-3))
        check.mistake("alpha counts in proportion to the rank: alpha / r",
                      when=close(mine, plain * amount * alpha_of, tol=1e-3) and alpha_of != 1)
        check.mistake("alpha is missing: the header says it",
                      when=close(mine, plain * amount, tol=1e-3) and alpha_of != rank_of)
        check.mistake("the quotient is counted twice",
                      when=close(mine, plain * counted * alpha_of / rank_of, tol=1e-3)
                      and alpha_of != rank_of)
        check.tensor(mine, shape=(tall, broad), dtype=torch.float32)
        check.close(mine, plain * counted, tol=1e-5)

# %% check="change"
with check.part("two adapters, several changes: the weights that were wanted", weight=2):
    several = [{"punched": 1.0, "meadow": 0.5}, {"punched": 0.2, "meadow": 0.5},
               {"punched": 0.0, "meadow": 1.0}, {"punched": 0.7, "meadow": 0.0}]
    for count in range(1, len(several) + 1):
        kept, now = service(several[:count], check.learner.change, torch.float32)
        fresh = service(several[count - 1:count], as_fresh, torch.float32)[1]
        at_first = service(several[:1], as_fresh, torch.float32)[1]
        check.mistake("nothing is fused in the end: peft still believed that it was, or was not asked to",
                      when=float((now - kept).abs().max()) < 1e-4)
        check.mistake("what was subtracted is not what had been added: unfusing computes it anew, with the "
                      "weights that are set by then",
                      when=count > 1 and float((now - at_first).abs().max()) < 1e-4)
        check.true(float((now - fresh).abs().max()) < 1e-4, "other weights are in the matrix")
with check.part("to the bit, after 30 changes in float16", weight=3):
    many = [{"punched": round(0.31 * i % 1.7, 2), "meadow": round(0.47 * i % 1.3, 2)} for i in range(1, 31)]
    kept, now = service(many, check.learner.change, torch.float16)
    fresh = service(many[-1:], as_fresh, torch.float16)[1]
    wrong = int((now != fresh).sum())
    turned = service([dict(reversed(many[-1].items()))], as_fresh, torch.float16)[1]
    check.mistake("the adapters were added in another order: other bits",
                  when=wrong and torch.equal(now, turned))
    check.mistake(f"after 30 changes {wrong} of {now.numel()} numbers differ, by rounding: each unfusing "
                  "leaves some behind, and nothing takes it away",
                  when=wrong and float((now.float() - fresh.float()).abs().max()) < 0.05)
    check.true(not wrong, f"{wrong} of {now.numel()} numbers are not those of a fresh pipeline")
