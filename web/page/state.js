// This file has what the other files of the page share: its state, its messages, and work in pieces.

export const $ = (id) => document.getElementById(id);

/** now is the state of the page: the file, the table, groups, the model and what is computed from it. */
export const now = {};
globalThis.quantmfPage = now; // for tests and the browser's console

/** fail shows what is wrong in the paragraph with the id where, and clears all other such paragraphs. */
export function fail(text, where = 'problem') {
  for (const p of document.querySelectorAll('.problem')) p.textContent = p.id === where ? text : '';
}

// The status changes at most once a second, to the newest line: screen readers read out each change.
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

/** pause waits until the browser has drawn a frame and handled events, and throws where signal has aborted. It returns the time
 * until which work may go on without delaying the next frame. A hidden tab draws no frames and its timers come once a
 * second, so it works for longer at a time. */
export async function pause(signal) {
  const until = await new Promise((go) => {
    const late = setTimeout(() => {
      cancelAnimationFrame(frame);
      go(performance.now() + 200);
    }, document.hidden ? 0 : 100);
    const frame = requestAnimationFrame(() => {
      clearTimeout(late);
      setTimeout(() => go(performance.now() + 4));
    });
  });
  signal?.throwIfAborted();
  return until;
}

/** inPieces calls each(i) for all i below count, some of them after each frame; it throws where signal has aborted. */
export async function inPieces(count, each, signal) {
  let until = -Infinity;
  for (let i = 0; i < count; i++) {
    if (performance.now() >= until) until = await pause(signal);
    each(i);
  }
}

/** copied returns a copy of a matrix, which a worker may take. */
export async function copied({ rows, columns, data }, signal) {
  const to = new Float64Array(data.length);
  const size = 2 ** 13;
  await inPieces(Math.ceil(data.length / size), (i) => to.set(data.subarray(i * size, (i + 1) * size), i * size), signal);
  return { rows, columns, data: to };
}

/** make returns an element with a text. */
export const make = (tag, textContent, more = {}) => Object.assign(document.createElement(tag), { textContent, ...more });

/** counted returns a number of things in words. */
export const counted = (count, what) => `${count} ${what}${count === 1 ? '' : 's'}`;

/** spoken returns a text of the readers, or a warning, with the names of the page's fields in place of the command's flags. */
export function spoken(text) {
  const own = { transpose: 'transpose', header: 'header', names: 'names-in', skip: 'skip', na: 'na', below: 'below', decimal: 'decimal', sheet: 'sheet', long: 'long', log1p: 'log1p', top: 'top', method: 'method', loss: 'loss', k: 'rank', m: 'levels', eps: 'epsilon' };
  const said = (id) => [...($(id) ?? document.querySelector(`[name=${id}]`)).closest('label').childNodes].map((n) => (n.nodeType === Node.TEXT_NODE ? n.data.trim() : '')).filter(Boolean).join(' ');
  return text.replace(/; if it is of one sample.*|, or turn it into a matrix of it once by quantmf convert[^;]*/, '')
    .replace(/\b(give|try) -(transpose|log1p)\b/g, 'tick -$2').replace(/-header (yes|no)\b/g, (_, is) => `-header “${{ yes: 'names', no: 'values' }[is]}”`)
    .replace(/(?<![\w-])-([a-z]\w*)\b/g, (flag, name) => (own[name] ? `“${said(own[name])}”` : flag));
}
