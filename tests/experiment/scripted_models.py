"""A service whose answers a test writes: what each variant says to a prompt, and what the judge says of answers."""

import json
import re
from collections.abc import Callable
from typing import Any

import famnb
from tests.support import wire_payloads
from tests.support.fault_server import FaultServer, Received, Script, whole

Serve = Callable[..., tuple[famnb.Client, FaultServer]]
"""Starts a service of written answers and verdicts, and a client of it; see the fixture `serve`."""
Answering = Callable[[str, str], str]
"""From the system text, which tells the variants apart, and the prompt to the answer."""
Judging = Callable[[dict[str, str]], str | Script]
"""From what a judge is shown, by name, to its reply."""


def shown(text: str) -> dict[str, str]:
    """What a judge is shown: prompt, answer or answers, and what was expected."""
    return dict(re.findall(r"<([a-zA-Z ]+) [0-9a-f]+>\n(.*?)\n</\1 [0-9a-f]+>", text, re.S))


def service(answering: Answering, judging: Judging = lambda _: "") -> FaultServer:
    """A server of whole chat completions."""

    def choose(request: Received) -> Script:
        body = json.loads(request.body)
        system = next((message["content"] for message in body["messages"] if message["role"] == "system"), "")
        prompt = body["messages"][-1]["content"]
        answer = judging(shown(prompt)) if "Reply with one JSON object" in prompt else answering(system, prompt)
        counts = {"usage": {"prompt_tokens": 100, "completion_tokens": 10}}
        return answer if not isinstance(answer, str) else whole(wire_payloads.body("chat", answer) | counts)

    return FaultServer(choose=choose)


def experiment(client: famnb.Client, prompts: Any, *variants: str, **options: Any) -> famnb.Experiment:
    """An experiment whose variants are told apart by their system text."""
    chosen = {name: {"model": "fam-mini", "system": name} for name in variants}
    exp = famnb.Experiment(prompts, chosen, name="spoken", client=client, stream=False, **options)
    assert exp.run(progress=False).failed == 0
    return exp


def answer(system: str, prompt: str) -> str:
    """An answer that is as long as its variant says."""
    return prompt * len(system)


def verdict(winner: str) -> str:
    return json.dumps({"reason": "so", "winner": winner})


def longer(fields: dict[str, str]) -> str:
    """A judge that likes the longer answer, wherever it stands."""
    a, b = len(fields["answer A"]), len(fields["answer B"])
    return verdict("A" if a > b else "B" if b > a else "tie")
