// This file reads a matrix, fits models to it, and has the form of the settings. Workers of this tab do all
// computation; nothing is sent anywhere.
import { load } from './index.js';
import { line, short } from './chart.js';
import { downloads } from './downloads.js';
import { clear, colour, first, place, show, tested } from './result.js';
import { $, copied, counted, fail, make, now, say, seldom, spoken } from './state.js';

const form = $('settings');
const loading = load({ workers: Math.max(2, Math.min(4, navigator.hardwareConcurrency - 1)) }); // one for fits behind the result, one for what is pointed at
now.loading = loading;
loading.then((q) => {
  now.vectors = q.vectors;
  document.documentElement.dataset.ready = 'true';
}, (e) => fail(`The engine could not be loaded: ${e.message}`));

// Data.

/** controls are the fields of how a file is read, by the flag of the command that does the same. */
const controls = { transpose: 'transpose', header: 'header', names: 'names-in', skip: 'skip', na: 'na', below: 'below', decimal: 'decimal', sheet: 'sheet', long: 'long', log1p: 'log1p', top: 'top' };

/** layout returns what the form says of the file: its layout, of which what it leaves out is detected, and what is done to it. */
const layout = () => Object.fromEntries(Object.entries(controls).map(([k, id]) => [k, { checkbox: $(id).checked, number: Number($(id).value) }[$(id).type] ?? $(id).value.trim()]).filter(([, v]) => v && v !== 'auto'));

/** take reads a matrix from a Blob, or from the promise of one. */
async function take(name, file) {
  fail('');
  now.stop?.abort();
  const stop = (now.stop = new AbortController());
  for (const id of ['found', 'fitting', 'result', 'ranks', 'verdict', 'stability', 'agreed']) $(id).hidden = true;
  clear();
  Object.assign(now, { name, file, layout: layout(), table: undefined, model: undefined });
  $('reading').hidden = false;
  $('reading').value = 0;
  try {
    const [q, content] = await Promise.all([loading, file]);
    stop.signal.throwIfAborted();
    const t = await q.read(content, { name, full: true, ...now.layout }, { signal: stop.signal, onProgress: (p) => ($('reading').value = p.done) });
    if (now.stop !== stop) return; // another file has come
    now.table = t;
    found(t);
  } catch (e) {
    if (stop.signal.aborted) return;
    fail(spoken(e.message));
    offered(e.message);
  } finally {
    if (now.stop === stop) $('reading').hidden = true;
  }
}

/** offered fills in what an error of the readers says would settle it, so that all of it is answered at once. */
function offered(problem) {
  const of = (pattern) => pattern.exec(problem)?.[1];
  const words = of(/-na (".*?"|\S+) for words/)?.replaceAll('"', '') ?? of(/"([^"]*)" is not a number/);
  const more = { na: words && [$('na').value, words].filter(Boolean).join(','), below: /-below half/.test(problem) && 'half', skip: of(/-skip (\d+)/), long: of(/-long (.+?), or/), decimal: of(/-decimal (comma)/), sheet: of(/-sheet (\S+):/) };
  for (const [id, value] of Object.entries(more)) if (value) $(id).value = value;
  $('reading-of').open ||= Object.values(more).some(Boolean);
  settled();
}

function found(t) {
  const { rows, columns } = t.x;
  $('found-title').textContent = `${now.name}: ${counted(rows, 'feature')} × ${counted(columns, 'sample')}`;
  const facts = [t.taken, ...t.warnings, ...t.remarks].map(spoken);
  const are = (count) => `${counted(count, 'value')} ${count === 1 ? 'is' : 'are'}`;
  facts.push(t.missing ? `${are(t.missing)} missing, of ${rows * columns}: they are left out of the fit, and the model fills them in` : 'no value is missing');
  if (t.negative) facts.push(`${are(t.negative)} negative: the loss is Frobenius, and nmf cannot be taken`);
  for (const [select, value, instead] of [['method', 'nmf', 'qmf'], ['loss', 'kl', 'auto']]) {
    form[select].querySelector(`[value=${value}]`).disabled = t.negative > 0;
    if (t.negative && form[select].value === value) form[select].value = instead;
  }
  if (now.layout.log1p) facts.push('log(1 + x) of every value was taken');
  if (now.layout.top) facts.push(rows < now.layout.top ? 'the file has no more features than were to be kept' : 'features that vary less were left out');
  if (t.missing < rows * columns) facts.push(`values from ${short(t.least)} to ${short(t.most)}`);
  $('facts').replaceChildren(...facts.filter(Boolean).map((f) => make('li', f)));
  $('found').hidden = $('fitting').hidden = false;
  if (!form.rank.value) form.rank.value = Math.min(10, rows, columns);
  settled();
}

/** fetched returns a file beside the page. */
const fetched = (name) => fetch(name).then((response) => (response.ok ? response.blob() : Promise.reject(new Error(`${name}: ${response.status}`))));

// The sample data are fitted at once, and their groups come beside.
$('sample').onclick = async () => {
  form.rank.value ||= 5; // as in the README; an NMF of ten components fits these assays more closely than a QMF
  const content = fetched('sample.tsv.gz');
  await take('laml-assays.tsv.gz', content);
  if (now.file !== content || !now.table) return;
  $('facts').append(make('li', 'expression, microRNA and methylation of patients with acute myeloid leukaemia, and the type of the leukaemia as groups: The Cancer Genome Atlas, https://www.cancer.gov/tcga'));
  form.requestSubmit();
  await grouped(async () => (await fetched('sample-groups.tsv')).text(), 'laml-groups.tsv', () => now.file === content);
};
const file = (f) => f && take(f.name, f);
$('file').onchange = (e) => file(e.target.files[0]);
// Browsers tell of a file only where it is another one than before; after a click the same file, which may have changed, is another one.
for (const input of document.querySelectorAll('[type=file]')) input.onclick = () => (input.value = '');
$('take').onclick = () => take('pasted.txt', new Blob([$('paste').value]));
const again = () => {
  settled();
  if (now.file) take(now.name, now.file);
};
for (const id of Object.values(controls)) $(id).onchange = again;
$('again').onclick = again;
for (const type of ['dragover', 'dragleave', 'drop']) {
  addEventListener(type, (e) => {
    if (e.target.type === 'file') return; // it takes the file itself, which may be one of groups
    e.preventDefault();
    $('drop').classList.toggle('over', type === 'dragover');
    if (type !== 'drop') return;
    const { items, files } = e.dataTransfer;
    if (items[0]?.webkitGetAsEntry?.()?.isDirectory) fail('This is a folder: drop a file on the page. The command quantmf reads folders of 10x.');
    else file(files[0]);
  });
}

// Settings, in the form, in the URL's fragment and on the command line.

const flags = { method: 'method', rank: 'k', loss: 'loss', levels: 'm', epsilon: 'eps', epochs: 'epochs', seed: 'seed' };
/** plain returns the value of a field; a number is written as the command reads it, 10 in place of 1e1 and 010. */
const plain = ({ type, value }) => (type === 'number' && value ? String(Number(value)) : value.trim());
const given = () => Object.fromEntries(Object.keys(flags).map((k) => [k, plain(form[k])]).filter(([k, v]) => v && !(k === 'loss' && v === 'auto')));

/** quoted returns a file name or a value as one word for a shell. */
const quoted = (s) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", "'\\''")}'`);

/** repeated returns a command line of these settings. */
function repeated(settings, program) {
  const words = Object.entries(settings).map(([k, v]) => `-${flags[k]} ${v}`);
  if (now.table.missing || now.table.warnings.some((w) => /without any value left out/.test(w))) words.push('-missing');
  for (const [k, v] of Object.entries(now.layout)) words.push(v === true ? `-${k}` : `-${k} ${quoted(String(v))}`);
  return `quantmf ${program} ${words.join(' ')} -o model.qmf ${quoted(now.name.startsWith('-') ? `./${now.name}` : now.name)}`;
}
const command = () => repeated(given(), 'fit');
function consensus(rank) {
  const { loss, seed } = given();
  return repeated({ rank, ...(loss && { loss }), ...(seed && { seed }) }, 'consensus');
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

let settling = 0; // counts the calls of settled: only the last one may say something

async function settled() {
  const own = ++settling;
  const maps = form.method.value.startsWith('qmf'); // auto compares methods with curves and without
  for (const k of ['levels', 'epsilon']) {
    form[k].disabled = !maps;
    if (!maps) form[k].value = '';
  }
  $('choose').disabled = form.method.value === 'bqmf';
  $('agree').disabled = now.table?.negative > 0; // an nmf takes no such values
  form.epochs.placeholder = { auto: 'default', qmf: form.rank.value > 32 ? 20 : 4, nmf: 20, qmfq: 100, bqmf: 60 }[form.method.value]; // above 32 components Adam fits a qmf
  history.replaceState(null, '', `#${new URLSearchParams({ ...given(), ...layout() })}`);
  clearTimeout(waiting);
  guess?.abort();
  if (!now.table) return;
  $('command').textContent = command();
  if (!form.checkValidity()) { // the browser says what is wrong, where it is
    $('estimate').textContent = '';
    return;
  }
  try {
    const { rows, columns } = now.table.x;
    const bytes = await (await loading).footprint({ rows, columns, ...options() });
    if (own !== settling) return;
    now.bytes = bytes;
    $('estimate').textContent = takes(bytes);
    waiting = setTimeout(estimated, 400);
  } catch (e) {
    if (own === settling) $('estimate').textContent = e.message;
  }
}

// The estimate of the memory is shown at once. That of the time comes from fits of some rows, which begin when no other work is under way.
let waiting;
let guess;
const takes = (bytes, time = '') => `The fit takes at most about ${Math.ceil(bytes / 2 ** 20)} MB of memory${time}.`;

/** span returns a time in words. */
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
    // The fit itself will report what is wrong.
  }
}

/** addressed takes the settings of the address; those that it does not have are the defaults. */
function addressed() {
  const of = new URLSearchParams(location.hash.slice(1));
  for (const k of Object.keys(flags)) form[k].value = of.get(k) ?? '';
  for (const [k, id] of Object.entries(controls)) {
    if ($(id).type === 'checkbox') $(id).checked = of.has(k);
    else $(id).value = of.get(k) ?? '';
  }
  for (const select of document.querySelectorAll('select')) if (select.options.length && select.selectedIndex < 0) select.selectedIndex = 0; // the default, and where there is no such choice
}
addressed();
addEventListener('hashchange', () => {
  if (!location.hash.includes('=')) return; // a link within the page
  addressed();
  settled();
  if (now.file && JSON.stringify(layout()) !== JSON.stringify(now.layout)) take(now.name, now.file);
});
$('reading-of').open = Object.keys(layout()).some((k) => $('reading-of').contains($(controls[k])));
form.oninput = settled;
$('copy').onclick = async () => {
  try {
    await navigator.clipboard.writeText($('command').textContent);
    say('Copied.');
  } catch { // over plain http there is no clipboard
    getSelection().selectAllChildren($('command'));
    say('The command line is selected, to be copied by the keyboard.');
  }
};

// Fits.

const phases = { unseen: 'predicting hidden values', choice: 'choosing the start', factors: 'first factors', maps: 'first maps', qmf: 'start by qmf', epochs: 'fitting', rank: 'comparing' };

/** told returns the message of an error of the package, with the names of the feature and the sample where it has a place. */
function told(e, { features, samples } = now.table ?? {}) {
  const place = [];
  if (e.row >= 0) place.push(`feature ${features[e.row]}`);
  if ('row' in e && e.column >= 0) place.push(`sample ${samples[e.column]}`); // a TableError has columns of the file
  if (place.length === 0) return e.message.replace(/^quantmf: /, '');
  return `${place.join(', ')}: ${e.problem ? `${short(e.value)}: ${e.problem.replace(/; With.*/, '')}` : e.message}`; // the page has no options of Go
}

const bar = seldom(100, (done) => ($('progress').value = done));

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
      bar(p.done);
      say(`${phases[p.phase]}: ${Math.round(100 * p.done)} %${p.epoch ? `, epoch ${p.epoch} of ${p.epochs}, loss ${short(p.loss)}` : ''}`);
    });
    say(`Done in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
  } catch (e) {
    if (stop.signal.aborted) {
      if (now.busy === stop) say('Cancelled.');
    } else {
      say('Failed.');
      fail(told(e), 'fit-problem');
    }
  } finally {
    if (now.busy === stop) {
      now.busy = undefined;
      $('progress').hidden = true;
      $('cancel').disabled = true;
    }
  }
}

/** judged returns the best trial, and the one to take: that of the smallest rank that is worse by at most one standard error of the
 * difference, in loss and where every feature counts the same. `quantmf rank` has the same rule. */
function judged(trials) {
  const best = trials.reduce((a, b) => (b.mean < a.mean ? b : a));
  const good = (t, measure) => {
    const worse = Array.from(t[measure], (v, r) => v - best[measure][r]);
    const mean = average(worse);
    return mean <= Math.sqrt(average(worse.map((d) => (d - mean) ** 2)) / (worse.length - 1));
  };
  return { best, take: trials.find((t) => good(t, 'losses') && good(t, 'relative')) };
}

const average = (v) => v.reduce((a, b) => a + b, 0) / v.length;

form.onsubmit = (e) => {
  e.preventDefault();
  work(async (q, signal, onProgress) => {
    const { table: t } = now;
    const of = { command: command(), options: options() };
    const model = await q.fit(await copied(t.x, signal), of.options, { signal, transfer: true, onProgress });
    await show(model, of, signal);
    foretold(q, model, of, signal);
  });
};
$('cancel').onclick = () => now.stop?.abort();

/** foretold finds how well a model predicts what it has not seen, by further fits unless those that chose its method have said so.
 * The result is on the page before. */
async function foretold(q, model, of, signal) {
  const { table: t } = now;
  const shown = () => now.model === model && now.table === t;
  const options = { ...of.options, features: t.features };
  delete options.method; // that of the model
  first('Values are hidden from further fits, to see how well they are predicted …');
  $('cancel').disabled = false;
  const ask = async () => q.unseen(model, await copied(t.x, signal), options, { signal, transfer: true });
  of.asked = ask().then((told) => {
    of.told = told;
    if (shown()) now.first = told;
    if (shown()) first();
  }, (e) => {
    if (shown()) first(signal.aborted ? 'How well unseen values are predicted was not found out: that was cancelled.' : told(e));
  }).finally(() => {
    if (now.stop.signal === signal) $('cancel').disabled = true;
  });
}

$('agree').onclick = () =>
  work(async (q, signal) => {
    const { table: t } = now;
    const { loss, seed, missingValues } = options();
    const given = Object.fromEntries(Object.entries({ loss, seed, missingValues }).filter(([, v]) => v !== undefined));
    const ranks = compared(2);
    const found = [];
    for (const rank of ranks) {
      bar(found.length / ranks.length);
      say(`fitting ${rank} components from 20 seeds`);
      found.push(await q.consensus(t.x, { ...given, rank }, { signal }));
    }
    if (now.table !== t) return;
    const least = (c) => c.stability.reduce((a, b) => Math.min(a, b), 1);
    line('stability', found.map((c, i) => [ranks[i], c.overall]), 'components', 'stability');
    const own = Math.max(0, ranks.indexOf(Number(form.rank.value)));
    const [said, button] = $('agreed').children;
    said.textContent = `${counted(ranks[own], 'component')} from 20 seeds: stability ${found[own].overall.toFixed(2)}, of the least stable one ${least(found[own]).toFixed(2)}.`;
    button.textContent = `Show what they agree on`;
    button.onclick = () => work((_, stop) => show(found[own].model, { command: consensus(ranks[own]), stability: found[own].stability }, stop));
    $('agreed').hidden = false;
  });

/** compared are the numbers of components that are tried, from the least on, that of the form among them. */
function compared(least) {
  const most = Math.min(now.table.x.rows, now.table.x.columns);
  return [...new Set([1, 2, 3, 5, 8, 12, 20, Number(form.rank.value)])].filter((k) => k >= least && k <= most).sort((a, b) => a - b);
}

$('choose').onclick = () =>
  work(async (q, signal, heard) => {
    const rest = options();
    if (rest.method === 'auto') delete rest.method;
    delete rest.rank;
    const ranks = compared(1);
    const most = Math.min(now.table.x.rows, now.table.x.columns);
    delete rest.missingValues; // a comparison takes missing values as they are
    const trials = await q.rank(now.table.x, { ...rest, ranks, repeats: 3 }, { signal, onProgress: heard });
    const { baseline, baselineRelative } = trials[0];
    trials.unshift({ rank: 0, mean: average(baseline), standardError: 0, losses: baseline, relative: baselineRelative });
    const { best, take } = judged(trials);
    const [verdict, button] = $('verdict').children;
    verdict.textContent = take.rank === 0 ? 'No structure was found: no number of components predicts hidden values better than the mean of each feature (0) does.'
      : `Hidden values are predicted best by ${counted(best.rank, 'component')}` +
      `${take === best ? '.' : `; ${take.rank} ${take.rank === 1 ? 'is' : 'are'} the fewest that do as well, in all and where every feature counts the same, within one standard error of the difference.`}${best.rank === ranks.at(-1) && best.rank < most ? ' No more than that were tried.' : ''}`;
    button.hidden = take.rank === 0;
    button.textContent = `Take ${take.rank}`;
    button.onclick = () => {
      form.rank.value = take.rank;
      settled();
    };
    $('verdict').hidden = false;
    line('ranks', trials.map((t) => [t.rank, t.mean]), 'components', 'loss of hidden values', { bars: trials.map((t) => [t.rank, t.mean - t.standardError, t.mean + t.standardError]) });
  });

// Groups and new samples.

// What has been read is for the table and the model that were there, unless another file was chosen or they have gone, which empties
// the field.
/** grouped reads groups from what text returns the promise of, unless something else has come meanwhile. */
async function grouped(text, name, wanted) {
  fail('');
  $('labelled').textContent = '';
  try {
    const { features, samples } = now.table;
    const content = await text();
    const { by, survival } = columns();
    const g = await (await loading).groups(content, { features, samples, name, by });
    if (!wanted()) return;
    now.groups = { ...g, text: content, name, by, survival };
    if (now.model) colour();
    tested();
    $('labelled').textContent = [g.samples ? `${counted(g.samples.names.length, 'group')} of samples` : 'no sample has a group', ...g.warnings].join('; ');
  } catch (error) {
    if (wanted()) fail(error.message, 'labels-problem');
  }
}
const columns = () => Object.fromEntries(['by', 'survival'].map((id) => [id, $(id).value.trim()]));
$('labels').onchange = ({ target: field }) => {
  const f = field.files[0];
  if (f) grouped(() => f.text(), f.name, () => field.files[0] === f);
};
for (const id of ['by', 'survival']) {
  $(id).onchange = () => {
    const { table: t, groups: g } = now;
    if (g) grouped(async () => g.text, g.name, () => now.table === t);
  };
}
$('sets').onchange = async ({ target: field }) => {
  const f = field.files[0];
  if (!f) return;
  const text = await f.text();
  if (field.files[0] !== f) return;
  now.sets = text;
  tested();
};

$('new').onchange = async ({ target: field }) => {
  const f = field.files[0];
  if (!f) return;
  fail('');
  $('placed').textContent = '';
  const { features } = now.table;
  let t;
  try {
    t = await (await loading).read(f, { name: f.name, ...now.layout, top: 0 }); // features are found by name
    if (field.files[0] === f) await place(t, f);
  } catch (error) {
    if (field.files[0] === f) fail(told(error, { features, samples: t?.samples }), 'new-problem');
  }
};

downloads(loading);

settled();

// sw.js keeps the page's files for use without a network. A new version waits until the user asks for it.
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
  }, () => {}); // a browser that keeps nothing, as in private windows: the page then needs its server each time
}
