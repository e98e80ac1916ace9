// Tests of the page in Firefox (FIREFOX names it): load, a fit with the bits of the command, cancel, bad files,
// labels, downloads that the command opens, no network.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { load } from '../dist/index.js';
import { folder, read, run } from '../test/helpers.mjs';
import { Firefox } from './marionette.mjs';
import { serve } from './site.mjs';

const downloads = join(folder, 'downloads');
let site, f;
before(async () => {
  mkdirSync(downloads);
  site = await serve();
  f = await Firefox.start(process.env.FIREFOX, downloads);
  await f.goto(site.address);
  await f.until((page) => page.document.documentElement.dataset.ready);
});
after(async () => {
  await f?.stop();
  await site?.stop();
});

async function fit() {
  await f.run((page) => (page.document.getElementById('status').textContent = ''));
  await f.click('#fit');
  await f.until((page) => page.document.getElementById('status').textContent.startsWith('Done'));
}

async function download(what, name) {
  await f.click(`[data-save=${what}]`);
  const at = join(downloads, name);
  for (let tries = 0; !existsSync(at) || statSync(at).size === 0 || existsSync(`${at}.part`); tries++) {
    assert.ok(tries < 300, `${name} does not come`);
    await new Promise((r) => setTimeout(r, 100));
  }
  return at;
}

test('sample data, fit, and the bits of the command', async () => {
  assert.equal(await f.run((page) => page.quantmfPage.vectors), true);
  await f.click('#sample');
  await f.until((page) => !page.document.getElementById('found').hidden);
  await fit();
  const model = await download('model', 'model.qmf');
  copyFileSync(fileURLToPath(new URL('../../testdata/laml-assays.tsv.gz', import.meta.url)), join(folder, 'laml-assays.tsv.gz'));
  run(...(await f.text('#command')).replace('-o model.qmf', '-o native.qmf').split(' ').slice(1));
  const q = await load({ workers: 1 });
  assert.deepEqual((await q.open(readFileSync(model))).bytes, (await q.open(read('native.qmf'))).bytes);
  await q.close();
  assert.match(String(run('inspect', model)), /300/);
  run('report', model, 'laml-assays.tsv.gz', '-o', 'native.html');
  const report = readFileSync(await download('report', 'report.html'), 'utf8');
  assert.equal(report, readFileSync(join(folder, 'native.html'), 'utf8').replaceAll(String(run('version')).split(' ')[1], '(devel)'));
  for (const [what, name] of [['u', 'U.csv'], ['v', 'V.csv'], ['curves', 'curves.csv'], ['curve', 'curve.svg'], ['maps', 'heatmaps.png']]) assert.ok(readFileSync(await download(what, name)).length > 200, what);
});

test('cancel, and on', async () => {
  await f.type('[name=method]', 'qmfq');
  await f.click('#fit');
  await f.until((page) => page.document.getElementById('progress').value > 0);
  await f.click('#cancel');
  await f.until((page) => page.document.getElementById('status').textContent === 'Cancelled.');
  await f.type('[name=method]', 'nmf');
  await fit();
  assert.match(await f.text('#summary'), /^nmf/);
});

test('bad files are said to be, and labels are text', async () => {
  writeFileSync(join(folder, 'bad.csv'), 'id,a,b\nx,1,2\ny,3,4,5\n');
  await f.type('#file', join(folder, 'bad.csv'));
  await f.until((page) => page.document.getElementById('problem').textContent.includes('bad.csv:3'));
  const evil = '<img src=x onerror="globalThis.hit=1">';
  writeFileSync(join(folder, 'evil.tsv'), `id\ta\tb\tc\n${[evil, 'y', 'z'].map((n, i) => `${n}\t${i + 1}\t${2 * i + 1}\t${9 - i}`).join('\n')}\n`);
  await f.type('#file', join(folder, 'evil.tsv'));
  await f.until((page) => page.document.getElementById('found-title').textContent.includes('3 features'));
  await f.fill('[name=rank]', '1');
  await fit();
  assert.match(await f.text('#components'), /onerror/);
  assert.equal(await f.run((page) => page.hit), null);
});

test('without a network', async () => {
  await f.until((page) => page.document.documentElement.dataset.offline);
  await site.stop();
  await f.goto(`${site.address}/?again`);
  await f.until((page) => page.document.documentElement.dataset.ready);
  await f.click('#sample');
  await f.until((page) => !page.document.getElementById('found').hidden);
  await f.fill('[name=rank]', '2');
  await fit();
  assert.equal(await f.text('#problem'), '');
});
