// The service worker keeps the page's files in the browser, so that the page opens without a network. All files are of one
// build and have its sums. A new build is kept beside the old one, and takes over when the user asks for it or no page
// of the old one is open. Nothing but these files is kept.
const sums = Object.fromEntries('@SUMS@'.split(' ').map((pair) => pair.split('=')));
const mine = `quantmf ${registration.scope} `;
const kept = mine + '@BUILD@';

/** integrity returns a sum in the form that fetch checks. */
const integrity = (hex) => `sha256-${btoa(String.fromCharCode(...hex.match(/../g).map((h) => parseInt(h, 16))))}`;

/** keep fetches a file and keeps it. Some servers redirect index.html to ./, and browsers open no page from a response that was
 * redirected. */
async function keep(cache, name, sum) {
  const response = await fetch(name, { cache: 'no-cache', integrity: integrity(sum) });
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  await cache.put(name, response.redirected ? new Response(await response.blob(), { headers: response.headers }) : response);
}

addEventListener('install', (event) => event.waitUntil((async () => {
  const cache = await caches.open(kept);
  await Promise.all(Object.entries(sums).map(([name, sum]) => keep(cache, name, sum)));
})()));

addEventListener('activate', (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith(mine) && name !== kept) await caches.delete(name);
  await clients.claim();
})()));

addEventListener('message', (event) => event.data === 'take over' && skipWaiting());

addEventListener('fetch', (event) => {
  const { method, url } = event.request;
  if (method !== 'GET' || !url.startsWith(registration.scope)) return;
  const name = url.slice(registration.scope.length).replace(/[?#].*/, '') || 'index.html';
  if (Object.hasOwn(sums, name)) event.respondWith(caches.open(kept).then((cache) => cache.match(name)).then((response) => response ?? fetch(event.request)));
});
