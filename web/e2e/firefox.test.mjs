// Tests of the page in Firefox (FIREFOX names it): load, a fit with the bits of the command, cancel, bad files,
// labels, downloads that the command opens, no network.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { load } from '../dist/index.js';
import { folder, read, run } from '../test/helpers.mjs';
import { launch, serve, tabOf } from './site.mjs';

let site, browser, f;
before(async () => {
  site = await serve();
  browser = await launch('firefox');
  f = await tabOf(browser);
  await f.goto(site.address);
  await f.exists('html[data-ready]');
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

test('sample data, fit, and the bits of the command', async () => {
  assert.equal(await f.evaluate(() => globalThis.quantmfPage.vectors), true);
  await f.click('#sample');
  await f.exists('#found:not([hidden])');
  await f.fit();
  const model = await f.download('model');
  copyFileSync(fileURLToPath(new URL('../../testdata/laml-assays.tsv.gz', import.meta.url)), join(folder, 'laml-assays.tsv.gz'));
  run(...(await f.text('#command')).replace('-o model.qmf', '-o native.qmf').split(' ').slice(1));
  const q = await load({ workers: 1 });
  assert.deepEqual((await q.open(readFileSync(model))).bytes, (await q.open(read('native.qmf'))).bytes);
  await q.close();
  assert.match(String(run('inspect', model)), /300/);
  copyFileSync(fileURLToPath(new URL('../../testdata/laml-groups.tsv', import.meta.url)), join(folder, 'laml-groups.tsv'));
  run('report', model, 'laml-assays.tsv.gz', '-groups', 'laml-groups.tsv', '-o', 'native.html');
  const report = readFileSync(await f.download('report'), 'utf8');
  assert.equal(report, readFileSync(join(folder, 'native.html'), 'utf8').replaceAll(String(run('version')).split(' ')[1], '(devel)'));
  for (const what of ['u', 'v', 'curves', 'curve', 'maps']) assert.ok(readFileSync(await f.download(what)).length > 200, what);
});

test('cancel, and on', async () => {
  await f.choose('[name=method]', 'qmfq');
  await f.click('#fit');
  await f.until(() => document.getElementById('progress').value > 0);
  await f.click('#cancel');
  await f.status('Cancelled.');
  await f.choose('[name=method]', 'nmf');
  await f.fit();
  assert.match(await f.text('#summary'), /^nmf/);
});

test('bad files are said to be, and labels are text', async () => {
  await f.give('#file', 'bad.csv', 'id,a,b\nx,1,2\ny,3,4,5\n');
  await f.until(() => document.getElementById('problem').textContent.includes('bad.csv:3'));
  const evil = '<img src=x onerror="globalThis.hit=1">';
  await f.give('#file', 'evil.tsv', `id\ta\tb\tc\n${[evil, 'y', 'z'].map((n, i) => `${n}\t${i + 1}\t${2 * i + 1}\t${9 - i}`).join('\n')}\n`);
  await f.until(() => document.getElementById('found-title').textContent.includes('3 features'));
  await f.fill('[name=rank]', '1');
  await f.fit();
  assert.match(await f.text('#components'), /onerror/);
  assert.equal(await f.evaluate(() => globalThis.hit), undefined);
});

test('without a network', async () => {
  await f.exists('html[data-offline]');
  await site.stop();
  await f.goto(`${site.address}/?again`);
  await f.exists('html[data-ready]');
  await f.click('#sample');
  await f.exists('#found:not([hidden])');
  await f.fill('[name=rank]', '2');
  await f.fit();
  assert.equal(await f.text('#problem'), '');
});
