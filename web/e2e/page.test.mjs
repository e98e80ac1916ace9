// The page as people use it, in Chromium: every request and every complaint of the page's
// policy is watched.
import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { load } from '../dist/index.js';
import { folder, mixed, part, read, run, write } from '../test/helpers.mjs';

const web = fileURLToPath(new URL('..', import.meta.url));
const shots = process.env.SCREENSHOTS;
let server, browser, context, page, address;
const requests = [];
const complaints = [];

before(async () => {
  const binary = join(folder, 'server');
  execFileSync('go', ['build', '-o', binary, './server'], { cwd: web });
  server = spawn(binary, ['-at', '127.0.0.1:0', 'dist'], { cwd: web });
  address = await new Promise((done) => server.stdout.once('data', (d) => done(String(d).trim())));
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  context = await browser.newContext({ viewport: { width: 1200, height: 900 }, acceptDownloads: true });
  context.on('request', (r) => requests.push(r.url()));
  page = await context.newPage();
  page.on('console', (m) => m.type() === 'error' && complaints.push(m.text()));
  page.on('pageerror', (e) => complaints.push(e.message));
  await page.goto(address);
  await page.waitForSelector('html[data-ready]');
});
after(async () => {
  await browser?.close();
  server?.kill();
});

const status = (text, timeout = 120000) => page.waitForFunction((t) => document.getElementById('status').textContent.startsWith(t), text, { timeout });
const put = (name, content) => page.setInputFiles('#file', { name, mimeType: 'text/plain', buffer: Buffer.from(content) });

async function download(what) {
  const [d] = await Promise.all([page.waitForEvent('download'), page.click(`[data-save=${what}]`)]);
  const to = join(folder, d.suggestedFilename());
  await d.saveAs(to);
  return to;
}

test('sample data, fit, and the bits of the command line that is shown', async () => {
  assert.equal(await page.evaluate(() => globalThis.quantmfPage.vectors), true);
  await page.click('#sample');
  await page.waitForSelector('#found:not([hidden])');
  assert.match(await page.textContent('#found-title'), /300 features × 148 samples/);
  await page.click('#fit');
  await status('Done');
  assert.equal(await page.isVisible('#result'), true);
  const model = await download('model');
  copyFileSync(fileURLToPath(new URL('../../testdata/laml-assays.tsv.gz', import.meta.url)), join(folder, 'laml-assays.tsv.gz'));
  const words = (await page.textContent('#command')).split(' ');
  assert.equal(words.shift(), 'quantmf');
  words[words.indexOf('-o') + 1] = 'native.qmf';
  run(...words);
  const q = await load({ workers: 1 });
  assert.deepEqual((await q.open(readFileSync(model))).bytes, (await q.open(read('native.qmf'))).bytes);
  assert.match(String(run('inspect', model)), /300/);
  // New samples, their features in another order, find the coordinates that the command gives.
  const t = await q.read(read('laml-assays.tsv.gz'));
  await q.close();
  const few = part(t.x, 20, 26);
  const text = [['gene', ...t.samples.slice(20, 26)], ...t.features.map((f, i) => [f, ...few.data.subarray(6 * i, 6 * i + 6)]).reverse()];
  writeFileSync(join(folder, 'few.tsv'), text.map((l) => `${l.join('\t')}\n`).join(''));
  await page.setInputFiles('#new', join(folder, 'few.tsv'));
  await page.waitForFunction(() => /^6 samples placed/.test(document.getElementById('placed').textContent), null, { timeout: 120000 });
  run('transform', model, 'few.tsv', '-o', 'placed.native.csv');
  const rows = (file) => readFileSync(file, 'utf8').trim().split('\n').slice(1).map((l) => l.split(',').slice(1).map(Number));
  assert.deepEqual(rows(await download('placed')), rows(join(folder, 'placed.native.csv')));
  for (const what of ['u', 'v', 'curves', 'losses', 'curve', 'maps']) assert.ok(readFileSync(await download(what)).length > 200, what);
  assert.equal(rows(join(folder, 'U.csv')).length, 300);
});

test('keys move over cells, and a cell is told', async () => {
  await page.focus('canvas[data-map=x]');
  const before = await page.textContent('#cell');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction((t) => document.getElementById('cell').textContent !== t, before);
  assert.match(await page.textContent('#cell'), /x .*, UV .*, T\(UV\) .*, rest/);
  await page.click('[data-zoom=in]');
  await page.fill('#search', (await page.evaluate(() => globalThis.quantmfPage.table.features[100])));
  await page.dispatchEvent('#search', 'change');
  await page.waitForFunction(() => document.getElementById('cell').textContent.startsWith(globalThis.quantmfPage.table.features[100]));
});

test('nothing that axe finds', async () => {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(400); // buttons take their time to change colour
    await page.evaluate(readFileSync(fileURLToPath(new URL('./node_modules/axe-core/axe.min.js', import.meta.url)), 'utf8'));
    const found = await page.evaluate(() => globalThis.axe.run().then((r) => r.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target).join(' ')}`)));
    assert.deepEqual(found, [], scheme);
  }
  await page.emulateMedia({ colorScheme: 'light' });
});

test('it fits a phone', async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate(() => [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 390 && !e.closest('.table, .skip, svg')).map((e) => e.outerHTML.slice(0, 80)));
  assert.deepEqual(wide, []);
  if (shots) await page.screenshot({ path: join(shots, 'phone.png'), fullPage: true });
  await page.setViewportSize({ width: 1200, height: 900 });
  for (const scheme of shots ? ['light', 'dark'] : []) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(shots, `${scheme}.png`), fullPage: true });
  }
});

test('cancel is heard at once, and the page goes on', async () => {
  await page.selectOption('[name=method]', 'qmfq');
  await page.fill('[name=epochs]', '1000');
  await page.click('#fit');
  await page.waitForFunction(() => document.getElementById('progress').value > 0, null, { timeout: 60000 });
  const took = await page.evaluate(async () => {
    const from = performance.now();
    document.getElementById('cancel').click();
    while (document.getElementById('status').textContent !== 'Cancelled.') await new Promise((r) => setTimeout(r, 2));
    return performance.now() - from;
  });
  assert.ok(took < 2000, `${took} ms`);
  assert.equal(await page.isDisabled('#cancel'), true);
  await page.selectOption('[name=method]', 'nmf');
  await page.fill('[name=epochs]', '');
  await page.click('#fit');
  await status('Done');
  assert.match(await page.textContent('#summary'), /^nmf/);
});

test('bad files are said to be, with the place', async () => {
  await put('bad.csv', 'id,a,b\nx,1,2\ny,3,4,5\n');
  await page.waitForFunction(() => document.getElementById('problem').textContent.includes('bad.csv:3'));
  assert.equal(await page.isVisible('#fitting'), false);
  await put('empty.csv', '');
  await page.waitForFunction(() => document.getElementById('problem').textContent.includes('empty.csv'));
  await put('negative.csv', 'id,a,b,c\nx,1,-2,3\ny,3,,5\nz,3,4,1\n');
  await page.waitForFunction(() => document.getElementById('facts').textContent.includes('1 of 9 values are missing'));
  assert.match(await page.textContent('#facts'), /1 values are negative/);
  assert.match(await page.textContent('#command'), /-missing/);
});

test('labels are text, whatever they hold', async () => {
  const evil = '<img src=x onerror="globalThis.hit=1">';
  const names = ['x"><script>globalThis.hit=1</script>', evil, "'); alert(1); ('", '=cmd()|x', '\u202egnp'];
  await put(`${evil}.csv`, `id\ta\tb\tc\td\n${names.map((n, i) => `${n}\t${[1, 2, 3, 4].map((v) => v * (i + 1) + (v === i)).join('\t')}`).join('\n')}\n`);
  await page.waitForFunction(() => document.getElementById('found-title').textContent.includes('5 features'));
  await page.fill('[name=rank]', '2');
  await page.click('#fit');
  await status('Done');
  assert.match(await page.textContent('#components'), /onerror/);
  assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  assert.equal(await page.locator('main img, main script').count(), 0);
  assert.ok((await page.textContent('#command')).endsWith(`'${evil}.csv'`));
});

test('ranks are compared by hidden cells', async () => {
  const x = mixed(40, 30, 3);
  write('ranks.tsv', x);
  await page.setInputFiles('#file', join(folder, 'ranks.tsv'));
  await page.waitForFunction(() => document.getElementById('found-title').textContent.includes('40 features × 30'));
  await page.fill('[name=rank]', '4');
  await page.click('#choose');
  await status('Done');
  assert.equal(await page.isVisible('#ranks svg'), true);
});

test('settings are in the fragment', async () => {
  await page.selectOption('[name=method]', 'qmf');
  await page.fill('[name=rank]', '7');
  await page.fill('[name=epsilon]', '0.05');
  const url = await page.evaluate(() => location.href);
  assert.match(url, /#.*rank=7.*epsilon=0.05/);
  const other = await context.newPage();
  await other.goto(url);
  await other.waitForSelector('html[data-ready]');
  assert.deepEqual([await other.inputValue('[name=rank]'), await other.inputValue('[name=epsilon]')], ['7', '0.05']);
  await other.close();
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
  await page.waitForTimeout(200);
  for (const r of requests) assert.ok(r.includes('127.0.0.1') || r.startsWith('blob:') || complaints.some((c) => c.includes(r)), r);
});
