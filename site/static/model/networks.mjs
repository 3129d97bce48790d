// The networks in ONNX Runtime Web, on one thread.
import { makeTokenizer } from "./tokenizer.mjs";
import { makeUnigram } from "./unigram.mjs";

async function unpacked(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// What `run` of pipeline.mjs needs. `ort` is ONNX Runtime Web, `config` the parsed model.json, `data` the files of a family by
// name, `sessions` the networks that run already, by name; those of `data` join them.
export async function open(ort, config, data, sessions) {
  ort.env.wasm.numThreads = 1; // more need headers that a plain file host does not send
  ort.env.wasm.wasmBinary ??= await unpacked(data.get("ort.wasm.gz"));
  for (const [file, bytes] of data) {
    const name = file.replace(/[.]onnx$/, "");
    if (name === file || sessions.has(name)) continue;
    sessions.set(name, await ort.InferenceSession.create(new Uint8Array(bytes), { executionProviders: ["wasm"] }));
  }
  return {
    config,
    tokenize: makeTokenizer(config.tokenizer, config.length),
    tokenize2: makeUnigram(config.tokenizer_2, config.length_2),
    run: async (name, feeds) => {
      const session = sessions.get(name);
      const given = Object.entries(feeds).map(([key, { dtype, data: values, dims }]) => [key, new ort.Tensor(dtype, values, dims)]);
      const found = await session.run(Object.fromEntries(given));
      return Object.fromEntries(session.outputNames.map((key) => {
        const { type: dtype, dims, data: values } = found[key];
        return [key, { dtype, dims: [...dims], data: values }];
      }));
    },
  };
}
