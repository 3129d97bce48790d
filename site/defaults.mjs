// For the build: the first result of every calculator and its curve, as its page shows them before any script has run.
import { readFileSync } from "node:fs";
import { drawn } from "./static/calculators/curve.mjs";
import { format } from "./static/calculators/format.mjs";
import { formulas } from "./static/calculators/formulas.mjs";

const asked = JSON.parse(readFileSync(0, "utf8"));
const answer = {};
for (const [name, { values, outputs, field, beside, curve }] of Object.entries(asked)) {
  const compute = formulas[name];
  const results = compute(values);
  const named = outputs.map(([output, label, kind]) => ({ name: output, label, kind }));
  const draw = (more) => drawn({ compute, given: values, field, shown: named[0], beside: beside.map((one, series) => ({ ...named.find((output) => output.name === one), series }))
    .filter((one) => one.name !== named[0].name), log: curve.log, knee: curve.knee, ...more }).svg;
  answer[name] = { results: Object.fromEntries(named.map(({ name: output, kind }) => [output, [results[output], format(results[output], kind)]])),
    curve: draw({ width: 440, height: 250 }), bare: draw({ width: 240, height: 72, bare: true }) };
}
console.log(JSON.stringify(answer));
