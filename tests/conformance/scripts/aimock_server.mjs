// A server with scripted answers in the dialects of several vendors, until its standard input ends.

import { LLMock } from "@copilotkit/aimock";

const { key } = JSON.parse(process.argv[2]);
const server = new LLMock({ port: 0, host: "127.0.0.1", auth: { apiKeys: [key] } });
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18, input_tokens: 11, output_tokens: 7, cost: 0.25 };
const call = { name: "weather", arguments: '{"city":"Oslo"}' };
const error = { message: "no such thing", type: "invalid_request_error", code: "bad" };
server.on({ userMessage: /blue/ }, { content: "It scatters.", reasoning: "Blue light is short.", usage });
server.on({ userMessage: /weather/, hasToolResult: false }, { toolCalls: [call], usage });
server.on({ userMessage: /weather/, hasToolResult: true }, { content: "It is cold in Oslo.", usage });
server.on({ userMessage: /hello/ }, { content: "Hello from afar.", usage });
server.on({ userMessage: /fail/ }, { error, status: 400 });
await server.start();
console.log(JSON.stringify({ url: server.url }));
process.stdin.resume().on("end", () => process.exit(0));
