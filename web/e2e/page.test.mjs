// Tests of the page in Chromium. They record every request, and every error on the console, such as those of
// the page's policy.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { load } from '../dist/index.js';
import { command, folder, mixed, part, read, run, write } from '../test/helpers.mjs';
import { contextOf, giveHuge, launch, serve, tabOf } from './site.mjs';

const shots = process.env.SCREENSHOTS;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
let site, browser, context, page, address;
const requests = [];
const complaints = [];

before(async () => {
  site = await serve();
  ({ address } = site);
  browser = await launch('chrome');
  context = await contextOf(browser);
  page = await tabOf(context, complaints);
  await recorded(page);
  await page.goto(address);
  await page.exists('html[data-ready]');
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

/** recorded keeps the requests of a page and of its workers. */
async function recorded(tab) {
  const record = async (session) => {
    session.on('Network.requestWillBeSent', (e) => requests.push(e.request.url));
    await session.send('Network.enable');
  };
  tab.on('workercreated', (worker) => record(worker.client));
  browser.on('targetcreated', async (target) => {
    if (target.type() === 'service_worker') await record(await target.createCDPSession());
  });
  await record(await tab.createCDPSession());
}

const fit = (tab) => tab.fit();
const save = (tab, what) => tab.download(what);
const says = (tab, text) => tab.status(text);
const status = (text) => page.status(text);
const download = (what) => page.download(what);
const put = (name, content) => page.give('#file', name, content);

/** told waits for the first box of a result, and returns what it says. */
async function told(tab) {
  await tab.exists('#first :is(.answer, .bad)');
  return tab.text('#first');
}

/** shown waits until a matrix of that size is there. */
const shown = (size) => page.until((t) => !document.getElementById('found').hidden && document.getElementById('found-title').textContent.includes(t), size);

/** words are those of the command line that is shown, as a shell takes them. */
const words = async () => (await page.text('#command')).match(/'[^']*'|\S+/g).map((w) => w.replaceAll("'", ''));

test('sample data, fit, and the bits of the command line that is shown', async () => {
  assert.equal(await page.evaluate(() => globalThis.quantmfPage.vectors), true);
  await page.click('#sample');
  await page.exists('#found:not([hidden])');
  assert.match(await page.text('#found-title'), /300 features × 148 samples/);
  assert.match(await told(page), /^\d+ ± \d+ % of what differs between samples is predicted.*predicted there by the mean of each feature alone.*QMF(, because NMF predicts hidden values|; NMF predicts them) \d+ ± \d+ % worse/);
  await page.until(() => document.querySelectorAll('#key li').length === 8, undefined); // its groups came, too
  await fit(page);
  const model = await download('model');
  copyFileSync(fileURLToPath(new URL('../../testdata/laml-assays.tsv.gz', import.meta.url)), join(folder, 'laml-assays.tsv.gz'));
  const line = await words();
  assert.equal(line.shift(), 'quantmf');
  line[line.indexOf('-o') + 1] = 'native.qmf';
  run(...line);
  const q = await load({ workers: 1 });
  assert.deepEqual((await q.open(readFileSync(model))).bytes, (await q.open(read('native.qmf'))).bytes);
  assert.match(String(run('inspect', model)), /300/);
  // New samples, their features in another order, find the coordinates that the command gives.
  const t = await q.read(read('laml-assays.tsv.gz'));
  await q.close();
  const few = part(t.x, 20, 26);
  const text = [['gene', ...t.samples.slice(20, 26)], ...t.features.map((f, i) => [f, ...few.data.subarray(6 * i, 6 * i + 6)]).reverse()];
  writeFileSync(join(folder, 'few.tsv'), text.map((l) => `${l.join('\t')}\n`).join(''));
  await page.give('#new', 'few.tsv');
  await page.until(() => /^6 samples placed/.test(document.getElementById('placed').textContent), undefined, 120000);
  run('transform', model, 'few.tsv', '-o', 'placed.native.csv');
  const rows = (file) => readFileSync(file, 'utf8').trim().split('\n').slice(1).map((l) => l.split(',').slice(1).map(Number));
  assert.deepEqual(rows(await download('placed')), rows(join(folder, 'placed.native.csv')));
  for (const what of ['u', 'v', 'curves', 'losses', 'curve', 'scatter', 'maps']) assert.ok(readFileSync(await download(what)).length > 200, what);
  assert.equal(rows(join(folder, 'U.csv')).length, 300);
});

test('labels colour samples, and the report is the page of the command', async () => {
  const samples = await page.evaluate(() => globalThis.quantmfPage.table.samples);
  copyFileSync(fileURLToPath(new URL('../../testdata/laml-groups.tsv', import.meta.url)), join(folder, 'groups.tsv'));
  await page.give('#labels', 'groups.tsv');
  await page.until(() => document.querySelectorAll('#key li').length > 1);
  const colours = await page.evaluate(() => new Set([...document.querySelectorAll('#samples .plot [fill]')].map((e) => e.getAttribute('fill'))).size);
  assert.ok(colours >= 2);
  assert.equal(await page.count('#samples .plot :is(circle, rect, path[fill])'), samples.length + 6, 'a mark for each sample, and rings');
  const model = await download('model');
  const report = readFileSync(await download('report'), 'utf8');
  run('report', model, 'laml-assays.tsv.gz', '-groups', 'groups.tsv', '-o', 'native.html');
  assert.equal(report, readFileSync(join(folder, 'native.html'), 'utf8').replaceAll(String(run('version')).split(' ')[1], '(devel)'));
  assert.ok(report.includes('quantmf fit -method auto -k 5'));

  // Hostile labels are text; more groups than can be told apart are refused in words.
  const evil = '<img src=x onerror="globalThis.hit=1">';
  const label = (name, lines) => page.give('#labels', name, lines.join('\n'));
  await label('evil.tsv', samples.map((s, j) => `${s}\t${j % 2 ? evil : '"><script>globalThis.hit=1</script>'}`));
  await page.until(() => document.querySelector('#key').textContent.includes('onerror'));
  assert.ok(!readFileSync(await download('report'), 'utf8').includes('<img src=x'));
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  assert.equal(await page.count('main img, main script'), 0);
  await label('many.tsv', samples.map((s, j) => `${s}\tg${j}`));
  await page.until(() => /many.tsv.*more than 30 groups/.test(document.getElementById('labels-problem').textContent));
  assert.equal(await page.evaluate(() => document.getElementById('labels-problem').getBoundingClientRect().top - document.getElementById('labels').getBoundingClientRect().bottom < 100), true, 'beside what was asked for');
  await label('29.tsv', samples.map((s, j) => `${s}\tg${j % 29}`));
  await page.until(() => document.querySelectorAll('#key li').length === 29);
  const marks = await page.evaluate(() => [...document.querySelectorAll('#key svg > *')].map((e) => e.tagName + e.getAttribute('fill') + e.getAttribute('d')));
  assert.equal(new Set(marks).size, 29, 'colour and shape tell groups apart');
  await label('groups.tsv', readFileSync(join(folder, 'groups.tsv'), 'utf8').split('\n'));
});

test('keys move over cells, and a cell is told', async () => {
  await page.focused('canvas[data-map=x]');
  const before = await page.text('#cell');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await page.until((t) => document.getElementById('cell').textContent !== t, before);
  assert.match(await page.text('#cell'), /x .*, UV .*, T\(UV\) .*, x − T\(UV\)/);
  await page.click('[data-zoom=in]');
  await page.fill('#search', (await page.evaluate(() => globalThis.quantmfPage.table.features[100])));
  await page.until(() => document.querySelectorAll('#names option').length === globalThis.quantmfPage.table.features.length);
  await page.dispatch('#search', 'change');
  await page.until(() => document.getElementById('cell').textContent.startsWith(globalThis.quantmfPage.table.features[100]));
  const sample = async () => (await page.text('#cell')).match(/, (.*): x /)[1];
  await page.focused('canvas[data-map=t]');
  const ends = [];
  for (const key of ['End', 'Home', 'PageDown']) {
    await page.keyboard.press(key);
    ends.push(await sample());
  }
  const order = await page.evaluate(() => globalThis.quantmfPage.table.samples.length);
  assert.equal(new Set(ends.slice(0, 2)).size, 2, `${ends} of ${order}`);
});

test('a table stands beside each figure, with the numbers of the figure', async () => {
  const figures = await page.$$eval('figure:not([hidden])', (all) => all.map((f) => [f.id || f.querySelector('canvas')?.dataset.map, Boolean(f.querySelector('details .table'))]));
  assert.ok(figures.length >= 7);
  for (const [id, has] of figures) assert.ok(has, id);
  const cells = {};
  for (const map of ['x', 'uv', 't', 'rest']) {
    await page.click(`[data-table=${map}] summary`);
    await page.exists(`[data-table=${map}] td`);
    cells[map] = await page.$$eval(`[data-table=${map}] tr`, (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
  }
  const cell = (await page.text('#cell')).match(/^(.*), (.*): x (.*), UV (.*), T\(UV\) (.*), x − T\(UV\) (.*)$/);
  const j = cells.x[0].indexOf(cell[2]);
  const at = (map) => cells[map].find((r) => r[0] === cell[1])[j];
  assert.deepEqual(['x', 'uv', 't', 'rest'].map(at), cell.slice(3));
  const narrow = await page.$$eval('.maps th', (all) => all.filter((c) => c.getBoundingClientRect().width < 60 || c.getBoundingClientRect().height > 100).map((c) => c.textContent));
  assert.deepEqual(narrow, [], 'names are words, not a letter a line');
  await page.focused('canvas[data-map=x]');
  await page.keyboard.press('End');
  await page.until((name) => ![...document.querySelectorAll('[data-table=x] thead th')].some((c) => c.textContent === name), cell[2]);
  for (const map of ['x', 'uv', 't', 'rest']) await page.click(`[data-table=${map}] summary`);
});

test('nothing that axe finds', async () => {
  for (const scheme of ['light', 'dark']) {
    await page.media('screen', scheme, 'reduce'); // buttons take their time to change colour
    await page.evaluate(readFileSync(fileURLToPath(new URL('./node_modules/axe-core/axe.min.js', import.meta.url)), 'utf8'));
    const found = await page.evaluate(() => globalThis.axe.run().then((r) => r.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target).join(' ')}`)));
    assert.deepEqual(found, [], scheme);
  }
  await page.media('screen');
});

test('settings stand in line, and nothing that is hidden takes room', async () => {
  const [tops, heights] = await page.$$eval('#settings label > :is(input, select)', (all) => ['top', 'height'].map((k) => [...new Set(all.map((e) => e.getBoundingClientRect()[k]))]));
  assert.deepEqual([tops.length, heights.length], [1, 1], `${tops} ${heights}`);
  assert.deepEqual(await page.$$eval('[hidden]', (all) => all.filter((e) => e.getBoundingClientRect().height > 0).map((e) => e.id)), []);
});

test('it fits a phone', async () => {
  await page.setViewport({ width: 390, height: 844 });
  const wide = await page.evaluate(() => [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 390 && !e.closest('.table, .skip, svg')).map((e) => e.outerHTML.slice(0, 80)));
  assert.deepEqual(wide, []);
  const touch = () => page.$eval('canvas[data-map=x]', (c) => getComputedStyle(c).touchAction);
  await page.click('[data-zoom=all]');
  await page.until(() => !document.querySelector('canvas.part'));
  assert.equal(await touch(), 'pan-y', 'a finger on a map scrolls the page');
  await page.click('[data-zoom=in]');
  await page.exists('canvas.part');
  assert.equal(await touch(), 'none', 'and moves the map where it is not whole');
  await page.click('[data-zoom=all]');
  if (shots) await page.screenshot({ path: join(shots, 'phone.png'), fullPage: true });
  await page.setViewport({ width: 1200, height: 900 });
  for (const scheme of shots ? ['light', 'dark'] : []) {
    await page.media('screen', scheme);
    await sleep(300);
    await page.screenshot({ path: join(shots, `${scheme}.png`), fullPage: true });
  }
});

test('on paper: figures and numbers, no controls, dark on white', async () => {
  await page.media('print', 'dark');
  for (const hidden of ['#drop', '#settings', '#downloads', '#fit', '#labels']) assert.equal(await page.visible(hidden), false, hidden);
  for (const shown of ['#summary', 'canvas[data-map=x]', '#curve svg', '#samples svg', '#command', '#components button']) assert.equal(await page.visible(shown), true, shown);
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).color), 'rgb(0, 0, 0)');
  const pdf = await page.pdf({ format: 'A4', ...(shots && { path: join(shots, 'print.pdf') }) });
  const pages = Buffer.from(pdf).toString('latin1').match(/\/Type \/Page\b/g).length;
  assert.ok(pages <= 5, `figures and tables share pages: ${pages}`);
  await page.media('screen');
});

test('less motion where that is asked for', async () => {
  const moves = () => page.evaluate(() => [...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).transitionDuration !== '0s' || getComputedStyle(e).animationName !== 'none').length);
  assert.ok((await moves()) > 0);
  await page.media('screen', 'light', 'reduce');
  assert.equal(await moves(), 0);
  await page.media('screen');
});

test('the status says at most one thing a second', async () => {
  await page.evaluate(() => {
    globalThis.said = [];
    new MutationObserver(() => globalThis.said.push(performance.now())).observe(document.getElementById('status'), { childList: true });
  });
  await page.choose('[name=method]', 'qmfq');
  await page.fill('[name=epochs]', '200000'); // more than any machine makes in some seconds
  await page.click('#fit');
  await page.until(() => globalThis.said.length > 3);
  await page.click('#cancel');
  await status('Cancelled');
  const said = await page.evaluate(() => globalThis.said);
  for (let i = 1; i < said.length; i++) assert.ok(said[i] - said[i - 1] > 960, `${said}`); // a second, less what the clock of either may be late
});

test('cancel is heard at once, and the page goes on', async () => {
  await page.choose('[name=method]', 'qmfq');
  await page.fill('[name=epochs]', '1000');
  await page.click('#fit');
  await page.until(() => document.getElementById('progress').value > 0, undefined, 60000);
  const took = await page.evaluate(async () => {
    const from = performance.now();
    document.getElementById('cancel').click();
    while (!document.getElementById('cancel').disabled) await new Promise((r) => setTimeout(r, 2));
    return performance.now() - from;
  });
  assert.ok(took < 1000, `${took} ms`);
  await status('Cancelled');
  await page.choose('[name=method]', 'nmf');
  await page.fill('[name=epochs]', '');
  await fit(page);
  assert.match(await page.text('#summary'), /^nmf/);
});

test('bad files are said to be, with the place', async () => {
  await put('bad.csv', 'id,a,b\nx,1,2\ny,3,4,5\n');
  await page.until(() => document.getElementById('problem').textContent.includes('bad.csv:3'));
  assert.equal(await page.visible('#fitting'), false);
  await put('empty.csv', '');
  await page.until(() => document.getElementById('problem').textContent.includes('empty.csv'));
  await put('negative.csv', 'id,a,b,c\nx,1,-2,3\ny,3,,5\nz,3,4,1\n');
  await page.until(() => document.getElementById('facts').textContent.includes('1 value is missing, of 9'));
  assert.match(await page.text('#facts'), /1 value is negative: the loss is Frobenius/);
  assert.match(await page.text('#command'), /-missing/);
  for (const no of ['[name=method] [value=nmf]', '[name=loss] [value=kl]']) assert.equal(await page.property(no, 'disabled'), true, no);
});

test('numbers that may be names are taken as is said, on the command line, too', async () => {
  writeFileSync(join(folder, 'patients.csv'), `1,2,3,4\n${Array.from({ length: 6 }, (_, i) => [1, 2, 3, 5].map((v, j) => (j ? v * (i + 1) + ((i * j) % 3) : 7)).join(',')).join('\n')}\n`);
  await page.give('#file', 'patients.csv');
  await shown('7 features × 4');
  assert.match(await page.text('#facts'), /line 1 holds numbers.*give “First line” “names”/);
  assert.doesNotMatch(await page.text('#facts'), /give -/);
  await page.click('#reading-of summary');
  await page.choose('#header', 'yes');
  await shown('6 features × 4');
  assert.match(await page.evaluate(() => location.hash), /header=yes/);
  await page.fill('[name=rank]', '2');
  await fit(page);
  const model = await download('model');
  const line = await words();
  line[line.indexOf('-o') + 1] = 'native.qmf';
  run(...line.slice(1));
  const q = await load({ workers: 1 });
  assert.deepEqual((await q.open(readFileSync(model))).bytes, (await q.open(read('native.qmf'))).bytes);
  await q.close();
  await page.choose('#header', 'auto');
  await shown('7 features × 4');
});

test('what is missing is filled in as by the command, and words fit the method', async () => {
  const x = mixed(40, 30, 3);
  x.data.forEach((v, i) => (x.data[i] = i % 11 ? v - 2 : NaN)); // of either sign
  write('holes.tsv', x);
  await page.give('#file', 'holes.tsv');
  await shown('40 features × 30');
  await page.choose('[name=method]', 'bqmf');
  await page.fill('[name=rank]', '0');
  await fit(page);
  assert.match(await page.text('#losses figcaption'), /negative evidence, nats a cell/);
  assert.match(await page.text('#losses figcaption'), /predicted without itself with a loss of about [\d.]+ \(mean half the squared difference\)/);
  const filled = readFileSync(await download('filled'), 'utf8').trim().split('\n').map((l) => l.split(','));
  run('impute', 'holes.tsv', '-checks', '0', '-o', 'filled.native.csv');
  const native = readFileSync(join(folder, 'filled.native.csv'), 'utf8').trim().split('\n').map((l) => l.split(','));
  assert.deepEqual(filled.slice(1).map((r) => r.slice(1).map(Number)), native.slice(1).map((r) => r.slice(1).map(Number)));
  assert.ok(filled.slice(1).some((r, i) => r.slice(1).some((v, j) => x.data[30 * i + j] !== x.data[30 * i + j] && Number(v) < 0)), 'below 0, too');
  await page.choose('[name=method]', 'qmf');
  await page.fill('[name=rank]', '3');
  await fit(page);
  assert.match(await page.text('#losses figcaption'), /the mean over all cells of the half the squared difference/);
});

test('a file of 200 MB is read piece by piece, and another takes its place at once', async () => {
  assert.ok((await page.evaluate(giveHuge)) > 2e8);
  await page.until(() => document.getElementById('reading').value > 0.02, undefined, 60000);
  assert.equal(await page.visible('#fitting'), false);
  await put('small.csv', 'id,a,b,c\nx,1,2,3\ny,3,2,5\nz,3,4,1\n');
  await shown('3 features × 3');
  assert.equal(await page.visible('#reading'), false);
  assert.equal(await page.text('#problem'), '');
});

test('labels are text, whatever they hold', async () => {
  const evil = '<img src=x onerror="globalThis.hit=1">';
  const names = ['x"><script>globalThis.hit=1</script>', evil, "'); alert(1); ('", '=cmd()|x', '\u202egnp', 'a\x01\ufffe'];
  await put(`${evil}.csv`, `id\ta\tb\tc\td\n${names.map((n, i) => `${n}\t${[1, 2, 3, 4].map((v) => v * (i + 1) + (v === i)).join('\t')}`).join('\n')}\n`);
  await page.until(() => document.getElementById('found-title').textContent.includes('6 features'));
  await page.fill('[name=rank]', '2');
  await fit(page);
  assert.match(await page.text('#components'), /onerror/);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  assert.equal(await page.count('main img, main script'), 0);
  await page.fill('#search', names.at(-1));
  await page.dispatch('#search', 'change');
  await page.until((name) => document.querySelector('#curve figcaption').textContent.startsWith(name), names.at(-1));
  const svg = readFileSync(await download('curve'), 'utf8');
  assert.equal(await page.evaluate((text) => new DOMParser().parseFromString(text, 'image/svg+xml').querySelector('parsererror')?.textContent, svg.replace(/<style.*?<\/style>/s, '')), undefined); // the page's policy applies no style of a text
  assert.ok((await page.text('#command')).endsWith(`'${evil}.csv'`));
});

test('what is said first of matrices whose truth is known is what the command says', async () => {
  const truth = JSON.parse(readFileSync(new URL('../../testdata/matrices.json', import.meta.url)));
  const tab = await tabOf(context, complaints);
  await tab.goto(address);
  await tab.exists('html[data-ready]');
  for (const { name, method, says } of truth.matrices) {
    await tab.give('#file', `${name}.tsv.gz`, readFileSync(new URL(`../../testdata/matrices/${name}.tsv.gz`, import.meta.url)));
    await tab.until((n) => document.getElementById('found-title').textContent.startsWith(`${n}.`) && document.getElementById('reading').hidden, name);
    const ranks = Object.entries(method);
    for (const [k, best] of process.env.QUANTMF_LONG ? ranks : ranks.slice(-1)) { // all at night
      await tab.fill('[name=rank]', k);
      await fit(tab);
      const box = await told(tab);
      assert.match(box, best ? new RegExp(`${best.toUpperCase()}(, because|;)`) : /./, `${name}, ${k}`);
      if (best) assert.match(await tab.text('#summary'), new RegExp(`^${best},`));
      for (const [word, words] of Object.entries(truth.words)) {
        if (k === '0' && /few|whole/.test(word)) continue; // a bqmf leaves out what it does not need
        assert.equal(box.toLowerCase().includes(words.toLowerCase()), says.includes(word), `${name}, ${k}, ${word}: ${box}`);
      }
      assert.equal(await tab.count('.noise'), says.includes('none') ? 1 : 0, 'noise is drawn as noise');
    }
  }
  await tab.close();
});

test('a method that was told gets its first box behind the result, and the report has it', async () => {
  copyFileSync(fileURLToPath(new URL('../../testdata/matrices/limits.tsv.gz', import.meta.url)), join(folder, 'limits.tsv.gz'));
  await page.give('#file', 'limits.tsv.gz');
  await shown('60 features × 80');
  await page.choose('[name=method]', 'qmf');
  await page.fill('[name=rank]', '3');
  await fit(page);
  const box = await told(page);
  const said = String(execFileSync(command, ['fit', '-progress', 'none', '-method', 'qmf', '-k', '3', '-o', 'm.qmf', 'limits.tsv.gz'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] }) ?? '');
  const inspected = String(run('inspect', 'm.qmf'));
  assert.ok(box.startsWith(/Unseen values +(.*)/.exec(inspected)[1]), `${box} ${inspected} ${said}`);
  const kept = String(run('inspect', await download('model')));
  assert.equal(/Unseen values[^]*worse/.exec(kept)[0], /Unseen values[^]*worse/.exec(inspected)[0]);
  assert.ok(readFileSync(await download('report'), 'utf8').includes(box.slice(0, 60)));
});

test('logarithms, the features that vary most, and components that come back, as by the command', async () => {
  write('counts.tsv', mixed(80, 50, 3));
  await page.give('#file', 'counts.tsv');
  await shown('80 features × 50');
  await page.check('#log1p', true);
  await page.fill('#top', '30');
  await page.press('#top', 'Tab');
  await shown('30 features × 50');
  await page.choose('[name=method]', 'auto');
  await page.fill('[name=rank]', '3');
  const q = await load({ workers: 1 });
  const same = async () => {
    const model = await download('model');
    const inspected = String(run('inspect', model));
    const line = /quantmf \w+ .*counts.tsv/.exec(inspected)[0].split(' ');
    line[line.indexOf('-o') + 1] = 'native.qmf';
    run(...line.slice(1));
    assert.deepEqual((await q.open(readFileSync(model))).bytes, (await q.open(read('native.qmf'))).bytes);
    return [inspected, String(run('inspect', 'native.qmf'))];
  };
  await fit(page);
  await told(page);
  for (const text of await same()) assert.match(text, /log\(1\+x\)/);
  await page.click('#agree');
  await page.until(() => !document.getElementById('agreed').hidden);
  await status('Done');
  await page.click('#agreed button');
  await page.until(() => /^Component 1, stability [01]/.test(document.querySelector('#components h3').textContent));
  const stable = await page.$$eval('#components h3', (all) => all.map((h) => h.textContent.split(' ').at(-1)));
  const [, native] = await same();
  for (const s of stable) assert.ok(native.includes(s), `${s}: ${native}`);
  await q.close();
  await page.check('#log1p', false);
  await page.fill('#top', '');
  await page.press('#top', 'Tab');
  await shown('80 features × 50');
});

test('ranks are compared by hidden cells', async () => {
  const x = mixed(40, 30, 3);
  write('ranks.tsv', x);
  await page.give('#file', 'ranks.tsv');
  await page.until(() => document.getElementById('found-title').textContent.includes('40 features × 30'));
  await page.choose('[name=method]', 'qmf');
  await page.fill('[name=rank]', '4');
  await page.click('#choose');
  await page.exists('#ranks svg', 120000);
  const { chosen, best, trials } = JSON.parse(run('rank', 'ranks.tsv', '-k', '1,2,3,4,5,8,12,20', '-repeats', '3', '-json'));
  const verdict = await page.text('#verdict');
  assert.match(verdict, new RegExp(`by ${trials[best].k} component`));
  await page.click('#verdict button');
  assert.equal(await page.property('[name=rank]', 'value'), String(trials[chosen].k));

  // of noise the mean alone is best
  await page.give('#file', 'noise.tsv.gz', readFileSync(new URL('../../testdata/matrices/noise.tsv.gz', import.meta.url)));
  await page.until(() => document.getElementById('found-title').textContent.startsWith('noise.'));
  await page.click('#choose');
  await page.until(() => document.getElementById('verdict').textContent.includes('No structure was found'));
});

test('the command line repeats the fit to the bit, for every method, with missing and negative values', async () => {
  const x = mixed(40, 30, 3);
  for (let i = 0; i < x.data.length; i += 7) x.data[i] = NaN;
  write("it's x.tsv", x);
  const signed = { ...x, data: x.data.map((v, i) => (i % 5 ? v : -v)) };
  write('signed.tsv', signed);
  const q = await load({ workers: 1 });
  const settings = { rank: '3', levels: '5', epsilon: '0.05', epochs: '3', seed: '18446744073709551615' };
  for (const [file, method, given] of [["it's x.tsv", 'qmf', settings], ["it's x.tsv", 'nmf', { rank: '2', loss: 'frobenius', levels: '', epsilon: '' }], ['signed.tsv', 'qmfq', { ...settings, loss: 'auto' }], ['signed.tsv', 'bqmf', { rank: '4', loss: 'auto', levels: '', epsilon: '' }]]) {
    await page.give('#file', file);
    await page.until((f) => !document.getElementById('found').hidden && document.getElementById('found-title').textContent.startsWith(f), file);
    await page.choose('[name=method]', method);
    for (const [name, value] of Object.entries(given)) {
      if (name === 'loss') await page.choose('[name=loss]', value);
      else if (!(await page.property(`[name=${name}]`, 'disabled'))) await page.fill(`[name=${name}]`, value);
    }
    await fit(page);
    const model = readFileSync(await download('model'));
    const line = (await page.text('#command')).replace('-o model.qmf', '-o native.qmf');
    writeFileSync(join(folder, 'line.sh'), `quantmf() { "$0" "$@"; }\n${line}\n`);
    execFileSync('bash', ['-c', 'source ./line.sh', command], { cwd: folder, stdio: 'pipe' });
    const bytes = async (b) => Buffer.from((await q.open(b)).bytes);
    assert.ok((await bytes(model)).equals(await bytes(read('native.qmf'))), line);
    assert.ok(String(run('inspect', 'model.qmf')).includes('quantmf fit'), method);
  }
  await q.close();
  await page.fill('[name=seed]', '');
  await page.fill('[name=epochs]', '');
});

/** fresh opens the page in a tab of its own and reads a text; the end of a test must close it. */
async function fresh(name, text, fragment = '') {
  const tab = await tabOf(context, complaints);
  await tab.goto(`${address}/${fragment}`);
  await tab.exists('html[data-ready]');
  await give(tab, '#file', name, text);
  await tab.exists('#found:not([hidden])');
  return tab;
}
const give = (tab, field, name, text) => tab.give(field, name, text);

/** lines returns a table as text: d features and n samples with the values of(i, j). */
const lines = (d, n, of, sample = 's', feature = (i) => `f${i}`) => `id\t${Array.from({ length: n }, (_, j) => sample + j).join('\t')}\n${Array.from({ length: d }, (_, i) => `${feature(i)}\t${Array.from({ length: n }, (_, j) => of(i, j)).join('\t')}\n`).join('')}`;
const some = (i, j) => 1 + ((7 * i + 3 * j + i * j) % 11);

test('values that only rounding keeps apart, and more samples than a figure has room for, are drawn', async () => {
  const tab = await fresh('same.tsv', lines(6, 8, (i) => (i === 2 ? 1e17 : 0.1 * (i + 1))));
  await tab.fill('[name=rank]', '1');
  for (const method of ['nmf', 'qmf']) {
    await tab.choose('[name=method]', method);
    await fit(tab);
    await tab.focused('canvas[data-map=x]');
    for (let i = 0; i < 6; i++) {
      await tab.keyboard.press('ArrowDown');
      await tab.until(() => document.querySelectorAll('#curve text').length > 5, undefined, 5000);
    }
  }
  await give(tab, '#file', 'wide.tsv', lines(3, 2500, some));
  await tab.until(() => document.getElementById('found-title').textContent.includes('2500 samples'));
  await fit(tab);
  for (const figure of ['#curve', '#samples']) {
    assert.equal(await tab.evaluate((of) => [...document.querySelectorAll(`${of} .dot`)].map((e) => e.getAttribute('d')).join('').split('M').length - 1, figure), 834, figure);
    assert.match(await tab.text(`${figure} svg`), /one point in 3 is drawn/);
  }
  // A picture that takes the place of another one is the same as where there was none.
  assert.deepEqual(await tab.evaluate(async () => {
    const { draw, plot, table } = await import('./chart.js');
    const figure = () => document.importNode(document.getElementById('samples'), true);
    const points = [[1, 2], [3, 1], [2, 8], [4, 4], [5, 5], [NaN, 1]];
    const group = (shape) => ({ colour: '#123456', shape });
    const all = [{ points, x: 'a' }, { points, groups: points.map((_, i) => group(i % 4)) }, { points: points.slice(1), rings: [[0, 0]], line: points.slice(0, 4), y: 'b' },
      {}, { line: points.slice(0, 3), here: [1, 2], bars: [[1, 0, 4000]] }, { points: [[1e6, 1e-6], [2e6, 1]], groups: [group(2), group(0)] }];
    const one = figure();
    const over = (what, at) => draw(at, plot('of it', what), () => table(['a'], []), `caption ${what.x}`);
    const wrong = [];
    for (const i of [0, 1, 2, 0, 3, 4, 1, 5, 4, 4, 2, 1, 3, 5, 0]) {
      const other = figure();
      other.querySelector('.plot').replaceChildren();
      over(all[i], one);
      over(all[i], other);
      if (!one.isEqualNode(other)) wrong.push(`${i}: ${one.innerHTML}`);
    }
    return wrong;
  }), []);
  await tab.close();
  assert.deepEqual(complaints, []);
});

test('what was begun for a table or a model that has gone comes to nothing', async () => {
  const tab = await fresh('first.tsv', lines(20, 12, some));
  await tab.fill('[name=rank]', '3');
  await fit(tab);
  await tab.evaluate(() => { // each of these waits from here on until it is let go
    globalThis.held = [];
    const hold = (of, name) => {
      const was = of[name];
      of[name] = async function (...args) {
        if (name !== 'fetch' || args[0] === 'sample.tsv.gz') await new Promise((go) => globalThis.held.push(go));
        return was.apply(this, args);
      };
    };
    hold(Blob.prototype, 'text');
    hold(Object.getPrototypeOf(globalThis.quantmfPage.model), 'transform');
    hold(globalThis, 'fetch');
  });
  const letGo = async () => {
    await tab.until(() => globalThis.held.length === 1);
    await tab.evaluate(() => globalThis.held.pop()());
    await sleep(500);
  };
  await give(tab, '#new', 'new.tsv', lines(20, 5, some, 'n'));
  await tab.until(() => globalThis.held.length === 1);
  await tab.fill('[name=rank]', '2');
  await fit(tab);
  await letGo();
  assert.deepEqual([await tab.text('#placed'), await tab.property('[data-save=placed]', 'disabled'), await tab.count('.ring')], ['', true, 0]);
  await give(tab, '#labels', 'groups.tsv', Array.from({ length: 12 }, (_, j) => `s${j}\tg${j % 2}\n`).join(''));
  await give(tab, '#file', 'second.tsv', lines(5, 6, some, 't'));
  await tab.until(() => document.getElementById('found-title').textContent.startsWith('second.tsv'));
  await letGo();
  assert.deepEqual([await tab.text('#labelled'), await tab.evaluate(() => globalThis.quantmfPage.groups)], ['', undefined]);
  await tab.click('#sample');
  await give(tab, '#file', 'third.tsv', lines(6, 7, some, 't'));
  await tab.until(() => document.getElementById('found-title').textContent.startsWith('third.tsv'));
  await letGo();
  assert.match(await tab.text('#found-title'), /^third.tsv: 6 features × 7 samples/);
  assert.doesNotMatch(await tab.text('#facts'), /cancer/);

  // The losses are those of the model that is shown, also after a fit that was cancelled.
  await tab.fill('[name=rank]', '2');
  await tab.choose('[name=method]', 'nmf');
  await fit(tab);
  const losses = () => tab.evaluate(() => document.getElementById('losses').innerHTML);
  const own = await losses();
  await tab.choose('[name=method]', 'qmf');
  await tab.fill('[name=epochs]', '1000000');
  await tab.click('#fit');
  await tab.until(() => document.getElementById('status').textContent.startsWith('fitting'));
  await tab.click('#cancel');
  await says(tab, 'Cancelled.');
  await sleep(400);
  assert.equal(await losses(), own);
  assert.match(await tab.text('#summary'), /^nmf/);
  await tab.close();
  assert.deepEqual(complaints, []);
});

test('new samples are matched with features as by the command: by name, a name that comes twice in its order', async () => {
  const names = (i) => `f${i % 9}`; // f0 and f1 come twice
  writeFileSync(join(folder, 'twice.tsv'), lines(11, 12, some, 's', names));
  writeFileSync(join(folder, 'few.tsv'), lines(11, 3, (i, j) => some(i, j + 5), 'n', names));
  const tab = await fresh('twice.tsv', readFileSync(join(folder, 'twice.tsv')));
  await tab.fill('[name=rank]', '2');
  await fit(tab);
  await give(tab, '#new', 'few.tsv', readFileSync(join(folder, 'few.tsv')));
  await tab.until(() => document.getElementById('placed').textContent);
  run('transform', await save(tab, 'model'), 'few.tsv', '-o', 'few.native.csv');
  const rows = (file) => readFileSync(file, 'utf8').trim().split('\n').slice(1).map((l) => l.split(',').slice(1).map(Number));
  assert.deepEqual(rows(await save(tab, 'placed')), rows(join(folder, 'few.native.csv')));
  await give(tab, '#new', 'more.tsv', lines(12, 3, some, 'n', (i) => (i < 11 ? names(i) : 'more')));
  await tab.until(() => /3 samples placed.* 1 feature of the file that the model does not have is left out/.test(document.getElementById('placed').textContent));
  await give(tab, '#new', 'nameless.tsv', lines(12, 3, some).split('\n').slice(1, -1).map((l) => l.slice(l.indexOf('\t') + 1)).join('\n'));
  await tab.until(() => document.getElementById('new-problem').textContent === 'nameless.tsv: 12 features, and the model has 11');
  await tab.close();
});

test('settings of any notation stand on the command line as the command reads them, and choices that there are none of are left out', async () => {
  const tab = await fresh('-x.tsv', lines(12, 10, some), '#method=junk&loss=junk&header=junk&constructor=1&rank=010&epochs=1e1&epsilon=.05&levels=05');
  assert.equal(await tab.text('#command'), 'quantmf fit -method auto -k 10 -epochs 10 -o model.qmf ./-x.tsv');
  for (const field of ['[name=method]', '[name=loss]', '#header']) assert.notEqual(await tab.property(field, 'value'), '', field);
  await tab.fill('[name=epochs]', '');
  assert.equal(await tab.property('[name=epochs]', 'placeholder'), 'default');
  await tab.fill('[name=rank]', '');
  await tab.until(() => document.getElementById('estimate').textContent === '');
  await tab.fill('[name=rank]', '2');
  await give(tab, '#file', 'x.csv', '-id,a,b,c\np,1,2,3\nq,3,1,2\nr,1,5,1\n');
  await tab.evaluate(() => (document.getElementById('reading-of').open = true));
  await tab.fill('#names-in', '-id');
  await tab.press('#names-in', 'Tab');
  await tab.until(() => document.getElementById('command').textContent.includes('-names -id') && document.getElementById('reading').hidden);
  await tab.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined })); // as over plain http
  await tab.click('#copy');
  assert.equal(await tab.evaluate(() => String(getSelection())), await tab.text('#command'));
  // An address that is pasted over this one has its effect.
  await tab.evaluate(() => (location.hash = '#rank=3&method=nmf'));
  await tab.until(() => document.getElementById('command').textContent === 'quantmf fit -method nmf -k 3 -o model.qmf x.csv');
  await tab.evaluate(() => (location.hash = '#method=qmf&rank=02&epsilon=.05&levels=05&names=-id'));
  await tab.until(() => document.getElementById('command').textContent === 'quantmf fit -method qmf -k 2 -m 5 -eps 0.05 -names -id -o model.qmf x.csv');
  await tab.until(() => !document.getElementById('found').hidden);
  // A field of files takes what is dropped on it, and the same file again.
  for (const [at, taken] of [['#labels', true], ['#file', true], ['#drop', false]]) {
    assert.equal(await tab.evaluate((q) => document.querySelector(q).dispatchEvent(new DragEvent('dragover', { bubbles: true, cancelable: true })), at), taken, at);
  }
  // A folder is none.
  await tab.evaluate(() => document.body.dispatchEvent(Object.defineProperty(new Event('drop', { bubbles: true }), 'dataTransfer', { value: { items: [{ webkitGetAsEntry: () => ({ isDirectory: true }) }], files: [new File([], 'tenx')] } })));
  assert.match(await tab.text('#problem'), /^This is a folder: /);
  await Promise.all([tab.waitForFileChooser(), tab.click('#file')]);
  assert.equal(await tab.property('#file', 'value'), '');
  await tab.close();
  assert.deepEqual(complaints, []);
});

test('what a file has beside numbers is asked once, in the words of the page, and read as by the command', async () => {
  const odd = (i, j) => [['ND', '<0,5', 'n.d.'][i % 3], `${some(i, j)},5`][Number((i + j) % 7 > 0)];
  const text = `made by a machine;1\n${lines(9, 12, (i, j) => (j === 3 ? 'NA' : odd(i, j))).replaceAll('\t', ';')}`;
  writeFileSync(join(folder, 'odd.csv'), text);
  const tab = await tabOf(context, complaints);
  await tab.goto(address);
  await tab.exists('html[data-ready]');
  const asked = async (pattern) => {
    await tab.until((p) => document.getElementById('reading').hidden && new RegExp(p).test(document.getElementById('problem').textContent), pattern.source);
    assert.equal(await tab.property('#reading-of', 'open'), true);
    await tab.click('#again');
  };
  await tab.click('#reading-of summary');
  await tab.fill('#skip', '1');
  await give(tab, '#file', 'odd.csv', text);
  await asked(/words where numbers should stand: .*“Words for missing values” .* for words that mean a missing value; “Limits such as <0.5” half, limit or missing/);
  await tab.until(() => document.getElementById('found-title').textContent.startsWith('odd.csv: 9 features × 11 samples'));
  assert.match(await tab.text('#facts'), /decimal commas.*1 sample without any value left out: "s3"/);
  const line = await tab.text('#command');
  assert.equal(line, "quantmf fit -method auto -k 9 -missing -skip 1 -na ND,n.d. -below half -o model.qmf odd.csv");
  await tab.fill('[name=rank]', '2');
  await tab.choose('[name=method]', 'nmf');
  await fit(tab);
  const mine = await tab.download('v');
  run('fit', '-method', 'nmf', '-k', '2', '-missing', '-skip', '1', '-na', 'ND,n.d.', '-below', 'half', '-compare', 'none', '-v', 'odd.native.csv', 'odd.csv');
  assert.equal(readFileSync(mine, 'utf8'), readFileSync(join(folder, 'odd.native.csv'), 'utf8'));
  await tab.goto(address);
  await tab.exists('html[data-ready]');
  await give(tab, '#file', 'long.tsv', `gene\tsample\tvalue\n${lines(6, 5, some).trim().split('\n').slice(1).flatMap((l) => l.split('\t').slice(1).map((v, j) => `${l.split('\t')[0]}\ts${j}\t${v}`)).join('\n')}\n`);
  await asked(/long table.* give “Columns of a long table” gene,sample,value/);
  await tab.until(() => document.getElementById('found-title').textContent.startsWith('long.tsv: 6 features × 5 samples'));
  await tab.close();
  assert.deepEqual(complaints, []);
});

test('components are tested against what is known, as by the command', async () => {
  const names = Array.from({ length: 40 }, (_, j) => `s${j}`);
  writeFileSync(join(folder, 'table.tsv'), lines(30, 40, some));
  writeFileSync(join(folder, 'about.tsv'), [['', 'stage', 'age', 'months', 'died'], ...names.map((s, j) => [s, j % 3, 40 + ((j * 7) % 31), 1 + ((j * 11) % 37), j % 2])].map((l) => l.join('\t')).join('\n'));
  writeFileSync(join(folder, 'sets.gmt'), `odd\tnone\t${Array.from({ length: 10 }, (_, i) => `f${2 * i + 1}`).join('\t')}\n`);
  const tab = await fresh('table.tsv', readFileSync(join(folder, 'table.tsv')));
  await tab.fill('[name=rank]', '2');
  await tab.choose('[name=method]', 'nmf');
  await fit(tab);
  await tab.give('#labels', 'about.tsv');
  await tab.until(() => document.querySelectorAll('#tests tbody tr').length === 8);
  await tab.give('#sets', 'sets.gmt');
  await tab.fill('#survival', 'months,died');
  await tab.press('#survival', 'Tab');
  await tab.fill('#by', 'age');
  await tab.press('#by', 'Tab');
  await tab.until(() => document.querySelectorAll('#tests h3').length === 2 && document.querySelectorAll('#tests tbody tr').length === 6);
  assert.match(await tab.text('#tests'), /ρ .*hazard × .*2 tests/s);
  await told(tab);
  const report = readFileSync(await tab.download('report'), 'utf8');
  run('report', await tab.download('model'), 'table.tsv', '-groups', 'about.tsv', '-by', 'age', '-survival', 'months,died', '-sets', 'sets.gmt', '-o', 'about.html');
  assert.equal(report, readFileSync(join(folder, 'about.html'), 'utf8').replaceAll(String(run('version')).split(' ')[1], '(devel)'));
  for (const cell of await tab.$$eval('#tests :is(td, tbody th)', (all) => all.map((e) => e.textContent))) assert.ok(report.includes(`<td>${cell.replace('<', '&lt;')}</td>`), cell);
  await tab.close();
  assert.deepEqual(complaints, []);
});

test('an estimate comes before the fit', async () => {
  write('large.tsv', mixed(600, 150, 4));
  await page.give('#file', 'large.tsv');
  await shown('600 features × 150');
  await page.choose('[name=method]', 'qmf');
  await page.fill('[name=rank]', '8');
  await page.until(() => /MB of memory, and .*second/.test(document.getElementById('estimate').textContent), undefined, 30000);
  assert.equal(await page.evaluate(() => globalThis.quantmfPage.busy), undefined);
});

test('no task of the page takes a frame while it fits and shows', async () => {
  write('tasks.tsv', mixed(1000, 200, 10));
  await page.give('#file', 'tasks.tsv');
  await shown('1000 features × 200');
  await page.fill('[name=rank]', '10');
  // The longest task in ms of the processor, in the best of three tries: other work on the machine lengthens it, too, by what it takes of the caches.
  let longest = Infinity;
  for (let k = 0; k < 3 && longest >= 20; k++) {
    await page.tracing.start({ categories: ['toplevel', 'blink.user_timing'] });
    await page.evaluate(() => performance.mark('it begins'));
    await fit(page); // the result was out of sight, and all of it is laid out
    await fit(page);
    const { traceEvents } = JSON.parse(Buffer.from(await page.tracing.stop()));
    const { pid, tid, ts } = traceEvents.findLast((e) => e.name === 'it begins');
    const tasks = traceEvents.filter((e) => e.pid === pid && e.tid === tid && e.ts > ts && e.name.endsWith('RunTask') && e.tdur).map((e) => e.tdur / 1000);
    assert.ok(tasks.length > 100);
    longest = Math.min(longest, Math.max(...tasks));
  }
  assert.ok(longest < 20, `${longest} ms`);
});

test('a result becomes visible block by block, in frames of its own', async () => {
  write('blocks.tsv', mixed(120, 40, 3));
  await page.give('#file', 'blocks.tsv');
  await shown('120 features × 40');
  await page.fill('[name=rank]', '3');
  await page.evaluate(() => {
    const blocks = document.querySelectorAll('#result > .later, .maps > figure');
    const seen = (globalThis.seen = []);
    const count = () => {
      seen.push([...blocks].filter((e) => e.checkVisibility()).length);
      if (seen.at(-1) < blocks.length) requestAnimationFrame(count);
    };
    count();
  });
  await fit(page);
  const blocks = await page.count('#result > .later, .maps > figure');
  await page.until((all) => globalThis.seen.at(-1) === all, blocks);
  const seen = await page.evaluate(() => globalThis.seen);
  assert.equal(seen[0], 0);
  const most = Math.max(...seen.slice(1).map((v, i) => v - seen[i]));
  assert.ok(most <= 2, `${most} of ${blocks} blocks in one frame`);
  const widths = await page.$$eval('canvas[data-map]', (all) => all.map((c) => [c.width, Math.round(c.clientWidth * devicePixelRatio)]));
  for (const [drawn, is] of widths) assert.equal(drawn, is, 'a map is drawn at the width at which it is shown');
});

test('settings are in the fragment', async () => {
  await page.choose('[name=method]', 'qmf');
  await page.fill('[name=rank]', '7');
  await page.fill('[name=epsilon]', '0.05');
  await page.check('#transpose', true);
  const url = await page.evaluate(() => location.href);
  assert.match(url, /#.*rank=7.*epsilon=0.05/);
  const other = await tabOf(context);
  await other.goto(url);
  await other.exists('html[data-ready]');
  assert.deepEqual([await other.property('[name=rank]', 'value'), await other.property('[name=epsilon]', 'value'), await other.property('#transpose', 'checked')], ['7', '0.05', true]);
  await other.close();
  await page.check('#transpose', false);
});

test('nothing leaves the machine', async () => {
  assert.ok(requests.length > 8);
  for (const r of requests) assert.ok(r.startsWith(`${address}/`) || r.startsWith(`blob:${address}/`), r);
  assert.deepEqual(complaints, []);
  for (const url of ['https://example.org/', 'http://127.0.0.1:1/']) {
    assert.equal(await page.evaluate((u) => fetch(u, { mode: 'no-cors' }).then(() => 'sent', (e) => e.name), url), 'TypeError');
  }
  const refused = complaints.filter((c) => c.includes('Content Security Policy'));
  assert.ok(refused.length >= 2, complaints.join('\n'));
  assert.equal(await page.evaluate(() => navigator.sendBeacon('https://example.org/', 'x') && document.querySelector('img') === null), true);
  await sleep(200);
  for (const r of requests) assert.ok(r.includes('127.0.0.1') || r.startsWith('blob:') || complaints.some((c) => c.includes(r)), r);
});

test('from any server of files, which sends no policy: the page has its own, and opens when the server is gone', async () => {
  const server = spawn('python3', ['-u', '-m', 'http.server', '0', '--bind', '127.0.0.1'], { cwd: fileURLToPath(new URL('../dist/', import.meta.url)), stdio: ['ignore', 'pipe', 'ignore'] });
  const port = await new Promise((done, no) => {
    server.once('error', no);
    server.stdout.once('data', (d) => done(/port (\d+)/.exec(d)[1]));
  });
  const one = await contextOf(browser);
  const wrong = [];
  const tab = await tabOf(one, wrong);
  const response = await tab.goto(`http://127.0.0.1:${port}/`);
  assert.equal(response.headers()['content-security-policy'], undefined);
  await tab.exists('html[data-ready]');
  await tab.exists('html[data-offline]', 60000);
  assert.ok(await tab.evaluate(() => document.getElementById('offline').checkVisibility({ visibilityProperty: true })));
  await new Promise((done) => server.once('exit', done) && server.kill());
  await tab.reload();
  await tab.exists('html[data-ready]');
  await tab.click('#sample');
  await tab.exists('#found:not([hidden])');
  await tab.fill('[name=rank]', '2');
  await fit(tab);
  assert.deepEqual(wrong, []);
  assert.equal(await tab.evaluate(() => fetch('https://example.org/', { mode: 'no-cors' }).then(() => 'sent', (e) => e.name)), 'TypeError');
  assert.ok(wrong.some((c) => c.includes('Content Security Policy')), `${wrong}`);
  await one.close();
});

test('in any folder, without a network after the first visit, and a new version when it is asked for', async () => {
  const copy = join(folder, 'site');
  cpSync(fileURLToPath(new URL('../dist/', import.meta.url)), copy, { recursive: true });
  let own = await serve(folder);
  const one = await contextOf(browser);
  const tab = await tabOf(one);
  const errors = [];
  tab.on('pageerror', (e) => errors.push(e.message));
  await tab.goto(`${own.address}/site/`);
  await tab.exists('html[data-offline]', 60000);
  await own.stop(); // the machine is gone, not only the network
  for (const again of [false, true]) {
    if (again) await tab.reload();
    await tab.exists('html[data-ready]');
    await tab.click('#sample');
    await tab.exists('#found:not([hidden])');
    await tab.fill('[name=rank]', '3');
    await fit(tab);
    assert.ok(readFileSync(await save(tab, 'report')).length > 1e5);
  }
  assert.deepEqual(errors, []);
  assert.equal(await tab.evaluate(() => fetch('https://example.org/', { mode: 'no-cors' }).then(() => 'sent', (e) => e.name)), 'TypeError', 'the policy came with the page');
  // What is kept is this build and no data.
  const kept = await tab.evaluate(async () => ({ caches: await caches.keys(), files: (await (await caches.open((await caches.keys())[0])).keys()).map((r) => new URL(r.url).pathname.slice('/site/'.length)), local: localStorage.length, data: await indexedDB.databases() }));
  assert.equal(kept.caches.length, 1);
  assert.deepEqual(kept.files.sort(), readdirSync(copy).filter((f) => !['SHA256SUMS', 'sw.js', 'index.d.ts', 'package.json', 'README.md', 'LICENSE'].includes(f)).sort());
  assert.deepEqual([kept.local, kept.data], [0, []]);

  // A damaged copy of a new version is not taken; a whole one waits until it is asked for.
  const file = (name) => join(copy, name);
  const worker = readFileSync(file('sw.js'), 'utf8');
  const old = readFileSync(file('page.css'));
  const sum = (b) => createHash('sha256').update(b).digest('hex');
  const fresh = Buffer.concat([old, Buffer.from('\n/* new */\n')]);
  writeFileSync(file('sw.js'), worker.replace(sum(old), sum(fresh)).replace(/mine \+ '[0-9a-f]+'/, "mine + '1'"));
  own = await serve(folder, new URL(own.address).host);
  await tab.reload();
  await tab.exists('html[data-ready]');
  await tab.evaluate(() => navigator.serviceWorker.ready.then((r) => r.update()).catch(() => {}));
  await sleep(1500);
  assert.equal(await tab.visible('#newer'), false, 'page.css is not that of the sums');
  writeFileSync(file('page.css'), fresh);
  await tab.evaluate(() => navigator.serviceWorker.ready.then((r) => r.update()).catch(() => {}));
  await tab.exists('#newer:not([hidden])', 30000);
  assert.equal(await tab.evaluate(() => fetch('page.css').then((r) => r.text()).then((t) => t.includes('/* new */'))), false, 'the old one until then');
  await Promise.all([new Promise((done) => tab.once('load', done)), tab.click('#take-newer')]);
  await tab.exists('html[data-ready]');
  assert.equal(await tab.evaluate(() => fetch('page.css').then((r) => r.text()).then((t) => t.includes('/* new */'))), true);
  assert.equal(await tab.evaluate(() => caches.keys().then((k) => k.length)), 1);
  await one.close();
  await own.stop();
});
