"""Says what a transformer pipeline's packed latents and position ids are, as far as shapes tell it."""

from .boundary import Boundary
from .specs import TensorSpec, tensors


def note_packing(boundaries: list[Boundary]) -> None:
    """Adds to `note`: how latents became tokens or came back, and what the ids of tokens are."""
    for boundary in boundaries:
        if boundary.kind != "method" or boundary.inferred:
            continue
        made = [t for t in tensors(boundary.outputs) if isinstance(t, TensorSpec)]
        method = boundary.name.rpartition(".")[2]
        if len(made) != 1 or ("pack" not in method and "ids" not in method):
            continue
        given = next((t for t in tensors(boundary.inputs) if isinstance(t, TensorSpec)), None)
        if "unpack" in method and given is not None:
            text = _packed(made[0].shape, given.shape, "{tokens} tokens back to latents: {how}")
        elif "pack" in method and given is not None:
            text = _packed(given.shape, made[0].shape, "latents as {tokens} tokens: {how}")
        else:
            text = _ids(made[0])
        boundary.note = "; ".join(filter(None, (boundary.note, text)))


def _packed(latents: tuple, packed: tuple, text: str) -> str:
    """The words for latents (B, C, H, W) or (B, C, F, H, W) that are tokens (B, N, channels) when packed."""
    if len(latents) not in (4, 5) or len(packed) != 3 or 0 in (*latents, *packed):
        return ""
    channels, places = latents[1], 1
    for size in latents[2:]:
        places *= size
    patch, rest = divmod(places, packed[1])
    if rest or channels * patch != packed[2]:
        return ""
    how = f"{packed[2]} numbers each = {channels} channels × a patch of {patch} places"
    return text.format(tokens=packed[1], how=how)


def _ids(ids: TensorSpec) -> str:
    """The words for a table of positions: one row a token, one column an axis."""
    if ids.ndim not in (2, 3) or ids.shape[-1] > 4:
        return ""
    return f"positions of {ids.shape[-2]} tokens, {ids.shape[-1]} coordinates each"
