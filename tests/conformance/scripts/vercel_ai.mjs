// Vercel's AI SDK with its providers for OpenAI (chat completions and responses), for servers like it, and Anthropic.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { api, cap, City, key, model, PROMPT, report, RESULT, url, Weather, WEATHER_PROMPT } from "./report.mjs";

const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: key });
const chosen = {
  chat: () => openai.chat(model),
  responses: () => openai.responses(model),
  messages: () => createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(model),
  compatible: () =>
    createOpenAICompatible({
      name: "famnb",
      baseURL: `${url}/v1`,
      apiKey: key,
      includeUsage: true,
      supportsStructuredOutputs: true,
    })(model),
}[api]();

async function ask(stream, fields) {
  const options = { model: chosen, maxOutputTokens: cap, maxRetries: 0, ...fields };
  if (!stream) return generateText(options);
  let failure;
  const result = streamText({ ...options, onError: ({ error }) => (failure = error) });
  await result.consumeStream();
  if (failure) throw failure;
  return result;
}

async function text(stream) {
  const result = await ask(stream, { prompt: PROMPT });
  const { outputTokens } = await result.usage;
  return { text: await result.text, finish: await result.finishReason, output_tokens: outputTokens };
}

async function tools(stream) {
  const calls = [];
  const execute = async (given) => {
    calls.push(["get_weather", given]);
    return RESULT;
  };
  const get_weather = tool({ description: "Return the weather in a city.", inputSchema: City, execute });
  const result = await ask(stream, {
    prompt: WEATHER_PROMPT,
    tools: { get_weather },
    stopWhen: stepCountIs(2),
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "auto" }),
  });
  return { calls, text: await result.text };
}

async function answer(stream) {
  const result = await ask(stream, { prompt: WEATHER_PROMPT, output: Output.object({ schema: Weather }) });
  return { answer: await result.output };
}

await report({
  whole: () => text(false),
  stream: () => text(true),
  tools: () => tools(false),
  streamed_tools: () => tools(true),
  object: () => answer(false),
  streamed_object: () => answer(true),
});
