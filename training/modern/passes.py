"""What the modern models' trainings share: passes as CUDA graphs, the update, the rate, limited time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from training.common import Learner

WARM = 200  # steps in which the rate climbs to its peak
TEXT_RATE = 0.25  # of the rate, for a text encoder: its attention is not scaled and saturates otherwise
PACE = 20  # steps between two looks at the clock
CHECKPOINT_SECONDS = 120.0
TRIALS = 3  # passes before a graph is recorded, in which libraries choose their kernels


def plain_kernels() -> None:
    """cuDNN's attention off, whose backward at these sizes once touched memory that was not its own;
    benchmarks on."""
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True


def join_others(device: str) -> tuple[str, int]:
    """(this process's device, its rank): under ``torchrun`` each process joins the others and takes a GPU of
    its own."""
    if "WORLD_SIZE" not in os.environ:
        return device, 0
    rank = int(os.environ["RANK"])
    if device.startswith("cuda"):
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    if not device.startswith("cuda"):
        # gloo looks the machine's own name up, and not every machine knows it.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return device, rank


def mean_over_processes(tensors: list[torch.Tensor]) -> None:
    """Each tensor becomes its mean over all processes, in one exchange; alone, nothing happens."""
    if torch.distributed.is_initialized():
        flat = torch.cat([t.reshape(-1) for t in tensors])
        torch.distributed.all_reduce(flat)
        flat /= torch.distributed.get_world_size()
        parts = flat.split([t.numel() for t in tensors])
        torch._foreach_copy_(tensors, [part.view(t.shape) for part, t in zip(parts, tensors, strict=True)])


class Passes:
    """A loss and its gradients: run as it is on a CPU, on a GPU recorded once for each shape of inputs and
    replayed.

    The modules launch thousands of small kernels a step, which takes longer than their arithmetic.
    ``loss_of`` takes tensors and returns a scalar; it must not read a value from the GPU.
    """

    def __init__(self, loss_of: Callable[..., torch.Tensor], parameters: Iterable[torch.nn.Parameter]):
        self.loss_of, self.parameters = loss_of, list(parameters)
        self.recorded: dict[tuple, tuple] = {}
        self.pool = None

    def _once(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        loss = self.loss_of(*inputs)
        return loss.detach(), torch.autograd.grad(loss, self.parameters)

    def _record(self, inputs: tuple[torch.Tensor, ...]) -> tuple:
        into = tuple(t.clone() for t in inputs)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(TRIALS):
                self._once(*into)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            results = self._once(*into)
        self.pool = graph.pool()
        return graph, into, results

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """(loss, gradients); both are valid until the next call."""
        if not inputs[0].is_cuda:
            return self._once(*inputs)
        shapes = tuple(tuple(t.shape) for t in inputs)
        if shapes not in self.recorded:
            self.recorded[shapes] = self._record(inputs)
        graph, into, results = self.recorded[shapes]
        for kept, given in zip(into, inputs, strict=True):
            kept.copy_(given, non_blocking=True)
        graph.replay()
        return results


class GradientLearner(Learner):
    """A Learner that is handed its gradients, and whose update launches a few kernels in all instead of a
    few a weight.

    What the model calls ``text`` learns at TEXT_RATE of the rate.
    """

    def __init__(self, model: torch.nn.Module, device: str, decay: float):
        super().__init__(model, device, decay)
        text = [p for name, p in model.named_parameters() if name.startswith("text.")]
        other = [p for name, p in model.named_parameters() if not name.startswith("text.")]
        self.adam = torch.optim.AdamW(
            [{"params": other, "share": 1.0}, *([{"params": text, "share": TEXT_RATE}] if text else [])],
            lr=0.0,
            betas=(0.9, 0.99),
            weight_decay=0.01,
            fused=device.startswith("cuda"),
        )
        self.masters, self.copies = list(self.model.parameters()), list(self.copy.parameters())
        self.averages = list(self.average.parameters())
        for master in self.masters:
            master.grad = torch.zeros_like(master)

    @torch.no_grad()
    def apply(self, gradients: tuple[torch.Tensor, ...], rate: float) -> None:
        """One step: mean over processes, clip, AdamW, refresh the copy, move the average."""
        torch._foreach_copy_([master.grad for master in self.masters], list(gradients))
        mean_over_processes([master.grad for master in self.masters])
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = rate * group["share"]
        self.adam.step()
        torch._foreach_copy_(self.copies, self.masters)
        decay = min(self.decay, (1 + self.step) / (10 + self.step))
        torch._foreach_lerp_(self.averages, self.masters, 1 - decay)
        self.step += 1


class Course:
    """One stage's way through its steps: how far it is, its learning rate, when to stop, what to print.

    A stage has ``steps``, and, if ``seconds`` are given, no more time than that: the rate falls with
    whichever runs out first.
    """

    def __init__(self, name: str, learner: GradientLearner, steps: int, peak: float,
                 seconds: float | None = None):
        self.name, self.learner, self.steps, self.peak, self.seconds = name, learner, steps, peak, seconds
        self.begin, self.first = time.monotonic(), learner.step
        self.passed = 0.0 if seconds is None or seconds > 0 else 1.0  # share of the seconds, at the last look
        self.losses: list[torch.Tensor] = []
        self.history: list[tuple[int, float]] = []

    def spent(self) -> float:
        return time.monotonic() - self.begin

    def done(self) -> float:
        """From 0 to 1, the same in all processes."""
        return min(1.0, max(self.learner.step / max(1, self.steps), self.passed))

    def look(self, device: torch.device) -> None:
        """Waits for the GPU, whose time the clock then tells, and reads the clock."""
        if device.type == "cuda":
            torch.cuda.synchronize()
        if self.seconds is not None:
            passed = torch.tensor([self.spent() / self.seconds], device=device)
            mean_over_processes([passed])
            self.passed = passed.item()

    def rate(self) -> float:
        """Linear warm-up, then a cosine down to one hundredth of the peak."""
        climb = min(1.0, (self.learner.step - self.first + 1) / min(WARM, self.steps // 10 + 1))
        return self.peak * climb * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * self.done())))

    def note(self, loss: torch.Tensor, every: int) -> None:
        """Keeps the loss, looks at the clock now and then, prints every so many steps."""
        self.losses.append(loss.detach().clone())
        taken = self.learner.step - self.first
        if taken % PACE == 0:
            self.look(loss.device)
        if taken in (1, 20, 100) or self.learner.step % every == 0:
            mean, self.losses = torch.stack(self.losses).mean().item(), []
            self.history.append((self.learner.step, mean))
            print(
                f"{self.name} {self.learner.step} loss {mean:.5f}, {self.spent():.0f} s, "
                f"{self.spent() / taken * 1e3:.1f} ms a step, {self.done():.0%}",
                flush=True,
            )


def train(course: Course, path: Path | None, passes: Passes, batch: Callable[[int], tuple],
          every: int = 500) -> None:
    """Steps until the course is over: ``batch`` makes what ``passes`` takes, from the step's number.

    The learner is saved to ``path`` now and then and at the end; None: another process does it. A line is
    printed ``every`` so many steps.
    """
    learner, saved = course.learner, time.monotonic()
    while course.done() < 1:
        loss, gradients = passes(*batch(learner.step))
        learner.apply(gradients, course.rate())
        course.note(loss, every)
        if path is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            learner.save(path)
            saved = time.monotonic()
    if path is not None:
        learner.save(path)


def sigmas(n: int, random: torch.Generator, shift: float) -> torch.Tensor:
    """(n,) float32 noise levels in (0, 1]: two in three logit-normal (Esser et al. 2024), the others even,
    then shifted.

    Rounded to bfloat16, so that the level that the network is told is the level that the latents have.
    """
    device = random.device
    middle = torch.sigmoid(torch.randn(n, generator=random, device=device))
    even = torch.rand(n, generator=random, device=device)
    level = torch.where(torch.rand(n, generator=random, device=device) < 0.35, even, middle)
    return (shift * level / (1 + (shift - 1) * level)).bfloat16().float()


def noised(
    clean: torch.Tensor, level: torch.Tensor, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """(latents at noise ``level`` (B,), their velocity ``noise - clean``), as flow matching has them."""
    noise = torch.randn(clean.shape, generator=random, device=clean.device)
    level = level.view(-1, *[1] * (clean.ndim - 1))
    return (1 - level) * clean + level * noise, noise - clean


class TokenWriter:
    """Word numbers of captions as a T5 tokenizer would write them: words, </s> = 1, <pad> = 0, now and then
    a capital first."""

    def __init__(self, tokenizer, words: tuple[str, ...], random: torch.Generator, capitals: float = 0.25):
        self.random, self.capitals = random, capitals
        self.ids = torch.tensor([self._only(tokenizer, word) for word in words], device=random.device)
        self.articles = [
            (self._only(tokenizer, low), self._only(tokenizer, low.capitalize())) for low in ("a", "an")
        ]

    @staticmethod
    def _only(tokenizer, word: str) -> int:
        tokens = tokenizer(word).input_ids[:-1]
        if len(tokens) != 1:
            raise ValueError(f"{word!r} is {len(tokens)} tokens, expected 1: {tokens}")
        return tokens[0]

    def write(self, said: torch.Tensor, length: int) -> torch.Tensor:
        """(B, length) int64 token ids of word numbers (B, W), -1 after the end."""
        n, width = said.shape
        used = said >= 0
        out = torch.zeros(n, max(length, width + 1), dtype=torch.int64, device=said.device)
        out[:, :width] = torch.where(used, self.ids[said.clamp(min=0)], 0)
        out.scatter_(1, used.sum(1, keepdim=True), 1)
        coin = torch.rand(n, generator=self.random, device=said.device) < self.capitals
        for low, high in self.articles:
            out[:, 0] = torch.where(coin & (out[:, 0] == low), high, out[:, 0])
        return out[:, :length]


def padded_length(step: int, lengths: tuple[int, ...]) -> int:
    """The length that this step's captions are padded to: mostly the shortest, one step in three another, in
    turn.

    Neither pipeline masks the pads of a prompt in its transformer, so a model must have met as many as a
    call brings.
    """
    return lengths[0] if step % 3 else lengths[step // 3 % len(lengths)]
