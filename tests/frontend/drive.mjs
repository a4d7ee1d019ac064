// Opens a page in Chromium, has it take turns, and prints what it says of each, as JSON.
//
// node drive.mjs <address of the page> <path of a turn's stream>…

import { chromium } from 'playwright-core';

const [address, ...paths] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
try {
  const page = await browser.newPage();
  page.on('console', (message) => console.error(message.text()));
  await page.goto(address);
  await page.waitForFunction(() => window.turn !== undefined);
  const turns = [];
  for (const path of paths) {
    const turn = await page.evaluate((path) => window.turn(path), path);
    turns.push({ ...turn, shown: await page.textContent('#active') });
  }
  console.log(JSON.stringify(turns));
} finally {
  await browser.close();
}
