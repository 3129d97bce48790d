// For the build: the first result of every calculator, as its page shows it before any script has run.
import { readFileSync } from "node:fs";
import { format } from "./static/calculators/format.mjs";
import { formulas } from "./static/calculators/formulas.mjs";

const asked = JSON.parse(readFileSync(0, "utf8"));
const answer = {};
for (const [name, { values, outputs }] of Object.entries(asked)) {
  const results = formulas[name](values);
  answer[name] = Object.fromEntries(outputs.map(([output, , kind]) => [output, [results[output], format(results[output], kind)]]));
}
console.log(JSON.stringify(answer));
