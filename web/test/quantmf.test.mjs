// Tests of the package for JavaScript: its results have every bit of those of the native command.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { ConvergenceError, DataError, FormatError, OptionError, QuantmfError, ShapeError, TableError, load } from '../dist/index.js';
import { folder, mixed, npy, part, phases, read, run, write } from './helpers.mjs';

const x = mixed(60, 40, 3);
let q;
before(async () => {
  q = await load({ workers: 2 });
});
after(() => q.close());

/** bits compares numbers by their bits. */
const bits = (got, want) => assert.deepEqual(new BigUint64Array(got.buffer, got.byteOffset, got.length), new BigUint64Array(want.buffer, want.byteOffset, want.length));

const cases = [
  ['nmf', { method: 'nmf', rank: 3 }, ['-method', 'nmf', '-k', '3']],
  ['qmf', { rank: 3 }, ['-method', 'qmf', '-k', '3']],
  ['qmf, options', { rank: 2, levels: 5, epsilon: 0.05, epochs: 3, seed: 7, validation: 0.1, start: 'scores', shrinkage: 3, line: 0.4, loss: 'frobenius' },
    ['-method', 'qmf', '-k', '2', '-m', '5', '-eps', '0.05', '-epochs', '3', '-seed', '7', '-validation', '0.1', '-start', 'scores', '-shrinkage', '3', '-line', '0.4', '-loss', 'frobenius']],
  ['qmf by Adam', { rank: 2, start: 'uniform', learningRate: 0.1, schedule: 'constant', ends: 'pinned', batch: 16 },
    ['-method', 'qmf', '-k', '2', '-start', 'uniform', '-lr', '0.1', '-schedule', 'constant', '-ends', 'pinned', '-batch', '16']],
  ['qmfq', { method: 'qmfq', rank: 3, epochs: 3, projection: 'kl:10' }, ['-method', 'qmfq', '-k', '3', '-epochs', '3', '-projection', 'kl:10']],
  ['bqmf', { method: 'bqmf', rank: 5 }, ['-method', 'bqmf', '-k', '5']],
];

for (const [name, options, flags] of cases) {
  test(`the bits of the command: ${name}`, async () => {
    write('x.tsv', x);
    run('fit', ...flags, '-o', 'native.model', 'x.tsv');
    const native = await q.open(read('native.model'));
    const before = x.data.slice();
    const model = await q.fit(x, options);
    bits(x.data, before);
    assert.deepEqual(model.bytes, native.bytes);
    assert.equal(model.method, options.method ?? 'qmf');
    assert.deepEqual([model.rows, model.columns], [60, 40]);
    bits(model.u.data, native.u.data);

    // And back: the command reads the file and places new samples.
    const fresh = part(mixed(60, 50, 3), 40, 50);
    writeFileSync(join(folder, 'web.model'), model.bytes);
    run('transform', 'web.model', write('fresh.tsv', fresh), '-o', 'placed.npy');
    const placed = await model.transform(fresh);
    assert.deepEqual([placed.rows, placed.columns], [model.rank, 10]);
    bits(placed.data, npy('placed.npy').data);
    run('reconstruct', 'web.model', '-o', 'again.npy');
    bits((await model.reconstruct()).data, npy('again.npy').data);
  });
}

test('the method that predicts best is that of the command', async () => {
  write('x.tsv', x);
  for (const rank of [3, 0]) {
    run('fit', '-k', String(rank), '-o', 'auto.model', 'x.tsv');
    const model = await q.fit(x, { method: 'auto', rank });
    assert.deepEqual(model.bytes, (await q.open(read('auto.model'))).bytes);
  }
});

test('a consensus of NMFs has the bits of the command', async () => {
  const got = await q.consensus(x, { rank: 3, seeds: 4 });
  assert.equal(got.stability.length, 3);
  assert.equal(got.losses.length, 4);
  run('consensus', '-k', '3', '-seeds', '4', '-o', 'c.nmf', write('c.tsv', x));
  bits(got.model.u.data, (await q.open(read('c.nmf'))).u.data);
  await assert.rejects(q.consensus(x, { rank: 3, seeds: 1 }), (e) => e instanceof OptionError && e.option === 'seeds');
});

test('missing values', async () => {
  const holes = { ...x, data: x.data.map((v, i) => (i % 7 === 3 ? NaN : v)) };
  write('holes.tsv', holes);
  run('fit', '-method', 'qmf', '-missing', '-k', '3', '-o', 'holes.model', 'holes.tsv');
  const model = await q.fit(holes, { rank: 3, missingValues: true });
  assert.deepEqual(model.bytes, (await q.open(read('holes.model'))).bytes);
  await assert.rejects(q.fit(holes, { rank: 3 }), (e) => e instanceof DataError && e.row === 0 && e.column === 3 && Number.isNaN(e.value));
});

test('a matrix moves to the worker where transfer says so, and is copied otherwise', async () => {
  const of = () => ({ ...x, data: x.data.slice() });
  const [kept, moved, again] = [of(), of(), of()];
  const model = await q.fit(kept, { rank: 3 }, { transfer: false });
  assert.equal(kept.data.length, x.data.length);
  const call = q.fit(moved, { rank: 3 }, { transfer: true });
  assert.equal(moved.data.buffer.byteLength, 0);
  assert.deepEqual((await call).bytes, model.bytes);
  assert.deepEqual(await model.top(again, 2, { transfer: true }), await model.top(kept, 2));
  assert.equal(again.data.length, 0);
  await assert.rejects(q.fit(moved, { rank: 3 }, { transfer: true }), ShapeError);
});

test('what cannot move is copied, and what only looks like an array is a ShapeError', async () => {
  const model = await q.fit(x, { method: 'nmf', rank: 2, epochs: 1 });
  const bytes = x.data.byteLength;
  const wasm = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65536) });
  for (const buffer of [new SharedArrayBuffer(bytes), wasm.buffer]) {
    const data = new Float64Array(buffer, 0, x.data.length);
    data.set(x.data);
    const again = await q.fit({ ...x, data }, { method: 'nmf', rank: 2, epochs: 1 }, { transfer: true });
    assert.deepEqual(again.bytes, model.bytes);
    assert.equal(data.length, x.data.length);
  }
  for (const data of [Object.create(Float64Array.prototype), new Proxy(new Float64Array(2), {}), { length: 2, 0: 1, 1: 2 }, new DataView(new ArrayBuffer(16)), new ArrayBuffer(16), undefined]) {
    for (const call of [() => q.fit({ rows: 1, columns: 2, data }, { rank: 1 }), () => q.fit({ rows: 1, columns: 2, data }, { rank: 1 }, { transfer: true }), () => q.fit([data], { rank: 1 }),
      () => model.transform({ rows: 60, columns: 1, data }), () => q.softRank(data), () => q.estimate({ rows: 1, columns: 2, data }, { rank: 1 }), () => q.open(data), () => q.read(data)]) {
      await assert.rejects(call(), ShapeError, String(call));
    }
  }
  for (const data of [[1, 2], new BigInt64Array(2)]) await assert.rejects(q.estimate({ rows: 1, columns: 2, data }, { rank: 1 }), ShapeError);
  await assert.rejects(q.read(Object.create(Blob.prototype)), ShapeError);
});

test('progress comes in the order of phases', async () => {
  const seen = [];
  const model = await q.fit(x, { rank: 3 }, { onProgress: (p) => seen.push(p) });
  const phases = [...new Set(seen.map((p) => p.phase))];
  assert.deepEqual(phases, ['choice', 'factors', 'maps', 'epochs']);
  for (let i = 1; i < seen.length; i++) if (seen[i].phase === seen[i - 1].phase) assert.ok(seen[i].done >= seen[i - 1].done);
  assert.equal(seen.at(-1).epoch, 4);
  assert.equal(seen.at(-1).done, 1);
  assert.equal(model.history.length, 5);
});

test('a signal ends a fit in every phase, and the worker goes on', async (t) => {
  const large = mixed(500, 100, 4);
  for (const [method, all] of Object.entries(phases)) {
    for (const [phase, options] of all) {
      const stop = new AbortController();
      const reason = new Error('enough');
      let from;
      const fit = q.fit(large, { method, rank: 8, epochs: 50, ...options }, {
        signal: stop.signal,
        onProgress: (p) => {
          if (from || p.phase !== phase) return;
          from = performance.now();
          stop.abort(reason);
        },
      });
      await assert.rejects(fit, (e) => e === reason, `${method}, ${phase}`);
      const took = performance.now() - from;
      t.diagnostic(`${method}, ${phase}: ${took.toFixed(0)} ms`);
      assert.ok(took < 2000, `${method}, ${phase}: ${took} ms`);
    }
  }
  await assert.rejects(q.fit(large, { rank: 8 }, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  await assert.rejects(q.fit(large, { rank: 8 }, { signal: AbortSignal.timeout(60) }), { name: 'TimeoutError' });
  bits(await q.softRank([3, 1, 2], { epsilon: 0 }), Float64Array.of(3, 1, 2));
});

test('what a progress function throws stops the fit', async () => {
  const enough = new Error('enough');
  const seen = [];
  const fit = q.fit(x, { rank: 3, epochs: 500 }, {
    onProgress: (p) => {
      seen.push(p);
      if (p.epoch === 2) throw enough;
    },
  });
  await assert.rejects(fit, (e) => e === enough);
  assert.ok(seen.at(-1).epoch < 400);
  assert.equal((await q.fit(x, { rank: 3 })).rank, 3);
});

test('a call that waits for a worker can be taken back', async () => {
  const one = await load({ workers: 1 });
  const stop = new AbortController();
  const first = one.fit(x, { rank: 3 });
  const second = one.fit(x, { rank: 3 }, { signal: stop.signal });
  stop.abort();
  await assert.rejects(second, { name: 'AbortError' });
  assert.equal((await first).rank, 3);
  const late = assert.rejects(one.fit(mixed(500, 100, 4), { rank: 8, epochs: 50 }), QuantmfError);
  await one.close();
  await late;
  await assert.rejects(one.fit(x, { rank: 3 }), QuantmfError);
});

test('errors say what and where', async () => {
  const bad = async (promise, kind, fields) => {
    await assert.rejects(promise, (e) => {
      assert.ok(e instanceof kind && e instanceof QuantmfError, `${e.name}: ${e.message}`);
      assert.equal(e.name, kind.name);
      for (const [k, v] of Object.entries(fields)) assert.deepEqual(e[k], v, `${k} of ${e.message}`);
      return true;
    });
  };
  await bad(q.fit(x, { rank: 3, epsilon: -1 }), OptionError, { option: 'epsilon', value: '-1', bound: 'must be 0, or from 1e-12 to 1e12' });
  await bad(q.fit(x, { rank: 3, epsilon: '1' }), OptionError, { option: 'epsilon', value: '"1"' });
  await bad(q.fit(x, { rank: 3, levels: 2.5 }), OptionError, { option: 'levels', value: '2.5' });
  await bad(q.fit(x, { rank: 3, learningRte: 1 }), OptionError, { option: 'learningRte' });
  await bad(q.fit(x, { rank: 3, start: 'rank' }), OptionError, { option: 'start', value: 'rank' });
  await bad(q.fit(x, { rank: 3, seed: -1 }), OptionError, { option: 'seed', value: '-1' });
  await bad(q.fit(x, { rank: 3, method: 'pca' }), OptionError, { option: 'method', value: 'pca' });
  await bad(q.fit(x, { rank: 0 }), OptionError, { option: 'rank', value: '0' });
  await bad(q.fit(x, {}), OptionError, { option: 'rank', value: 'undefined' });
  // Fits that need more memory than the engine can have, which would end the worker.
  await bad(q.fit(x, { method: 'nmf', rank: 1e6 }), OptionError, { option: 'rank', value: '1000000' });
  await bad(q.rank(x, { method: 'qmf', ranks: [1e6] }), OptionError, { option: 'rank', value: '1000000' });
  await bad(q.fit(x, { rank: 3, levels: 1e6 }), OptionError, { option: 'levels', value: '1000000' });
  // Options that are no object.
  for (const none of [null, 3, []]) {
    await bad(q.fit(x, none), OptionError, { option: 'options', bound: 'must be an object' });
    await bad(q.rank(x, none), OptionError, { option: 'options' });
    await bad(q.footprint(none), OptionError, { option: 'options' });
    await bad(q.estimate(x, none), OptionError, { option: 'options' });
    await bad(q.read(new Uint8Array(1), none), OptionError, { option: 'options' });
    await bad(q.groups('', none), OptionError, { option: 'of' });
    await bad(q.softRank([1, 2], none), OptionError, { option: 'options' });
    await bad(q.fit(x, { rank: 3 }, none), OptionError, { option: 'how' });
    await bad(q.rank(x, { ranks: [2] }, none), OptionError, { option: 'how' });
    await bad(load(none), OptionError, { option: 'options' });
  }
  await bad(q.estimate(null, { rank: 3 }), ShapeError, { what: 'x', want: '{rows, columns, data}' });
  await bad(q.read('a,b'), ShapeError, { want: 'a Blob or a Uint8Array' });
  await bad(q.fit(x, { rank: '3' }), OptionError, { value: '"3"' });
  await bad(q.fit(x, { rank: 3, method: 'nmf', levels: 8 }), OptionError, { option: 'levels' });
  await bad(q.softRank([1, 2], { epochs: 3 }), OptionError, {});
  const negative = { ...x, data: x.data.map((v, i) => (i === 85 ? -2 : v)) };
  await bad(q.fit(negative, { rank: 3 }), DataError, { row: 2, column: 5, value: -2, problem: "x must not be negative under this loss; loss: 'frobenius' takes any finite x" });
  await bad(q.fit([[1, 2], [3, '4']], { rank: 1 }), DataError, { row: 1, column: 1 });
  await bad(q.fit([[1, 2], [3]], { rank: 1 }), ShapeError, { what: 'x, row 1', want: '2' });
  await bad(q.fit({ rows: 2, columns: 2, data: new Float64Array(3) }, { rank: 1 }), ShapeError, { what: 'x', want: '2×2' });
  await bad(q.fit([1, 2, 3], { rank: 1 }), ShapeError, { what: 'x, row 0' });
  await bad(q.fit('1,2', { rank: 1 }), ShapeError, { what: 'x' });
  await bad(q.open('model'), ShapeError, { what: 'file' });
  await bad(q.rank(x, { ranks: [2], repeats: 0 }), OptionError, { option: 'repeats', value: '0' });
  await bad(q.rank(x, { ranks: [] }), OptionError, { option: 'ranks' });
  await bad(q.fit([], { rank: 1 }), ShapeError, { what: 'x' });
  await bad(q.open(new Uint8Array(100)), FormatError, {});
  const model = await q.fit(x, { rank: 3 });
  const hurt = model.bytes.slice();
  hurt[hurt.length >> 1] ^= 1;
  await bad(q.open(hurt), FormatError, {});
  await bad(model.transform(mixed(59, 4, 2)), ShapeError, { what: 'x' });
  await bad(model.normalize(x), OptionError, { message: 'quantmf: normalize: is of models by qmfq, the only ones with maps of the data itself' });
  await bad(model.map(60, [1]), ShapeError, { got: '60' });
  await bad(model.map(0, [NaN]), DataError, { column: 0 });
  await bad(q.fit(x, { rank: 3, strict: true, maxIterations: 1 }), ConvergenceError, { iterations: 1 });
  await bad(q.softQuantile([1, 2], [2, 1]), DataError, { column: 1, value: 1 });
  await bad(load({ workers: 0 }), OptionError, { option: 'workers' });
  // Values that no option can have, and options that a call does not have.
  await bad(q.fit(x, { rank: 3n }), OptionError, { option: 'rank', value: 'bigint' });
  await bad(q.fit(x, { rank: () => 3 }), OptionError, { option: 'rank' });
  await bad(q.fit(x, { rank: 3, method: {} }), OptionError, { option: 'method' });
  await bad(q.fit(x, { rank: 3, epochs: 4n }), OptionError, { option: 'epochs', value: 'bigint' });
  await bad(q.fit(x, { rank: 2 ** 31 }), OptionError, { option: 'rank', bound: 'must be a whole number below 2^31' });
  await bad(q.rank(x, { ranks: [2], repeats: 2 ** 31 - 1 }), OptionError, { option: 'repeats' });
  await bad(q.footprint(), OptionError, { option: 'rows' });
  await bad(q.fit(x, { rank: 3 }, { signal: 5 }), OptionError, { option: 'signal' });
  await bad(q.fit(x, { rank: 3 }, { onProgress: 5 }), OptionError, { option: 'onProgress' });
  await bad(q.read(new Uint8Array(3), { memory: 'much' }), OptionError, { option: 'memory' });
  await bad(q.read(new Uint8Array(3), { transposed: true }), OptionError, { option: 'transposed' });
  await bad(q.report(model.bytes, x, { order: 'fit' }), OptionError, { option: 'order' });
  await bad(q.groups('', { features: [], samples: [], title: '' }), OptionError, { option: 'title' });
  await bad(model.named([], [], { matrx: '' }), OptionError, { option: 'matrx' });
  await bad(load({ worker: 2 }), OptionError, { option: 'worker' });
  for (const init of [null, 2, [[1, 2]], 'svd']) await bad(q.fit(x, { rank: 1, init }), OptionError, { option: 'init' });
  await bad(q.fit(x, { rank: 1, init: { u: [[1]], v: [[1]], w: 1 } }), OptionError, { option: 'w' });
  await bad(q.fit(x, { rank: 1, init: { u: [[1]] } }), ShapeError, { what: 'init.v' });
});

test('arrays without their buffers, and values without a text, are errors of the package', async () => {
  const sent = (a) => (structuredClone(a, { transfer: [a.buffer] }), a);
  const short = new ArrayBuffer(40, { maxByteLength: 40 });
  const outside = new Float64Array(short, 0, 5);
  short.resize(8);
  const model = await q.fit(x, { rank: 2 });
  const blank = Object.create(null); // String(blank) throws
  const got = 'an array that has lost its buffer';
  for (const gone of [sent(new Float64Array(5)), sent(new Float32Array(5)), sent(new Int32Array(5)), outside]) {
    for (const call of [() => q.softRank(gone), () => q.softSort(gone), () => q.softQuantile([1, 2], gone), () => q.softRankVJP([1, 2], gone), () => q.softSortVJP(gone, [1, 2]),
      () => q.softQuantileVJP([1, 2], [1, 2], gone), () => q.softRank([1, 2], { weights: gone }), () => model.map(0, gone), () => model.named(gone, []), () => q.fit([gone, gone], { rank: 1 })]) {
      await assert.rejects(call(), (e) => e instanceof ShapeError && e.got === got, String(call));
    }
    await assert.rejects(q.fit({ rows: 1, columns: 5, data: gone }, { rank: 1 }), ShapeError);
  }
  await assert.rejects(q.open(sent(model.bytes.slice())), (e) => e instanceof ShapeError && e.got === got);
  sent(model.bytes); // the caller may do that to its own model
  await assert.rejects(model.transform(x), (e) => e instanceof ShapeError && e.what === 'bytes');
  for (const value of [blank, Symbol('s'), () => 1, null]) {
    for (const call of [() => q.fit(x, { rank: 1, seed: value }), () => q.rank(x, { ranks: [1], maskSeed: value }), () => q.rank(x, { ranks: value }), () => q.read(new Uint8Array(3), { name: value }),
      () => q.read(new Uint8Array(3), { header: value }), () => q.groups(value, { features: ['a'], samples: ['b'] }), () => q.groups('a', { features: [value], samples: [] }), () => model.named([], [], { matrix: value }),
      () => q.report(new Uint8Array(3), x, { groups: value }), () => load({ url: value }), () => load({ workers: value === null ? 0 : value })]) {
      await assert.rejects(call(), OptionError, `${String(call)} of ${typeof value}`);
    }
    await assert.rejects(q.groups('a', { features: value, samples: [] }), ShapeError);
    await assert.rejects(q.softRank([1, value]), DataError);
  }
});

test('a rank at which a product can be any matrix is warned of, in the report too', async () => {
  const few = mixed(4, 3, 2);
  const words = 'k = 3 can repeat any 4 × 3 matrix as it is: take a k far below 3';
  for (const [method, rank, want] of [['nmf', 2, []], ['nmf', 3, [words]], ['qmf', 3, [words]], ['qmfq', 3, [words]], ['bqmf', 3, []]]) {
    const model = await q.fit(few, { method, rank, epochs: 1 });
    assert.deepEqual(model.warnings.filter((w) => w.includes('k = ')), want, method);
    const file = await model.named(['a', 'b', 'c', 'd'], ['x', 'y', 'z']);
    assert.equal(Buffer.from(await q.report(file, few)).includes(words), want.length > 0, method);
  }
});

test('new samples: one score for each, every cell, and intervals', async () => {
  const x = mixed(12, 40, 3);
  const fresh = { rows: 12, columns: 3, data: Float64Array.from({ length: 36 }, (_, i) => x.data[Math.floor(i / 3) * 40 + (i % 3)]) };
  fresh.data[4] = NaN;
  const model = await q.fit(x, { method: 'bqmf', rank: 3 });
  const [each, mean, said, { low, high }] = [await model.scores(fresh), await model.score(fresh), await model.predict(fresh), await model.predictInterval(fresh, 0.9)];
  const cells = [12, 11, 12];
  assert.ok(Math.abs(each.reduce((s, v, j) => s + v * cells[j], 0) / 35 - mean) < 1e-12 * Math.abs(mean) + 1e-15);
  assert.deepEqual([said.rows, said.columns], [12, 3]);
  assert.ok(low.data.every((v, i) => v <= high.data[i]));
  const [median, deviation, fitted] = [await model.median(), await model.deviation(), await model.interval(0.5)];
  assert.ok(median.data.every((v, i) => fitted.low.data[i] <= v && v <= fitted.high.data[i]) && deviation.data.every((v) => v >= 0));
  const placed = await model.embedding();
  const apart = (m) => { let s = 0; for (let i = 0; i < m.rows; i++) s += (m.data[i * 40 + 3] - m.data[i * 40 + 8]) ** 2; return s; };
  const product = Float64Array.from({ length: 12 * 40 }, (_, at) => { let s = 0; for (let c = 0; c < 3; c++) s += model.u.data[Math.floor(at / 40) * 3 + c] * model.v.data[c * 40 + at % 40]; return s; });
  assert.ok(Math.abs(apart(placed) - apart({ rows: 12, data: product })) < 1e-9 * apart(placed));
  await assert.rejects(model.interval(2), (e) => e instanceof OptionError);
  await assert.rejects((await q.fit(x, { method: 'nmf', rank: 2 })).median(), (e) => e instanceof OptionError && e.option === 'median');
});

test('weights, penalties and fixed columns have their values', async () => {
  const plain = { method: 'nmf', rank: 3, epochs: 5 };
  run('fit', '-method', 'nmf', '-k', '3', '-epochs', '5', '-penalties', '.5,0,0,.25', '-o', 'p.model', write('p.tsv', x));
  assert.deepEqual((await q.fit(x, { ...plain, penalties: [0.5, 0, 0, 0.25] })).bytes, (await q.open(read('p.model'))).bytes);
  const column = Float64Array.from({ length: 60 }, (_, i) => 1 + i % 4);
  const fixed = await q.fit(x, { ...plain, fixedU: { rows: 60, columns: 1, data: column } });
  for (let i = 0; i < 60; i++) assert.equal(fixed.u.data[3 * i], column[i]);
  // A sample and cells of weight 0 may hold anything; weight 2 is not weight 1.
  const other = { rows: 60, columns: 40, data: x.data.slice() }, cells = { rows: 60, columns: 40, data: new Float64Array(2400).fill(1) };
  for (let i = 0; i < 60; i++) other.data[40 * i + 7] = 1000 + i;
  for (let i = 0; i < 60; i += 7) other.data[40 * i + 3] = 1e6, cells.data[40 * i + 3] = 0;
  const samples = Float64Array.from({ length: 40 }, (_, j) => (j === 7 ? 0 : 1 + j % 2));
  for (const method of ['nmf', 'qmf', 'qmfq', 'bqmf']) {
    const of = { method, rank: 3, epochs: 2, sampleWeights: samples, cellWeights: cells };
    const a = await q.fit(other, of), b = await q.fit(x, of), even = await q.fit(x, { ...of, sampleWeights: samples.map((w) => Math.min(w, 1)) });
    bits(a.u.data, b.u.data);
    assert.notDeepEqual(even.u.data, b.u.data);
  }
  await assert.rejects(q.fit(x, { ...plain, sampleWeights: samples.subarray(1) }), ShapeError);
  const medians = (await (await q.fit(x, { method: 'bqmf', rank: 3, discrete: [1] })).median()).data;
  const taken = (i) => medians.subarray(40 * i, 40 * i + 40).every((v) => x.data.subarray(40 * i, 40 * i + 40).includes(v));
  assert.deepEqual([taken(0), taken(1)], [false, true]);
});

test('a fit goes on from a model, and a bqmf learns from new samples', async () => {
  const first = await q.fit(x, { method: 'qmf', rank: 3, shrinkage: 0 });
  const again = await q.fit(x, { method: 'qmf', rank: 3, shrinkage: 0, model: first });
  const ends = [first.history.at(-1), again.history[0], again.history.at(-1)];
  assert.ok(Math.abs(ends[1] - ends[0]) < 1e-6 * ends[0] && ends[2] < ends[1], ends.join(' '));
  await assert.rejects(q.fit(x, { method: 'qmf', rank: 3, model: 'first' }), OptionError);
  await assert.rejects(first.updated(x), (e) => e instanceof OptionError && e.option === 'updated');
  const bayes = await q.fit(mixed(12, 20, 3), { method: 'bqmf', rank: 3 });
  const more = await bayes.updated(mixed(12, 30, 3));
  assert.equal(more.v.columns, 20);
  assert.notDeepEqual(more.u.data, bayes.u.data);
  assert.deepEqual((await q.open(more.bytes)).u.data, more.u.data);
});

test('a model by qmfq normalises, and all have maps', async () => {
  const model = await q.fit(x, { method: 'qmfq', rank: 3, epochs: 2 });
  writeFileSync(join(folder, 'n.model'), model.bytes);
  run('normalize', 'n.model', write('n.tsv', x), '-o', 'n.npy');
  bits((await model.normalize(x)).data, npy('n.npy').data);
  const w = Float64Array.from({ length: 40 }, (_, j) => { let s = 0; for (let c = 0; c < 3; c++) s += model.u.data[5 * 3 + c] * model.v.data[c * 40 + j]; return s; });
  const t = await model.map(5, w);
  const full = await model.reconstruct();
  for (let j = 0; j < 40; j++) assert.ok(Math.abs(t[j] - full.data[200 + j]) <= 1e-12 * Math.abs(t[j]));
  const { features, samples } = await model.top(x, 4);
  assert.deepEqual([features.length, features[0].length, samples[0].length], [3, 4, 4]);
});

test('rank: any number of workers gives the same trials', async () => {
  const options = { ranks: [1, 3, 6], repeats: 2, epochs: 1, shrinkage: 0, start: 'nmf' };
  const shares = [];
  const two = await q.rank(x, options, { onProgress: (p) => shares.push(p.done) });
  const one = await load({ workers: 1 });
  const again = await one.rank(x, options);
  await one.close();
  assert.deepEqual(two, again);
  assert.deepEqual(two.map((t) => t.rank), [1, 3, 6]);
  assert.ok(two[1].mean < two[0].mean);
  assert.ok(shares.length > 3 && shares.every((s) => s >= 0 && s <= 1));
  await assert.rejects(q.rank(x, { ...options, ranks: [2, 0] }), OptionError);
  const stop = new AbortController();
  const late = q.rank(mixed(300, 80, 3), { ranks: [2, 3, 4, 5] }, { signal: stop.signal });
  setTimeout(() => stop.abort(), 50);
  await assert.rejects(late, { name: 'AbortError' });
});

test('derivatives of operators are those of differences', async () => {
  const v = [0.3, -1.2, 2.2, 0.9, 0.1];
  const z = [0.5, -1, 2, 0.25, 1];
  const levels = [-1, 0, 1, 3, 7];
  const dot = (a) => a.reduce((s, t, i) => s + t * z[i], 0);
  const options = { epsilon: 0.1 };
  for (const [value, gradient] of [
    [(u) => q.softRank(u, options), () => q.softRankVJP(v, z, options)],
    [(u) => q.softSort(u, options), () => q.softSortVJP(v, z, options)],
    [(u) => q.softQuantile(u, levels, options), () => q.softQuantileVJP(v, levels, z, options)],
  ]) {
    const g = await gradient();
    for (let i = 0; i < v.length; i++) {
      const h = 1e-5;
      const up = dot(await value(v.map((t, j) => t + (i === j ? h : 0))));
      const down = dot(await value(v.map((t, j) => t - (i === j ? h : 0))));
      const slope = (up - down) / (2 * h);
      assert.ok(Math.abs(slope - g.x[i]) < 1e-5 * Math.max(1, Math.abs(slope)), `${i}: ${g.x[i]}, differences ${slope}`);
    }
  }
  const g = await q.softQuantileVJP(v, levels, z, options);
  const up = dot(await q.softQuantile(v, levels.map((t, j) => t + (j === 2 ? 1e-5 : 0)), options));
  const down = dot(await q.softQuantile(v, levels.map((t, j) => t - (j === 2 ? 1e-5 : 0)), options));
  assert.ok(Math.abs((up - down) / 2e-5 - g.q[2]) < 1e-5);
});

test('a footprint is a number of bytes', async () => {
  const small = await q.footprint({ rows: 100, columns: 50, rank: 3 });
  const large = await q.footprint({ rows: 3000, columns: 600, rank: 3 });
  assert.ok(small > 1e4 && large > 3 * small && large < 1e8);
});

test('an estimate is about what a fit takes', async (t) => {
  const large = mixed(700, 120, 4);
  for (const options of [{ method: 'nmf', rank: 6 }, { rank: 6 }, { method: 'bqmf', rank: 6 }, { method: 'qmfq', rank: 4, epochs: 10 }]) {
    let near = false;
    for (let tries = 0; tries < 3 && !near; tries++) { // other work on the machine comes and goes
      const { bytes, seconds } = await q.estimate(large, options);
      assert.equal(bytes, await q.footprint({ rows: 700, columns: 120, ...options }));
      const began = performance.now();
      await q.fit(large, options);
      const took = (performance.now() - began) / 1000;
      t.diagnostic(`${options.method ?? 'qmf'}: ${seconds.toFixed(2)} s foreseen, ${took.toFixed(2)} s`);
      near = seconds > took / 6 && seconds < took * 6 + 0.5;
    }
    assert.ok(near, options.method);
  }
  await assert.rejects(q.estimate(large, { rank: 6, epsilon: -1 }), OptionError);
  await assert.rejects(q.estimate({ rows: 2, columns: 2, data: [1, 2, 3, 4] }, { rank: 1 }), ShapeError);
  await assert.rejects(q.estimate({ ...large, columns: 121 }, { rank: 1 }), ShapeError);
  const stop = new AbortController();
  const late = q.estimate(large, { method: 'qmfq', rank: 6 }, { signal: stop.signal });
  setTimeout(() => stop.abort(), 30);
  await assert.rejects(late, { name: 'AbortError' });
});

test('an estimate tells what is by the row from what is not, and leaves out the first fit', async (t) => {
  let clock = 0;
  t.mock.method(performance, 'now', () => clock);
  let fits = 0;
  const whole = { choice: 5, factors: 3, epochs: 8 }; // ms of any fit
  const each = { choice: 0.05, factors: 0.03, epochs: 0.2 }; // and of a row of it
  t.mock.method(q, 'fit', async (x, options, { onProgress }) => {
    const slow = fits++ === 0 ? 4 : 1;
    for (const phase of Object.keys(whole)) {
      onProgress({ phase, done: 0 });
      clock += slow * (whole[phase] + each[phase] * x.rows);
    }
  });
  for (const rows of [20, 100, 300, 3000]) {
    fits = 0;
    const { seconds } = await q.estimate({ rows, columns: 2, data: new Float64Array(2 * rows) }, { rank: 2 });
    const want = Object.keys(whole).reduce((s, phase) => s + whole[phase] + each[phase] * (phase === 'choice' ? Math.min(rows, 512) : rows), 0) / 1000;
    assert.ok(Math.abs(seconds - want) < 1e-9, `${rows} rows: ${seconds}, want ${want}`);
  }
});

test('without vectors: the same bits', async () => {
  const plain = await load({ workers: 1, simd: false });
  assert.deepEqual([q.vectors, plain.vectors], [true, false]);
  for (const options of [{ rank: 3 }, { rank: 3, method: 'nmf' }, { rank: 3, method: 'qmfq', epochs: 2 }, { rank: 4, method: 'bqmf' }]) {
    assert.deepEqual((await plain.fit(x, options)).bytes, (await q.fit(x, options)).bytes);
  }
  await plain.close();
});

test('kernels of another version are left alone', async () => {
  const other = join(folder, 'dist');
  cpSync(new URL('../dist/', import.meta.url), other, { recursive: true });
  const file = join(other, 'kernels.wasm');
  const kernels = readFileSync(file);
  kernels[kernels.length - 2] ^= 1; // the number that the last function returns
  writeFileSync(file, kernels);
  const plain = await load({ workers: 1, url: pathToFileURL(`${other}/`) });
  assert.equal(plain.vectors, false);
  assert.deepEqual((await plain.fit(x, { rank: 3 })).bytes, (await q.fit(x, { rank: 3 })).bytes);
  await plain.close();
  const nowhere = await load({ url: pathToFileURL(`${folder}/none/`) }).then(() => 'loaded', (e) => e.code);
  assert.equal(nowhere, 'ENOENT');
});

test('tables are read as the command reads them', async () => {
  write('t.tsv', x);
  const t = await q.read(read('t.tsv'), { name: 't.tsv' });
  bits(t.x.data, x.data);
  assert.deepEqual([t.x.rows, t.x.columns, t.features[59], t.samples[39], t.missing, t.negative], [60, 40, 'f59', 's39', 0, 0]);
  const text = (s) => new TextEncoder().encode(s);
  const odd = await q.read(text('id,a,b,c\nx,1,NA,-3\nx,2,2,2\n'));
  assert.deepEqual([odd.missing, odd.negative, odd.least, odd.most], [1, 1, -3, 2]);
  assert.ok(odd.remarks.length === 2, odd.remarks.join('; '));
  await assert.rejects(q.read(text('id,a,b\nx,1,2\ny,1,2,3\n'), { name: 'bad.csv' }), (e) => e instanceof TableError && e.line === 3 && e.message.startsWith('bad.csv:3'));
  await assert.rejects(q.read(text('id,a,b\nx,1,two\ny,3,4\n')), TableError);
  const numbered = text('9,11,12\n7,3,4\n8,5,6\n'); // lines and columns of numbers, which may be names
  const shapes = await Promise.all([{}, { header: 'yes' }, { header: 'yes', names: '1' }, { names: 'none', header: 'no' }].map((o) => q.read(numbered, o)));
  assert.deepEqual(shapes.map((s) => [s.x.rows, s.x.columns, s.samples[0], s.features[0]]), [[3, 3, 's1', 'f1'], [2, 3, '9', 'f1'], [2, 2, '11', '7'], [3, 3, 's1', 'f1']]);
  await assert.rejects(q.read(numbered, { header: 'maybe' }), (e) => e instanceof OptionError && e.option === 'header');
  await assert.rejects(q.read(new Uint8Array(0)), TableError);
  await assert.rejects(q.read(read('t.tsv'), { memory: 1000 }), (e) => e instanceof TableError && /the option memory/.test(e.message));
});

test('a Blob is read piece by piece, with progress, and reading can be ended', async () => {
  const wide = mixed(400, 600, 2);
  write('wide.tsv', wide);
  const file = new Blob([read('wide.tsv')]);
  assert.ok(file.size > 3 << 20);
  const shares = [];
  const t = await q.read(file, { name: 'wide.tsv' }, { onProgress: (p) => shares.push(p.done) });
  bits(t.x.data, wide.data);
  assert.ok(shares.length >= 2 * Math.floor(file.size / 2 ** 20), `${shares}`);
  for (let i = 1; i < shares.length; i++) assert.ok(shares[i] >= shares[i - 1] && shares[i] <= 1, `${shares}`);
  const stop = new AbortController();
  await assert.rejects(q.read(file, {}, { signal: stop.signal, onProgress: () => stop.abort() }), { name: 'AbortError' });
  const packed = gzipSync(read('wide.tsv'));
  bits((await q.read(new Blob([packed]))).x.data, wide.data);
});

test('a signal ends a call of the readers before its worker has started, and none starts once all are closed', async () => {
  const file = new TextEncoder().encode('\ta\tb\nf\t1\t2\n');
  const stop = new AbortController();
  const early = q.read(file, {}, { signal: stop.signal });
  stop.abort();
  await assert.rejects(early, { name: 'AbortError' });
  const other = await load({ workers: 1 });
  const call = assert.rejects(other.read(file), (e) => e instanceof QuantmfError && /closed/.test(e.message));
  await other.close();
  await call;
});

test('a report is the page of the command, byte for byte', async () => {
  write('x.tsv', x);
  const names = Array.from({ length: 40 }, (_, j) => `s${j}`);
  const features = Array.from({ length: 60 }, (_, i) => (i ? `f${i}` : '<b>&"\u2028'));
  writeFileSync(join(folder, 'x.tsv'), new TextDecoder().decode(read('x.tsv')).replace('\nf0\t', `\n${features[0]}\t`));
  const groups = names.map((s, j) => `${s}\t${['<i>one', 'two', ''][j % 3]}`).join('\n');
  writeFileSync(join(folder, 'groups.tsv'), groups);
  const version = String(run('version')).split(' ')[1];
  for (const [options, flags] of [[{ rank: 3 }, []], [{ rank: 2, method: 'nmf' }, ['-groups', 'groups.tsv']], [{ rank: 2, method: 'qmfq', epochs: 2 }, ['-order', 'tree']], [{ rank: 4, method: 'bqmf' }, ['-groups', 'groups.tsv', '-order', 'tree']]]) {
    const model = await q.fit(x, options);
    const file = await model.named(features, names, { matrix: 'x.tsv', command: 'quantmf fit -k 3 -seed 1 x.tsv', losses: '-loss auto took kl: no value is negative' });
    writeFileSync(join(folder, 'r.model'), file);
    run('report', 'r.model', 'x.tsv', ...flags, '-o', 'r.html');
    const page = new TextDecoder().decode(await q.report(file, x, { groups: flags.includes('-groups') ? groups : '', byFit: flags.includes('-order') }));
    const native = new TextDecoder().decode(read('r.html'));
    assert.ok(native.includes('quantmf fit -k 3') && native.includes(version));
    assert.equal(page, native.replaceAll(version, '(devel)'));
  }
  const model = await q.fit(x, { rank: 2 });
  await assert.rejects(q.report(await model.named(features, names), mixed(59, 40, 2)), ShapeError);
  await assert.rejects(q.report(new Uint8Array(100), x), FormatError);
});

test('groups are read as the command reads them', async () => {
  const of = { features: ['a', 'b'], samples: ['s', 't', 'u'], name: 'labels.csv' };
  const g = await q.groups('name,<b>tissue\ns,<script>\nu,"x, y"\nnobody,z\n', of);
  assert.equal(g.features, null);
  assert.deepEqual({ ...g.samples, colours: g.samples.colours.length }, { title: '<b>tissue', names: ['<script>', 'x, y'], colours: 2, of: [0, -1, 1] });
  assert.equal(g.warnings.length, 2);
  await assert.rejects(q.groups('nobody,z\n', of), (e) => e instanceof TableError && e.message.startsWith('labels.csv'));
  const many = Array.from({ length: 31 }, (_, i) => `s${i}`);
  await assert.rejects(q.groups(many.map((s, i) => `${s},g${i}`).join('\n'), { features: [], samples: many }), /more than 30 groups/);
});

test('a file with names is one of the command', async () => {
  write('x.tsv', x);
  const t = await q.read(read('x.tsv'));
  const model = await q.fit(t.x, { rank: 3 });
  writeFileSync(join(folder, 'named.model'), await model.named(t.features, t.samples));
  const turned = { ...x, data: new Float64Array(60 * 40) };
  for (let i = 0; i < 60; i++) turned.data.set(x.data.subarray((59 - i) * 40, (60 - i) * 40), i * 40);
  write('turned.tsv', turned);
  const lines = new TextDecoder().decode(read('turned.tsv')).split('\n');
  writeFileSync(join(folder, 'turned.tsv'), lines.map((l, i) => (i > 0 && l ? l.replace(/^f\d+/, `f${60 - i}`) : l)).join('\n'));
  run('transform', 'named.model', 'turned.tsv', '-o', 'turned.npy');
  bits((await model.transform(x)).data, npy('turned.npy').data);
  await assert.rejects(model.named(['a'], t.samples), ShapeError);
});

test('the example of the documentation runs, and its comments are true', async () => {
  const page = readFileSync(new URL('../../docs/web.md', import.meta.url), 'utf8');
  const example = /```js\n(.*?)```/s.exec(page)[1].replace("'./dist/index.js'", `'${new URL('../dist/index.js', import.meta.url)}'`);
  const file = join(folder, 'example.mjs');
  writeFileSync(file, `${example}\nconsole.log(model.u.rows, model.u.columns, model.u.data.length);\n`);
  const said = execFileSync(process.execPath, [file], { encoding: 'utf8' }).trim().split('\n');
  assert.deepEqual(said.slice(-3), ['AbortError', '0 1', '100 3 300']);
});
