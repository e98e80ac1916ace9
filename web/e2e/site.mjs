// This file has what tests in browsers share: the page served on this machine, Chromium and Firefox by puppeteer,
// and steps in a page that wait for what they need, as a person does.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { folder } from '../test/helpers.mjs';

const web = fileURLToPath(new URL('..', import.meta.url));
const [downloads, given] = ['downloads', 'given'].map((name) => join(folder, name));
const downloadBehavior = { policy: 'allow', downloadPath: downloads };
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

/** launch starts 'chrome' (CHROMIUM names it) or 'firefox' (FIREFOX) without a screen. */
export function launch(browser) {
  const executablePath = browser === 'firefox' ? process.env.FIREFOX : process.env.CHROMIUM;
  for (const name of [downloads, given]) mkdirSync(name, { recursive: true });
  return puppeteer.launch({
    browser, executablePath, downloadBehavior, defaultViewport: { width: 1200, height: 900 }, protocolTimeout: 600000,
    args: browser === 'firefox' ? [] : ['--no-sandbox', '--disable-gpu'],
    // Firefox downloads without a question, and into that folder.
    extraPrefsFirefox: { 'browser.download.folderList': 2, 'browser.download.dir': downloads, 'browser.download.useDownloadDir': true, 'browser.download.always_ask_before_handling_new_types': false,
      'browser.download.alwaysOpenPanel': false, 'browser.helperApps.neverAsk.saveToDisk': 'application/octet-stream,text/csv,text/html,image/svg+xml,image/png' },
  });
}

/** contextOf makes a context without cookies or files that others have kept. */
export const contextOf = (browser) => browser.createBrowserContext({ downloadBehavior });

/** tabOf makes a page with the steps below. errors takes those of its console. */
export async function tabOf(context, errors = []) {
  const tab = Object.assign(await context.newPage(), steps);
  tab.on('console', (m) => m.type() === 'error' && errors.push(m.text()));
  tab.on('pageerror', (e) => errors.push(e.message));
  return tab;
}

/** giveHuge, which the page evaluates, gives it a table of 200 MB to read, and returns the size of that. */
export function giveHuge() {
  const tail = Array.from({ length: 1000 }, (_, j) => (1 + ((j * 7919) % 1000) / 999).toFixed(8)).join(',');
  const parts = [`id,${Array.from({ length: 1000 }, (_, j) => `s${j}`).join(',')}\n`];
  for (let i = 0; i < 18200; i++) parts.push(`g${i},${tail}\n`);
  const files = new DataTransfer();
  files.items.add(new File(parts, 'huge.csv'));
  document.getElementById('file').files = files.files;
  document.getElementById('file').dispatchEvent(new Event('change'));
  return files.files[0].size;
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Steps in a page. Puppeteer's own ways to wait need eval, which the page's policy forbids. */
const steps = {
  /** until waits for a function of the page that returns something. */
  async until(f, arg, timeout = 120000) {
    for (const from = Date.now(); !(await this.evaluate(f, arg)); await sleep(20)) {
      if (Date.now() - from > timeout) throw new Error(`not in ${timeout} ms: ${f}, ${arg}`);
    }
  },
  /** exists waits for an element. */
  exists(css, timeout) {
    return this.until((c) => document.querySelector(c) !== null, css, timeout);
  },
  /** click waits until the element is shown, can be clicked and lies still. */
  async click(css) {
    await this.until(async (c) => {
      const e = document.querySelector(c);
      if (!e || e.matches(':disabled') || e.getClientRects().length === 0) return false;
      e.scrollIntoView({ block: 'center', behavior: 'instant' });
      const at = () => JSON.stringify(e.getBoundingClientRect());
      const was = at();
      await new Promise(requestAnimationFrame);
      return at() === was;
    }, css);
    await (await this.$(css)).click();
  },
  async focused(css) {
    await this.exists(css);
    await this.focus(css);
  },
  /** fill types a text in place of what a field has. */
  async fill(css, text) {
    await this.until((c) => document.querySelector(c)?.matches(':enabled'), css);
    await this.$eval(css, (e) => {
      e.focus();
      e.select();
    });
    if (text === '') await this.keyboard.press('Delete');
    else await this.keyboard.sendCharacter(text);
  },
  async press(css, key) {
    await this.focused(css);
    await this.keyboard.press(key);
  },
  async choose(css, value) {
    await this.until((c) => document.querySelector(c)?.matches(':enabled'), css);
    await this.select(css, value);
  },
  /** check sets a box. */
  async check(css, on) {
    if ((await this.property(css, 'checked')) !== on) await this.click(css);
  },
  /** give gives a field of files one of the tests' folder, or one with this content. */
  async give(css, name, content) {
    const at = content === undefined ? join(folder, name) : join(given, name);
    if (content !== undefined) writeFileSync(at, content);
    await (await this.$(css)).uploadFile(at);
  },
  dispatch(css, event) {
    return this.$eval(css, (e, type) => e.dispatchEvent(new Event(type, { bubbles: true })), event);
  },
  property(css, name) {
    return this.$eval(css, (e, n) => e[n], name);
  },
  text(css) {
    return this.property(css, 'textContent');
  },
  visible(css) {
    return this.$eval(css, (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().height > 0);
  },
  count(css) {
    return this.$$eval(css, (all) => all.length);
  },
  /** status waits until the page's status begins so. */
  status(text) {
    return this.until((t) => document.getElementById('status').textContent.startsWith(t), text);
  },
  /** fit fits, and waits until that is done. */
  async fit() {
    await this.evaluate(() => (document.getElementById('status').textContent = ''));
    await this.click('#fit');
    await this.status('Done');
  },
  /** download saves a file of the page into the tests' folder, and returns its path. */
  async download(what) {
    rmSync(downloads, { recursive: true });
    mkdirSync(downloads);
    await this.click(`[data-save=${what}]`);
    for (let size = 0, tries = 0; tries < 300; tries++) {
      await sleep(50);
      const [name, ...others] = readdirSync(downloads);
      if (!name || others.length > 0 || /\.(crdownload|part|tmp)$/.test(name)) continue;
      const is = statSync(join(downloads, name)).size;
      if (is > 0 && is === size) {
        renameSync(join(downloads, name), join(folder, name));
        return join(folder, name);
      }
      size = is;
    }
    throw new Error(`${what} does not come`);
  },
  /** media sets what the page's styles ask for, in Chromium: type and features in one, or each would undo the other. */
  async media(media, colour = 'light', motion = 'no-preference') {
    this.emulation ??= await this.createCDPSession();
    const features = [{ name: 'prefers-color-scheme', value: colour }, { name: 'prefers-reduced-motion', value: motion }];
    await this.emulation.send('Emulation.setEmulatedMedia', { media, features });
  },
};
