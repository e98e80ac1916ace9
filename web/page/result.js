// The result of a fit: linked heatmaps, the curve of a feature, components, samples as points,
// and new samples placed among them.
import { plot, short, sign, table } from './chart.js';
import { Heatmaps } from './heatmap.js';
import { $, inPieces, make, now } from './state.js';

export const maps = new Heatmaps([...document.querySelectorAll('canvas[data-map]')], (i, j, byKey) => pointed(i, j, byKey), () => tabled());

/** clear forgets the result: another matrix comes. */
export function clear() {
  Object.assign(now, { model: undefined, fitted: undefined, uv: undefined, placed: undefined, curves: undefined, groups: undefined });
  for (const id of ['placed', 'labelled']) $(id).textContent = '';
  for (const id of ['new', 'labels']) $(id).value = '';
  document.querySelector('[data-save=placed]').disabled = true;
}

/** product is UV. */
async function product({ u, v }, signal) {
  const data = new Float64Array(u.rows * v.columns);
  await inPieces(u.rows, (i) => {
    for (let c = 0; c < u.columns; c++) {
      const by = u.data[i * u.columns + c];
      for (let j = 0; j < v.columns; j++) data[i * v.columns + j] += by * v.data[c * v.columns + j];
    }
  }, signal);
  return { rows: u.rows, columns: v.columns, data };
}

/** ranged are the values of each row as shares of its range. */
async function ranged({ rows, columns, data }, signal) {
  const shares = new Float64Array(data.length);
  await inPieces(rows, (i) => {
    const row = data.subarray(i * columns, (i + 1) * columns);
    let low = Infinity;
    let high = -Infinity;
    for (const v of row) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
    for (let j = 0; j < columns; j++) shares[i * columns + j] = high > low ? (row[j] - low) / (high - low) : row[j] === row[j] ? 0.5 : NaN;
  }, signal);
  return { rows, columns, shares };
}

/** residuals are X - T(UV) by the deviation of X's row, from -2 to 2 as shares. */
async function residuals(x, t, signal) {
  const { rows, columns } = x;
  const shares = new Float64Array(rows * columns);
  await inPieces(rows, (i) => {
    const row = x.data.subarray(i * columns, (i + 1) * columns);
    let seen = 0;
    let sum = 0;
    for (const v of row) {
      if (v !== v) continue;
      seen++;
      sum += v;
    }
    const mean = sum / seen;
    let squares = 0;
    for (const v of row) if (v === v) squares += (v - mean) ** 2;
    const deviation = Math.sqrt(squares / seen) || 1;
    for (let j = 0; j < columns; j++) shares[i * columns + j] = 0.5 + (row[j] - t.data[i * columns + j]) / deviation / 4;
  }, signal);
  return { rows, columns, shares, signed: true };
}

/** ordered are features and samples by the component that they have most of. */
function ordered({ u, v }) {
  const k = u.columns;
  const weight = Array.from({ length: k }, (_, c) => v.data.subarray(c * v.columns, (c + 1) * v.columns).reduce((a, b) => a + Math.abs(b), 0));
  const sort = (count, share) => {
    const best = Array.from({ length: count }, (_, i) => {
      const all = Array.from({ length: k }, (_, c) => share(i, c));
      const sum = all.reduce((a, b) => a + b, 0) || 1;
      const c = all.indexOf(Math.max(...all));
      return [c, all[c] / sum, i];
    });
    return best.sort((a, b) => a[0] - b[0] || b[1] - a[1] || a[2] - b[2]).map((b) => b[2]);
  };
  return {
    rows: sort(u.rows, (i, c) => Math.abs(u.data[i * k + c]) * weight[c]),
    columns: sort(v.columns, (j, c) => Math.abs(v.data[c * v.columns + j]) / (weight[c] || 1)),
  };
}

/** show takes a model of the table that the page holds, and the command line that makes it again. All
 * that is drawn is made in pieces before anything of the last result is replaced, so that the page goes on answering. */
export async function show(model, command, signal) {
  const { table: t } = now;
  const [fitted, tops] = await Promise.all([model.reconstruct({ signal }), model.top(t.x, 8, { signal })]);
  const uv = await product(model, signal);
  const order = ordered(model);
  const layers = { x: await ranged(t.x, signal), uv: await ranged(uv, signal), t: await ranged(fitted, signal), rest: await residuals(t.x, fitted, signal) };
  const images = await maps.painted(layers, order, signal);
  const names = [];
  await inPieces(Math.min(5000, t.features.length), (i) => names.push(make('option', '', { value: t.features[i] })), signal);
  if (now.table !== t) return;
  Object.assign(now, { model, command, fitted, uv, placed: undefined });
  $('placed').textContent = '';
  document.querySelector('[data-save=placed]').disabled = true;
  $('result').hidden = false;
  $('fit-caption').textContent = model.method === 'nmf' ? 'The fit: UV' : 'T(UV)';
  $('summary').textContent = `${model.method}, ${model.rank} components: mean divergence ${short(model.history[model.best])} after ${model.best} epochs` +
    `${model.warnings.length ? `; ${model.warnings.length} warnings, the first: ${model.warnings[0]}` : ''}.`;
  maps.show(images, order);
  $('names').replaceChildren(...names);
  const list = (title, all, names, choose) => {
    const p = document.createElement('p');
    p.append(`${title}: `);
    all.forEach(({ index, value }, i) => {
      if (i) p.append(', ');
      if (choose) {
        const b = make('button', names[index], { type: 'button' });
        b.onclick = () => maps.row(index);
        p.append(b, ` ${short(value)}`);
      } else p.append(`${names[index]} ${short(value)}`);
    });
    return p;
  };
  $('components').replaceChildren(...tops.features.flatMap((features, c) => [
    make('h3', `Component ${c + 1}`),
    list('features', features, t.features, true),
    list('samples', tops.samples[c], t.samples),
  ]));
  const [across, up] = ['across', 'up'].map((id, k) => {
    $(id).replaceChildren(...Array.from({ length: model.rank }, (_, c) => make('option', `c${c + 1}`, { value: c })));
    $(id).value = Math.min(k, model.rank - 1);
    return $(id);
  });
  across.onchange = up.onchange = scatter;
  colour();
  maps.row(maps.order.rows[0]);
}

// Samples as points, and their groups.

/** groupOf is the group of a sample as figures show it. */
function groupOf(j) {
  const g = now.groups?.samples;
  if (!g) return undefined;
  const of = g.of[j];
  return of < 0 ? { colour: '#9a9a9a', shape: 0, name: 'no group' } : { colour: g.colours[of], shape: Math.floor(of / 9) % 4, name: g.names[of] };
}

/** colour shows the samples by their groups, where there are some. */
export function colour() {
  const { samples } = now.table;
  const g = now.groups?.samples;
  maps.colour(g ? samples.map((_, j) => groupOf(j).colour) : undefined);
  const items = g ? [...g.names.keys()].map((of) => ({ colour: g.colours[of], shape: Math.floor(of / 9) % 4, name: g.names[of] })) : [];
  if (g?.of.includes(-1)) items.push({ colour: '#9a9a9a', shape: 0, name: 'no group' });
  $('key').replaceChildren(...items.map((group) => {
    const li = document.createElement('li');
    li.append(sign(group), ` ${group.name}`);
    return li;
  }));
  $('key').ariaLabel = g?.title || 'Groups of samples';
  scatter();
  maps.row(maps.order.rows[maps.cell[0]]);
}

function scatter() {
  const { table: t, model, placed } = now;
  const [a, b] = [Number($('across').value), Number($('up').value)];
  const pairs = (v) => Array.from({ length: v.columns }, (_, j) => [v.data[a * v.columns + j], v.data[b * v.columns + j]]);
  const points = pairs(model.v);
  const rings = placed ? pairs(placed.v) : [];
  const groups = now.groups?.samples && points.map((_, j) => groupOf(j));
  const names = [`c${a + 1}`, `c${b + 1}`];
  $('samples').querySelector('figcaption').textContent = `Samples by their share of two components${rings.length ? '; rings are new samples' : ''}`;
  $('samples').querySelector('.plot').replaceChildren(plot(`Samples by ${names[0]} and ${names[1]}`, { points, groups, rings, x: names[0], y: names[1] }));
  const rows = points.map((p, j) => [t.samples[j], ...(groups ? [groups[j].name] : []), ...p]);
  rows.push(...rings.map((p, j) => [placed.samples[j], ...(groups ? ['new'] : []), ...p]));
  $('samples').querySelector('.table').replaceChildren(table(['sample', ...(groups ? ['group'] : []), ...names], rows.slice(0, 2000)));
}

// What of the maps is in view, as tables.

function tabled() {
  const { table: t, uv, fitted } = now;
  if (!fitted) return;
  const { rows, columns } = maps.view(12);
  const n = t.x.columns;
  const values = { x: (at) => t.x.data[at], uv: (at) => uv.data[at], t: (at) => fitted.data[at], rest: (at) => t.x.data[at] - fitted.data[at] };
  for (const details of document.querySelectorAll('.maps details[open]')) {
    const value = values[details.dataset.table];
    details.querySelector('.table').replaceChildren(table(['feature', ...columns.map((j) => t.samples[j])], rows.map((i) => [t.features[i], ...columns.map((j) => value(i * n + j))])));
  }
}
for (const details of document.querySelectorAll('.maps details')) details.ontoggle = tabled;

let drawn;
async function pointed(i, j, byKey) {
  const { table: t, model, uv, fitted } = now;
  const n = t.x.columns;
  const at = (m) => m.data[i * n + j];
  $('cell').ariaLive = byKey ? 'polite' : 'off'; // nobody wants every cell under a pointer read out
  $('cell').textContent = `${t.features[i]}, ${t.samples[j]}: x ${short(at(t.x))}, UV ${short(at(uv))}, T(UV) ${short(at(fitted))}, rest ${short(at(t.x) - at(fitted))}`;
  const row = uv.data.subarray(i * n, (i + 1) * n);
  const key = (drawn = `${i},${j}`);
  let line = [];
  if (model.method !== 'nmf') {
    const low = row.reduce((a, b) => Math.min(a, b), Infinity);
    const high = row.reduce((a, b) => Math.max(a, b), -Infinity);
    const w = Float64Array.from({ length: 101 }, (_, s) => low + ((high - low) * s) / 100);
    const values = now.curves?.of === model && now.curves[i] ? now.curves[i] : await model.map(i, w).catch(() => []);
    if (now.curves?.of !== model) now.curves = { of: model };
    now.curves[i] = values;
    line = Array.from(values, (v, s) => [w[s], v]);
    if (drawn !== key || now.model !== model) return;
  }
  const points = Array.from(row, (w, c) => [w, t.x.data[i * n + c]]);
  $('curve').querySelector('figcaption').textContent = `${t.features[i]}: x of every sample against its UV${line.length ? ', and the map T' : ''}`;
  $('curve').querySelector('.plot').replaceChildren(plot(`${t.features[i]}: x against UV`, { points, groups: now.groups?.samples && points.map((_, c) => groupOf(c)), line, here: [at(uv), at(t.x)], x: 'UV', y: 'x' }));
  $('curve').querySelector('.table').replaceChildren(table(['sample', 'x', 'UV', 'T(UV)'], points.slice(0, 500).map(([w, x], c) => [t.samples[c], x, w, fitted.data[i * n + c]])));
}

$('search').onchange = (e) => {
  const i = now.table.features.indexOf(e.target.value);
  if (i >= 0) maps.row(i);
};
for (const b of document.querySelectorAll('[data-zoom]')) b.onclick = () => ({ in: () => maps.zoom(1.6), out: () => maps.zoom(0.625), all: () => maps.fit() })[b.dataset.zoom]();

// New samples.

/** place finds the coordinates of the samples of a table. */
export async function place(t, name) {
  const at = new Map(t.features.map((feature, i) => [feature, i]));
  const { features } = now.table;
  const rows = now.table.namedFeatures && t.namedFeatures ? features.map((feature) => at.get(feature)) : features.map((_, i) => i);
  const lost = rows.indexOf(undefined);
  if (lost >= 0) throw new Error(`${name}: there is no feature ${features[lost]}, which the model has`);
  if (t.x.rows < rows.length) throw new Error(`${name}: ${t.x.rows} features, and the model has ${rows.length}`);
  const n = t.x.columns;
  const data = new Float64Array(rows.length * n);
  rows.forEach((r, i) => data.set(t.x.data.subarray(r * n, (r + 1) * n), i * n));
  now.placed = { v: await now.model.transform({ rows: rows.length, columns: n, data }), samples: t.samples };
  $('placed').textContent = `${n} samples placed.`;
  document.querySelector('[data-save=placed]').disabled = false;
  scatter();
}
