// The page: a matrix comes in, is looked at, fitted and shown. All work is done by workers of
// this tab; nothing is sent anywhere.
import { load } from './index.js';
import { element, plot, short, table } from './chart.js';
import { Heatmaps } from './heatmap.js';

const $ = (id) => document.getElementById(id);
const form = $('settings');
const loading = load();
loading.catch((e) => fail(`The engine could not be loaded: ${e.message}`));

/** now is what the page holds: the file, the table, the model and what is derived of it. */
const now = {};
globalThis.quantmfPage = now; // for tests and the curious

function fail(text) {
  $('problem').textContent = text;
}

// Status: at most one line a second, for those who have it read out.
let lineAt = 0;
let pending;
function say(text, soon = false) {
  clearTimeout(pending);
  const line = () => {
    lineAt = performance.now();
    $('status').textContent = text;
  };
  if (soon) line();
  else pending = setTimeout(line, Math.max(0, lineAt + 1000 - performance.now()));
}

// Data.

async function take(name, bytes) {
  fail('');
  now.stop?.abort();
  for (const id of ['found', 'fitting', 'result']) $(id).hidden = true;
  try {
    const q = await loading;
    const t = await q.read(bytes, { name, transpose: $('transpose').checked });
    Object.assign(now, { name, bytes, table: t, transposed: $('transpose').checked, model: undefined, placed: undefined });
    found(t);
  } catch (e) {
    fail(e.message);
  }
}

function found(t) {
  const { rows, columns } = t.x;
  $('found-title').textContent = `${now.name}: ${rows} features × ${columns} samples`;
  const facts = [t.taken, ...t.warnings, ...t.remarks];
  facts.push(t.missing ? `${t.missing} of ${rows * columns} values are missing: they are left out of the fit, and the model fills them` : 'no value is missing');
  if (t.negative) facts.push(`${t.negative} values are negative: the loss is Frobenius, and nmf cannot be taken`);
  facts.push(`values from ${short(t.least)} to ${short(t.most)}`);
  $('facts').replaceChildren(...facts.filter(Boolean).map((f) => Object.assign(document.createElement('li'), { textContent: f })));
  $('found').hidden = $('fitting').hidden = false;
  if (!form.rank.value) form.rank.value = Math.min(10, rows, columns);
  settled();
}

$('sample').onclick = async () => {
  try {
    const response = await fetch('sample.tsv.gz');
    await take('laml-assays.tsv.gz', new Uint8Array(await response.arrayBuffer()));
    $('facts').append(Object.assign(document.createElement('li'), { textContent: 'expression, microRNA and methylation of patients with acute myeloid leukaemia: The Cancer Genome Atlas, https://www.cancer.gov/tcga' }));
  } catch (e) {
    fail(e.message);
  }
};
const file = async (f) => f && take(f.name, new Uint8Array(await f.arrayBuffer()));
$('file').onchange = (e) => file(e.target.files[0]);
$('take').onclick = () => take('pasted.txt', new TextEncoder().encode($('paste').value));
$('transpose').onchange = () => now.bytes && take(now.name, now.bytes);
for (const type of ['dragover', 'dragleave', 'drop']) {
  addEventListener(type, (e) => {
    e.preventDefault();
    $('drop').classList.toggle('over', type === 'dragover');
    if (type === 'drop') file(e.dataTransfer.files[0]);
  });
}

// Settings, in the form, in the URL's fragment and on the command line.

const flags = { method: 'method', rank: 'k', loss: 'loss', levels: 'm', epsilon: 'eps', epochs: 'epochs', seed: 'seed' };
const given = () => Object.fromEntries(Object.keys(flags).map((k) => [k, form[k].value.trim()]).filter(([k, v]) => v && !(k === 'loss' && v === 'auto')));

/** quoted is a word for a shell. */
const quoted = (s) => (/^[\w@%+=:,./-]+$/.test(s) && !s.startsWith('-') ? s : `'${(s.startsWith('-') ? './' : '') + s.replaceAll("'", "'\\''")}'`);

function command() {
  const words = Object.entries(given()).map(([k, v]) => `-${flags[k]} ${v}`);
  if (now.table.missing) words.push('-missing');
  if (now.transposed) words.push('-transpose');
  return `quantmf fit ${words.join(' ')} -o model.qmf ${quoted(now.name)}`;
}

function options() {
  const { method, loss, seed, ...numbers } = given();
  const all = { method, ...Object.fromEntries(Object.entries(numbers).map(([k, v]) => [k, Number(v)])) };
  if (loss) all.loss = loss;
  else if (now.table.negative) all.loss = 'frobenius';
  if (seed) all.seed = seed;
  if (now.table.missing) all.missingValues = true;
  return all;
}

async function settled() {
  const maps = form.method.value.startsWith('qmf');
  for (const k of ['levels', 'epsilon']) {
    form[k].disabled = !maps;
    if (!maps) form[k].value = '';
  }
  $('choose').disabled = form.method.value === 'bqmf';
  history.replaceState(null, '', `#${new URLSearchParams(given())}`);
  if (!now.table) return;
  $('command').textContent = command();
  try {
    const { rows, columns } = now.table.x;
    const bytes = await (await loading).footprint({ rows, columns, ...options() });
    $('estimate').textContent = `The fit takes at most about ${(bytes / 2 ** 20).toFixed(0)} MB of memory.`;
  } catch (e) {
    $('estimate').textContent = e.message;
  }
}
for (const [k, v] of new URLSearchParams(location.hash.slice(1))) if (flags[k]) form[k].value = v;
form.oninput = settled;
$('copy').onclick = () => navigator.clipboard.writeText($('command').textContent).then(() => say('Copied.', true), () => {});

// Fits.

const phases = { choice: 'choosing the start', factors: 'first factors', maps: 'first maps', qmf: 'start by qmf', epochs: 'fitting', rank: 'comparing' };

async function work(what) {
  fail('');
  now.stop?.abort();
  const stop = (now.stop = new AbortController());
  say('Starting.', true);
  $('progress').hidden = false;
  $('progress').value = 0;
  $('cancel').disabled = false;
  const began = performance.now();
  try {
    await what(await loading, stop.signal, (p) => {
      if (stop.signal.aborted) return;
      now.firstProgress ??= performance.now() - began;
      $('progress').value = p.done;
      say(`${phases[p.phase]}: ${Math.round(100 * p.done)} %${p.epoch ? `, epoch ${p.epoch} of ${p.epochs}, loss ${short(p.loss)}` : ''}`);
    });
    say(`Done in ${((performance.now() - began) / 1000).toFixed(1)} s.`, true);
  } catch (e) {
    if (stop.signal.aborted) say('Cancelled.', true);
    else fail(e.message);
  } finally {
    if (now.stop === stop) {
      $('progress').hidden = true;
      $('cancel').disabled = true;
    }
  }
}

function losses(figure, all, x, y, bars) {
  $(figure).hidden = false;
  $(figure).querySelector('.plot').replaceChildren(plot(`${y} by ${x}`, { line: all, points: all, x, y, bars }));
  $(figure).querySelector('.table').replaceChildren(table([x, y], all));
}

form.onsubmit = (e) => {
  e.preventDefault();
  now.firstProgress = undefined;
  const seen = [];
  work(async (q, signal, told) => {
    const { table: t } = now;
    const model = await q.fit(t.x, options(), {
      signal,
      onProgress: (p) => {
        told(p);
        if (p.phase === 'epochs') {
          seen.push([p.epoch, p.loss]);
          losses('losses', seen, 'epoch', 'loss');
        }
      },
    });
    if (now.table !== t) return;
    losses('losses', Array.from(model.history, (v, i) => [i, v]), 'epoch', 'loss');
    now.model = model;
    await show(q, signal);
  });
};
$('cancel').onclick = () => now.stop?.abort();

$('choose').onclick = () =>
  work(async (q, signal, told) => {
    const { rank, ...rest } = options();
    const most = Math.min(now.table.x.rows, now.table.x.columns);
    const ranks = [...new Set([1, 2, 3, 5, 8, 12, 20, rank])].filter((k) => k >= 1 && k <= most).sort((a, b) => a - b);
    delete rest.missingValues; // a comparison takes missing values as they are
    const trials = await q.rank(now.table.x, { ...rest, ranks, repeats: 3 }, { signal, onProgress: told });
    losses('ranks', trials.map((t) => [t.rank, t.mean]), 'components', 'loss of hidden cells', trials.map((t) => [t.rank, t.mean - t.standardError, t.mean + t.standardError]));
  });

// The result.

const maps = new Heatmaps([...document.querySelectorAll('canvas[data-map]')], (i, j, byKey) => pointed(i, j, byKey));

/** product is UV. */
function product({ u, v }) {
  const data = new Float64Array(u.rows * v.columns);
  for (let i = 0; i < u.rows; i++) {
    for (let c = 0; c < u.columns; c++) {
      const by = u.data[i * u.columns + c];
      for (let j = 0; j < v.columns; j++) data[i * v.columns + j] += by * v.data[c * v.columns + j];
    }
  }
  return { rows: u.rows, columns: v.columns, data };
}

/** ranged are the values of each row as shares of its range. */
function ranged({ rows, columns, data }) {
  const shares = new Float64Array(data.length);
  for (let i = 0; i < rows; i++) {
    const row = data.subarray(i * columns, (i + 1) * columns);
    let low = Infinity;
    let high = -Infinity;
    for (const v of row) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
    for (let j = 0; j < columns; j++) shares[i * columns + j] = high > low ? (row[j] - low) / (high - low) : row[j] === row[j] ? 0.5 : NaN;
  }
  return { rows, columns, shares };
}

/** residuals are X - T(UV) by the deviation of X's row, from -2 to 2 as shares. */
function residuals(x, t) {
  const { rows, columns } = x;
  const shares = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    const row = Array.from(x.data.subarray(i * columns, (i + 1) * columns)).filter((v) => v === v);
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const deviation = Math.sqrt(row.reduce((a, b) => a + (b - mean) ** 2, 0) / row.length) || 1;
    for (let j = 0; j < columns; j++) shares[i * columns + j] = 0.5 + (x.data[i * columns + j] - t.data[i * columns + j]) / deviation / 4;
  }
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

async function show(q, signal) {
  const { table: t, model } = now;
  const [fitted, tops] = await Promise.all([model.reconstruct({ signal }), model.top(t.x, 8, { signal })]);
  Object.assign(now, { fitted, uv: product(model) });
  $('result').hidden = false;
  $('fit-caption').textContent = model.method === 'nmf' ? 'The fit: UV' : 'T(UV)';
  $('summary').textContent = `${model.method}, ${model.rank} components: mean divergence ${short(model.history[model.best])} after ${model.best} epochs` +
    `${model.warnings.length ? `; ${model.warnings.length} warnings, the first: ${model.warnings[0]}` : ''}.`;
  maps.show({ x: ranged(t.x), uv: ranged(now.uv), t: ranged(fitted), rest: residuals(t.x, fitted) }, ordered(model));
  $('names').replaceChildren(...t.features.slice(0, 5000).map((f) => Object.assign(document.createElement('option'), { value: f })));
  const list = (title, all, names, choose) => {
    const p = document.createElement('p');
    p.append(`${title}: `);
    all.forEach(({ index, value }, i) => {
      if (i) p.append(', ');
      if (choose) {
        const b = Object.assign(document.createElement('button'), { type: 'button', textContent: names[index] });
        b.onclick = () => maps.row(index);
        p.append(b, ` ${short(value)}`);
      } else p.append(`${names[index]} ${short(value)}`);
    });
    return p;
  };
  $('components').replaceChildren(...tops.features.flatMap((features, c) => [
    Object.assign(document.createElement('h3'), { textContent: `Component ${c + 1}` }),
    list('features', features, t.features, true),
    list('samples', tops.samples[c], t.samples),
  ]));
  maps.row(maps.order.rows[0]);
}

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
  $('curve').querySelector('.plot').replaceChildren(plot(`${t.features[i]}: x against UV`, { points, line, here: [at(uv), at(t.x)], x: 'UV', y: 'x' }));
  $('curve').querySelector('.table').replaceChildren(table(['sample', 'x', 'UV', 'T(UV)'], points.slice(0, 500).map(([w, x], c) => [t.samples[c], x, w, fitted.data[i * n + c]])));
}

$('search').onchange = (e) => {
  const i = now.table.features.indexOf(e.target.value);
  if (i >= 0) maps.row(i);
};
for (const b of document.querySelectorAll('[data-zoom]')) b.onclick = () => ({ in: () => maps.zoom(1.6), out: () => maps.zoom(0.625), all: () => maps.fit() })[b.dataset.zoom]();

// New samples.

$('new').onchange = async (e) => {
  const f = e.target.files[0];
  if (!f) return;
  fail('');
  try {
    const t = await (await loading).read(new Uint8Array(await f.arrayBuffer()), { name: f.name, transpose: now.transposed });
    const at = new Map(t.features.map((name, i) => [name, i]));
    const { features } = now.table;
    const rows = now.table.namedFeatures && t.namedFeatures ? features.map((name) => at.get(name)) : features.map((_, i) => i);
    const lost = rows.indexOf(undefined);
    if (lost >= 0) throw new Error(`${f.name}: there is no feature ${features[lost]}, which the model has`);
    const n = t.x.columns;
    const data = new Float64Array(rows.length * n);
    if (t.x.rows < rows.length) throw new Error(`${f.name}: ${t.x.rows} features, and the model has ${rows.length}`);
    rows.forEach((r, i) => data.set(t.x.data.subarray(r * n, (r + 1) * n), i * n));
    now.placed = { v: await now.model.transform({ rows: rows.length, columns: n, data }), samples: t.samples };
    $('placed').textContent = `${n} samples placed.`;
    document.querySelector('[data-save=placed]').disabled = false;
  } catch (error) {
    fail(error.message);
  }
};

// Downloads.

const cell = (s) => (/[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
function csv(corner, columns, rows, m) {
  const lines = [[corner, ...columns].map(cell).join(',')];
  for (let i = 0; i < m.rows; i++) lines.push([cell(rows[i]), ...m.data.subarray(i * m.columns, (i + 1) * m.columns)].join(','));
  return new Blob([lines.join('\n'), '\n'], { type: 'text/csv' });
}

/** styled is a figure with its style in it, as a file of its own. */
function styled(id) {
  const svg = document.querySelector(`#${id} svg`).cloneNode(true);
  svg.prepend(element('style', {}, 'text{font:12px sans-serif}.axis{stroke:#555;fill:none}.line{stroke:#1b5e8c;fill:none;stroke-width:2}.dot{fill:#1b5e8c;fill-opacity:.55}.here{fill:#b3541e}'));
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: 'image/svg+xml' });
}

const components = (k) => Array.from({ length: k }, (_, c) => `c${c + 1}`);
const files = {
  model: async () => {
    const { table: t, model } = now;
    return ['model.qmf', new Blob([await model.named(t.features, t.samples)])];
  },
  u: () => ['U.csv', csv('feature', components(now.model.rank), now.table.features, now.model.u)],
  v: () => ['V.csv', csv('component', now.table.samples, components(now.model.rank), now.model.v)],
  curves: async () => {
    const { model, table: t, uv } = now;
    const n = t.x.columns;
    const lines = ['feature,uv,t'];
    for (let i = 0; i < t.x.rows; i++) {
      const row = Float64Array.from(uv.data.subarray(i * n, (i + 1) * n)).sort();
      const w = row.filter((_, j) => j % Math.ceil(n / 32) === 0 || j === n - 1);
      const values = model.method === 'nmf' ? w : await model.map(i, w);
      w.forEach((v, s) => lines.push(`${cell(t.features[i])},${v},${values[s]}`));
    }
    return ['curves.csv', new Blob([lines.join('\n'), '\n'], { type: 'text/csv' })];
  },
  losses: () => ['losses.svg', styled('losses')],
  curve: () => ['curve.svg', styled('curve')],
  maps: async () => ['heatmaps.png', await maps.picture()],
  placed: () => ['placed.csv', csv('component', now.placed.samples, components(now.model.rank), now.placed.v)],
};
for (const b of document.querySelectorAll('[data-save]')) {
  b.onclick = async () => {
    try {
      const [name, blob] = await files[b.dataset.save]();
      const url = URL.createObjectURL(blob);
      Object.assign(document.createElement('a'), { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    } catch (e) {
      fail(e.message);
    }
  };
}

settled();
loading.then((q) => {
  now.vectors = q.vectors;
  document.documentElement.dataset.ready = 'true';
});
