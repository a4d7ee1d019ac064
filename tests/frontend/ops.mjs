// Uses the page `/ops` in Chromium as an operator does, and fails where it is not as it should be.
//
// node ops.mjs <Baton's URL> <token> [<folder for screenshots>]
//
// What has to happen meanwhile is done by the test that started this: it is asked for by a line,
// `do <what>`, and answers with a line of JSON.

import assert from 'node:assert/strict';
import { readFile, mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [base, token, folder] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const DESKTOP = { width: 1280, height: 960 };
const PHONE = { width: 390, height: 844 };

/** Has the test do something; its answer. */
async function ask(what) {
  console.log(`do ${what}`);
  const { value } = await answers.next();
  return JSON.parse(value);
}

/** The page says and asks nothing that it should not. */
function watch(context) {
  const wrong = [];
  context.on('request', (request) => {
    const url = new URL(request.url());
    if (url.origin !== base && url.protocol !== 'data:') wrong.push(`asked for ${url}`);
  });
  context.on('dialog', (dialog) => {
    wrong.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  context.on('weberror', (error) => wrong.push(`an error: ${error.error()}`));
  // Chromium itself notes answers such as 403, and connections that break, on its console.
  context.on('console', (message) => {
    const isOfTheNetwork = message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isOfTheNetwork) wrong.push(message.text());
  });
  return wrong;
}

/** axe-core finds nothing, in either colour scheme. */
async function accessible(page, where) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run());
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`);
    assert.deepEqual(found, [], `${where}, ${colorScheme}`);
  }
}

async function shoot(page, name, from = 'body') {
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  const viewport = page.viewportSize();
  for (const [size, device] of [[DESKTOP, 'desktop'], [PHONE, 'phone']]) {
    await page.setViewportSize(size);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.evaluate((from) => document.querySelector(from).scrollIntoView(), from);
      await page.screenshot({ path: `${folder}/${name}-${device}-${colorScheme}.png` });
    }
  }
  await page.setViewportSize(viewport);
}

/** Nothing has to be scrolled sideways, on a phone and with text twice as large. */
async function fits(page) {
  for (const size of [PHONE, { width: 320, height: 640 }, DESKTOP]) {
    await page.setViewportSize(size);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} px wide on ${room}`);
  }
}

async function login(page) {
  await page.fill('#token', token);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#connection[data-state=live]');
}

const items = (page) => page.locator('#list > li');
const settledAt = (page, count) => page.waitForFunction(
  (count) => !document.querySelector('#list[aria-busy]') && document.querySelectorAll('#list > li').length === count, count);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
try {
  const context = await browser.newContext({ viewport: DESKTOP });
  const wrong = watch(context);
  const page = await context.newPage();

  // The way in.
  await page.goto(`${base}/ops/`);
  assert.equal(new URL(page.url()).pathname, '/ops/login');
  await accessible(page, 'login');
  await page.fill('#token', 'not the token');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#problem')?.textContent.includes('not the token'));
  await accessible(page, 'login after a wrong token');
  await shoot(page, 'login');
  await login(page);
  assert.equal(new URL(page.url()).pathname, '/ops');
  const [cookie] = await context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Strict', '/ops']);

  // Nothing has happened yet.
  await page.waitForSelector('#none:not([hidden])');
  assert.equal(await page.textContent('#ready'), 'Working');
  await accessible(page, 'empty');
  await fits(page);
  await shoot(page, 'empty');

  // Switches show up as they happen, and hostile names and reasons are nothing but texts.
  const { hostile } = await ask('refused');
  await settledAt(page, 1);
  await ask('settled');
  await settledAt(page, 2);
  const first = items(page).first();
  await first.locator('summary').focus();
  await page.keyboard.press('Enter');
  const steps = await first.locator('.timeline b').allTextContents();
  assert.deepEqual(steps, ['Learned', 'Applied', 'Overwritten', 'Put back', 'Settled']);
  assert.match(await first.locator('summary').textContent(), /1 put back/);
  const last = items(page).last();
  await last.locator('summary').click();
  assert.equal(await last.locator('.reason').textContent(), hostile);
  assert.match(await last.locator('.timeline').textContent(), /Rejected/);
  const text = await page.textContent('#flows');
  assert.ok(text.includes(hostile), text);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await accessible(page, 'with switches opened');
  await fits(page);

  // What is being read stays as it is while others come.
  await first.locator('summary').focus();
  const { conversation } = await ask('open');
  await settledAt(page, 3);
  assert.equal(await page.evaluate(() => document.activeElement.closest('li') === document.querySelectorAll('#list > li')[1]), true);
  assert.deepEqual(await page.locator('#list details').evaluateAll((all) => all.map(({ open }) => open)), [false, true, true]);
  assert.match(await items(page).first().locator('summary').textContent(), /Open/);
  await page.waitForFunction(() => document.querySelector('#open').textContent === '1');
  await ask('end');
  await page.waitForFunction(() => document.querySelector('#list > li').dataset.outcome === 'settled');

  // Paused, it stands still; resumed, it has caught up.
  await page.click('#pause');
  await ask('settled');
  assert.equal(await page.textContent('#connection'), 'Paused');
  assert.equal(await items(page).count(), 3);
  await page.click('#pause');
  await settledAt(page, 4);

  // Filters, by hand and by what is shown; the address keeps them.
  await page.selectOption('[name=outcome]', 'rejected');
  await settledAt(page, 1);
  await page.reload();
  await settledAt(page, 1);
  assert.equal(await page.inputValue('[name=outcome]'), 'rejected');
  await page.click('#clear');
  await settledAt(page, 4);
  await page.fill('[name=conversation]', conversation);
  await settledAt(page, 1);
  await page.fill('[name=conversation]', '');
  await page.fill('[name=user]', 'nobody');
  await settledAt(page, 0);
  await page.waitForSelector('#none:not([hidden])');
  await accessible(page, 'nothing found');
  await shoot(page, 'nothing-found');
  await page.click('#clear');
  await settledAt(page, 4);
  await items(page).first().locator('summary').click();
  await items(page).first().locator('[data-narrow=conversation]').click();
  await settledAt(page, 1);
  await page.click('#clear');
  await settledAt(page, 4);
  await page.locator('#flows .right button').last().click();
  await page.waitForFunction(() => document.querySelector('[name=agent]').value !== '');
  await page.click('#clear');
  await settledAt(page, 4);
  await page.check('[name=time][value="7d"]', { force: true });
  await page.waitForFunction(() => document.querySelector('.in-range').textContent.includes('7 days'));
  await page.check('[name=time][value="24h"]', { force: true });
  await page.waitForFunction(() => document.querySelector('.in-range').textContent.includes('24 hours'));

  // Much of it, page by page.
  const { all } = await ask('much');
  await page.reload();
  await settledAt(page, 50);
  while (await page.isVisible('#older')) {
    const shown = await items(page).count();
    await page.click('#older');
    await page.waitForFunction((shown) => document.querySelectorAll('#list > li').length > shown, shown);
    await page.waitForFunction(() => !document.querySelector('#older').disabled);
  }
  await settledAt(page, all);
  await accessible(page, 'full');
  await fits(page);
  await page.reload();
  await settledAt(page, 50);
  await items(page).nth(1).locator('summary').click();
  await shoot(page, 'full');
  await shoot(page, 'switches', '#switches');

  // All by the keyboard: everything that can be used is reached, each with a name.
  await page.reload();
  await settledAt(page, 50);
  const reached = new Set();
  for (let i = 0; i < 60; i += 1) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => {
      const { activeElement: now } = document;
      return now.id || now.name || now.className || now.tagName;
    }));
  }
  for (const wanted of ['skip', 'pause', 'time', 'end', 'agent', 'user', 'conversation', 'outcome', 'SUMMARY']) {
    assert.ok(reached.has(wanted), `${wanted} in ${[...reached]}`);
  }

  // A link on another site leads to what it says, for those who are logged in.
  const elsewhere = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html');
    answer.end(`<a href="${base}/ops?outcome=rejected">a link</a>`);
  }).listen(0, '127.0.0.1');
  await new Promise((ready) => elsewhere.once('listening', ready));
  const guest = await context.newPage();
  await guest.goto(`http://localhost:${elsewhere.address().port}/`);
  wrong.length = 0;
  await guest.click('a');
  await guest.waitForSelector('#connection[data-state=live]');
  assert.equal(await guest.inputValue('[name=outcome]'), 'rejected');
  await guest.close();
  elsewhere.close();

  // MongoDB goes, and comes back.
  await ask('away');
  await page.waitForSelector('#health[data-ready=false]');
  await page.waitForSelector('#trouble:not([hidden])');
  await accessible(page, 'without MongoDB');
  await shoot(page, 'trouble');
  await ask('back');
  await page.waitForSelector('#health[data-ready=true]');
  await page.waitForSelector('#trouble', { state: 'hidden' });

  // Baton itself goes, and comes back.
  await ask('stop');
  await page.waitForSelector('#connection[data-state=lost]');
  await ask('start');
  await page.waitForSelector('#connection[data-state=live]');

  // The way out.
  await page.click('text=Log out');
  await page.waitForSelector('#token');
  await page.goto(`${base}/ops?outcome=open`);
  assert.equal(new URL(page.url()).pathname, '/ops/login');
  await login(page);
  assert.equal(new URL(page.url()).search, '?outcome=open');
  // A session that ends leads there too.
  await context.clearCookies();
  await page.selectOption('[name=outcome]', 'settled');
  await page.waitForSelector('#token');

  assert.deepEqual(wrong, []);
} finally {
  await browser.close();
}
// Standard input stays open.
process.exit(0);
