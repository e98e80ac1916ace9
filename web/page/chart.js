// Figures of lines and points, as SVG with a table beside them.

const space = 'http://www.w3.org/2000/svg';

export function element(name, attributes = {}, ...children) {
  const e = document.createElementNS(space, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

/** short is a number in few digits. */
export const short = (v) => (Number.isFinite(v) ? String(Number(v.toPrecision(4))) : 'missing');

/** ticks are about four round numbers within a range. */
export function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 3));
  const unit = [1, 2, 5, 10].map((m) => m * step).find((u) => (high - low) / u <= 5);
  const all = [];
  for (let v = Math.ceil(low / unit); v <= high / unit; v++) all.push(v * unit);
  return all;
}

/** plot draws points [x, y] and lines of them; here is a point that is marked. */
export function plot(title, { points = [], line = [], here, bars = [], x = '', y = '' }) {
  const all = [...points, ...line, ...(here ? [here] : []), ...bars.flatMap(([u, a, b]) => [[u, a], [u, b]])].filter((p) => p.every(Number.isFinite));
  const range = (k) => {
    const v = all.map((p) => p[k]);
    const low = v.reduce((a, b) => Math.min(a, b), Infinity);
    const high = v.reduce((a, b) => Math.max(a, b), -Infinity);
    return low < high ? [low, high] : [low - 0.5, low + 0.5];
  };
  const svg = element('svg', { viewBox: '0 0 480 280', role: 'img', 'aria-label': title, xmlns: space });
  svg.append(element('title', {}, title));
  if (all.length === 0) return svg;
  const [x0, x1] = range(0);
  const [y0, y1] = range(1);
  const px = (v) => 60 + (410 * (v - x0)) / (x1 - x0);
  const py = (v) => 235 - (220 * (v - y0)) / (y1 - y0);
  svg.append(element('path', { class: 'axis', d: 'M60 15V235H470' }));
  for (const v of ticks(x0, x1)) svg.append(element('text', { x: px(v), y: 251, 'text-anchor': 'middle' }, short(v)));
  for (const v of ticks(y0, y1)) svg.append(element('text', { x: 55, y: py(v) + 4, 'text-anchor': 'end' }, short(v)));
  svg.append(element('text', { x: 265, y: 272, 'text-anchor': 'middle' }, x), element('text', { x: 62, y: 11 }, y));
  for (const [u, a, b] of bars) svg.append(element('path', { class: 'axis', d: `M${px(u)} ${py(a)}V${py(b)}` }));
  for (const [u, v] of points) if (Number.isFinite(u + v)) svg.append(element('circle', { class: 'dot', cx: px(u), cy: py(v), r: 3 }));
  if (line.length) svg.append(element('path', { class: 'line', d: `M${line.map(([u, v]) => `${px(u).toFixed(1)} ${py(v).toFixed(1)}`).join('L')}` }));
  if (here && Number.isFinite(here[0] + here[1])) svg.append(element('circle', { class: 'here', cx: px(here[0]), cy: py(here[1]), r: 5 }));
  return svg;
}

/** table is rows of text under a heading. */
export function table(heading, rows) {
  const cells = (tag, texts) => {
    const tr = document.createElement('tr');
    for (const t of texts) {
      const cell = document.createElement(tag);
      cell.textContent = typeof t === 'number' ? short(t) : t;
      if (tag === 'th') cell.scope = 'col';
      tr.append(cell);
    }
    return tr;
  };
  const t = document.createElement('table');
  t.createTHead().append(cells('th', heading));
  const body = t.createTBody();
  for (const r of rows) body.append(cells('td', r));
  return t;
}
