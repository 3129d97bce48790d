// Fetches the model's files once and keeps them in the browser's cache, so that later visits ask the site for none of them.

const CACHE = "inferlab-model";
export const usesCache = () => "caches" in globalThis; // only a page from https or localhost has it

// Those of `urls` that are not in the cache.
export async function missing(urls) {
  if (!usesCache()) return urls;
  const cache = await caches.open(CACHE);
  const found = await Promise.all(urls.map((url) => cache.match(url)));
  return urls.filter((_, at) => !found[at]);
}

// The bytes of the files. `files` is [{ name, url, bytes }]; `told(got, of, fromCache)` hears of each piece.
// Returns { data: Map of name -> ArrayBuffer, asked: how many came from the site, unkept: why one could not be kept, or "" }.
// Files of older weights leave the cache: all but `current`, the addresses of every file that there is now. Throws an Error that names the file which the site did not give.
export async function fetchAll(files, current, told) {
  const cache = usesCache() ? await caches.open(CACHE) : null;
  const of = files.reduce((sum, file) => sum + file.bytes, 0);
  const data = new Map();
  let [got, asked] = [0, 0];
  let unkept = cache ? "" : "this address is neither https nor localhost";
  for (const { name, url, bytes } of files) {
    const kept = await cache?.match(url);
    if (kept) {
      data.set(name, await kept.arrayBuffer());
      told((got += bytes), of);
      continue;
    }
    asked += 1;
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`${name} did not come: the site answered ${answer.status}`);
    const pieces = [];
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      pieces.push(value);
      told((got += value.length), of);
    }
    const blob = new Blob(pieces);
    if (blob.size !== bytes) throw new Error(`${name} is ${blob.size} bytes long, not ${bytes}: load it again`);
    if (cache && !unkept) await cache.put(url, new Response(blob)).catch((error) => (unkept = error.message));
    data.set(name, await blob.arrayBuffer());
  }
  for (const { url } of (await cache?.keys()) ?? []) if (!current.has(url)) await cache.delete(url);
  return { data, asked, unkept };
}
