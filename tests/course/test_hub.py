"""What an instructor copies for a JupyterHub: a kernel with bounded memory and one thread, and settings."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from traitlets.config import PyFileConfigLoader

from tests import ROOT

HUB = ROOT / "handbook" / "instructors"
TWO_GB = 2 * 2**30

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a JupyterHub's host is a Linux machine")


@pytest.fixture(scope="module")
def kernel():
    """Runs code in the hub's kernel; gives what the code shows, or the name of its error."""
    specs = KernelSpecManager(kernel_dirs=[str(HUB / "kernels")])
    outside = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs)
    manager.start_kernel(env=outside)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def run(code: str) -> str:
        shown = []

        def output(message):
            content = message["content"]
            shown.append(content.get("text") or content.get("ename") or content["data"]["text/plain"])

        client.execute_interactive(code, timeout=120, output_hook=lambda message: message["msg_type"] in (
            "stream", "execute_result", "error") and output(message))
        return "".join(shown).strip()

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_kernel_has_two_gigabytes_and_one_thread(kernel):
    assert shutil.which("prlimit"), "util-linux has it"
    assert kernel("import resource\nresource.getrlimit(resource.RLIMIT_DATA)") == str((TWO_GB, TWO_GB))
    assert kernel("import inferlab.lab, torch\ntorch.get_num_threads()") == "1"


def test_a_cell_that_wants_more_fails_and_the_kernel_goes_on(kernel):
    assert kernel("kept = 42\nimport torch") == ""
    assert kernel("torch.zeros(3 * 2**30, dtype=torch.uint8)") == "RuntimeError"
    assert kernel("bytearray(3 * 2**30)") == "MemoryError"
    assert kernel("kept, float(torch.ones(2**27).sum())") == str((42, float(2**27)))


def test_a_learners_server_has_room_for_a_kernel_and_comes_from_the_install_that_the_guide_makes():
    settings = PyFileConfigLoader("jupyterhub_config.py", path=str(HUB)).load_config()
    assert int(settings.Spawner.mem_limit.removesuffix("G")) * 2**30 > TWO_GB
    (program,) = settings.Spawner.cmd
    assert f"venv {Path(program).parents[1]}\n" in (HUB / "jupyterhub.md").read_text("utf-8")
