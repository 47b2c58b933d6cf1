// OpenAI's own SDK for JavaScript, at chat completions and at responses.
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { api, cap, FUNCTION, key, model, PROMPT, report, RESULT, url, Weather, WEATHER_PROMPT } from "./report.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const user = (content) => [{ role: "user", content }];
const nested = { type: "function", function: { ...FUNCTION, strict: true } };
const flat = { type: "function", strict: true, ...FUNCTION };

const chat = {
  ask(stream, fields) {
    const body = { model, max_completion_tokens: cap, ...fields };
    if (!stream) return client.chat.completions.parse(body);
    return client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion();
  },
  async text(stream) {
    const reply = await chat.ask(stream, { messages: user(PROMPT) });
    const { message, finish_reason } = reply.choices[0];
    return { text: message.content, finish: finish_reason, output_tokens: reply.usage?.completion_tokens };
  },
  async tools(stream) {
    const messages = user(WEATHER_PROMPT);
    const first = await chat.ask(stream, { messages, tools: [nested], tool_choice: "required" });
    const { message } = first.choices[0];
    const results = message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: RESULT }));
    const last = await chat.ask(stream, { messages: [...messages, message, ...results], tools: [nested] });
    const calls = message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
    return { calls, text: last.choices[0].message.content };
  },
  async answer(stream) {
    const form = { response_format: zodResponseFormat(Weather, "weather") };
    const reply = await chat.ask(stream, { messages: user(WEATHER_PROMPT), ...form });
    return { answer: reply.choices[0].message.parsed };
  },
};

const responses = {
  ask(stream, fields) {
    const body = { model, max_output_tokens: cap, ...fields };
    return stream ? client.responses.stream(body).finalResponse() : client.responses.parse(body);
  },
  async text(stream) {
    const reply = await responses.ask(stream, { input: PROMPT });
    const finish = reply.incomplete_details?.reason ?? reply.status;
    return { text: reply.output_text, finish, output_tokens: reply.usage?.output_tokens };
  },
  async tools(stream) {
    const first = await responses.ask(stream, {
      input: user(WEATHER_PROMPT),
      tools: [flat],
      tool_choice: { type: "function", name: "get_weather" },
    });
    const made = first.output.filter((item) => item.type === "function_call");
    const results = made.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: RESULT }));
    const input = [...user(WEATHER_PROMPT), ...first.output, ...results];
    const last = await responses.ask(stream, { input, tools: [flat] });
    return { calls: made.map((call) => [call.name, JSON.parse(call.arguments)]), text: last.output_text };
  },
  async answer(stream) {
    const form = { text: { format: zodTextFormat(Weather, "weather") } };
    return { answer: (await responses.ask(stream, { input: WEATHER_PROMPT, ...form })).output_parsed };
  },
};

const { text, tools, answer } = api === "chat" ? chat : responses;
await report({
  whole: () => text(false),
  stream: () => text(true),
  tools: () => tools(false),
  streamed_tools: () => tools(true),
  object: () => answer(false),
  streamed_object: () => answer(true),
  models: async () => ({ models: (await client.models.list()).data.map(({ id }) => id) }),
});
