// Draws formulas: one JSON object {tex, display} a line in, one {html} or {error} a line out.
import { createInterface } from "node:readline";
import katex from "katex";

for await (const line of createInterface({ input: process.stdin })) {
  const { tex, display } = JSON.parse(line);
  try {
    const html = katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: "ignore" });
    console.log(JSON.stringify({ html }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
