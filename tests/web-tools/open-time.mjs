// Measures how long a browser takes until a page is loaded and has been painted, each time in a new window.
//
//   node open-time.mjs FOLDER ADDRESS      (FOLDER is what scripts/test-tools filled)
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const require = createRequire(join(resolve(process.argv[2]), '/'));
const { chromium } = require('playwright-core');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const times = [];
let elements = 0;
for (let i = 0; i < 5; i += 1) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const start = performance.now();
  await page.goto(process.argv[3], { waitUntil: 'load' });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  times.push(Math.round(performance.now() - start));
  elements = await page.evaluate(() => document.querySelectorAll('*').length);
  await context.close();
}
await browser.close();
times.sort((a, b) => a - b);
console.log(`opened in ${times.join(', ')} ms; ${elements} elements`);
