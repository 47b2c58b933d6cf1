// Anthropic's own SDK for JavaScript.
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { cap, FUNCTION, key, model, PARAMETERS, PROMPT, report, RESULT, url, Weather, WEATHER_PROMPT } from "./report.mjs";

const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const user = (content) => ({ role: "user", content });
const tool = { name: FUNCTION.name, description: FUNCTION.description, input_schema: PARAMETERS };
const textOf = (message) => message.content.map((block) => block.text ?? "").join("");

function ask(stream, messages, fields) {
  const body = { model, max_tokens: cap, messages, ...fields };
  if (stream) return client.messages.stream(body).finalMessage();
  return fields?.output_config ? client.messages.parse(body) : client.messages.create(body);
}

async function text(stream) {
  const message = await ask(stream, [user(PROMPT)]);
  return { text: textOf(message), finish: message.stop_reason, output_tokens: message.usage.output_tokens };
}

async function tools(stream) {
  const messages = [user(WEATHER_PROMPT)];
  const first = await ask(stream, messages, { tools: [tool], tool_choice: { type: "any" } });
  const calls = first.content.filter((block) => block.type === "tool_use");
  const results = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: RESULT }));
  const answered = [...messages, { role: "assistant", content: first.content }, user(results)];
  const last = await ask(stream, answered, { tools: [tool] });
  return { calls: calls.map((call) => [call.name, call.input]), text: textOf(last) };
}

async function answer(stream) {
  const form = { output_config: { format: zodOutputFormat(Weather) } };
  return { answer: (await ask(stream, [user(WEATHER_PROMPT)], form)).parsed_output };
}

await report({
  whole: () => text(false),
  stream: () => text(true),
  tools: () => tools(false),
  streamed_tools: () => tools(true),
  object: () => answer(false),
  streamed_object: () => answer(true),
  models: async () => ({ models: (await client.models.list()).data.map(({ id }) => id) }),
});
