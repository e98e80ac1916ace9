// The page: a matrix comes in, is looked at, fitted and shown. All work is done by workers of
// this tab; nothing is sent anywhere.
import { load } from './index.js';
import { plot, short, table } from './chart.js';
import { downloads } from './downloads.js';
import { clear, colour, place, show } from './result.js';
import { $, fail, make, now, say, seldom } from './state.js';

const form = $('settings');
const loading = load();
loading.catch((e) => fail(`The engine could not be loaded: ${e.message}`));

// Data.

async function take(name, file) {
  fail('');
  now.stop?.abort();
  const stop = (now.stop = new AbortController());
  for (const id of ['found', 'fitting', 'result']) $(id).hidden = true;
  clear();
  Object.assign(now, { name, file, transposed: $('transpose').checked, table: undefined, model: undefined });
  $('reading').hidden = false;
  $('reading').value = 0;
  try {
    const q = await loading;
    const t = await q.read(file, { name, transpose: now.transposed }, { signal: stop.signal, onProgress: (p) => ($('reading').value = p.done) });
    if (now.stop !== stop) return; // another file has come
    now.table = t;
    found(t);
  } catch (e) {
    if (!stop.signal.aborted) fail(e.message);
  } finally {
    if (now.stop === stop) $('reading').hidden = true;
  }
}

function found(t) {
  const { rows, columns } = t.x;
  $('found-title').textContent = `${now.name}: ${rows} features × ${columns} samples`;
  const facts = [t.taken, ...t.warnings, ...t.remarks];
  facts.push(t.missing ? `${t.missing} of ${rows * columns} values are missing: they are left out of the fit, and the model fills them` : 'no value is missing');
  if (t.negative) facts.push(`${t.negative} values are negative: the loss is Frobenius, and nmf cannot be taken`);
  facts.push(`values from ${short(t.least)} to ${short(t.most)}`);
  $('facts').replaceChildren(...facts.filter(Boolean).map((f) => make('li', f)));
  $('found').hidden = $('fitting').hidden = false;
  if (!form.rank.value) form.rank.value = Math.min(10, rows, columns);
  settled();
}

$('sample').onclick = async () => {
  try {
    const response = await fetch('sample.tsv.gz');
    await take('laml-assays.tsv.gz', await response.blob());
    $('facts').append(make('li', 'expression, microRNA and methylation of patients with acute myeloid leukaemia: The Cancer Genome Atlas, https://www.cancer.gov/tcga'));
  } catch (e) {
    fail(e.message);
  }
};
const file = (f) => f && take(f.name, f);
$('file').onchange = (e) => file(e.target.files[0]);
$('take').onclick = () => take('pasted.txt', new Blob([$('paste').value]));
$('transpose').onchange = () => {
  settled();
  if (now.file) take(now.name, now.file);
};
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
  history.replaceState(null, '', `#${new URLSearchParams({ ...given(), ...($('transpose').checked && { transpose: 1 }) })}`);
  clearTimeout(waiting);
  guess?.abort();
  if (!now.table) return;
  $('command').textContent = command();
  try {
    const { rows, columns } = now.table.x;
    now.bytes = await (await loading).footprint({ rows, columns, ...options() });
    $('estimate').textContent = takes(now.bytes);
    waiting = setTimeout(estimated, 400);
  } catch (e) {
    $('estimate').textContent = e.message;
  }
}

// The estimate: memory at once, the time from a fit of some rows while nothing else is done.
let waiting;
let guess;
const takes = (bytes, time = '') => `The fit takes at most about ${Math.ceil(bytes / 2 ** 20)} MB of memory${time}.`;

/** span is a time in words. */
function span(seconds) {
  if (seconds < 1) return 'less than a second';
  const [value, unit] = seconds < 90 ? [seconds, 'second'] : seconds < 5400 ? [seconds / 60, 'minute'] : [seconds / 3600, 'hour'];
  const round = value < 10 ? Math.round(value) : Number(value.toPrecision(2));
  return `about ${round} ${unit}${round === 1 ? '' : 's'}`;
}

async function estimated() {
  const { table: t } = now;
  if (!t) return;
  if (now.busy) {
    waiting = setTimeout(estimated, 400);
    return;
  }
  guess = new AbortController();
  const { signal } = guess;
  try {
    const { bytes, seconds } = await (await loading).estimate(t.x, options(), { signal });
    if (signal.aborted || now.table !== t) return;
    now.seconds = seconds;
    $('estimate').textContent = takes(bytes, Number.isNaN(seconds) ? ', and longer than can be told soon' : `, and ${span(seconds)} on this machine`);
  } catch {
    // The fit itself will say what is wrong.
  }
}

for (const [k, v] of new URLSearchParams(location.hash.slice(1))) {
  if (flags[k]) form[k].value = v;
  else if (k === 'transpose') $('transpose').checked = true;
}
form.oninput = settled;
$('copy').onclick = () => navigator.clipboard.writeText($('command').textContent).then(() => say('Copied.'), () => {});

// Fits.

const phases = { choice: 'choosing the start', factors: 'first factors', maps: 'first maps', qmf: 'start by qmf', epochs: 'fitting', rank: 'comparing' };

const bar = seldom(50, (done) => ($('progress').value = done));

async function work(what) {
  fail('');
  now.stop?.abort();
  clearTimeout(waiting);
  guess?.abort();
  const stop = (now.stop = new AbortController());
  now.busy = stop;
  say('Starting.');
  $('progress').hidden = false;
  $('progress').value = 0;
  $('cancel').disabled = false;
  const began = performance.now();
  try {
    await what(await loading, stop.signal, (p) => {
      if (stop.signal.aborted) return;
      now.firstProgress ??= performance.now() - began;
      bar(p.done);
      say(`${phases[p.phase]}: ${Math.round(100 * p.done)} %${p.epoch ? `, epoch ${p.epoch} of ${p.epochs}, loss ${short(p.loss)}` : ''}`);
    });
    say(`Done in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
  } catch (e) {
    if (stop.signal.aborted) {
      if (now.busy === stop) say('Cancelled.');
    } else {
      say('Failed.');
      fail(e.message);
    }
  } finally {
    if (now.busy === stop) {
      now.busy = undefined;
      $('progress').hidden = true;
      $('cancel').disabled = true;
    }
  }
}

/** thinned are at most so many of the points of a line, the last among them. */
function thinned(all, most) {
  const every = Math.ceil(all.length / most);
  return all.filter((_, i) => (all.length - 1 - i) % every === 0);
}

function losses(figure, all, x, y, bars) {
  const some = thinned(all, 300);
  $(figure).hidden = false;
  $(figure).querySelector('.plot').replaceChildren(plot(`${y} by ${x}`, { line: some, points: some.length < 60 ? some : [], x, y, bars }));
  $(figure).querySelector('.table').replaceChildren(table([x, y], some));
}
const course = seldom(250, (seen) => losses('losses', seen, 'epoch', 'loss'));

form.onsubmit = (e) => {
  e.preventDefault();
  now.firstProgress = undefined;
  const seen = [];
  work(async (q, signal, told) => {
    const { table: t } = now;
    const line = command();
    const model = await q.fit(t.x, options(), {
      signal,
      onProgress: (p) => {
        told(p);
        if (p.phase === 'epochs') {
          seen.push([p.epoch, p.loss]);
          course(seen);
        }
      },
    });
    if (now.table !== t) return;
    course.now(Array.from(model.history, (v, i) => [i, v]));
    await show(model, line, signal);
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

// Groups and new samples.

$('labels').onchange = async (e) => {
  const f = e.target.files[0];
  if (!f) return;
  fail('');
  try {
    const { features, samples } = now.table;
    const text = await f.text();
    const g = await (await loading).groups(text, { features, samples, name: f.name });
    now.groups = { ...g, text, name: f.name };
    if (now.model) colour();
    $('labelled').textContent = [g.samples ? `${g.samples.names.length} groups of samples` : 'no sample has a group', ...g.warnings].join('; ');
  } catch (error) {
    fail(error.message);
  }
};

$('new').onchange = async (e) => {
  const f = e.target.files[0];
  if (!f) return;
  fail('');
  try {
    await place(await (await loading).read(f, { name: f.name, transpose: now.transposed }), f.name);
  } catch (error) {
    fail(error.message);
  }
};

downloads(loading);

settled();
loading.then((q) => {
  now.vectors = q.vectors;
  document.documentElement.dataset.ready = 'true';
});

// Without a network: sw.js keeps the page's files. A new version waits until it is asked for.
if (navigator.serviceWorker) {
  navigator.serviceWorker.register('sw.js').then(async (registration) => {
    const offer = () => ($('newer').hidden = !registration.waiting);
    registration.addEventListener('updatefound', () => {
      const { installing } = registration;
      installing.addEventListener('statechange', offer);
    });
    offer();
    $('take-newer').onclick = () => {
      navigator.serviceWorker.addEventListener('controllerchange', () => location.reload());
      registration.waiting.postMessage('take over');
    };
    await navigator.serviceWorker.ready;
    document.documentElement.dataset.offline = 'true';
    $('offline').hidden = false;
  }, () => {}); // a browser that keeps nothing, as in private windows: the page needs its server then
}
