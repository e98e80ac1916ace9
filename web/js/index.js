// quantmf in JavaScript: fits, models and operators of the package in Go, compiled to
// WebAssembly, in workers. index.d.ts documents them.
import { QuantmfError, made, option, said, shape } from './errors.js';
import { buffers } from './messages.js';

export { QuantmfError, OptionError, DataError, ShapeError, FormatError, ConvergenceError, TableError } from './errors.js';

const node = typeof process === 'object' && Boolean(process.versions?.node);

/** vectors is a module with one instruction of WebAssembly SIMD. */
const vectors = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]);

const typed = (v) => ArrayBuffer.isView(v) && 'length' in v;

/** lost tells whether a typed array lies outside its buffer, which was transferred or has become shorter. */
function lost(v) {
  try {
    v.values();
    return false;
  } catch {
    return true;
  }
}

const list = (v) => Array.isArray(v) || (typed(v) && !lost(v));

/** kind is what an error says of an argument that is of another kind than wanted. */
const kind = (v) => (typed(v) && lost(v) ? 'an array that has lost its buffer' : v === null ? 'null' : typeof v);

/** numbers copies the numbers of an argument, so that the caller's array is neither kept nor transferred; where how.transfer says so,
 * the numbers of a Float64Array leave it without a copy if they can. */
function numbers(name, value, how) {
  if (!list(value)) throw shape(name, kind(value), 'an array of numbers');
  if (how?.transfer && value instanceof Float64Array) return bytes(taken(value));
  if (value instanceof Float64Array || value instanceof Float32Array) return bytes(new Float64Array(value));
  const to = new Float64Array(value.length);
  for (let i = 0; i < to.length; i++) to[i] = number(value[i], -1, i);
  return bytes(to);
}

/** taken takes the numbers out of an array. Shared memory and that of a module of WebAssembly cannot move, and are copied. */
function taken(array) {
  try {
    return structuredClone(array, { transfer: [array.buffer] });
  } catch {
    return new Float64Array(array);
  }
}

const bytes = (f64) => new Uint8Array(f64.buffer, f64.byteOffset, f64.byteLength);

function number(v, row, column) {
  if (typeof v === 'number') return v;
  const problem = 'is no number';
  throw made({ kind: 'DataError', message: `quantmf: ${row < 0 ? '' : `row ${row}, `}column ${column}, value ${said(v)}: ${problem}`, row, column, value: NaN, problem });
}

const count = (n) => Number.isSafeInteger(n) && n >= 0;

/** parts returns the parts of a matrix that has as many numbers as its size says. */
function parts(name, x, want) {
  if (!x || typeof x !== 'object' || !count(x.rows) || !count(x.columns)) throw shape(name, kind(x), want);
  const { rows, columns, data } = x;
  if (!list(data)) throw shape(name, `${kind(data)} for data`, 'an array of numbers');
  if (data.length !== rows * columns) throw shape(name, `${data.length} numbers of data`, `${rows}×${columns}`);
  return { rows, columns, data };
}

/** matrix makes the engine's form of an argument, which is {rows, columns, data} or an array of rows. */
function matrix(name, x, how) {
  if (Array.isArray(x)) {
    const rows = x.length;
    const columns = list(x[0]) ? x[0].length : 0;
    const data = new Float64Array(rows * columns);
    x.forEach((row, i) => {
      if (!list(row)) throw shape(`${name}, row ${i}`, kind(row), 'an array of numbers');
      if (row.length !== columns) throw shape(`${name}, row ${i}`, `${row.length} values`, String(columns));
      for (let j = 0; j < columns; j++) data[i * columns + j] = number(row[j], i, j);
    });
    return { rows, columns, data: bytes(data) };
  }
  const { rows, columns, data } = parts(name, x, '{rows, columns, data} or an array of rows');
  return { rows, columns, data: numbers(name, data, how) };
}

/** content copies a file. */
function content(name, value, want = 'a Uint8Array') {
  if (!list(value) || value.BYTES_PER_ELEMENT !== 1) throw shape(name, kind(value), want);
  return new Uint8Array(value);
}

/** isBlob tells a Blob from what only inherits from it, which has no size. */
function isBlob(v) {
  try {
    return v instanceof Blob && v.size >= 0;
  } catch {
    return false;
  }
}

/** blob returns a file as a Blob, which a worker reads piece by piece. */
const blob = (name, value) => (isBlob(value) ? value : new Blob([content(name, value, 'a Blob or a Uint8Array')]));

/** plain makes the engine's form of an option that is a number, a word or true. */
function plain(name, value) {
  if (value === undefined || ['number', 'string', 'boolean'].includes(typeof value)) return value;
  throw option(name, typeof value, 'must be a number, a word or true');
}

/** text returns an argument that is a text; a number is taken for its text. */
function text(name, value) {
  if (['string', 'number', 'bigint'].includes(typeof value)) return String(value);
  throw option(name, typeof value, 'must be a text');
}

/** texts copies a list of texts. */
function texts(name, value) {
  if (!list(value)) throw shape(name, kind(value), 'an array of texts');
  return Array.from(value, (v) => text(name, v));
}

/** fields returns an argument that is an object, an empty one where it is left out. */
function fields(name, value = {}) {
  if (value === null || typeof value !== 'object' || list(value)) throw option(name, value === null ? 'null' : typeof value, 'must be an object');
  return value;
}

/** none throws where options are left over, which the call does not have. */
function none(rest) {
  for (const name of Object.keys(rest)) throw option(name, typeof rest[name], 'there is no such option');
}

const factors = ({ u, v, ...rest }) => (none(rest), { u: matrix('init.u', u), v: matrix('init.v', v) });

/** lists are the options that are lists of numbers. */
const lists = new Set(['weights', 'targets', 'targetWeights', 'penalties', 'sampleWeights', 'discrete']);

/** settings makes the engine's form of options. */
function settings(options) {
  const given = {};
  for (const [name, value] of Object.entries(fields('options', options))) {
    if (value === undefined) continue;
    if (name === 'seed') given[name] = text(name, value);
    else if (name === 'init') given[name] = factors(fields(name, value));
    else if (lists.has(name)) given[name] = numbers(name, value);
    else if (name === 'model') given[name] = content('model.bytes', fields(name, value).bytes);
    else if (name === 'fixedU' || name === 'cellWeights') given[name] = matrix(name, value);
    else given[name] = plain(name, value);
  }
  return given;
}

/** heeded throws where signal or onProgress cannot be used. */
function heeded(signal, onProgress) {
  if (signal != null && typeof signal.addEventListener !== 'function') throw option('signal', typeof signal, 'must be an AbortSignal');
  if (onProgress != null && typeof onProgress !== 'function') throw option('onProgress', typeof onProgress, 'must be a function');
}

/** A worker with the engine. It makes one call at a time. */
class Engine {
  constructor(modules, url) {
    this.ready = new Promise((resolve, reject) => {
      this.failed = reject;
      this.worker = spawn(url, (message) => this.heard(message, resolve, modules), (why) => this.died(why));
    });
  }

  heard(message, ready, modules) {
    if (message.type === 'listening') this.worker.postMessage({ type: 'start', ...modules });
    else if (message.type === 'ready') {
      if (!this.task) this.worker.unref?.(); // an idle worker does not keep node running
      ready(message.vectors);
    }
    else if (message.type === 'died') this.died(message.message);
    else if (this.task && message.id === this.task.id) {
      if (message.type === 'progress') {
        const { phase, done, epoch, epochs, loss } = message;
        try {
          this.task.onProgress?.({ phase, done, epoch, epochs, loss });
        } catch (error) { // as in Go, an error of onProgress stops the call, which rejects with it
          this.task.failure ??= error;
          this.worker.postMessage({ type: 'cancel', id: message.id });
        }
      } else if (message.type === 'reply') {
        this.settle(message.error, message.result);
      }
    }
  }

  settle(error, result) {
    const { task } = this;
    this.task = undefined;
    task.signal?.removeEventListener('abort', task.abort);
    task.signal?.removeEventListener('abort', task.leave);
    if ('failure' in task) task.reject(task.failure);
    else if (!error) task.resolve(result);
    else if (error.kind === 'AbortError') task.reject(task.signal?.reason ?? new DOMException('the call was aborted', 'AbortError'));
    else task.reject(made(error));
    this.worker?.unref?.();
    task.free();
  }

  died(message) {
    this.dead = true;
    this.failed(new QuantmfError(`quantmf: the worker failed: ${message}`));
    this.worker?.terminate();
    if (this.task) this.settle({ kind: 'Error', message: `quantmf: the worker failed: ${message}` });
  }

  /** end ends the worker. A running call rejects with the error. */
  end() {
    this.ready.catch(() => {});
    this.died('it has been closed');
    return this.worker.terminate();
  }

  async run(task) {
    this.task = task;
    this.worker.ref?.();
    await this.ready;
    if (this.task !== task) return; // the worker died meanwhile
    task.abort = () => this.worker.postMessage({ type: 'cancel', id: task.id });
    task.signal?.addEventListener('abort', task.abort);
    const { args } = task;
    this.worker.postMessage({ type: 'call', id: task.id, name: task.name, args }, buffers(args)); // copies made here
    if (task.signal?.aborted) task.abort();
  }
}

/** unless waits for a promise until a signal comes. */
function unless(signal, promise) {
  if (!signal) return promise;
  let stop;
  const stopped = new Promise((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop);
  });
  return Promise.race([promise, stopped]).finally(() => signal.removeEventListener('abort', stop));
}

/** imported starts a worker with a script of another origin, which browsers refuse to start and let be imported. */
function imported(url) {
  const own = URL.createObjectURL(new Blob([`import ${JSON.stringify(url)};`], { type: 'text/javascript' }));
  return new Worker(own, { type: 'module' });
}

/** spawn starts a worker of the script at url, by default that of worker.js beside this file. */
function spawn(url, heard, failed) {
  if (node) {
    const beside = import.meta.url; // a name of its own, so that no bundler takes the line for node to be the browser's
    const { Worker: Thread } = process.getBuiltinModule('node:worker_threads');
    // --input-type speaks of the text that node was given, and node refuses it for a script.
    const execArgv = process.execArgv.filter((flag) => !flag.startsWith('--input-type'));
    const thread = new Thread(url ?? new URL('./worker.js', beside), { execArgv });
    thread.on('message', heard).on('error', (error) => failed(error.message));
    thread.once('online', () => heard({ type: 'listening' }));
    return thread;
  }
  const place = new URL(url ?? import.meta.url);
  const foreign = place.protocol.startsWith('http') && place.origin !== globalThis.location.origin;
  // By the last expression a bundler finds the script, and bundles it with what it imports.
  const worker = foreign ? imported(url ?? new URL('worker.js', place))
    : url ? new Worker(url, { type: 'module' }) : new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  worker.onmessage = (event) => heard(event.data);
  worker.onerror = (event) => failed(event.message ?? 'its script, worker.js, could not be loaded');
  return worker;
}

async function compile(url) {
  if (node && url.protocol === 'file:') {
    return WebAssembly.compile(await process.getBuiltinModule('node:fs/promises').readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new QuantmfError(`quantmf: ${url}: ${response.status} ${response.statusText}`);
  return response.headers.get('Content-Type') === 'application/wasm' ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

/** load starts a worker with the engine. */
export async function load(options) {
  const { url, workers, simd = true, ...rest } = fields('options', options);
  none(rest);
  const at = (name) => {
    if (url === undefined) return undefined;
    try {
      const folder = new URL(url, globalThis.location?.href);
      if (!folder.pathname.endsWith('/')) folder.pathname += '/';
      return new URL(name, folder);
    } catch {
      throw option('url', url, 'must be an address');
    }
  };
  const processors = globalThis.navigator?.hardwareConcurrency ?? (node ? process.getBuiltinModule('node:os').availableParallelism() : 2); // node 20 has no navigator
  const most = workers ?? Math.max(1, Math.min(4, processors - 1));
  if (!count(most) || most < 1) throw option('workers', most, 'must be a whole number, at least 1');
  // A bundler finds the modules by these very expressions.
  const places = {
    worker: at('worker.js'),
    engine: at('engine.wasm') ?? new URL('./engine.wasm', import.meta.url),
    kernels: at('kernels.wasm') ?? new URL('./kernels.wasm', import.meta.url),
    tables: at('tables.wasm') ?? new URL('./tables.wasm', import.meta.url),
  };
  const [engine, kernels] = await Promise.all([compile(places.engine), simd && WebAssembly.validate(vectors) ? compile(places.kernels) : null]);
  let tables;
  const all = new Quantmf(most, (module = engine) => new Engine({ engine: module, kernels: module === engine ? kernels : null }, places.worker), () => (tables ??= compile(places.tables).catch((error) => {
    tables = undefined; // the next call tries again
    throw error;
  })));
  await all.warm();
  return all;
}

/** Quantmf is the package, loaded: its workers and the calls that wait for one. */
class Quantmf {
  #engines = [];
  #waiting = [];
  #most;
  #spawn;
  #id = 0;
  #closed = false;
  #tables;
  #asides = new Set();

  constructor(most, spawn, tables) {
    this.#most = most;
    this.#spawn = spawn;
    this.#tables = tables;
  }

  /** open throws where no call may begin. */
  #open(signal) {
    if (this.#closed) throw new QuantmfError('quantmf: it has been closed');
    signal?.throwIfAborted();
  }

  async warm() {
    const first = this.#spawn();
    this.#engines.push(first);
    this.vectors = await first.ready;
  }

  #next() {
    this.#engines = this.#engines.filter((e) => !e.dead);
    while (this.#waiting.length) {
      let engine = this.#engines.find((e) => !e.task);
      if (!engine) {
        if (this.#engines.length >= this.#most) return;
        engine = this.#spawn();
        this.#engines.push(engine);
      }
      const task = this.#waiting.shift();
      engine.run(task).catch((error) => {
        engine.dead = true;
        task.reject(error);
        this.#next();
      });
    }
  }

  /** call makes a call of a worker. */
  async #call(name, args, how) {
    const { signal, onProgress } = fields('how', how);
    heeded(signal, onProgress);
    this.#open(signal);
    return new Promise((resolve, reject) => {
      const task = { id: ++this.#id, name, args, signal, onProgress, resolve, reject, free: () => this.#next() };
      task.leave = () => {
        const i = this.#waiting.indexOf(task);
        if (i < 0) return; // it runs, and the engine ends it
        this.#waiting.splice(i, 1);
        reject(signal.reason);
      };
      signal?.addEventListener('abort', task.leave, { once: true });
      this.#waiting.push(task);
      this.#next();
    });
  }

  async fit(x, given, how) {
    const { method = 'qmf', rank, ...options } = fields('options', given);
    const about = await this.#call('fit', { x: matrix('x', x, how), method: plain('method', method), rank: plain('rank', rank), options: settings(options) }, how);
    return this.#model(about);
  }

  async unseen(model, x, given, how) {
    if (!(model instanceof Model)) throw shape('model', kind(model), 'a model of a fit');
    const { rank = model.rank, features, ...options } = fields('options', given);
    const names = features === undefined ? Array.from({ length: model.rows }, (_, i) => `f${i + 1}`) : texts('features', features);
    return this.#call('unseen', { model: content('bytes', model.bytes), x: matrix('x', x, how), tried: model.tried ?? '', features: names, rank: plain('rank', rank), options: settings(options) }, how);
  }

  async consensus(x, given, how) {
    const { rank, seeds = 20, ...options } = fields('options', given);
    const about = await this.#call('consensus', { x: matrix('x', x, how), rank: plain('rank', rank), seeds: plain('seeds', seeds), options: settings(options) }, how);
    const { stability, overall, left, losses } = about;
    return { model: this.#model(about), stability, overall, left, losses };
  }

  async open(file, how) {
    return this.#model(await this.#call('open', { model: content('file', file) }, how));
  }

  #model(about) {
    return new Model(about, async (name, args, how) => {
      const said = await this.#call(name, { ...args, model: content('bytes', about.bytes) }, how);
      return name === 'updated' ? this.#model(said) : said;
    });
  }

  async rank(x, given, how) {
    const { ranks, method = 'qmf', repeats = 5, share = 0.1, maskSeed = 1, ...options } = fields('options', given);
    const { signal, onProgress } = fields('how', how);
    if (!Array.isArray(ranks) || ranks.length === 0) throw option('ranks', ranks, 'must be a list of ranks');
    if (!count(maskSeed)) throw option('maskSeed', maskSeed, 'must be a whole number, at least 0');
    if (typeof share !== 'number') throw option('share', typeof share, 'must be a number');
    heeded(signal, onProgress);
    const stop = new AbortController();
    const pass = () => stop.abort(signal.reason);
    if (signal?.aborted) throw signal.reason;
    signal?.addEventListener('abort', pass, { once: true });
    const done = ranks.map(() => 0);
    try {
      return await Promise.all(
        ranks.map((rank, i) =>
          this.#call('heldOut', { x: matrix('x', x), method: plain('method', method), rank: plain('rank', rank), repeats: plain('repeats', repeats), share, maskSeed, options: settings(options) }, {
            signal: stop.signal,
            onProgress: (p) => {
              done[i] = p.done;
              onProgress?.({ phase: 'rank', done: done.reduce((a, b) => a + b, 0) / done.length });
            },
          }),
        ),
      );
    } catch (error) {
      stop.abort(error); // the other trials
      throw error;
    } finally {
      signal?.removeEventListener('abort', pass);
    }
  }

  async footprint(given) {
    const { rows, columns, method = 'qmf', rank, ...options } = fields('options', given);
    return this.#call('footprint', { rows: plain('rows', rows), columns: plain('columns', columns), method: plain('method', method), rank: plain('rank', rank), options: settings(options) });
  }

  async estimate(x, given, how) {
    const { method = 'qmf', rank, ...options } = fields('options', given);
    const { signal } = fields('how', how);
    const { rows: d, columns: n, data: all } = parts('x', x, '{rows, columns, data}');
    if (!(all instanceof Float64Array)) throw shape('x', `${kind(all)} for data`, 'a Float64Array');
    const bytes = await this.footprint({ rows: d, columns: n, method, rank, ...options });
    const began = performance.now();
    /** timed fits so many rows and returns the milliseconds of each phase, or undefined where no epoch ends in time. */
    const timed = async (rows) => {
      const data = new Float64Array(rows * n);
      for (let i = 0; i < rows; i++) {
        const from = Math.floor((i * d) / rows) * n;
        data.set(all.subarray(from, from + n), i * n);
      }
      const stop = new AbortController();
      const pass = () => stop.abort(signal.reason);
      signal?.throwIfAborted();
      signal?.addEventListener('abort', pass, { once: true });
      const took = {};
      let phase = '';
      let done = 0; // the share of the present phase that is done
      const started = performance.now();
      let at = started;
      const note = () => {
        const t = performance.now();
        if (phase) took[phase] = (took[phase] ?? 0) + t - at;
        at = t;
      };
      try {
        await this.fit({ rows, columns: n, data }, { method, rank, ...options }, {
          signal: stop.signal,
          onProgress: (p) => {
            if (stop.signal.aborted) return;
            note();
            ({ phase, done } = p);
            if ((p.epoch >= 2 && at - started > 300) || at - began > 3000) stop.abort();
          },
        });
        note();
        done = 1;
      } catch (error) {
        signal?.throwIfAborted();
        if (!stop.signal.aborted) throw error;
      } finally {
        signal?.removeEventListener('abort', pass);
      }
      if (phase !== 'epochs' || done === 0) return undefined;
      took.epochs /= done;
      return took;
    };
    // The fits by which auto chooses: at most ten masks that hide 2000 cells, of a part of at most 2^20 cells (auto.go).
    const tried = (rows) => Math.min(rows, Math.max(2 ** 20 / n, 500)) * Math.max(1, Math.min(10, Math.ceil(20000 / (rows * n))));
    const sum = (took) => Object.values(took).reduce((s, t) => s + t, 0);
    /** fastest returns the faster of two fits, where there is time for both: during the first the browser compiles code. */
    const fastest = async (rows) => {
      const first = await timed(rows);
      if (!first || performance.now() - began > 600) return first;
      const second = await timed(rows);
      return second && sum(second) < sum(first) ? second : first;
    };
    // Fits of two numbers of rows separate the time that grows with rows from the rest, where there is time for both.
    // A BQMF of at most 64 rows predicts each from the samples that are near in the others, and no larger one does.
    const few = Math.min(d, Math.max(2 * rank, method === 'bqmf' && d > 64 ? 80 : 48));
    const small = await fastest(few);
    if (!small) return { bytes, seconds: NaN };
    const more = Math.min(d, 3 * few);
    const large = more > few && sum(small) < 100 ? await fastest(more) : undefined;
    const [rows, took] = large ? [more, large] : [few, small];
    const seconds = Object.entries(took).reduce((s, [name, t]) => {
      if (name === 'unseen') return s + (t * tried(d)) / tried(rows) / 1000;
      const of = name === 'choice' ? Math.min(d, 512) : d; // a start is chosen by at most 512 rows
      const row = large && small[name] !== undefined ? Math.max(0, t - small[name]) / (more - few) : t / rows;
      return s + (t + row * (of - rows)) / 1000;
    }, 0);
    return { bytes, seconds };
  }

  /** aside makes a call of the readers in a worker of its own. The worker ends with the call, or at once where a signal comes,
   * which frees the memory of the file. */
  async #aside(name, args, how) {
    const { signal, onProgress } = fields('how', how);
    heeded(signal, onProgress);
    this.#open(signal);
    const tables = await unless(signal, this.#tables());
    this.#open(signal);
    const engine = this.#spawn(tables);
    this.#asides.add(engine);
    try {
      return await unless(signal, new Promise((resolve, reject) => {
        engine.run({ id: 1, name, args, onProgress, resolve, reject, free() {} }).catch(reject);
      }));
    } finally {
      this.#asides.delete(engine);
      engine.end();
    }
  }

  async read(file, options, how) {
    const { name = 'matrix', header = 'auto', names = '', long = '', na = '', below = '', decimal = '', sheet = '', memory = 2 ** 30, skip = 0, top = 0, transpose = false, log1p = false, full = false, ...rest } = fields('options', options);
    none(rest);
    if (typeof memory !== 'number') throw option('memory', typeof memory, 'must be a number');
    for (const [k, v] of Object.entries({ skip, top })) if (!count(v)) throw option(k, v, 'must be a whole number, at least 0');
    const words = Object.fromEntries(Object.entries({ name, header, names, long, na, below, decimal, sheet }).map(([k, v]) => [k, text(k, v)]));
    return this.#aside('read', { file: blob('file', file), ...words, memory, skip, top, transpose: Boolean(transpose), log1p: Boolean(log1p), full: Boolean(full) }, how);
  }

  async groups(table, of, how) {
    const { features, samples, name = 'groups', by = '', ...rest } = fields('of', of);
    none(rest);
    return this.#aside('groups', { text: text('text', table), name: text('name', name), by: text('by', by), survival: '', features: texts('features', features), samples: texts('samples', samples) }, how);
  }

  async report(file, x, options, how) {
    return this.#told('report', file, x, options, how);
  }

  async tests(file, x, options, how) {
    return this.#told('tests', file, x, options, how);
  }

  /** told makes a call of the readers' module about a model and the matrix that was fitted. */
  async #told(name, file, x, options, how) {
    const { groups = '', by = '', survival = '', sets = '', byFit = false, ...rest } = fields('options', options);
    none(rest);
    const words = Object.fromEntries(Object.entries({ groups, by, survival, sets }).map(([k, v]) => [k, text(k, v)]));
    // Arguments move to the worker with the call, so each call has copies; both are made now, because x may change meanwhile.
    const args = { model: content('file', file), x: matrix('x', x), ...words, byFit: Boolean(byFit) };
    const account = await this.#call('account', { model: args.model.slice(), x: matrix('x', x) }, how);
    return this.#aside(name, { ...args, account }, how);
  }

  async softRank(x, options, how) {
    return this.#call('softRank', { x: numbers('x', x), options: settings(options) }, how);
  }

  async softSort(x, options, how) {
    return this.#call('softSort', { x: numbers('x', x), options: settings(options) }, how);
  }

  async softQuantile(x, q, options, how) {
    return this.#call('softQuantile', { x: numbers('x', x), q: numbers('q', q), options: settings(options) }, how);
  }

  async softRankVJP(x, z, options, how) {
    return this.#call('softRankVJP', { x: numbers('x', x), z: numbers('z', z), options: settings(options) }, how);
  }

  async softSortVJP(x, z, options, how) {
    return this.#call('softSortVJP', { x: numbers('x', x), z: numbers('z', z), options: settings(options) }, how);
  }

  async softQuantileVJP(x, q, z, options, how) {
    return this.#call('softQuantileVJP', { x: numbers('x', x), q: numbers('q', q), z: numbers('z', z), options: settings(options) }, how);
  }

  async close() {
    this.#closed = true;
    for (const task of this.#waiting.splice(0)) task.reject(new QuantmfError('quantmf: it has been closed'));
    await Promise.all([...this.#engines, ...this.#asides].map((e) => e.end()));
  }
}

/** Model is a fitted model. It is immutable. */
class Model {
  #call;

  constructor(about, call) {
    Object.assign(this, about);
    this.rows = this.u.rows;
    this.columns = this.v.columns;
    this.rank = this.u.columns;
    this.#call = call;
    Object.freeze(this);
  }

  async transform(x, how) {
    return this.#call('transform', { x: matrix('x', x, how) }, how);
  }

  async normalize(x, how) {
    return this.#call('normalize', { x: matrix('x', x, how) }, how);
  }

  async reconstruct(how) {
    return this.#call('reconstruct', {}, how);
  }

  async score(x, how) {
    return this.#call('score', { x: matrix('x', x, how) }, how);
  }

  async scores(x, how) {
    return this.#call('scores', { x: matrix('x', x, how) }, how);
  }

  async predict(x, how) {
    return this.#call('predict', { x: matrix('x', x, how) }, how);
  }

  async updated(x, how) {
    return this.#call('updated', { x: matrix('x', x, how) }, how);
  }

  async predictInterval(x, p, how) {
    return this.#call('predictInterval', { x: matrix('x', x, how), p: plain('p', p) }, how);
  }

  async interval(p, how) {
    return this.#call('interval', { p: plain('p', p) }, how);
  }

  async median(how) {
    return this.#call('median', {}, how);
  }

  async deviation(how) {
    return this.#call('deviation', {}, how);
  }

  async embedding(how) {
    return this.#call('embedding', {}, how);
  }

  async named(features, samples, of, how) {
    const { matrix: name = '', command = '', losses = '', log1p = false, top = false, unseen, stability, ...rest } = fields('made', of);
    none(rest);
    const made = { matrix: text('matrix', name), command: text('command', command), losses: text('losses', losses), log1p: Boolean(log1p), top: Boolean(top) };
    if (unseen !== undefined) Object.assign(made, { unseen: text('unseen.lines', fields('unseen', unseen).lines), warnings: texts('unseen.warnings', unseen.warnings) });
    if (stability !== undefined) made.stability = numbers('stability', stability);
    return this.#call('named', { features: texts('features', features), samples: texts('samples', samples), made }, how);
  }

  async map(row, values, how) {
    return this.#call('map', { row: plain('row', row), values: numbers('values', values) }, how);
  }

  async top(x, most, how) {
    return this.#call('top', { x: matrix('x', x, how), count: plain('count', most) }, how);
  }
}
