// This file has what the tests share: matrices, and the native command, built once, whose bits are the reference.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const folder = mkdtempSync(join(tmpdir(), 'quantmf-web-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** command is the path of the command. */
export const command = process.env.QUANTMF_COMMAND || join(folder, 'quantmf');
if (!process.env.QUANTMF_COMMAND) {
  execFileSync('go', ['build', '-o', command, './cmd/quantmf'], { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
}

/** run calls the command. */
export const run = (...args) => execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });

/** phases lists the phases of each method, each with options under which a fit soon comes to it. */
const started = { start: 'nmf' };
export const phases = {
  nmf: [['epochs', {}]],
  qmf: [['choice', {}], ['factors', { ...started, shrinkage: 0, line: 0.5 }], ['maps', { ...started, shrinkage: 0, line: 0.5 }], ['epochs', { ...started, shrinkage: 0, line: 0.5 }]],
  qmfq: [['choice', {}], ['factors', { ...started, shrinkage: 0, line: 0.5 }], ['maps', { ...started, shrinkage: 0, line: 0.5 }], ['qmf', { ...started, shrinkage: 0, line: 0.5 }], ['epochs', { start: 'uniform' }]],
  bqmf: [['factors', {}], ['epochs', {}]],
};

/** mixed returns a d × n matrix of rank k whose rows lie on scales of three kinds, with a tenth of noise. */
export function mixed(rows, columns, k, seed = 1) {
  let state = BigInt(seed) * 0x9e3779b97f4a7c15n;
  const next = () => {
    state = (state + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  };
  const u = Float64Array.from({ length: rows * k }, () => next() ** 2);
  const v = Float64Array.from({ length: k * columns }, () => next() ** 2);
  const data = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      let s = 0;
      for (let c = 0; c < k; c++) s += u[i * k + c] * v[c * columns + j];
      data[i * columns + j] = [s * s, Math.sqrt(s), s][i % 3] * (1 + 0.1 * next());
    }
  }
  return { rows, columns, data };
}

/** write writes a matrix as a text file, every number in full. */
export function write(name, { rows, columns, data }) {
  let text = `\t${Array.from({ length: columns }, (_, j) => `s${j}`).join('\t')}\n`;
  for (let i = 0; i < rows; i++) text += `f${i}\t${Array.from(data.subarray(i * columns, (i + 1) * columns)).join('\t')}\n`;
  writeFileSync(join(folder, name), text);
  return name;
}

export const read = (name) => new Uint8Array(readFileSync(join(folder, name)));

/** npy returns the matrix of a file of NumPy. */
export function npy(name) {
  const b = Buffer.from(read(name));
  const from = 10 + b.readUInt16LE(8);
  const [, rows, columns] = /'shape': \((\d+), (\d+)\)/.exec(b.toString('latin1', 10, from));
  if (!b.toString('latin1', 10, from).includes("'<f8'")) throw new Error(`${name} has no doubles`);
  return { rows: Number(rows), columns: Number(columns), data: new Float64Array(b.buffer.slice(b.byteOffset + from, b.byteOffset + b.length)) };
}

/** part returns the columns of a matrix from the index from to that before to. */
export function part({ rows, columns, data }, from, to) {
  const out = new Float64Array(rows * (to - from));
  for (let i = 0; i < rows; i++) out.set(data.subarray(i * columns + from, i * columns + to), i * (to - from));
  return { rows, columns: to - from, data: out };
}
