// This file has heatmaps of one size that are zoomed, moved and pointed at together.
import { inPieces } from './state.js';

// scale is that of viridis, from dark to light in equal steps of lightness; signs goes from blue through grey to orange.
const scale = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37]];
const signs = [[33, 84, 160], [120, 165, 214], [235, 235, 235], [236, 168, 106], [176, 78, 12]];

function colour(stops, share) {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  return stops[i].map((v, k) => Math.round(v + (at - i) * (stops[i + 1][k] - v)));
}

/** palette returns 256 colours of a scale as pixels, and behind them a grey for NaN. */
function palette(stops) {
  const pixels = new Uint8ClampedArray(4 * 257).fill(255);
  for (let i = 0; i < 256; i++) pixels.set(colour(stops, i / 255), 4 * i);
  pixels.set([128, 128, 128], 4 * 256);
  return new Uint32Array(pixels.buffer);
}
const palettes = { false: palette(scale), true: palette(signs) };

/** key returns a canvas with the colours of a scale from its low end to its high one. */
export function key(signed) {
  const canvas = document.createElement('canvas');
  canvas.width = 256;
  canvas.height = 1;
  canvas.getContext('2d').putImageData(new ImageData(new Uint8ClampedArray(palettes[signed].buffer, 0, 1024), 256), 0, 0);
  return canvas;
}

/** longest is the longest side of a canvas that all browsers draw. */
const longest = 16384;

/** image paints a layer in the given order of rows and columns. Of a side that is too long for a canvas it paints every second,
 * third, ... cell. */
async function image({ shares, signed = false }, order, signal) {
  const columns = order.columns.length;
  const [down, across] = [order.rows.length, columns].map((side) => Math.ceil(side / longest));
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(columns / across);
  canvas.height = Math.ceil(order.rows.length / down);
  const context = canvas.getContext('2d');
  const band = context.createImageData(canvas.width, Math.min(canvas.height, Math.ceil(2 ** 14 / canvas.width))); // of rows that are put on the canvas together
  const to = new Uint32Array(band.data.buffer);
  const of = palettes[signed];
  const row = new Float64Array(columns);
  await inPieces(canvas.height, (r) => {
    shares(order.rows[r * down], row);
    const line = r % band.height;
    for (let j = 0, at = line * canvas.width; j < columns; j += across, at++) {
      const v = row[order.columns[j]];
      to[at] = of[v !== v ? 256 : v < 0 ? 0 : v > 1 ? 255 : Math.round(255 * v)];
    }
    if (line === band.height - 1 || r === canvas.height - 1) context.putImageData(band, 0, r - line);
  }, signal);
  return canvas;
}

export class Heatmaps {
  /** pointed(row, column, byKey) is called with the cell that is pointed at, in the matrix's own order; seen() is called when
   * the part of the maps that is in view has changed. */
  constructor(canvases, pointed, seen) {
    this.canvases = canvases;
    this.pointed = pointed;
    this.seen = seen;
    for (const c of canvases) {
      c.addEventListener('pointermove', (e) => this.#move(c, e));
      c.addEventListener('pointerdown', (e) => {
        c.setPointerCapture(e.pointerId);
        this.drag = [e.clientX, e.clientY];
        this.#move(c, e);
      });
      for (const end of ['pointerup', 'pointercancel']) c.addEventListener(end, () => (this.drag = undefined));
      c.addEventListener('wheel', (e) => {
        e.preventDefault();
        const box = c.getBoundingClientRect();
        this.zoom(e.deltaY < 0 ? 1.25 : 0.8, (e.clientX - box.left) / box.width, (e.clientY - box.top) / box.height);
      }, { passive: false });
      c.addEventListener('keydown', (e) => this.#key(e));
    }
    addEventListener('resize', () => this.draw());
  }

  /** painted returns the images of the layers for show. The layers are named by the data-map of the canvases. Each has a method
   * shares(i, to), which writes row i of its matrix, as shares of the scale or NaN, and is signed where its scale has two sides. */
  async painted(layers, order, signal) {
    const all = [];
    for (const c of this.canvases) all.push(await image(layers[c.dataset.map], order, signal));
    return all;
  }

  /** show takes the images that painted returned, the same order of rows and columns, and colours as colour does. It draws
   * nothing: paint draws each map. */
  show(images, order, colours) {
    this.order = order;
    this.rows = order.rows.length;
    this.columns = order.columns.length;
    this.images = images;
    this.cell = [0, 0];
    this.window = { x: 0, y: 0, w: this.columns, h: this.rows };
    this.#strip(colours);
  }

  /** colour puts a strip above the maps, with the colour of each column in the matrix's own order; undefined removes it. */
  colour(colours) {
    this.#strip(colours);
    this.draw();
  }

  #strip(colours) {
    this.strip = undefined;
    if (!colours) return;
    this.strip = document.createElement('canvas');
    this.strip.width = Math.min(this.columns, longest);
    this.strip.height = 1;
    const context = this.strip.getContext('2d');
    this.order.columns.forEach((j, at) => {
      context.fillStyle = colours[j];
      context.fillRect(Math.floor((at * this.strip.width) / this.columns), 0, 1, 1);
    });
  }

  /** view returns the indices of the rows and columns in view, at most so many of each, around the cell that is pointed
   * at. */
  view(most) {
    const { x, y, w, h } = this.window;
    const part = (from, size, count, at, list) => {
      const low = Math.max(0, Math.floor(from));
      const high = Math.min(count, Math.ceil(from + size));
      const first = Math.max(low, Math.min(at - (most >> 1), high - most));
      return list.slice(first, Math.min(high, first + most));
    };
    return { rows: part(y, h, this.rows, this.cell[0], this.order.rows), columns: part(x, w, this.columns, this.cell[1], this.order.columns) };
  }

  fit() {
    this.window = { x: 0, y: 0, w: this.columns, h: this.rows };
    this.draw();
  }

  zoom(by, x = 0.5, y = 0.5) {
    if (!this.images) return;
    const { window: v } = this;
    const w = Math.min(this.columns, Math.max(Math.min(4, this.columns), v.w / by));
    const h = Math.min(this.rows, Math.max(Math.min(4, this.rows), v.h / by));
    this.window = this.#inside({ x: v.x + x * (v.w - w), y: v.y + y * (v.h - h), w, h });
    this.draw();
  }

  #inside(v) {
    return { ...v, x: Math.min(Math.max(v.x, 0), this.columns - v.w), y: Math.min(Math.max(v.y, 0), this.rows - v.h) };
  }

  /** row points at a row of the matrix and brings it into view. */
  row(i) {
    const at = this.order.rows.indexOf(i);
    this.#point(at, this.cell[1]);
  }

  #move(canvas, e) {
    if (!this.images) return;
    const box = canvas.getBoundingClientRect();
    const { window: v } = this;
    if (this.drag && e.buttons) {
      this.window = this.#inside({ ...v, x: v.x - ((e.clientX - this.drag[0]) / box.width) * v.w, y: v.y - ((e.clientY - this.drag[1]) / box.height) * v.h });
      this.drag = [e.clientX, e.clientY];
    }
    const j = Math.floor(v.x + ((e.clientX - box.left) / box.width) * v.w);
    const i = Math.floor(v.y + ((e.clientY - box.top) / box.height) * v.h);
    if (i >= 0 && i < this.rows && j >= 0 && j < this.columns) this.#point(i, j, false);
  }

  #key(e) {
    const page = Math.max(1, Math.floor((this.window?.h ?? 1) / 4));
    const step = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-page, 0], PageDown: [page, 0], Home: [0, -Infinity], End: [0, Infinity],
    }[e.key];
    if (e.key === '+' || e.key === '-') this.zoom(e.key === '+' ? 1.25 : 0.8);
    else if (step && this.images) {
      e.preventDefault();
      const [i, j] = this.cell;
      this.#point(Math.min(Math.max(i + step[0], 0), this.rows - 1), Math.min(Math.max(j + step[1], 0), this.columns - 1));
    }
  }

  #point(i, j, seen = true) {
    this.cell = [i, j];
    if (seen) {
      const { window: v } = this;
      const into = (from, size, at) => (at < from ? at : at + 1 > from + size ? at + 1 - size : from);
      this.window = this.#inside({ ...v, x: into(v.x, v.w, j), y: into(v.y, v.h, i) });
    }
    this.draw();
    this.pointed(this.order.rows[i], this.order.columns[j], seen);
  }

  draw() {
    if (!this.images || this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = undefined;
      this.canvases.forEach((c, k) => this.paint(c, this.images[k]));
      this.seen();
    });
  }

  paint(c, from) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [c.clientWidth, c.clientHeight].map((side) => Math.max(1, Math.round(side * ratio)));
    if (c.width !== width) c.width = width; // where a size is set, if to what it was, the page is laid out again
    if (c.height !== height) c.height = height;
    const context = c.getContext('2d', { alpha: false });
    const { x, y, w, h } = this.window;
    context.imageSmoothingEnabled = w > c.width;
    c.classList.toggle('part', w < this.columns || h < this.rows);
    const [wide, high] = [from.width / this.columns, from.height / this.rows];
    context.drawImage(from, x * wide, y * high, w * wide, h * high, 0, 0, c.width, c.height);
    if (this.strip) {
      context.imageSmoothingEnabled = false;
      const wide = this.strip.width / this.columns;
      context.drawImage(this.strip, x * wide, 0, w * wide, 1, 0, 0, c.width, 8 * ratio);
    }
    const [i, j] = this.cell;
    context.lineWidth = 2 * ratio;
    for (const [style, grow] of [['#000', 1], ['#fff', 3]]) {
      context.strokeStyle = style;
      context.strokeRect(((j - x) / w) * c.width - grow * ratio, ((i - y) / h) * c.height - grow * ratio, c.width / w + 2 * grow * ratio, c.height / h + 2 * grow * ratio);
    }
  }

  /** picture returns a PNG of all maps side by side, each in full. */
  async picture() {
    const gap = 10;
    const canvas = document.createElement('canvas');
    const wide = Math.max(1, Math.round(400 / this.columns));
    const high = Math.max(1, Math.round(400 / this.rows));
    const [width, height] = [Math.min(this.columns * wide, 4000), Math.min(this.rows * high, 8000)];
    canvas.width = this.images.length * (width + gap) - gap;
    const top = this.strip ? 12 : 0;
    canvas.height = height + top;
    const context = canvas.getContext('2d');
    context.imageSmoothingEnabled = false;
    this.images.forEach((from, k) => {
      const left = k * (width + gap);
      context.drawImage(from, left, top, width, height);
      if (this.strip) context.drawImage(this.strip, left, 0, width, 10);
    });
    return new Promise((done) => canvas.toBlob(done, 'image/png'));
  }
}
