// Draws tensors: what is a picture as a picture, everything else as values between blue (below 0) and orange (above 0).

const [LOW, ZERO, HIGH] = [[23, 78, 140], [253, 252, 249], [190, 75, 0]];
const GAP = 1;

function valueColor(value, most) {
  const share = Math.min(1, Math.abs(value) / most);
  const end = value < 0 ? LOW : HIGH;
  return ZERO.map((from, at) => from + (end[at] - from) * share);
}

// Minimum, maximum, mean and standard deviation (divided by n - 1, as torch does) of a tensor's values.
export function summary({ data }) {
  let [min, max, sum, squares] = [Infinity, -Infinity, 0, 0];
  for (const raw of data) {
    const value = Number(raw);
    min = Math.min(min, value);
    max = Math.max(max, value);
    sum += value;
  }
  const mean = sum / data.length;
  for (const raw of data) squares += (Number(raw) - mean) ** 2;
  return { min, max, mean, std: data.length > 1 ? Math.sqrt(squares / (data.length - 1)) : 0 };
}

// Where the values of a tensor lie: tiles of `height` x `width` values in `columns` columns.
export function layoutOf({ dims }) {
  if (dims.length === 4) {
    const [rows, channels, height, width] = dims;
    const columns = channels <= 4 ? channels : Math.ceil(Math.sqrt(channels * rows * 2));
    return { tiles: rows * channels, columns, height, width };
  }
  const [height, width] = dims.slice(-2);
  return { tiles: dims.slice(0, -2).reduce((a, b) => a * b, 1), columns: 1, height, width };
}

function sized(canvas, width, height) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  return [pen, pen.createImageData(width, height)];
}

// All values of a tensor of 2, 3 or 4 dimensions, a pixel each. Returns what `indexAt` needs.
export function paintValues(canvas, tensor) {
  const { tiles, columns, height, width } = layoutOf(tensor);
  const lines = Math.ceil(tiles / columns);
  const [pen, image] = sized(canvas, columns * (width + GAP) - GAP, lines * (height + GAP) - GAP);
  const { min, max } = summary(tensor);
  const most = Math.max(Math.abs(min), Math.abs(max)) || 1;
  for (let at = 0; at < tensor.data.length; at++) {
    const [tile, inside] = [Math.floor(at / (height * width)), at % (height * width)];
    const x = (tile % columns) * (width + GAP) + (inside % width);
    const y = Math.floor(tile / columns) * (height + GAP) + Math.floor(inside / width);
    image.data.set([...valueColor(Number(tensor.data[at]), most), 255], 4 * (y * image.width + x));
  }
  pen.putImageData(image, 0, 0);
}

// The index of the value that lies at a pixel of `paintValues`, or null between the tiles.
export function indexAt(tensor, x, y) {
  const { tiles, columns, height, width } = layoutOf(tensor);
  const [column, line] = [Math.floor(x / (width + GAP)), Math.floor(y / (height + GAP))];
  const [inX, inY] = [x % (width + GAP), y % (height + GAP)];
  const tile = line * columns + column;
  if (column >= columns || tile >= tiles || inX >= width || inY >= height) return null;
  const flat = (tile * height + inY) * width + inX;
  let rest = flat;
  const index = tensor.dims.map(() => 0);
  for (let at = tensor.dims.length - 1; at >= 0; at--) {
    index[at] = rest % tensor.dims[at];
    rest = Math.floor(rest / tensor.dims[at]);
  }
  return { flat, index };
}

// The first three channels of a (n, channels, height, width) tensor as red, green and blue; `low` is black and `high` full.
export function paintColors(canvas, { dims: [, , height, width], data }, low, high) {
  const [pen, image] = sized(canvas, width, height);
  const size = height * width;
  for (let at = 0; at < size; at++) {
    for (let channel = 0; channel < 3; channel++) {
      const value = (data[channel * size + at] - low) / (high - low);
      image.data[4 * at + channel] = Math.round(255 * Math.min(1, Math.max(0, value)));
    }
    image.data[4 * at + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}

// One map of a (rows, words, height, width) tensor, from its smallest value (paper) to its largest (orange). Returns its mean.
export function paintMap(canvas, { dims: [, words, height, width], data }, row, word) {
  const [pen, image] = sized(canvas, width, height);
  const size = height * width;
  const values = data.subarray((row * words + word) * size, (row * words + word + 1) * size);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  values.forEach((value, at) => image.data.set([...valueColor(value - least, most - least || 1), 255], 4 * at));
  pen.putImageData(image, 0, 0);
  return values.reduce((sum, value) => sum + value, 0) / size;
}
