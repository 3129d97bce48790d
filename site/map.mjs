// For the build: places for the concept map's boxes and lines. A graph in ELK's JSON in, the same with places out.
import { readFileSync } from "node:fs";
import ELK from "elkjs/lib/elk.bundled.js";

const graph = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(await new ELK().layout(graph)));
