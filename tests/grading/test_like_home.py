"""The sandbox's shell against a real Jupyter kernel: what runs at home runs in grading, and what fails fails alike."""

import os

import nbformat
import pytest
from nbclient import NotebookClient

from inferlab.grading.running.host import Host
from inferlab.grading.sandbox.limits import Limits

pytestmark = pytest.mark.sandbox

# Each is a few cells of a learner's, run one after the other in both kernels.
SNIPPETS: dict[str, list[str]] = {
    "a module written beside the notebook": ["open('mine.py', 'w').write('VALUE = 3')", "import mine\nassert mine.VALUE == 3"],
    "a module of %%writefile": ["%%writefile other.py\nVALUE = 4", "from other import VALUE\nassert VALUE == 4"],
    "a package": ["import os\nos.makedirs('pack')\nopen('pack/__init__.py', 'w').write('')\n"
                  "open('pack/part.py', 'w').write('x = 1')", "from pack.part import x"],
    "a module run as a program": ["open('program.py', 'w').write('y = 5')", "%run program.py\nassert y == 5"],
    "a module in a process of its own": ["open('child.py', 'w').write('import json')",
                                         "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import child'], check=True)"],
    "a task": ["import asyncio\nasync def work():\n    await asyncio.sleep(0.01)\n    return 7\ntask = asyncio.create_task(work())",
               "assert await task == 7"],
    "a task that ends between two cells": ["import asyncio\nseen = []\nasync def note():\n    seen.append(1)\n"
                                           "task = asyncio.create_task(note())", "await asyncio.sleep(0)", "assert seen == [1]"],
    "the running loop": ["import asyncio\nasyncio.get_running_loop()"],
    "a future of the loop": ["import asyncio\nf = asyncio.ensure_future(asyncio.sleep(0, 3))", "assert await f == 3"],
    "a loop inside the loop": ["import asyncio\nasync def one():\n    return 1\nasyncio.run(one())"],
    "awaiting at the top": ["import asyncio\nawait asyncio.sleep(0)\nasync with asyncio.timeout(5):\n    pass"],
    "a child process of asyncio": ["import asyncio, sys\np = await asyncio.create_subprocess_exec(sys.executable, '-c', '1')\n"
                                   "assert await p.wait() == 0"],
    "a thread for asyncio": ["import asyncio\nassert await asyncio.to_thread(lambda: 5) == 5"],
    "a cell in a cell": ["get_ipython().run_cell('inner = 3')\nassert inner == 3"],
    "output of a child process": ["import subprocess, sys\nsubprocess.run(['echo', 'hello'], stdout=sys.stdout, stderr=sys.stderr, check=True)"],
    "faulthandler": ["import faulthandler\nfaulthandler.enable()"],
    "the streams": ["import sys\nfor s in (sys.stdout, sys.stderr):\n    assert s.fileno() > 0 and s.writable() and s.encoding.lower() == 'utf-8'\n"
                    "    s.write('a'); s.writelines(['b']); s.flush(); s.isatty(); s.name; s.errors; s.closed"],
    "the bytes of a stream": ["import sys\nsys.stdout.buffer.write(b'x')"],
    "a stream that is no text": ["import sys\nsys.stdout.write(3)"],
    "redirected output": ["import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    print(1)\nassert s.getvalue() == '1\\n'"],
    "logging": ["import logging\nlogging.basicConfig(level='INFO')\nlogging.info('x')"],
    "warnings": ["import warnings\nwarnings.warn('x')"],
    "a compiled function": ["import torch\n@torch.compile\ndef f(x):\n    return x * 2 + 1\nassert f(torch.ones(3)).tolist() == [3.0] * 3"],
    "a compiled module": ["import torch\nm = torch.compile(torch.nn.Linear(2, 2), fullgraph=True)\nassert m(torch.ones(1, 2)).shape == (1, 2)\n"
                          "m.compile"],
    "a module compiled in place": ["import torch\nm = torch.nn.Linear(2, 2)\nm.compile()\nassert m(torch.ones(1, 2)).shape == (1, 2)"],
    "an exported module": ["import torch\nassert torch.export.export(torch.nn.ReLU(), (torch.ones(2),)).module()(-torch.ones(2)).tolist() == [0, 0]"],
    "a hundred megabytes on disk": ["import numpy as np\nnp.save('big.npy', np.zeros(13_000_000))\nassert np.load('big.npy').size == 13_000_000"],
    "processes": ["import multiprocessing\ndef square(x):\n    return x * x\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
                  "    assert pool.map(square, [1, 2, 3]) == [1, 4, 9]"],
    "threads": ["from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool:\n    assert list(pool.map(abs, [-1])) == [1]"],
    "a data loader with workers": ["import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
                                   "assert len(list(DataLoader(TensorDataset(torch.ones(4, 2)), num_workers=1))) == 4"],
    "pickles of the cell's own classes": ["import pickle\nclass Point:\n    x = 1\nassert pickle.loads(pickle.dumps(Point())).x == 1"],
    "the source of a function": ["def g():\n    return 1", "import inspect\nassert 'return 1' in inspect.getsource(g)"],
    "type hints": ["from dataclasses import dataclass\nimport typing\n@dataclass\nclass A:\n    x: 'int'\nassert typing.get_type_hints(A) == {'x': int}"],
    "the main module": ["top = 2", "import __main__\nassert __main__.top == 2"],
    "the history": ["1 + 1", "assert _ == 2 and Out and In[-1]"],
    "magics": ["%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n%env\n%pwd\n%timeit -n1 -r1 1\n%who", "%%time\nz = 1",
               "%%capture out\nprint(z)", "assert out.stdout == '1\\n'", "%%html\n<b>x</b>", "%%bash\necho hi",
               "x = !echo one\nassert x == ['one']", "!false", "%%script bash\ntrue", "%cd /tmp\n%cd -"],
    "a magic that is not there": ["%%no_such_magic\n1"],
    "an error inside %%time": ["%%time\n1 / 0"],
    "displays": ["from IPython.display import HTML, clear_output, display, update_display\nh = display(HTML('a'), display_id=True)\n"
                 "h.update(HTML('b'))\nclear_output(wait=True)\nHTML('c')"],
    "widgets": ["import ipywidgets\nipywidgets.interact(lambda x: x, x=(0, 3))\nipywidgets.IntSlider()"],
    "a progress bar": ["from tqdm.auto import tqdm\nfor _ in tqdm(range(2)):\n    pass"],
    "a plot": ["import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('p.png')\nplt.show()"],
    "a plot without show": ["import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])"],
    "a figure as the last value": ["import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\nfigure"],
    "a picture": ["import PIL.Image\nPIL.Image.new('RGB', (8, 8))"],
    "asking a person": ["input('name?')"],
    "leaving": ["import sys\nsys.exit(1)"],
    "the user": ["import getpass, pathlib\ngetpass.getuser()\npathlib.Path.home()"],
    "a temporary file": ["import tempfile\nwith tempfile.TemporaryDirectory() as d:\n    open(d + '/x', 'w').write('1')"],
    "syntax": ["def ("],
    "an error": ["{}['x']"],
}


@pytest.fixture(scope="module")
def at_home(tmp_path_factory):
    """How every snippet ends in a kernel of Jupyter's."""
    cells = [nbformat.v4.new_code_cell(text, metadata={"of": name}) for name, texts in SNIPPETS.items() for text in texts]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = tmp_path_factory.mktemp("home")
    client = NotebookClient(notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": str(folder)}})
    # ipykernel gives its streams no descriptors where it believes itself under test
    client.execute(env={name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"})
    return ends((cell.metadata["of"], cell.outputs) for cell in notebook.cells)


@pytest.fixture(scope="module")
def in_grading():
    """The same in the sandbox."""
    texts = [(name, text) for name, texts in SNIPPETS.items() for text in texts]
    cells = [{"kind": "run", "index": i, "source": text, "doing": f"running cell {i}"} for i, (_, text) in enumerate(texts)]
    job = {"lab": "lab00-x", "learner": "", "provides": [], "explanations": {}, "limits": Limits().as_dict(), "cells": cells}
    with Host() as host:
        result = host.run(job)
    assert result["died"] == ""
    return ends((name, result["cells"][str(i)]["outputs"]) for i, (name, _) in enumerate(texts))


def ends(outputs_by_name):
    """For every snippet its first error, "" if there is none, and how many pictures it shows."""
    errors, pictures = {}, {}
    for name, outputs in outputs_by_name:
        found = [f"{o['ename']}: {o['evalue']}" for o in outputs if o["output_type"] == "error"]
        errors[name] = errors.get(name) or (found[0] if found else "")
        pictures[name] = pictures.get(name, 0) + sum("image/png" in o.get("data", {}) for o in outputs)
    return {name: (errors[name], pictures[name]) for name in errors}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SNIPPETS)
def test_a_cell_ends_as_it_ends_at_home(at_home, in_grading, name):
    (home, pictures), (grading, shown) = at_home[name], in_grading[name]
    assert home.partition(":")[0] == grading.partition(":")[0], f"at home {home or 'no error'!r}, in grading {grading or 'no error'!r}"
    assert pictures == shown
