"""llmeter's endpoints for OpenAI (chat completions and responses) and Anthropic, which measure and count."""

from __future__ import annotations

from typing import Any

from report import API, CAP, KEY, MODEL, PROMPT, URL, report

match API:
    case "chat":
        from llmeter.endpoints.openai import OpenAICompletionEndpoint as Whole
        from llmeter.endpoints.openai import OpenAICompletionStreamEndpoint as Stream
    case "responses":
        from llmeter.endpoints.openai_response import OpenAIResponseEndpoint as Whole
        from llmeter.endpoints.openai_response import OpenAIResponseStreamEndpoint as Stream
    case _:
        from llmeter.endpoints.anthropic_messages import AnthropicMessages as Whole
        from llmeter.endpoints.anthropic_messages import AnthropicMessagesStream as Stream


def ask(kind: Any) -> dict[str, Any]:
    address = URL if API == "messages" else f"{URL}/v1"
    endpoint = kind(MODEL, api_key=KEY, base_url=address, max_retries=0)
    cap = {"max_output_tokens" if API == "responses" else "max_tokens": CAP}
    response = endpoint.invoke(kind.create_payload(PROMPT, **cap))
    if response.error:
        raise RuntimeError(response.error)
    return {
        "text": response.response_text,
        "input_tokens": response.num_tokens_input,
        "output_tokens": response.num_tokens_output,
        "first_token_s": response.time_to_first_token,
    }


report(whole=lambda: ask(Whole), stream=lambda: ask(Stream))
