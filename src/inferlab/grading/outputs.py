"""Makes what a learner's kernel says it displayed into valid, harmless nbformat outputs, whatever it really sent."""

from __future__ import annotations

from typing import Any

_KEPT = {"text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/jpeg"}
_MOST_OUTPUTS, _MOST_TEXT, _MOST_IMAGE = 400, 2**20, 4 * 2**20


def clean(outputs: Any) -> list[dict[str, Any]]:
    """Only well-formed outputs of known kinds, without scripts, widgets and metadata, of bounded number and size."""
    result = [c for o in outputs[:_MOST_OUTPUTS] if isinstance(o, dict) and (c := _output(o))]
    if len(outputs) > _MOST_OUTPUTS:
        result.append({"output_type": "stream", "name": "stdout",
                       "text": f"[{len(outputs) - _MOST_OUTPUTS} more outputs were dropped]\n"})
    return result


def _output(output: dict[str, Any]) -> dict[str, Any] | None:
    kind = output.get("output_type")
    if kind == "stream" and output.get("name") in ("stdout", "stderr"):
        return {"output_type": "stream", "name": output["name"], "text": _text(output.get("text"))}
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
        data = {m: _text(v, _MOST_IMAGE if m.startswith("image/") else _MOST_TEXT)
                for m, v in output["data"].items() if m in _KEPT and isinstance(v, str)}
        count = output.get("execution_count")
        cleaned = {"output_type": kind, "data": data or {"text/plain": "[not shown]"}, "metadata": {}}
        return cleaned | ({"execution_count": count if type(count) is int else None} if kind == "execute_result" else {})
    if kind == "error":
        trace = output.get("traceback")
        return {"output_type": "error", "ename": _text(output.get("ename"), 200),
                "evalue": _text(output.get("evalue"), 2000),
                "traceback": [_text(t, 20_000) for t in trace[:60]] if isinstance(trace, list) else []}
    return None


def _text(value: Any, most: int = _MOST_TEXT) -> str:
    text = value if isinstance(value, str) else ""
    return text if len(text) <= most else text[:most] + "…"
