// The bundled T5 tokenizer, from its own `tokenizer.json`: of all ways to cut a word into known pieces, the likeliest.

const SPACE = /\p{White_Space}+/u;
const UNKNOWN = 10; // so much less likely than the least likely piece is a letter that is in no piece

// `json` is the parsed `tokenizer.json`, `length` how many tokens the text encoder gets. The result is a function:
// caption -> { ids: `length` numbers, tokens: their names, used: how many are the caption's own, cut: how many did not fit }.
export function makeUnigram(json, length) {
  const { vocab, unk_id: unknown } = json.model;
  const names = vocab.map(([name]) => name);
  const known = new Map(vocab.map(([name, score], id) => [name, { id, score }]));
  const longest = Math.max(...names.map((name) => Array.from(name).length));
  const unlikely = Math.min(...vocab.map(([, score]) => score)) - UNKNOWN;
  const special = new Map(json.added_tokens.map(({ content, id }) => [content, id]));
  const apart = new RegExp(`(${[...special.keys()].join("|")})`);
  const [pad, end] = [special.get("<pad>"), special.get("</s>")];

  function pieces(word) {
    const letters = Array.from(word);
    const best = [{ score: 0 }];
    const offer = (to, from, id, score) => {
      const sum = best[from].score + score;
      if (!best[to] || sum > best[to].score) best[to] = { from, id, score: sum };
    };
    for (let from = 0; from < letters.length; from++) {
      let single = false;
      for (let to = from + 1; to <= Math.min(letters.length, from + longest); to++) {
        const piece = known.get(letters.slice(from, to).join(""));
        if (!piece) continue;
        offer(to, from, piece.id, piece.score);
        single ||= to === from + 1;
      }
      if (!single) offer(from + 1, from, unknown, unlikely);
    }
    const ids = [];
    for (let to = letters.length; to > 0; to = best[to].from) {
      // Unknown letters beside each other are one token.
      if (best[to].id !== unknown || ids[0] !== unknown) ids.unshift(best[to].id);
    }
    return ids;
  }

  return (caption) => {
    const ids = caption.split(apart).flatMap((part) => {
      if (special.has(part)) return [special.get(part)];
      return part.split(SPACE).filter(Boolean).flatMap((word) => (word.startsWith("▁") ? word : `▁${word}`).split(/(?=▁)/u)).flatMap(pieces);
    });
    const kept = ids.slice(0, length - 1);
    const padded = [...kept, end, ...Array(length - 1 - kept.length).fill(pad)];
    return { ids: padded, tokens: padded.map((id) => names[id]), used: kept.length, cut: ids.length - kept.length };
  };
}
