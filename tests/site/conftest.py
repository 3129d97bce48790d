"""The site, built once, on a server below a sub-path, and a browser to look at it with."""

import gzip
import mimetypes
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests import ROOT

SUB_PATH = "/some/course/"
OUT = ROOT / "build" / "site"


class Handler(BaseHTTPRequestHandler):
    """Serves the site as GitHub Pages does: below a sub-path, text packed by gzip. Notes what it was asked
    for, since a page does not see what its workers ask."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []

    def do_GET(self):
        path = self.path.split("?")[0].split("#")[0]
        self.asked.append(path)
        file = OUT / path.removeprefix(SUB_PATH)
        if not path.startswith(SUB_PATH) or not file.is_file():
            self.send_error(404)
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        kind = "text/javascript" if file.suffix == ".mjs" else kind
        data = file.read_bytes()
        self.send_response(200)
        if kind.startswith(("text/", "image/svg")) or kind.endswith(("json", "javascript")):
            data = gzip.compress(data, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@dataclass
class Built:
    """The finished site: its pages, and where the server has them."""

    url: str
    said: str
    pages: list[str] = field(default_factory=list)


def pytest_collection_modifyitems(items):
    """Whichever test comes first waits for the build: some 250 seconds of processor time, from nothing."""
    for item in items:
        if item.path.parent == Path(__file__).parent and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="package")
def site():
    done = subprocess.run(
        [sys.executable, ROOT / "site" / "build.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Built(
        f"http://127.0.0.1:{server.server_port}{SUB_PATH}",
        done.stdout + done.stderr,
        sorted(str(path.relative_to(OUT)) for path in OUT.rglob("*.html")),
    )
    server.shutdown()


@pytest.fixture(scope="package")
def browser():
    """Closed after the last test of this folder: until then no other test of its worker can open one."""
    playwright = pytest.importorskip("playwright.sync_api")
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield opened
        opened.close()


READY = """() => [...document.querySelectorAll("form.calculator output")]
    .every(output => output.dataset.value !== undefined)"""


class Tab:
    """A tab that notes what no page may do: errors in the console, and requests to anybody but the site."""

    def __init__(self, browser, url, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.url, self.faults = url, []
        self.scripts = options.get("java_script_enabled", True)
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.faults.append(m.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", lambda request: self._asked(request.url))

    def _asked(self, address):
        if not address.startswith((self.url, "data:", "blob:")):
            self.faults.append(f"asked {address}")

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # the page was left before its icon had come
            self.faults.append(f"failed: {request.url}")

    def open(self, path):
        """The page, once a calculator on it has worked out its first results."""
        self.page.goto(self.url + path, wait_until="load")
        if self.scripts:
            self.page.wait_for_function(READY)
        return self.page


@pytest.fixture
def tab(browser, site):
    """Makes tabs: `tab(width=390, scheme="dark")`."""
    made = []

    def new(width=1280, scheme="light", **options):
        made.append(
            Tab(browser, site.url, viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        )
        return made[-1]

    yield new
    faults = [fault for one in made for fault in one.faults]
    for one in made:
        one.context.close()
    assert not faults, faults


def axe_source() -> str:
    return (Path(ROOT) / "site" / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
