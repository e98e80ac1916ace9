// What the parts of the page share: what it holds, and how it speaks.

export const $ = (id) => document.getElementById(id);

/** now is what the page holds: the file, the table, groups, the model and what is derived of it. */
export const now = {};
globalThis.quantmfPage = now; // for tests and the curious

/** fail says what is wrong, beside what was asked for, and takes back what it said before. */
export function fail(text, where = 'problem') {
  for (const p of document.querySelectorAll('.problem')) p.textContent = p.id === where ? text : '';
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

/** pause waits until the page has drawn a frame and heard what came, and throws where an abort has come. Work until the
 * time that it returns leaves room for the next frame: behind a frame there is the most of it. A tab out of sight draws
 * none, and its timers come once a second: it works for longer at a time. */
export async function pause(signal) {
  const until = await new Promise((go) => {
    const late = setTimeout(() => {
      cancelAnimationFrame(frame);
      go(performance.now() + 200);
    }, document.hidden ? 0 : 100);
    const frame = requestAnimationFrame((began) => {
      clearTimeout(late);
      setTimeout(() => go(Math.max(began + 8, performance.now() + 2)));
    });
  });
  signal?.throwIfAborted();
  return until;
}

/** inPieces calls each(i) for all i below count, some of them behind each frame; an abort ends it. */
export async function inPieces(count, each, signal) {
  let until = -Infinity;
  for (let i = 0; i < count; i++) {
    if (performance.now() >= until) until = await pause(signal);
    each(i);
  }
}

/** make is an element of text. */
export const make = (tag, textContent, more = {}) => Object.assign(document.createElement(tag), { textContent, ...more });

/** counted is a number of things. */
export const counted = (count, what) => `${count} ${what}${count === 1 ? '' : 's'}`;
