// A model that needs no network: it counts. Asked to "count to 20", it says the numbers in
// words, one at a time. A provider of the AI SDK takes its place: see the README.

const ones = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"];
const tens = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

function word(n) {
  return n < 20 ? ones[n] : tens[Math.floor(n / 10)] + (n % 10 === 0 ? "" : `-${ones[n % 10]}`);
}

/** What the model says to a prompt. */
export function script(prompt) {
  const last = Math.min(99, Number(/count to (\d+)/.exec(prompt)?.[1] ?? 10));
  return Array.from({ length: last }, (_, i) => word(i + 1)).join(" ");
}

/** Returns a model that waits before each word until ready resolves. */
export function countingModel(ready) {
  return {
    specificationVersion: "v4",
    provider: "example",
    modelId: "counting",
    supportedUrls: {},
    doGenerate() {
      throw new Error("this model only streams");
    },
    async doStream({ prompt, abortSignal }) {
      const text = (role) => prompt.findLast((message) => message.role === role)?.content.map((part) => part.text ?? "").join("") ?? "";
      // An answer that was interrupted is the last message: the model goes on behind it.
      const said = prompt.at(-1)?.role === "assistant" ? text("assistant") : "";
      const rest = script(text("user")).slice(said.length).match(/ ?\S+/g) ?? [];
      const usage = { inputTokens: { total: prompt.length }, outputTokens: { total: rest.length } };
      const parts = async function* () {
        yield { type: "stream-start", warnings: [] };
        yield { type: "text-start", id: "text" };
        for (const delta of rest) {
          await ready(abortSignal);
          yield { type: "text-delta", id: "text", delta };
        }
        yield { type: "text-end", id: "text" };
        yield { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } };
      };
      return { stream: ReadableStream.from(parts()) };
    },
  };
}
