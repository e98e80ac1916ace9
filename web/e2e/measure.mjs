// Measures what docs/measurements/web.md has, and prints it: bash web/measure [TURNS].
import { execFileSync } from 'node:child_process';
import { brotliCompressSync, constants as zlib, gzipSync } from 'node:zlib';
import { readFileSync, readdirSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from '../dist/index.js';
import { folder, mixed, phases, write } from '../test/helpers.mjs';
import { contextOf, giveHuge, launch, serve, tabOf } from './site.mjs';

const turns = Number(process.argv[2] ?? 3);
const sorted = (v) => [...v].sort((a, b) => a - b);
const share = (v, p) => sorted(v)[Math.min(v.length - 1, Math.floor(p * v.length))];
const out = [];
const line = (...words) => out.push(words.join(' '));
const rows = (heading, all) => {
  line(`| ${heading.join(' | ')} |`);
  line(`|${heading.map(() => '---').join('|')}|`);
  for (const r of all) line(`| ${r.join(' | ')} |`);
  line();
};
const note = (text) => console.error(text);
const x = mixed(1000, 200, 10);
const median = (v, digits = 0) => share(v, 0.5).toFixed(digits);
const spread = (v, digits = 2) => `${median(v, digits)} (${Math.min(...v).toFixed(digits)} to ${Math.max(...v).toFixed(digits)})`;

line('# In the browser, measured\n');
line(`\`bash web/measure ${turns}\` wrote this: ${os.cpus()[0].model}, ${os.cpus().length} processors, a load of ${os.loadavg()[0].toFixed(1)} at the start, node ${process.version}.`);
line();

/** What it means stands first, and is known last. */
const summary = out.length;

// Size.
const dist = fileURLToPath(new URL('../dist/', import.meta.url));
const gzip = (b) => gzipSync(b, { level: 9 });
const brotli = (b) => brotliCompressSync(b, { params: { [zlib.BROTLI_PARAM_LGWIN]: 24, [zlib.BROTLI_PARAM_SIZE_HINT]: b.length } });
const packed = (...names) => [gzip, brotli].map((pack) => (names.reduce((s, n) => s + pack(readFileSync(join(dist, n))).length, 0) / 1000).toFixed(0));
const page = readdirSync(dist).filter((n) => /^(index\.html|page\.(js|css)|state\.js|result\.js|downloads\.js|chart\.js|heatmap\.js|icon\.svg|sw\.js)$/.test(n));
line('## What is downloaded\n');
const parts = [
  ['engine, kernels, glue', ...packed('engine.wasm', 'kernels.wasm', 'kernels.js', 'index.js', 'errors.js', 'messages.js', 'worker.js', 'wasm_exec.js')],
  ['readers and report, on demand', ...packed('tables.wasm')],
  ['the page', ...packed(...page)],
];
rows(['what', 'KB, gzip', 'brotli'], parts);

// Seconds of the processor.
note('seconds of fits');
write('x.tsv', x);
const seconds = { 'wasm, vectors': [], 'wasm alone': [], 'native, Go alone': [], 'native, assembly': [] };
const commands = [['native, Go alone', 'purego'], ['native, assembly', '']].map(([name, tags]) => {
  const at = join(folder, `command${tags}`);
  execFileSync('go', ['build', '-tags', tags, '-o', at, './cmd/quantmf'], { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  return [name, at];
});
for (let turn = 0; turn < turns; turn++) {
  for (const simd of [true, false]) {
    const q = await load({ workers: 1, simd });
    await q.softRank([1, 2]);
    const before = process.cpuUsage();
    await q.fit(x, { rank: 10 });
    const { user, system } = process.cpuUsage(before);
    seconds[simd ? 'wasm, vectors' : 'wasm alone'].push((user + system) / 1e6);
    await q.close();
  }
  for (const [name, command] of commands) {
    const time = `TIMEFORMAT=%U; time "$0" fit -workers 1 -progress none -k 10 -o x.model x.tsv >/dev/null 2>&1`;
    seconds[name].push(Number(execFileSync('bash', ['-c', `{ ${time}; } 2>&1`, command], { cwd: folder, encoding: 'utf8' })));
  }
}
line('## FitQMF of 1000 × 200, k = 10, defaults, one worker\n');
const over = Object.fromEntries(Object.entries(seconds).map(([name, v]) => [name, seconds['wasm, vectors'].map((s, i) => s / v[i])]));
rows(['', 's of the processor', 'wasm with vectors over it'], Object.entries(seconds).map(([name, v]) => [name, spread(v), spread(over[name])]));

// First progress and cancel, in node: the same workers without a page.
note('first progress and cancel');
line('## First progress, and cancel, the latest of all phases of a fit, in ms of the processor\n');
const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const late = [];
let [latestFirst, latestEnd] = [0, 0]; // in milliseconds of the processor
for (const [d, n] of [[1000, 200], [6000, 300]]) {
  const big = d === 1000 ? x : mixed(d, n, 10);
  const tries = (d === 1000 ? 4 : 1) * turns;
  const q = await load({ workers: 1 });
  const found = [];
  for (const [method, all] of Object.entries(phases)) {
    let [first, end] = [0, 0];
    for (const [phase, options] of all) {
      for (let k = 0; k < tries; k++) {
        const stop = new AbortController();
        let told, asked, timer;
        const began = cpu();
        await q.fit(big, { method, rank: 10, ...options }, { signal: stop.signal, onProgress: (p) => {
          if (!told) {
            told = true;
            first = Math.max(first, cpu() - began);
          }
          if (p.phase === phase && p.done < 1) timer ??= setTimeout(() => {
            asked = cpu();
            stop.abort();
          }, (40 * k) / tries);
        } }).then(() => clearTimeout(timer), () => {
          end = Math.max(end, cpu() - asked);
        });
      }
      note(`${d} × ${n} ${method} ${phase} ${first.toFixed(0)} ${end.toFixed(0)}`);
    }
    [latestFirst, latestEnd] = [Math.max(latestFirst, first), Math.max(latestEnd, end)];
    found.push([method, first.toFixed(0), end.toFixed(0)]);
  }
  late.push([`${d} × ${n}`, ...[0, 1, 2].map((k) => found.map((f) => f[k]).join(', '))]);
  await q.close();
}
rows(['matrix', 'method', 'first progress', 'a cancelled fit ends'], late);

// Browsers.
const site = await serve();
const chrome = await launch('chrome');
const tab = await tabOf(await contextOf(chrome));
const cdp = await tab.createCDPSession();

/** ready is how long load takes in a page, the first time and then with files at hand. */
const ready = `async () => {
  const { load } = await import('./index.js');
  const took = [];
  for (let k = 0; k < 6; k++) {
    const began = performance.now();
    const q = await load({ workers: 1 });
    took.push(performance.now() - began);
    await q.close();
  }
  return took;
}`;
/** How many fits in a row frames are counted of: one fit has some hundred, of which the last hundredth is one frame. */
const fits = 5;
/** counted calls start and puts the times between frames into gaps until ends. In a trace it leaves a mark before that and in each frame. told sums
 * gaps up: 99 % of them are within late. */
const counted = `async (gaps, ends, start, mark) => {
  const began = performance.now();
  let at = began;
  if (mark) performance.mark(mark);
  start?.();
  while (!ends(at - began)) {
    const t = await new Promise((r) => requestAnimationFrame(() => r(performance.now())));
    if (mark) performance.mark(mark);
    gaps.push(t - at);
    at = t;
  }
  if (mark) performance.mark('pause');
}`;
const told = `(gaps) => {
  gaps.sort((a, b) => a - b);
  return { rate: (1000 * gaps.length) / gaps.reduce((s, gap) => s + gap, 0), late: gaps[Math.floor(0.99 * gaps.length)], most: gaps.at(-1) };
}`;
/** frames counts those of three seconds of rest, and those that are drawn while the page makes its fits, from the click until each result is
 * shown: the frame with its last block is drawn after that block is made, and is the one before the last of those counted. */
const frames = `async (traced) => {
  const now = globalThis.quantmfPage;
  const count = ${counted};
  const rest = [], fit = [];
  await count(rest, (t) => t > 3000);
  for (let k = 0; k < ${fits}; k++) {
    let made = 0;
    await count(fit, () => !now.busy && made++ > 0, () => document.getElementById('fit').click(), traced && 'frame');
  }
  return { rest: (${told})(rest), fit: (${told})(fit) };
}`;
/** empty counts the frames of a page that shows nothing, while a worker of it makes the same
 * fits: what is late there no page can help. */
const empty = (x) => `async () => {
  const count = ${counted};
  const { load } = await import('./index.js');
  const q = await load();
  const x = ${JSON.stringify(x)};
  x.data = Float64Array.from(x.data);
  const gaps = [];
  for (let k = 0; k < ${fits}; k++) {
    let done = false;
    const fit = q.fit(x, { rank: 10 }, { onProgress() {} }).then(() => (done = true));
    await count(gaps, () => done);
    await fit;
  }
  await q.close();
  return (${told})(gaps);
}`;
const plainX = { rows: x.rows, columns: x.columns, data: Array.from(x.data) };

note('Chromium');
/** pss is the memory of the largest renderer, MB, each page of it shared out among its users. */
function pss() {
  let most = 0;
  for (const pid of readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!command.includes('--type=renderer')) continue;
      let up = pid; // only of our own browser
      for (let k = 0; k < 6 && up !== String(process.pid); k++) up = /PPid:\s+(\d+)/.exec(readFileSync(`/proc/${up}/status`, 'utf8'))[1];
      if (up !== String(process.pid)) continue;
      most = Math.max(most, Number(/Pss:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]) / 1000);
    } catch {
      // it has ended
    }
  }
  return most;
}
await tab.goto(`${site.address}/icon.svg`);
await tab.goto(site.address);
await tab.exists('html[data-ready]');
await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
const cold = [];
for (let k = 0; k < turns; k++) {
  const own = await contextOf(chrome);
  const one = await tabOf(own);
  await one.goto(`${site.address}/index.d.ts`);
  cold.push((await one.evaluate(`(${ready})()`).catch(() => [NaN]))[0]);
  await own.close();
}
const warm = (await tab.evaluate(`(${ready})()`)).slice(1);
await cdp.send('Network.setCacheDisabled', { cacheDisabled: false });
await tab.give('#file', 'x.tsv');
await tab.until(() => !document.getElementById('found').hidden);
await tab.fill('[name=rank]', '10');
await tab.until(() => / and .*second/.test(document.getElementById('estimate').textContent));
const drawn = await tab.evaluate(`(${frames})()`);
// What the main thread works in each frame, in milliseconds of its processor, in other fits of the same. A task belongs to the
// frame in which it ends: that of a click, or that which draws the frame, has the frame's mark in it.
await tab.tracing.start({ categories: ['toplevel', 'blink.user_timing'] });
await tab.evaluate(`(${frames})(true)`);
const { traceEvents } = JSON.parse(Buffer.from(await tab.tracing.stop()));
const marks = traceEvents.filter((e) => e.name === 'frame' || e.name === 'pause').sort((a, b) => a.ts - b.ts);
const tasks = traceEvents.filter((e) => e.pid === marks[0].pid && e.tid === marks[0].tid && e.name.endsWith('RunTask'));
const each = marks
  .slice(0, -1)
  .map((m, k) => (m.name === 'frame' ? tasks.filter((e) => e.ts + e.dur >= m.ts && e.ts + e.dur < marks[k + 1].ts).reduce((sum, e) => sum + (e.tdur ?? 0) / 1000, 0) : -1))
  .filter((took) => took >= 0)
  .sort((a, b) => a - b);
const [usual, longest] = [each[Math.floor(0.99 * each.length)], each.at(-1)];
await tab.goto(`${site.address}/index.d.ts`);
const alone = await tab.evaluate(`(${empty(plainX)})()`);
await tab.close(); // memory is that of the largest renderer
const memory = {};
for (const workers of [1, 4]) {
  const one = await tabOf(await contextOf(chrome));
  await one.goto(site.address);
  await one.exists('html[data-ready]');
  await one.evaluate(`(async (x, workers) => {
    const { load } = await import('./index.js');
    const q = (globalThis.kept = await load({ workers }));
    x.data = Float64Array.from(x.data);
    await Promise.all(Array.from({ length: workers }, () => q.fit(x, { rank: 10, epochs: 2 })));
  })(${JSON.stringify(plainX)}, ${workers})`);
  memory[workers] = pss();
  await one.browserContext().close();
}
note('a file of 200 MB');
const huge = await tabOf(await contextOf(chrome));
await huge.goto(site.address);
await huge.exists('html[data-ready]');
let most = 0;
const watch = setInterval(() => (most = Math.max(most, pss())), 250);
const began = Date.now();
const size = (await huge.evaluate(giveHuge)) / 1e6;
await huge.until(() => !document.getElementById('found').hidden || document.getElementById('problem').textContent, undefined, 600000);
clearInterval(watch);
const read = { size, seconds: (Date.now() - began) / 1000, said: (await huge.text('#problem')) || (await huge.text('#found-title')), most };
const version = (await chrome.version()).split('/')[1];
await chrome.close();
const browsers = [[`Chromium ${version}, headless`, drawn, cold, warm, alone]];

if (process.env.FIREFOX) {
  note('Firefox');
  const firefox = await launch('firefox');
  const f = await tabOf(firefox);
  await f.goto(`${site.address}/index.d.ts`);
  const took = await f.evaluate(`(${ready})()`);
  await f.goto(site.address);
  await f.exists('html[data-ready]');
  await f.give('#file', 'x.tsv');
  await f.exists('#found:not([hidden])');
  await f.fill('[name=rank]', '10');
  await f.until(() => / and .*second/.test(document.getElementById('estimate').textContent));
  const shown = await f.evaluate(`(${frames})()`);
  await f.goto(`${site.address}/index.d.ts`);
  const nothing = await f.evaluate(`(${empty(plainX)})()`);
  browsers.push([`Firefox ${(await firefox.version()).split('/')[1]}, headless`, shown, took.slice(0, 1), took.slice(1), nothing]);
  await firefox.close();
}
await site.stop();
line('## In browsers\n');
rows(['', 'worker ready, cold, ms', 'warm', `frames a second in ${fits} fits of 1000 × 200`, '99 % of frames within, ms', 'the longest', 'an empty page: 99 %'],
  browsers.map(([name, d, c, w, e]) => [name, spread(c, 0), spread(w, 0), d.fit.rate.toFixed(1), d.fit.late.toFixed(1), d.fit.most.toFixed(1), e.late.toFixed(1)]));
line(`An empty page: a worker makes the same fits, and nothing is shown. Chromium's main thread worked at most ${usual.toFixed(1)} ms in 99 % of the frames of ${fits} fits, and ${longest.toFixed(1)} ms in the longest. Memory of its renderer: ${memory[1].toFixed(0)} MB with the page's worker and one more, ${((memory[4] - memory[1]) / 3).toFixed(1)} MB for each further worker. A CSV of ${read.size.toFixed(0)} MB is read in ${read.seconds.toFixed(0)} s, with ${read.most.toFixed(0)} MB at most ("${read.said}").`);
out.splice(summary, 0, `A page loads ${parts[0][1]} KB, compressed by gzip, before its first fit, and ${parts[1][1]} KB with the first file. A fit takes ${median(over['native, assembly'], 1)} times
the processor time of the command, ${median(over['native, Go alone'], 2)} of that of the command without assembly, and ${(1 / median(over['wasm alone'], 3)).toFixed(1)} times as long without the vectors of
WebAssembly. The first progress comes after ${latestFirst.toFixed(0)} ms of the processor at the latest, and a cancelled fit ends within ${latestEnd.toFixed(0)} ms.
While it fits, the page draws ${browsers.map(([name, d]) => `${d.fit.rate.toFixed(0)} frames a second in ${name.split(' ')[0]}`).join(' and ')}.
`);
console.log(out.join('\n'));
