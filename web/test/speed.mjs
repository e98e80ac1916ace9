// What a fit takes in WebAssembly, beside what it takes natively: FitQMF on 1000 × 200, k = 10,
// one worker, seconds of the processor in turns; how soon the first progress comes and how
// long a cancel takes, in milliseconds of a machine that should have nothing else to do.
//
//	bash web/build && node web/test/speed.mjs [TURNS]
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from '../dist/index.js';
import { folder, mixed, write } from './helpers.mjs';

const turns = Number(process.argv[2] ?? 3);
const x = mixed(1000, 200, 10);
write('x.tsv', x);
const seconds = { 'wasm, vectors': [], 'wasm alone': [], 'native, Go alone': [], 'native, assembly': [] };
const commands = [['native, Go alone', 'purego'], ['native, assembly', '']].map(([name, tags]) => {
  const at = join(folder, `command${tags}`);
  execFileSync('go', ['build', '-tags', tags, '-o', at, './cmd/quantmf'], { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  return [name, at];
});
const middle = (v) => [...v].sort((a, b) => a - b)[v.length >> 1];
const show = (v) => `${middle(v).toFixed(2)} (${Math.min(...v).toFixed(2)} to ${Math.max(...v).toFixed(2)})`;

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
for (const [name, v] of Object.entries(seconds)) console.log(`${name}: ${show(v)} s`);
for (const base of ['native, Go alone', 'native, assembly']) console.log(`vectors over ${base}: ${show(seconds['wasm, vectors'].map((v, i) => v / seconds[base][i]))}`);

const q = await load({ workers: 1 });
for (const method of ['nmf', 'qmf', 'qmfq', 'bqmf']) {
  const first = [];
  const late = [];
  for (let k = 0; k < 8; k++) {
    const stop = new AbortController();
    let told;
    let asked;
    const began = performance.now();
    const timer = setTimeout(() => {
      asked = performance.now();
      stop.abort();
    }, 40 + 130 * k);
    await q.fit(x, { method, rank: 10, epochs: 100 }, { signal: stop.signal, onProgress: () => (told ??= performance.now()) }).then(() => clearTimeout(timer), () => late.push(performance.now() - asked));
    if (told) first.push(told - began);
  }
  console.log(`${method}: first progress ${show(first)} ms, cancel ${show(late)} ms`);
}
await q.close();
