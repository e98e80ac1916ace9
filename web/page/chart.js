// This file draws figures of lines and points as SVG, and the tables beside them.

const space = 'http://www.w3.org/2000/svg';

export function element(name, attributes = {}, ...children) {
  const e = document.createElementNS(space, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

/** short returns a number in four digits. */
export const short = (v) => (Number.isFinite(v) ? String(Number(v.toPrecision(4))) : 'missing');

/** ticks returns about four round numbers within a range. */
function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 3));
  const unit = [1, 2, 5, 10].map((m) => m * step).find((u) => (high - low) / u <= 5);
  const all = [];
  for (let v = Math.ceil(low / unit - 1e-6); v <= high / unit + 1e-6; v++) all.push(v * unit + 0); // no negative zero
  return all;
}

/** mark returns a point of a group. There are nine colours; groups with the same colour have different shapes. */
function mark(x, y, group) {
  const shape = [() => element('circle', { cx: x, cy: y, r: 3.5 }), () => element('rect', { x: x - 3, y: y - 3, width: 6, height: 6 }),
    () => element('path', { d: `M${x} ${y - 4}L${x + 4} ${y + 3}H${x - 4}Z` }), () => element('path', { d: `M${x} ${y - 4.5}L${x + 4.5} ${y}L${x} ${y + 4.5}L${x - 4.5} ${y}Z` })][group.shape]();
  shape.setAttribute('fill', group.colour);
  return shape;
}

/** sign returns the mark of a group for a key of groups. */
export function sign(group) {
  const svg = element('svg', { viewBox: '0 0 10 10', width: 12, height: 12, 'aria-hidden': 'true' });
  svg.append(mark(5, 5, group));
  return svg;
}

/** dots returns points of no group as four paths, which a browser styles and lays out sooner than an element for each point. Where dots of
 * different paths lie on each other, the figure is darker. */
const dots = (all) => [0, 1, 2, 3].map((layer) => element('path', { class: 'dot', d: all.filter((_, i) => i % 4 === layer).map(([x, y]) => `M${(x - 3).toFixed(1)} ${y.toFixed(1)}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`).join('') }));

/** apart returns every how many points a figure draws one: it draws at most 1000 of a kind. */
const apart = (points) => Math.ceil(points.length / 1000);

/** plot draws points [x, y], other points as rings, a line, and vertical bars [x, low, high]. here is a point that is
 * marked. groups has the group of each point, {colour, shape}, or is undefined. */
export function plot(title, { points = [], groups, rings = [], line = [], here, bars = [], x = '', y = '' }) {
  const all = [...points, ...rings, ...line, ...(here ? [here] : []), ...bars.flatMap(([u, a, b]) => [[u, a], [u, b]])].filter((p) => p.every(Number.isFinite));
  const range = (k) => {
    const v = all.map((p) => p[k]);
    const low = v.reduce((a, b) => Math.min(a, b), Infinity);
    const high = v.reduce((a, b) => Math.max(a, b), -Infinity);
    const size = Math.max(-low, high);
    // Values that differ by little more than rounding get the axis of a single value: ticks between them could not be counted in doubles.
    const room = high - low > 1e-12 * size ? 0 : Math.max(size, 1) / 2;
    return [low - room, high + room];
  };
  const svg = element('svg', { viewBox: '0 0 480 280', role: 'img', 'aria-label': title, xmlns: space });
  svg.append(element('title', {}, title));
  if (all.length === 0) return svg;
  const [x0, x1] = range(0);
  const [y0, y1] = range(1);
  const px = (v) => 67 + (397 * (v - x0)) / (x1 - x0); // the ends stand off the axes
  const py = (v) => 229 - (208 * (v - y0)) / (y1 - y0);
  svg.append(element('path', { class: 'axis', d: 'M60 15V235H470' }));
  for (const v of ticks(x0, x1)) svg.append(element('text', { x: px(v), y: 251, 'text-anchor': 'middle' }, short(v)));
  for (const v of ticks(y0, y1)) svg.append(element('text', { x: 55, y: py(v) + 4, 'text-anchor': 'end' }, short(v)));
  svg.append(element('text', { x: 265, y: 272, 'text-anchor': 'middle' }, x), element('text', { x: 62, y: 11 }, y));
  for (const [u, a, b] of bars) svg.append(element('path', { class: 'axis', d: `M${px(u)} ${py(a)}V${py(b)}` }));
  const few = [['point', points], ['ring', rings]].filter(([, all]) => apart(all) > 1).map(([what, all]) => `one ${what} in ${apart(all)}`);
  if (few.length) svg.append(element('text', { x: 470, y: 11, 'text-anchor': 'end' }, `${few.join(', ')} is drawn`));
  const placed = (all) => all.flatMap(([u, v], i) => (i % apart(all) === 0 && Number.isFinite(u + v) ? [[px(u), py(v), i]] : []));
  svg.append(...(groups ? placed(points).map(([u, v, i]) => mark(u, v, groups[i])) : dots(placed(points))));
  svg.append(...placed(rings).map(([u, v]) => element('circle', { class: 'ring', cx: u, cy: v, r: 6 })));
  if (line.length) svg.append(element('path', { class: 'line', d: `M${line.map(([u, v]) => `${px(u).toFixed(1)} ${py(v).toFixed(1)}`).join('L')}` }));
  if (here && Number.isFinite(here[0] + here[1])) svg.append(element('circle', { class: 'here', cx: px(here[0]), cy: py(here[1]), r: 5 }));
  return svg;
}

/** like makes old equal to made, another node of the same name. */
function like(old, made) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [was, is] = [[...old.childNodes], [...made.childNodes]];
  is.forEach((child, i) => {
    if (i >= was.length) old.append(child);
    else if (was[i].nodeName === child.nodeName) like(was[i], child);
    else was[i].replaceWith(child);
  });
  for (const child of was.slice(is.length)) child.remove();
}

/** draw shows svg as the picture of a figure, the table that made returns where the figure's details are open, and a caption where one is
 * given. What is as it was in the last picture stays in its place, and the browser does not lay it out again. */
export function draw(figure, svg, made, caption) {
  const of = (what) => figure.querySelector(what);
  const plot = of('.plot');
  const next = plot.cloneNode();
  next.append(svg);
  like(plot, next);
  if (caption !== undefined && of('figcaption').textContent !== caption) of('figcaption').textContent = caption;
  const show = () => of('details').open && of('.table').replaceChildren(made());
  of('details').ontoggle = show;
  show();
}

/** table returns rows of text and numbers under a heading; the first cell of each row names the row. */
export function table(heading, rows) {
  const cells = (tag, texts) => {
    const tr = document.createElement('tr');
    for (const t of texts) {
      const cell = document.createElement(tr.children.length || tag === 'th' ? tag : 'th');
      cell.textContent = typeof t === 'number' ? short(t) : t;
      if (cell.tagName === 'TH') cell.scope = tag === 'th' ? 'col' : 'row';
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

/** thinned returns at most so many points of a line, evenly spaced, the last one among them. */
function thinned(all, most) {
  const every = Math.ceil(all.length / most);
  return all.filter((_, i) => (all.length - 1 - i) % every === 0);
}

/** line draws a line through points as the picture of the figure with an id. */
export function line(id, all, x, y, { caption, bars } = {}) {
  const some = thinned(all, 300);
  const figure = document.getElementById(id);
  figure.hidden = false;
  draw(figure, plot(`${y} by ${x}`, { line: some, points: some.length < 60 ? some : [], x, y, bars }), () => table([x, y], some), caption);
}
