"""A stand-in for the model hub on this computer: the few routes a download needs, with faults on demand."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlparse

import pytest

COMMIT = "c0ffee" * 6 + "cafe"
LARGE = 20_000  # bytes from which a file is kept as large ones are: by its SHA-256, behind a redirect


@dataclass
class FakeHub:
    """repositories: files by name, by repository. requests: (method, path, Range, Authorization), as they came.

    refusals: (status, X-Error-Code) by repository. Faults: `break_after` counts the bytes after which answers break
    off, one each; `ranges` False ignores Range; `hold` is waited for before the second half of a large file.
    """

    url: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    break_after: list[int] = field(default_factory=list)
    ranges: bool = True
    hold: threading.Event | None = None
    held: threading.Event = field(default_factory=threading.Event)
    spoil: bool = False
    commit: str = COMMIT
    statuses: list[int] = field(default_factory=list)

    def add(self, repo: str, folder: Path) -> dict[str, bytes]:
        """Offer the files of a folder; returns them."""
        self.repositories[repo] = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        return self.repositories[repo]

    def asked(self, name: str) -> list[str | None]:
        """The Range of every request that was answered with bytes of the file `name`."""
        return [wanted for method, path, wanted, _ in self.requests if path.endswith(name) and "/cdn/" in path]


def described(name: str, data: bytes) -> dict[str, object]:
    """A file as the hub's API describes it."""
    blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
    entry: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": blob}
    if len(data) >= LARGE:
        entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return entry


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def do_GET(self) -> None:
        hub, path = self.hub, urlparse(self.path).path
        hub.requests.append((self.command, path, self.headers.get("Range"), self.headers.get("Authorization")))
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self._model("/".join(parts[2:4]))
        elif "resolve" in parts:
            self._resolve("/".join(parts[:2]), parts[-1])
        elif parts[0] == "cdn":
            self._bytes("/".join(parts[1:3]), parts[-1])
        else:
            self._refuse(404, "")

    do_HEAD = do_GET

    def _model(self, repo: str) -> None:
        if repo in self.hub.refusals:
            return self._refuse(*self.hub.refusals[repo])
        if repo not in self.hub.repositories:
            return self._refuse(401, "RepoNotFound")
        files = [described(name, data) for name, data in self.hub.repositories[repo].items()]
        body = json.dumps({"id": repo, "modelId": repo, "sha": self.hub.commit, "siblings": files}).encode()
        self._start(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)
        return None

    def _resolve(self, repo: str, name: str) -> None:
        if name not in self.hub.repositories.get(repo, {}):
            return self._refuse(404, "EntryNotFound")
        data = self.hub.repositories[repo][name]
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": self.hub.commit}
        self._start(302, {**headers, "Location": f"{self.hub.url}/cdn/{repo}/{name}", "Content-Length": "0"})
        return None

    def _bytes(self, repo: str, name: str) -> None:
        hub = self.hub
        if hub.statuses:
            return self._refuse(hub.statuses.pop(0), "")
        data = hub.repositories[repo][name]
        if hub.spoil and len(data) >= LARGE:
            data = bytes(len(data))
        wanted = self.headers.get("Range")
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and hub.ranges else 0
        rest = data[begin:]
        headers = {"Content-Length": str(len(rest)), "ETag": '"x"', "Accept-Ranges": "bytes"}
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self._start(206 if begin else 200, headers)
        if len(data) >= LARGE and hub.break_after:
            self.wfile.write(rest[: hub.break_after.pop(0)])
            self.wfile.flush()
            return None
        if len(data) >= LARGE and hub.hold is not None:
            self.wfile.write(rest[: len(rest) // 2])
            self.wfile.flush()
            hub.held.set()
            hub.hold.wait(20)
            rest = rest[len(rest) // 2 :]
        self.wfile.write(rest)
        return None

    def _refuse(self, status: int, code: str) -> None:
        self._start(status, {"Content-Length": "0", **({"X-Error-Code": code} if code else {})})

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Silence."""


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle is what some tests are about."""


@contextmanager
def serving() -> Iterator[FakeHub]:
    """A running hub, and HF_ENDPOINT pointing to it for the time."""
    hub = FakeHub()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="fake-hub")
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.url)
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.delenv("HF_TOKEN", raising=False)
        try:
            yield hub
        finally:
            if hub.hold is not None:
                hub.hold.set()
            server.shutdown()
            server.server_close()
            thread.join()
