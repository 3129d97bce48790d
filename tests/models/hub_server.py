"""A small local server that speaks as much of the hub's protocol as its client needs to download one
repository.

The client asks for a repository's description and tree (JSON under /api/models), and for each file first the
headers (HEAD: commit, ETag, size), then the bytes, both under /{repo}/resolve/{revision}/{path}.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextlib.contextmanager
def serve(folder: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    """Serves ``folder`` as the repository ``name``; yields the endpoint and the log of requests ("GET
    /path")."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))
             if path.is_file()}
    log: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            log.append(f"{self.command} {path}")
            api, resolve = f"/api/models/{name}", f"/{name}/resolve/"
            if path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
                siblings = [{"rfilename": file} for file in files]
                self.send(body, json.dumps({"id": name, "modelId": name, "sha": COMMIT, "private": False,
                                            "gated": False,
                                            "tags": [], "downloads": 0, "siblings": siblings}).encode())
            elif path.startswith(f"{api}/tree/"):
                rows = [{"type": "file", "path": file, "size": where.stat().st_size, "oid": etag(where)}
                        for file, where in files.items()]
                self.send(body, json.dumps(rows).encode())
            elif path.startswith(resolve) and path.removeprefix(resolve).partition("/")[2] in files:
                where = files[path.removeprefix(resolve).partition("/")[2]]
                self.send(body, where.read_bytes(), "application/octet-stream", {"ETag": f'"{etag(where)}"'})
            else:
                code = "EntryNotFound" if path.startswith(resolve) else "RepoNotFound"
                self.send(body, b"{}", headers={"X-Error-Code": code}, status=404)

        def send(self, body, content, kind="application/json", headers=None, status=200) -> None:
            self.send_response(status)
            for key, value in ({"Content-Type": kind, "Content-Length": str(len(content)),
                                "X-Repo-Commit": COMMIT,
                                "Accept-Ranges": "none"} | (headers or {})).items():
                self.send_header(key, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", log
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def etag(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
