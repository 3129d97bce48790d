// The bundled CLIP tokenizer, from its own `tokenizer.json`: words, then bytes, then merges.

const SPACE = /\p{White_Space}+/gu;
// What the file's two regular expressions say: CLIP's words, and inside them GPT-2's.
const WORDS = /<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\p{White_Space}\p{L}\p{N}]+/gu;
const PIECES = /'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}+|[^\p{White_Space}\p{L}\p{N}]+/gu;

// GPT-2's letters for the 256 bytes: printable ones stand for themselves, the others for letters from 256 on.
const LETTERS = (() => {
  const letters = [];
  let more = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    letters.push(String.fromCharCode(printable ? byte : more++));
  }
  return letters;
})();

// `json` is the parsed `tokenizer.json`, `length` the model's longest input. The result is a function:
// caption -> { ids: `length` numbers, tokens: their names, used: how many are the caption's own, cut: how many did not fit }.
export function makeTokenizer(json, length) {
  const { vocab, merges, end_of_word_suffix: suffix } = json.model;
  const rank = new Map(merges.map((pair, at) => [Array.isArray(pair) ? pair.join(" ") : pair, at]));
  const names = Object.entries(vocab).reduce((all, [name, id]) => ((all[id] = name), all), []);
  for (const { id, content } of json.added_tokens) names[id] = content;
  const special = new Map(json.added_tokens.map(({ content, id }) => [content, id]));
  const [start, end] = ["<|startoftext|>", "<|endoftext|>"].map((name) => special.get(name));
  const apart = new RegExp(`(${[...special.keys()].map((name) => name.replace(/[|]/g, "\\|")).join("|")})`);

  const merged = (piece) => {
    const parts = [...new TextEncoder().encode(piece)].map((byte) => LETTERS[byte]);
    parts[parts.length - 1] += suffix;
    for (;;) {
      let [best, where] = [Infinity, -1];
      for (let at = 0; at + 1 < parts.length; at++) {
        const found = rank.get(`${parts[at]} ${parts[at + 1]}`) ?? Infinity;
        if (found < best) [best, where] = [found, at];
      }
      if (where < 0) return parts.map((part) => vocab[part] ?? end);
      parts.splice(where, 2, parts[where] + parts[where + 1]);
    }
  };
  // Letter by letter: a Greek sigma at a word's end stays the one that the file's normalizer makes.
  const lower = (text) => Array.from(text, (letter) => letter.toLowerCase()).join("");

  return (caption) => {
    const ids = caption.split(apart).flatMap((part) => {
      if (special.has(part)) return [special.get(part)];
      const text = lower(part.normalize("NFC").replace(SPACE, " "));
      return (text.match(WORDS) ?? []).flatMap((word) => word.match(PIECES) ?? []).flatMap(merged);
    });
    const kept = ids.slice(0, length - 2);
    const padded = [start, ...kept, ...Array(length - 1 - kept.length).fill(end)];
    return { ids: padded, tokens: padded.map((id) => names[id]), used: kept.length, cut: ids.length - kept.length };
  };
}
