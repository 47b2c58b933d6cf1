// What the scripts of all clients in JavaScript share: the service, what is asked of it, and how answers are reported.
import { z } from "zod";

export const { url, key, api, model, prompt: PROMPT, cap } = JSON.parse(process.argv[2]);
export const WEATHER_PROMPT = "How is the weather in Oslo?";
export const RESULT = "11 degrees";
export const City = z.object({ city: z.enum(["Oslo", "Rome"]) });
export const Weather = z.object({ sunny: z.boolean(), wind: z.enum(["none", "some", "much"]) });
export const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string", enum: ["Oslo", "Rome"] } },
  required: ["city"],
  additionalProperties: false,
};
export const FUNCTION = { name: "get_weather", description: "Return the weather in a city.", parameters: PARAMETERS };

/** Run the cases and print what came of each; what a case throws is its error. */
export async function report(cases) {
  for (const [name, run] of Object.entries(cases)) {
    let outcome;
    try {
      outcome = await run();
    } catch (error) {
      outcome = { error: `${error.name}: ${error.message}`, traceback: error.stack };
    }
    console.log(JSON.stringify({ case: name, ...outcome }));
  }
}
