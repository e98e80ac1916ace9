// The package for JavaScript as others install it: the examples (web/examples) from the packed file, and a page
// that loads it from another origin, as from a content delivery network.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { folder } from '../test/helpers.mjs';
import { launch, serve, tabOf } from './site.mjs';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const kinds = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };
let browser, packed;

before(async () => {
  browser = await launch('chrome');
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, at('../dist')]);
  packed = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz')));
});
after(() => browser?.close());

/** example copies one of the examples, with the package installed from the packed file. */
function example(name) {
  const to = join(folder, name);
  cpSync(at(`../examples/${name}`), to, { recursive: true });
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--omit=dev', '--no-save', packed], { cwd: to });
  return to;
}

/** shows opens a page and waits for what the example writes. */
async function shows(address) {
  const errors = [];
  const tab = await tabOf(browser, errors);
  await tab.goto(address);
  await tab.until(() => /V: \d/.test(document.body.textContent), undefined, 60000).catch(() => {});
  assert.deepEqual(errors.filter((text) => !text.includes('favicon') && !text.includes('404')), []);
  assert.match(await tab.evaluate(() => document.body.textContent), /V: \d+\.\d{3} /);
  await tab.close();
}

// The worker and what it imports must be among what the bundler finds, and the bundle must run under the page's
// policy.
test('Vite', async (t) => {
  const app = example('vite');
  execFileSync(at('node_modules/.bin/vite'), ['build', '--base', './', '--logLevel', 'error'], { cwd: app });
  const site = await serve(join(app, 'dist'));
  t.after(site.stop);
  await shows(site.address);
});

test('webpack', async (t) => {
  const app = example('webpack');
  execFileSync(at('node_modules/.bin/webpack'), ['--mode', 'production'], { cwd: app });
  const site = await serve(app);
  t.after(site.stop);
  await shows(site.address);
});

test('plain HTML, the package and its worker from another origin', async (t) => {
  const files = (root, change = (text) => text) => new Promise((done) => {
    const server = createServer((request, response) => {
      const path = request.url === '/' ? '/index.html' : request.url;
      try {
        const body = readFileSync(join(root, path));
        response.setHeader('Content-Type', kinds[extname(path)] ?? 'text/plain');
        response.setHeader('Access-Control-Allow-Origin', '*');
        response.end(path === '/index.html' ? change(String(body)) : body);
      } catch {
        response.writeHead(404).end();
      }
    }).listen(0, '127.0.0.1', () => {
      t.after(() => server.close());
      done(`http://127.0.0.1:${server.address().port}`);
    });
  });
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', packed], { cwd: folder });
  const network = await files(join(folder, 'node_modules/quantmf'));
  const plain = /https:\/\/cdn[^']*\/quantmf@[\d.]+/;
  const page = await files(at('../examples/plain'), (text) => text.replace(plain, network));
  await shows(page);
  assert.match(readFileSync(at('../js/README.md'), 'utf8'), plain);
});
