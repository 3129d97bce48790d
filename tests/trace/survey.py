"""How many hidden steps the tracer finds over as many pipelines as the zoo's parts can be put together into.

    python -m tests.trace.survey [PATTERN]    a line for each pipeline whose class matches, and the totals
    python -m tests.trace.survey 'Wan|LTX|SkyReels|Video|Animate'    those of video

Every pipeline class of the library is tried with the parts of every family in the zoo and a few sets of
arguments; those that run untraced are counted with the oracle and compared with a trace: output, random
numbers, leftovers.
"""

import collections
import faulthandler
import inspect
import logging
import re
import signal
import sys
import warnings

import diffusers as df
import numpy as np
import torch

from inferlab.trace import trace
from tests.trace import zoo
from tests.trace.leftovers import class_state, difference, instance_state
from tests.trace.oracle import hidden_steps
from tests.trace.test_zoo import equal

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

SECONDS = 60  # for building and running one candidate twice


def classes() -> list:
    found = {}
    for name in dir(df):
        try:
            cls = getattr(df, name)
        except (ImportError, RuntimeError, AttributeError):
            continue
        if (
            isinstance(cls, type)
            and issubclass(cls, df.DiffusionPipeline)
            and cls is not df.DiffusionPipeline
        ):
            found[cls] = None
    return list(found)


def families() -> list:
    """Parts of the zoo's pipelines, as dicts of components."""
    found = []
    for name, build in zoo.PIPELINES.items():
        if name not in ("modular_sdxl",):
            pipe, arguments = build()
            found.append((name, dict(pipe.components), arguments))
    return found


def candidates(cls, parts, arguments):
    """Pipelines of a class made of these parts, each with the argument sets worth a try."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    given = {}
    for parameter in parameters:
        if parameter.name in parts:
            given[parameter.name] = parts[parameter.name]
        elif parameter.name in ("requires_safety_checker",):
            given[parameter.name] = False
        elif parameter.name in (
            "image_encoder",
            "feature_extractor",
            "safety_checker",
            "watermarker",
            "image_processor",
        ):
            given[parameter.name] = None
        elif parameter.default is inspect.Parameter.empty:
            return
    if sum(part is not None for part in given.values()) < 2:
        return
    accepted = inspect.signature(cls.__call__).parameters
    size = arguments.get("height", 16)
    images = {
        "image": zoo.picture(size),
        "mask_image": zoo.picture(size).convert("L"),
        "control_image": zoo.picture(size),
        "video": [zoo.picture(size)] * 5,
        "strength": 0.9,
    }
    base = {k: v for k, v in arguments.items() if k in accepted}
    base.setdefault("num_inference_steps", 3)
    small = {"_auto_resize": False, "max_area": size * size, "height": size, "width": size}  # else megapixels
    base |= {k: v for k, v in small.items() if k in accepted}
    with_images = base | {k: v for k, v in images.items() if k in accepted}
    for chosen in (with_images, base):
        yield given, {k: v for k, v in chosen.items() if k in accepted or "kwargs" in accepted}


def too_slow(*_):
    raise TimeoutError("a tiny pipeline that takes this long was built wrong")


def survey(cls, families, skip, refused):
    """(family, pipeline, run, its output, its random state) of the first parts that fit a class, or None."""
    wanted = set(inspect.signature(cls.__init__).parameters)
    hints = inspect.signature(cls.__init__).parameters

    def fit(entry):
        """How many parts are of the class that the pipeline's signature names."""
        return sum(
            type(part).__name__ in str(hints[n].annotation) for n, part in entry[1].items() if n in wanted
        )

    for family, parts, arguments in sorted(families, key=fit, reverse=True)[:4]:
        for given, chosen in candidates(cls, parts, arguments) or ():
            if (cls, family) in skip:
                continue
            try:
                signal.alarm(SECONDS)
                torch.manual_seed(0)
                pipe = cls(**given)
                pipe.set_progress_bar_config(disable=True)

                def run(pipe=pipe, chosen=chosen):
                    torch.manual_seed(3)
                    np.random.seed(3)
                    with torch.no_grad():
                        return pipe(**chosen), torch.get_rng_state()

                run()
                expected, expected_rng = run()
            except Exception as error:  # noqa: BLE001 - these parts do not fit this class: what the try is for
                refused[cls.__name__, family] = f"{type(error).__name__}: {error}"
                if isinstance(error, TimeoutError):
                    return None
                continue
            finally:
                signal.alarm(0)
            return family, pipe, run, expected, expected_rng
    return None


def main() -> int:
    torch.set_num_threads(1)
    faulthandler.register(signal.SIGUSR1)
    signal.signal(signal.SIGALRM, too_slow)
    pattern = re.compile(sys.argv[1] if len(sys.argv) > 1 else ".")
    refused: dict = {}
    parts = families()
    print(f"{len(parts)} families built", file=sys.stderr, flush=True)
    totals = collections.Counter()
    for cls in classes():
        if not pattern.search(cls.__name__):
            continue
        ready = survey(cls, parts, set(), refused)
        if ready is None:
            totals["could not be built"] += 1
            continue
        family, pipe, run, expected, expected_rng = ready
        steps = hidden_steps(pipe, run)
        classes_before, instances_before = class_state(), instance_state(pipe)
        problem = ""
        try:
            with trace(pipe) as t:
                output, rng = run()
        except Exception as error:  # noqa: BLE001 - a crash that only tracing causes is a finding to print
            problem = f"CRASHED {type(error).__name__}: {error}"[:200]
        else:
            if not (equal(output, expected) and torch.equal(rng, expected_rng)):
                problem = "CHANGED"
        if difference(classes_before, class_state()) or difference(instances_before, instance_state(pipe)):
            problem += " LEFT SOMETHING"
        found = collections.Counter(b.name for b in t)
        missing = {step: (calls, found[step]) for step, calls in steps.items() if found[step] < calls}
        totals["pipelines"] += 1
        totals["hidden steps"] += len(steps)
        totals["found"] += len(steps) - len(missing)
        totals["changed or crashed"] += "C" in problem.partition(" LEFT")[0]
        totals["left something"] += "LEFT" in problem
        print(
            f"{cls.__name__:<48} {len(steps) - len(missing)}/{len(steps)} {family} {problem} {missing or ''}",
            flush=True,
        )
    print(dict(totals))
    return int(bool(totals["changed or crashed"] or totals["left something"]))


if __name__ == "__main__":
    sys.exit(main())
