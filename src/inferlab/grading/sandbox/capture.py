"""Records what a cell prints and displays, in nbformat's form and within a limit of bytes."""

from __future__ import annotations

import base64
import io
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher


class OutputRecorder:
    """The outputs of the cell that is running: `begin` starts a new cell, `end` gives its outputs."""

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, limit: int) -> None:
        """Start a cell that may output `limit` bytes."""
        self.outputs: list[dict[str, Any]] = []
        self.left, self.cut, self.clear_next = limit, False, False

    def end(self) -> list[dict[str, Any]]:
        """The outputs so far; the texts of a stream are joined."""
        outputs, self.outputs = [o for o in self.outputs if isinstance(o, dict)], []
        for output in outputs:
            if isinstance(output.get("text"), list):
                output["text"] = "".join(map(str, output["text"]))
        return outputs

    def stream(self, name: str, text: str) -> None:
        """Add text to a stream, "stdout" or "stderr"."""
        if not text or not self._take(len(text)):
            return
        self._clear_if_due()
        last = self.outputs[-1] if self.outputs else None
        if last is None or last["output_type"] != "stream" or last["name"] != name:
            last = {"output_type": "stream", "name": name, "text": []}
            self.outputs.append(last)
        last["text"].append(text)

    def display(self, kind: str, data: dict, metadata: dict | None, display_id: str | None = None,
                **extra: Any) -> None:
        """Add an output of `kind` ("display_data" or "execute_result") with its MIME bundle."""
        data = {mime: _as_text(value) for mime, value in data.items()}
        if not self._take(sum(len(v) for v in data.values() if isinstance(v, str))):
            return
        self._clear_if_due()
        output = {"output_type": kind, "data": data, "metadata": metadata or {}, **extra}
        if display_id is not None:
            output["display_id"] = display_id
        self.outputs.append(output)

    def update(self, data: dict, metadata: dict | None, display_id: str | None) -> None:
        """Replace the MIME bundle of the outputs that were displayed under this id."""
        new = {mime: _as_text(value) for mime, value in data.items()}
        for output in self.outputs:
            if display_id is not None and output.get("display_id") == display_id:
                output.update(data=new, metadata=metadata or {})

    def error(self, ename: str, evalue: str, traceback: list[str]) -> None:
        """Add an error; it has no limit, since it says why a cell ended."""
        self._clear_if_due()
        self.outputs.append({"output_type": "error", "ename": ename[:200], "evalue": evalue[:2000],
                             "traceback": traceback[-60:]})

    def clear(self, wait: bool) -> None:
        """Drop all outputs; with `wait`, when the next one comes."""
        self.clear_next = wait
        if not wait:
            self.outputs.clear()

    def _clear_if_due(self) -> None:
        if self.clear_next:
            self.outputs.clear()
            self.clear_next = False

    def _take(self, size: int) -> bool:
        """Whether the cell may output `size` more bytes. The first time it may not, the outputs say so."""
        if size <= self.left:
            self.left -= size
            return True
        if not self.cut:
            self.cut = True
            self.outputs.append({"output_type": "stream", "name": "stdout",
                                 "text": ["\n[more output than is kept; the rest was dropped]\n"]})
        return False


def _as_text(value: Any) -> Any:
    """Bytes in base 64, as a notebook holds a picture; anything else as it is."""
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes | bytearray) else value


class Stream(io.TextIOBase):
    """Stands in for `sys.stdout` or `sys.stderr` and writes to the recorder."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, recorder: OutputRecorder, name: str) -> None:
        self.recorder, self.name = recorder, f"<{name}>"
        self._stream = name

    def fileno(self) -> int:
        """The process's own descriptor, for child processes and `faulthandler`. It is not recorded."""
        return {"stdout": 1, "stderr": 2}[self._stream]

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Record `text`; returns its length. Raises TypeError for anything but a string."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.recorder.stream(self._stream, text)
        return len(text)


class CapturingPublisher(DisplayPublisher):
    """`display(...)` and `clear_output()` write to the recorder."""

    recorder: OutputRecorder

    def publish(self, data: dict, metadata: dict | None = None, source: str | None = None, *,
                transient: dict | None = None, update: bool = False, **kwargs: Any) -> None:
        """Record a MIME bundle, or replace the one that has the same display id."""
        display_id = (transient or {}).get("display_id")
        if update:
            self.recorder.update(data, metadata, display_id)
        else:
            self.recorder.display("display_data", data, metadata, display_id)

    def clear_output(self, wait: bool = False) -> None:
        """Drop the cell's outputs."""
        self.recorder.clear(wait)


class CapturingHook(DisplayHook):
    """The value of a cell's last line goes to the recorder as an `execute_result`."""

    recorder: OutputRecorder

    def start_displayhook(self) -> None:
        """Nothing stands before the value."""

    def write_output_prompt(self) -> None:
        """A notebook shows the number itself."""

    def write_format_data(self, format_dict: dict, md_dict: dict | None = None) -> None:
        """Record the value's MIME bundle."""
        self.recorder.display("execute_result", format_dict, md_dict, execution_count=self.prompt_count)

    def finish_displayhook(self) -> None:
        """Nothing stands after the value."""
