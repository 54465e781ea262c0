// Looks at a page with a real browser: a JSON plan on standard input, a JSON document on standard
// output with everything that the browser complained of, and what was found.
//
//   node look.mjs FOLDER ADDRESS      (FOLDER is what scripts/test-tools filled)
//
// The plan: "schemes" (light, dark), "axe" (whether to check accessibility), "script" (false to
// look without scripts), "viewport", "steps": a list of [what, argument]:
//   ["text", selector] the text there; ["count", selector] how many are shown; ["type", [selector, text]];
//   ["choose", [selector, value]]; ["click", selector]; ["press", key]; ["focused"] what has the focus;
//   ["evaluate", code]; ["shot", file]; ["wait", [selector, text]] until a text is there; ["tab-through", most];
//   ["resize", width] of the window;
//   ["run", program] meanwhile, to its end; ["print"] how many pages it prints on; ["media", kind] as printed, or as on a screen.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';

const folder = resolve(process.argv[2]);
const address = process.argv[3];
const require = createRequire(join(folder, '/'));
const { chromium } = require('playwright-core');
const plan = JSON.parse(await text(process.stdin));
const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
  ],
});
// On a busy machine it can crash before it answers.
const browser = await launch().catch(launch);
// A browser that hangs is a failure, not a wait.
setTimeout(() => {
  console.error('the browser takes too long');
  process.exit(1);
}, 240_000).unref();
const found = { complaints: [], requests: [], violations: [], answers: [] };

const steps = {
  text: async (page, selector) => {
    const place = page.locator(selector).first();
    // What is far from sight is not laid out, and has no text that could be read.
    await place.evaluate((one) => one.scrollIntoView());
    await page.screenshot();
    return (await place.innerText()).replace(/\n{2,}/g, '\n');
  },
  count: (page, selector) => page.locator(`${selector}:visible`).count(),
  type: (page, [selector, words]) => page.fill(selector, words),
  choose: (page, [selector, value]) => page.selectOption(selector, value),
  click: (page, selector) => page.click(selector),
  press: (page, key) => page.keyboard.press(key),
  focused: (page) => page.evaluate(() => document.activeElement.outerHTML.slice(0, 200)),
  evaluate: (page, code) => page.evaluate(code),
  resize: (page, width) => page.setViewportSize({ width, height: 900 }).then(() => null),
  run: (_, program) => { execFileSync(program, { stdio: ['ignore', 'ignore', 'inherit'] }); },
  print: async (page) => {
    const pdf = await page.pdf({ format: 'A4' });
    return pdf.toString('latin1').match(/\/Type\s*\/Page\b/g).length;
  },
  media: (page, media) => page.emulateMedia({ media }),
  shot: (page, path) => page.screenshot({ path }).then(() => null),
  wait: (page, [selector, words]) =>
    page.locator(selector, { hasText: words }).first().waitFor({ timeout: 20_000 }).then(() => null),
  // Everything that the tabulator key comes to, in order, and whether it can be seen that it did.
  'tab-through': async (page, most) => {
    const seen = [];
    for (let i = 0; i < most; i += 1) {
      await page.keyboard.press('Tab');
      const one = await page.evaluate(() => {
        const at = document.activeElement;
        if (!at || at === document.body) return null;
        const style = getComputedStyle(at);
        const name = at.id ? `#${at.id}` : `${at.tagName.toLowerCase()} ${at.textContent.trim().slice(0, 40)}`;
        return { name, outlined: style.outlineStyle !== 'none' };
      });
      if (!one) break;
      seen.push(one);
    }
    return seen;
  },
};

for (const colorScheme of plan.schemes ?? ['light']) {
  const context = await browser.newContext({
    colorScheme,
    javaScriptEnabled: plan.script !== false,
    viewport: plan.viewport ?? { width: 1280, height: 900 },
  });
  const page = await context.newPage();
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) found.complaints.push(message.text());
  });
  page.on('pageerror', (error) => found.complaints.push(String(error)));
  page.on('dialog', (dialog) => {
    found.complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => found.requests.push(request.url()));
  if (plan.script !== false) {
    await page.addInitScript(() => {
      window.refused = [];
      addEventListener('securitypolicyviolation', (event) => {
        window.refused.push(`${event.violatedDirective} ${event.blockedURI}`);
      });
    });
  }
  await page.goto(address, { waitUntil: 'load' });
  if (plan.axe) {
    // As an inspector does, beside the page's own policy; everything is shown, so that everything is looked at.
    await page.evaluate(() => document.querySelectorAll('details').forEach((one) => { one.open = true; }));
    await page.evaluate(() => document.querySelectorAll('.issue').forEach((one) => { one.style.contentVisibility = 'visible'; }));
    await page.evaluate(require('axe-core').source);
    const { violations } = await page.evaluate(() => window.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    }));
    for (const { id, nodes } of violations) {
      found.violations.push(`${colorScheme}: ${id}: ${nodes.slice(0, 3).map((node) => node.html).join(' | ')}`);
    }
  }
  for (const [what, argument] of plan.steps ?? []) {
    found.answers.push((await steps[what](page, argument)) ?? null);
  }
  if (plan.script !== false) {
    found.complaints.push(...(await page.evaluate(() => window.refused)));
  }
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(found));
