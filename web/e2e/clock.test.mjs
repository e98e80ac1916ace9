// The time that a visitor waits, in Chromium: on a machine that does nothing else, so not beside other tests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextOf, launch, serve, tabOf } from './site.mjs';

test('the first result on the sample data comes within three seconds of the click', async (t) => {
  const site = await serve();
  const browser = await launch('chrome');
  t.after(async () => {
    await browser.close();
    await site.stop();
  });
  let least = Infinity;
  for (let k = 0; k < 6 && least >= 3000; k++) { // a machine has work of its own at times
    const one = await contextOf(browser);
    const tab = await tabOf(one);
    await tab.goto(site.address);
    await tab.exists('html[data-ready]');
    const from = Date.now();
    await tab.click('#sample');
    await tab.until(() => document.getElementById('summary').checkVisibility());
    least = Math.min(least, Date.now() - from);
    await one.close();
  }
  t.diagnostic(`${least} ms`);
  assert.ok(least < 3000, `${least} ms`);
});
