// This file has what tests in browsers share: the page served on this machine, and steps in it.
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder } from '../test/helpers.mjs';

const web = fileURLToPath(new URL('..', import.meta.url));
let binary;

/** serve serves a folder, web/dist if none is named; at is host and port. */
export async function serve(dist = 'dist', at = '127.0.0.1:0') {
  if (!binary) {
    binary = join(folder, 'server');
    execFileSync('go', ['build', '-o', binary, './server'], { cwd: web });
  }
  const server = spawn(binary, ['-at', at, dist], { cwd: web, stdio: ['ignore', 'pipe', 'inherit'] });
  const address = await new Promise((done) => server.stdout.once('data', (d) => done(String(d).trim())));
  return { address, stop: () => new Promise((done) => server.once('exit', done) && server.kill()) };
}

/** status waits until the page's status begins so. */
export const status = (page, text, timeout = 120000) => page.waitForFunction((t) => document.getElementById('status').textContent.startsWith(t), text, { timeout });

/** fit fits, and waits until that is done. */
export async function fit(page) {
  await page.evaluate(() => (document.getElementById('status').textContent = ''));
  await page.click('#fit');
  await status(page, 'Done');
}

/** download saves a file of the page into the tests' folder, and returns its path. */
export async function download(page, what) {
  const [d] = await Promise.all([page.waitForEvent('download'), page.click(`[data-save=${what}]`)]);
  const to = join(folder, d.suggestedFilename());
  await d.saveAs(to);
  return to;
}
