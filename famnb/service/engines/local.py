"""The local engine: models on this machine answer, each by llama.cpp in a child process of its own.

prompt ── its model's process (started again if it has died) ── `UpstreamEngine`, as with any other server
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil

from famnb.client.auth import Credential
from famnb.errors import ConnectError, InvalidRequest
from famnb.events import Event
from famnb.formatting import format_size
from famnb.service.engines.llama_cpp import EngineOptions, start_engine
from famnb.service.engines.upstream import DOCUMENT_MODELS, UpstreamEngine
from famnb.service.errors import ServiceError
from famnb.service.local_models import check_engine, find_model
from famnb.service.process import ChildProcess
from famnb.service.prompt import GenerationPrompt

_log = logging.getLogger("famnb.service")


class LocalEngine:
    """Generates replies by models on this machine; created and used in one event loop."""

    name = "llama.cpp"
    takes_any_model = True

    def __init__(
        self, models: Sequence[str | Path], *, context: int | None = None, threads: int | None = None, parallel: int = 2
    ) -> None:
        """Load the models, which are known names or GGUF files; the first answers in place of the document's.

        Raises InvalidRequest for an unknown one, or if memory is too little for the weights alone; ConnectError for
        one that does not load.
        """
        check_engine()
        files = [find_model(model) for model in models]
        names = [name for name, _ in files]
        if len(set(names)) < len(names):
            raise InvalidRequest(f"model: two models have one name: {', '.join(names)}; rename a file")
        # At least the weights; how much more depends on the kind of model.
        needed, free = sum(path.stat().st_size for _, path in files), psutil.virtual_memory().available
        if needed > free:
            raise InvalidRequest(
                f"model: {', '.join(names)} would take over {format_size(needed)} of memory, and {format_size(free)} "
                "are free: close other programs, or choose a smaller model"
            )
        self._models: dict[str, _LocalModel] = {}
        try:
            for name, path in files:
                options = EngineOptions(name, str(path), context=context, threads=threads, parallel=parallel)
                self._models[name] = _LocalModel(options)
        except BaseException:
            for model in self._models.values():
                model.process.close()
            raise

    async def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        engine = await self._find_model(prompt).ready()
        async with aclosing(engine.generate(prompt)) as events:
            async for event in events:
                yield event

    async def state(self) -> dict[str, Any]:
        return {"models": {name: "up" if model.process.running else "down" for name, model in self._models.items()}}

    async def models(self) -> tuple[str, ...]:
        return tuple(self._models)

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()

    def _find_model(self, prompt: GenerationPrompt) -> _LocalModel:
        """Return the model that a prompt names; the first for a name of the document's.

        Raises ServiceError if it does not run here, or cannot call the tools that the prompt has.
        """
        model = next(iter(self._models.values())) if prompt.model in DOCUMENT_MODELS else self._models.get(prompt.model)
        if model is None:
            names = ", ".join(self._models)
            raise ServiceError(
                400, f"model: {prompt.model!r} does not run here; expected one of {names}", code="model_not_found"
            )
        # llama.cpp would answer as if none had been given.
        if prompt.tools and prompt.tool_choice != "none" and not model.process.message["has_tools"]:
            raise ServiceError(
                400,
                f"tools: {model.options.name} calls none, for its chat template has no place for them; ask for an "
                "answer of a JSON schema, or run a model that has (famnb serve --model FILE.gguf)",
            )
        return model


class _LocalModel:
    """One model, its process, and the engine that calls it."""

    def __init__(self, options: EngineOptions) -> None:
        self.options = options
        self._starting = asyncio.Lock()
        self._connect(start_engine(options))

    def _connect(self, process: ChildProcess) -> None:
        self.process = process
        # A connection each: llama.cpp now and then closes one as the next request comes (xllamacpp 2026.10).
        headers = {"connection": "close"}
        # By default llama.cpp keeps what it has read: of two calls with one prompt the second would begin sooner,
        # whichever setting is tried second. A conversation goes on from what was read.
        fields = {"cache_prompt": False}
        self._engine = UpstreamEngine(
            process.message["url"],
            credential=Credential(process.message["key"]),
            models=self.options.name,
            headers=headers,
            opening_fields=fields,
        )

    async def ready(self) -> UpstreamEngine:
        """Return the engine, with its process started again if that has died. Raises ServiceError if it cannot be."""
        async with self._starting:
            if not self.process.running:
                name = self.options.name
                _log.warning("famnb: the engine of %s has ended; it is started again", name)
                await self.aclose()
                try:
                    self._connect(await asyncio.to_thread(start_engine, self.options))
                except ConnectError as error:
                    _log.warning("famnb: %s", error)
                    raise ServiceError(500, f"the engine of {name} has ended, and cannot be started again") from None
        return self._engine

    async def aclose(self) -> None:
        """End the process."""
        await self._engine.aclose()
        await asyncio.to_thread(self.process.close)
