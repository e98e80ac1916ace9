// The result of a fit: linked heatmaps, the curve of a feature, components, samples as points,
// and new samples placed among them.
import { draw, line, plot, short, sign, table } from './chart.js';
import { Heatmaps, key } from './heatmap.js';
import { $, copied, counted, fail, inPieces, make, now, pause, spoken } from './state.js';

export const maps = new Heatmaps([...document.querySelectorAll('canvas[data-map]')], (i, j, byKey) => drawCell(i, j, byKey), () => drawTables());

$('values-key').append(key(false));
$('rest-key').append(key(true));

/** later holds the blocks below the head of the result. They become visible one a frame, because laying out and drawing all
 * of them takes longer than a frame. */
const later = document.querySelectorAll('#result > .later, .maps > figure');

/** clear removes the result of the last matrix. */
export function clear() {
  Object.assign(now, { model: undefined, fitted: undefined, placed: undefined, curves: undefined, groups: undefined, sets: undefined, first: undefined });
  for (const id of ['placed', 'labelled']) $(id).textContent = '';
  for (const id of ['new', 'labels', 'by', 'survival', 'sets']) $(id).value = '';
  $('tests').replaceChildren();
  for (const what of ['placed', 'filled']) document.querySelector(`[data-save=${what}]`).disabled = true;
  for (const e of later) e.hidden = true;
}

/** rowOf returns row i of a matrix. */
const rowOf = ({ columns, data }, i) => data.subarray(i * columns, (i + 1) * columns);

/** combined returns row i of UV, in row where it is given. */
export function combined({ u, v: { columns, data } }, i, row = new Float64Array(columns)) {
  row.fill(0);
  for (let c = 0; c < u.columns; c++) {
    const by = u.data[i * u.columns + c];
    for (let j = 0, at = c * columns; j < columns; j++, at++) row[j] += by * data[at];
  }
  return row;
}

/** ranged writes the values of a row as shares of its range. */
function ranged(row, shares) {
  let low = Infinity;
  let high = -Infinity;
  for (let j = 0; j < row.length; j++) {
    if (row[j] < low) low = row[j];
    if (row[j] > high) high = row[j];
  }
  for (let j = 0; j < row.length; j++) shares[j] = high > low ? (row[j] - low) / (high - low) : row[j] === row[j] ? 0.5 : NaN;
}

/** residuals writes x - t divided by the standard deviation of x, for a row x of X and a row t of T(UV), -2 to 2 as shares from 0 to 1. */
function residuals(x, t, shares) {
  let seen = 0;
  let sum = 0;
  for (let j = 0; j < x.length; j++) {
    if (x[j] !== x[j]) continue;
    seen++;
    sum += x[j];
  }
  const mean = sum / seen;
  let squares = 0;
  for (let j = 0; j < x.length; j++) if (x[j] === x[j]) squares += (x[j] - mean) ** 2;
  const deviation = Math.sqrt(squares / seen) || 1;
  for (let j = 0; j < x.length; j++) shares[j] = 0.5 + (x[j] - t[j]) / deviation / 4;
}

/** layered returns the layers of the maps: what Heatmaps.painted takes. */
function layered(x, model, fitted) {
  const row = new Float64Array(x.columns);
  return {
    x: { shares: (i, to) => ranged(rowOf(x, i), to) },
    uv: { shares: (i, to) => ranged(combined(model, i, row), to) },
    t: { shares: (i, to) => ranged(rowOf(fitted, i), to) },
    rest: { shares: (i, to) => residuals(rowOf(x, i), rowOf(fitted, i), to), signed: true },
  };
}

/** ordered returns the order of features and of samples by the component that they have most of, the largest share first. */
async function ordered({ u, v }, signal) {
  const k = u.columns;
  const weight = Array.from({ length: k }, (_, c) => v.data.subarray(c * v.columns, (c + 1) * v.columns).reduce((a, b) => a + Math.abs(b), 0));
  const sort = async (count, share) => {
    const most = new Uint32Array(count);
    const of = new Float64Array(count); // the share of that component
    await inPieces(count, (i) => {
      let sum = 0;
      let largest = -Infinity;
      for (let c = 0; c < k; c++) {
        const s = share(i, c);
        sum += s;
        if (s > largest) {
          largest = s;
          most[i] = c;
        }
      }
      of[i] = largest / (sum || 1);
    }, signal);
    return Array.from(most.keys()).sort((a, b) => most[a] - most[b] || of[b] - of[a] || a - b);
  };
  return {
    rows: await sort(u.rows, (i, c) => Math.abs(u.data[i * k + c]) * weight[c]),
    columns: await sort(v.columns, (j, c) => Math.abs(v.data[c * v.columns + j]) / (weight[c] || 1)),
  };
}

/** listed returns a line of the first features or samples of a component; choose is called with the one that is clicked. */
function listed(title, all, names, choose) {
  const p = document.createElement('p');
  p.append(`${title}: `);
  all.forEach(({ index, value }, i) => {
    if (i) p.append(', ');
    if (choose) {
      const b = make('button', names[index], { type: 'button' });
      b.onclick = () => choose(index);
      p.append(b, ` ${short(value)}`);
    } else p.append(`${names[index]} ${short(value)}`);
  });
  return p;
}

/** show shows a model of the table that the page holds; of says what it is beside: command is the command line that repeats its
 * fit, stability that of the components of a consensus. First all that is drawn is computed in pieces, then the last result is
 * replaced block by block, so that the page goes on responding. */
export async function show(model, of, signal) {
  const { table: t } = now;
  const top = async () => model.top(await copied(t.x, signal), 8, { signal, transfer: true });
  const [fitted, tops] = await Promise.all([model.reconstruct({ signal }), top()]);
  const order = await ordered(model, signal);
  const images = await maps.painted(layered(t.x, model, fitted), order, signal);
  const components = [];
  await inPieces(model.rank, (c) => {
    const div = document.createElement('div');
    const stable = of.stability ? `, stability ${of.stability[c].toFixed(2)}` : '';
    div.append(make('h3', `Component ${c + 1}${stable}`), listed('features', tops.features[c], t.features, (i) => maps.row(i)), listed('samples', tops.samples[c], t.samples));
    components.push(div);
  }, signal);
  const parts = [
    ['', () => {
      Object.assign(now, { model, of, fitted, placed: undefined, first: undefined });
      $('placed').textContent = $('new').value = '';
      document.querySelector('[data-save=placed]').disabled = true;
      document.querySelector('[data-save=filled]').disabled = !t.missing;
      $('result').hidden = false;
      $('fit-caption').textContent = model.method === 'nmf' ? 'UV again: what the model makes of X' : 'T(UV): what the model makes of X';
      $('summary').textContent = summary(model, of);
      first();
      maps.show(images, order, tints());
    }],
    ['#parts', () => $('components').replaceChildren(...components.slice(0, 2))], // two take some 5 ms to be laid out, and about four are in sight
    ['', () => $('components').append(...components.slice(2, 4))],
    ['', () => $('components').append(...components.slice(4))],
    ['', () => {
      for (const [k, id] of ['across', 'up'].entries()) {
        $(id).replaceChildren(...Array.from({ length: model.rank }, (_, c) => make('option', `c${c + 1}`, { value: c })));
        $(id).value = Math.min(k, model.rank - 1);
        $(id).onchange = drawSamples;
      }
      drawGroups();
      tested();
    }],
    ['.later:has(#view)', () => {}],
    ...maps.canvases.map((c, k) => [`figure:has([data-map=${c.dataset.map}])`, () => maps.paint(c, images[k])]),
    ['.later:has(#cell)', () => {}],
    ['#feature', () => drawCell(order.rows[0], order.columns[0], true)],
    ['.later:has(#losses)', () => course(model)],
    ['.later:has(#downloads)', drawTables],
  ];
  for (const [block, made] of parts) {
    await pause();
    if (now.table !== t || (now.model !== model && made !== parts[0][1])) return; // another table or model came
    for (const e of later) if (block && e.matches(block)) e.hidden = false;
    made();
  }
}

/** first writes the first box: how well unseen values are predicted, as far as that is known, and the warnings. Words and numbers are
 * those of the command. Where no structure was found, components and curves are drawn as noise. */
export function first(waiting = '') {
  const { model, first: told, of } = now;
  const noise = Boolean(told?.noise);
  $('result').classList.toggle('noise', noise);
  const all = [];
  if (told) {
    all.push(make('p', capital(told.text), { className: noise ? 'bad' : told.found ? 'answer' : 'answer warning' }));
    const numbers = make('ul', '', { className: 'numbers' });
    for (const { value, label } of told.numbers) {
      const li = make('li', '');
      li.append(make('b', value), ` ${label}`);
      numbers.append(li);
    }
    all.push(numbers);
    if (told.others) all.push(make('p', `${told.others}.`));
  } else if (waiting) all.push(make('p', waiting, { className: 'note' }));
  for (const w of [...model.warnings, ...(told?.warnings ?? [])]) all.push(make('p', `Warning: ${spoken(w)}.`, { className: 'warning' }));
  $('first').replaceChildren(...all);
  $('stable').textContent = of.stability ? `Each component is the median of those that 20 fits from other seeds have in common; its stability is 1 where all have it, and below 0.5 where few have.` : '';
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** summary says what a model is. */
function summary(model, { stability }) {
  return `${stability ? 'Consensus of 20 fits by nmf' : model.method}, ${counted(model.rank, 'component')}, ${counted(model.history.length - 1, 'epoch')}.`;
}

/** course draws the losses of a fit after each epoch, and says how near the model comes to X. */
function course(model) {
  const { method } = model;
  const measure = /-loss frobenius/.test(now.of.command) || (now.table.negative && !/-loss /.test(now.of.command)) ? 'half the squared difference' : 'Kullback-Leibler divergence';
  const caption = method === 'bqmf' ? `What the model does not explain after each epoch (negative evidence, nats a cell). Lower is better. Each value is predicted without itself with a loss of about ${short(model.leaveOneOut)} (mean ${measure}).`
    : `How far the model is from X after each epoch: the mean over all cells of the ${measure}, ${short(model.history[model.best])} in the end. Epoch 0 is the start. Lower is better.${method === 'qmf' ? ' Between the first and the last epoch each feature counts as it was when it was visited, and large first steps can raise the loss for a while.' : ''}`;
  line('losses', Array.from(model.history, (v, i) => [i, v]), 'epoch', method === 'bqmf' ? 'negative evidence' : 'loss', { caption });
}

// Samples as points, and their groups.

/** groupOf returns the group of a sample as figures show it. */
function groupOf(j) {
  const g = now.groups?.samples;
  if (!g) return undefined;
  const of = g.of[j];
  return of < 0 ? { colour: '#9a9a9a', shape: 0, name: 'no group' } : { colour: g.colours[of], shape: Math.floor(of / 9) % 4, name: g.names[of] };
}

/** colour draws every figure again with the groups of the samples. */
export function colour() {
  maps.colour(tints());
  drawGroups();
  maps.row(maps.order.rows[maps.cell[0]]);
}

/** tested shows the tests of components against what is known: tables, and words, of the report. */
export async function tested() {
  const { table: t, model, groups, sets } = now;
  const here = () => now.table === t && now.model === model && now.groups === groups && now.sets === sets;
  $('tests').replaceChildren();
  if (!model || !(groups || sets)) return;
  try {
    const q = await now.loading;
    const file = await model.named(t.features, t.samples);
    const all = await q.tests(file, t.x, { ...known(groups), sets });
    if (!here()) return;
    for (const { title, how, heading, rows, chance, count } of all) {
      const div = make('div', '', { className: 'table', tabIndex: 0, role: 'region', ariaLabel: title });
      div.append(table(heading, rows));
      div.querySelectorAll('tbody tr').forEach((tr, i) => tr.classList.toggle('chance', chance[i]));
      const more = make('details', '');
      more.append(make('summary', 'How to read this'), make('p', how, { className: 'note' }));
      $('tests').append(make('h3', title), div, make('p', spoken(count), { className: 'note' }), more);
    }
  } catch (e) {
    if (here()) fail(e.message, 'labels-problem');
  }
}

/** known are the options of a report about what is known of the samples. */
export const known = (groups) => (groups ? { groups: groups.text, by: groups.by, survival: groups.survival } : {});

/** tints returns the colour of each sample's group, undefined where there are no groups. */
const tints = () => (now.groups?.samples ? now.table.samples.map((_, j) => groupOf(j).colour) : undefined);

/** drawGroups draws the key of the groups, and the figure of the samples. */
function drawGroups() {
  const g = now.groups?.samples;
  const items = g ? [...g.names.keys()].map((of) => ({ colour: g.colours[of], shape: Math.floor(of / 9) % 4, name: g.names[of] })) : [];
  if (g?.of.includes(-1)) items.push({ colour: '#9a9a9a', shape: 0, name: 'no group' });
  $('key').replaceChildren(...items.map((group) => {
    const li = document.createElement('li');
    li.append(sign(group), ` ${group.name}`);
    return li;
  }));
  $('key').ariaLabel = g?.title || 'Groups of samples';
  drawSamples();
}

function drawSamples() {
  const { table: t, model, placed } = now;
  const [a, b] = [Number($('across').value), Number($('up').value)];
  const pairs = (v) => Array.from({ length: v.columns }, (_, j) => [v.data[a * v.columns + j], v.data[b * v.columns + j]]);
  const points = pairs(model.v);
  const rings = placed ? pairs(placed.v) : [];
  const groups = now.groups?.samples && points.map((_, j) => groupOf(j));
  const names = [`c${a + 1}`, `c${b + 1}`];
  draw($('samples'), plot(`Samples by ${names[0]} and ${names[1]}`, { points, groups, rings, x: names[0], y: names[1] }), () => {
    const rows = points.map((p, j) => [t.samples[j], ...(groups ? [groups[j].name] : []), ...p]);
    rows.push(...rings.map((p, j) => [placed.samples[j], ...(groups ? ['new'] : []), ...p]));
    return table(['sample', ...(groups ? ['group'] : []), ...names], rows.slice(0, 2000));
  }, `Samples by how much they have of two components (rows of V)${rings.length ? '; rings are new samples' : ''}`);
}

// The part of the maps that is in view, as tables.

function drawTables() {
  if (!now.table || !now.fitted) return; // a frame that was asked for before another table came
  const { table: { x, features, samples }, model, fitted } = now;
  const { rows, columns } = maps.view(12);
  const values = { x: (i) => rowOf(x, i), uv: (i) => combined(model, i), t: (i) => rowOf(fitted, i), rest: (i) => rowOf(x, i).map((v, j) => v - rowOf(fitted, i)[j]) };
  for (const details of document.querySelectorAll('.maps details[open]')) {
    const lines = rows.map((i) => {
      const row = values[details.dataset.table](i);
      return [features[i], ...columns.map((j) => row[j])];
    });
    details.querySelector('.table').replaceChildren(table(['feature', ...columns.map((j) => samples[j])], lines));
  }
}
for (const details of document.querySelectorAll('.maps details')) details.ontoggle = drawTables;

let drawn;
async function drawCell(i, j, byKey) {
  const { table: t, model, fitted } = now;
  const [measured, row, made] = [rowOf(t.x, i), combined(model, i), rowOf(fitted, i)];
  $('cell').ariaLive = byKey ? 'polite' : 'off'; // screen readers do not read out every cell that a pointer passes
  $('cell').textContent = `${t.features[i]}, ${t.samples[j]}: x ${short(measured[j])}, UV ${short(row[j])}, T(UV) ${short(made[j])}, x − T(UV) ${short(measured[j] - made[j])}`;
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
  const points = Array.from(row, (w, c) => [w, measured[c]]);
  draw($('curve'), plot(`${t.features[i]}: x against UV`, { points, groups: now.groups?.samples && points.map((_, c) => groupOf(c)), line, here: [row[j], measured[j]], x: 'UV', y: 'x' }),
    () => table(['sample', 'x', 'UV', 'T(UV)'], points.slice(0, 500).map(([w, x], c) => [t.samples[c], x, w, made[c]])),
    `${t.features[i]}: what was measured in every sample against its UV${line.length ? ', and the curve T' : ''}`);
}

// The names to choose from are listed for the first who wants to choose.
let named; // the table whose names are listed
$('search').onfocus = () => {
  const { table: t } = now;
  if (named === t) return;
  named = t;
  $('names').replaceChildren();
  inPieces(Math.min(5000, t.features.length), (i) => named === t && $('names').append(make('option', '', { value: t.features[i] })));
};
$('search').onchange = (e) => {
  const i = now.table.features.indexOf(e.target.value);
  if (i >= 0) maps.row(i);
};
for (const b of document.querySelectorAll('[data-zoom]')) b.onclick = () => ({ in: () => maps.zoom(1.6), out: () => maps.zoom(0.625), all: () => maps.fit() })[b.dataset.zoom]();

// New samples.

/** place computes the coordinates of the samples of a table that was read from a file. Where both tables have names, features are found by
 * name, as the command finds them: the first of a name is the model's first of that name, and so on. */
export async function place(t, file) {
  const { table: { features, namedFeatures }, model } = now;
  const of = (what) => new Error(`${file.name}: ${what}`);
  let rows = features.map((_, i) => i);
  if (namedFeatures && t.namedFeatures) {
    const at = new Map();
    t.features.forEach((feature, i) => at.has(feature) ? at.get(feature).push(i) : at.set(feature, [i]));
    for (const all of at.values()) all.reverse();
    rows = features.map((feature) => at.get(feature)?.pop());
    const lost = rows.indexOf(undefined);
    if (lost >= 0) throw of(`there is no feature ${features[lost]}, which the model has`);
  } else if (t.x.rows !== rows.length) throw of(`${counted(t.x.rows, 'feature')}, and the model has ${rows.length}`);
  const n = t.x.columns;
  const data = new Float64Array(rows.length * n);
  rows.forEach((r, i) => data.set(t.x.data.subarray(r * n, (r + 1) * n), i * n));
  const v = await model.transform({ rows: rows.length, columns: n, data });
  if ($('new').files[0] !== file) return; // another one was chosen, or another model has come
  now.placed = { v, samples: t.samples };
  const more = t.x.rows - rows.length;
  $('placed').textContent = `${counted(n, 'sample')} placed: rings in the figure.${more ? ` ${counted(more, 'feature')} of the file that the model does not have ${more === 1 ? 'is' : 'are'} left out.` : ''}`;
  document.querySelector('[data-save=placed]').disabled = false;
  drawSamples();
}
