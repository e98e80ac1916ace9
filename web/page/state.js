// What the parts of the page share: what it holds, and how it speaks.

export const $ = (id) => document.getElementById(id);

/** now is what the page holds: the file, the table, groups, the model and what is derived of it. */
export const now = {};
globalThis.quantmfPage = now; // for tests and the curious

export function fail(text) {
  $('problem').textContent = text;
}

// Status: at most one line a second, the newest, for those who have it read out.
let newest;
let pending;
let lineAt = -Infinity;
export function say(text) {
  newest = text;
  pending ??= setTimeout(() => {
    pending = undefined;
    lineAt = performance.now();
    $('status').textContent = newest;
  }, Math.max(0, lineAt + 1000 - performance.now()));
}

/** seldom calls show with the newest of what it is given, at most every so many
 * milliseconds; its method now calls it at once. */
export function seldom(every, show) {
  let newest;
  let waits;
  const call = (v) => {
    newest = v;
    waits ??= setTimeout(() => call.now(newest), every);
  };
  call.now = (v) => {
    clearTimeout(waits);
    waits = undefined;
    show(v);
  };
  return call;
}

/** inPieces calls each(i) for all i below count; after every few milliseconds of it the page may
 * draw and hear, and an abort ends it. */
export async function inPieces(count, each, signal) {
  let until = performance.now() + 6;
  for (let i = 0; i < count; i++) {
    each(i);
    if (performance.now() < until) continue;
    await new Promise((go) => setTimeout(go));
    signal?.throwIfAborted();
    until = performance.now() + 6;
  }
}

/** make is an element of text. */
export const make = (tag, textContent, more = {}) => Object.assign(document.createElement(tag), { textContent, ...more });
