// The three networks in ONNX Runtime Web, on one thread.
import { makeTokenizer } from "./tokenizer.mjs";

export const NETWORKS = ["text_encoder", "unet", "vae_decoder"];

async function unpacked(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// What `run` of pipeline.mjs needs. `ort` is ONNX Runtime Web, `config` the parsed model.json, `data` its files by name.
export async function open(ort, config, data) {
  ort.env.wasm.numThreads = 1; // more need headers that a plain file host does not send
  ort.env.wasm.wasmBinary = await unpacked(data.get("ort.wasm.gz"));
  const sessions = {};
  for (const name of NETWORKS) {
    sessions[name] = await ort.InferenceSession.create(new Uint8Array(data.get(`${name}.onnx`)), { executionProviders: ["wasm"] });
  }
  return {
    config,
    tokenize: makeTokenizer(config.tokenizer, config.length),
    run: async (name, feeds) => {
      const given = Object.entries(feeds).map(([key, { dtype, data: values, dims }]) => [key, new ort.Tensor(dtype, values, dims)]);
      const found = await sessions[name].run(Object.fromEntries(given));
      return Object.fromEntries(sessions[name].outputNames.map((key) => {
        const { type: dtype, dims, data: values } = found[key];
        return [key, { dtype, dims: [...dims], data: values }];
      }));
    },
  };
}
