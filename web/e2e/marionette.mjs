// This file drives Firefox by its own protocol, Marionette, which Debian's package supports. Messages on a TCP connection
// consist of a length, a colon and JSON: requests are [0, id, command, parameters], responses [1, id, error, result].
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Firefox {
  #id = 0;
  #calls = new Map();
  #rest = Buffer.alloc(0);

  /** start starts Firefox without a screen; downloads go to the folder. */
  static async start(binary, downloads) {
    const f = new Firefox();
    f.profile = mkdtempSync(join(tmpdir(), 'quantmf-firefox-'));
    const port = await new Promise((done) => {
      const s = net.createServer().listen(0, '127.0.0.1', () => {
        const { port } = s.address();
        s.close(() => done(port));
      });
    });
    const preferences = {
      'marionette.port': port, 'browser.download.folderList': 2, 'browser.download.dir': downloads, 'browser.download.useDownloadDir': true,
      'browser.download.always_ask_before_handling_new_types': false, 'browser.download.manager.showWhenStarting': false, 'browser.download.alwaysOpenPanel': false,
      'browser.helperApps.neverAsk.saveToDisk': 'application/octet-stream,text/csv,text/html,image/svg+xml,image/png', 'datareporting.policy.dataSubmissionEnabled': false,
    };
    writeFileSync(join(f.profile, 'user.js'), Object.entries(preferences).map(([k, v]) => `user_pref(${JSON.stringify(k)}, ${JSON.stringify(v)});\n`).join(''));
    f.process = spawn(binary, ['--headless', '--marionette', '--no-remote', '--profile', f.profile], { stdio: 'ignore', env: { ...process.env, HOME: f.profile } });
    for (let tries = 0; ; tries++) {
      try {
        f.socket = await new Promise((done, failed) => {
          const s = net.connect(port, '127.0.0.1', () => done(s)).once('error', failed);
        });
        break;
      } catch (error) {
        if (tries > 300) throw error;
        await new Promise((r) => setTimeout(r, 200));
      }
    }
    f.socket.on('data', (d) => f.#heard(d));
    const session = await f.send('WebDriver:NewSession', { capabilities: { alwaysMatch: { timeouts: { script: 300000, pageLoad: 60000 } } } });
    f.version = session.capabilities.browserVersion;
    return f;
  }

  #heard(d) {
    this.#rest = Buffer.concat([this.#rest, d]);
    for (;;) {
      const colon = this.#rest.indexOf(':');
      const length = Number(this.#rest.subarray(0, Math.max(colon, 0)));
      if (colon < 0 || this.#rest.length < colon + 1 + length) return;
      const message = JSON.parse(this.#rest.subarray(colon + 1, colon + 1 + length));
      this.#rest = this.#rest.subarray(colon + 1 + length);
      if (!Array.isArray(message)) continue; // the greeting
      const [, id, error, result] = message;
      const { done, failed, name } = this.#calls.get(id);
      this.#calls.delete(id);
      if (error) failed(new Error(`${name}: ${error.error}: ${error.message}`));
      else done(result && 'value' in result ? result.value : result);
    }
  }

  send(name, parameters = {}) {
    const id = ++this.#id;
    const text = JSON.stringify([0, id, name, parameters]);
    return new Promise((done, failed) => {
      this.#calls.set(id, { done, failed, name });
      this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
  }

  goto(url) { return this.send('WebDriver:Navigate', { url }); }

  /** run calls a function in the page, whose first argument is its window. */
  run(f, ...args) {
    const script = `const done = arguments[arguments.length - 1];
      Promise.resolve((${f})(window, ...Array.from(arguments).slice(0, -1))).then((v) => done({ v }), (e) => done({ error: String(e) }));`;
    return this.send('WebDriver:ExecuteAsyncScript', { script, args }).then(({ v, error }) => {
      if (error) throw new Error(error);
      return v;
    });
  }

  /** until waits, two minutes at most, until a function in the page returns true. */
  async until(f, ...args) {
    for (const from = Date.now(); Date.now() - from < 120000; await new Promise((r) => setTimeout(r, 50))) if (await this.run(f, ...args)) return;
    throw new Error(`not in two minutes: ${f}`);
  }

  async find(css) {
    return Object.values(await this.send('WebDriver:FindElement', { using: 'css selector', value: css }))[0];
  }
  async click(css) { return this.send('WebDriver:ElementClick', { id: await this.find(css) }); }
  async type(css, text) { return this.send('WebDriver:ElementSendKeys', { id: await this.find(css), text }); }
  async fill(css, text) {
    await this.send('WebDriver:ElementClear', { id: await this.find(css) });
    return this.type(css, text);
  }
  text(css) { return this.run((page, q) => page.document.querySelector(q).textContent, css); }

  async stop() {
    const ended = new Promise((r) => this.process.once('exit', r));
    await this.send('Marionette:Quit', { flags: ['eForceQuit'] }).catch(() => this.process.kill());
    await ended;
    this.socket.destroy();
    rmSync(this.profile, { recursive: true, force: true });
  }
}
