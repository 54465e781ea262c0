// Counts the tokens of texts: reads a JSON list of texts, prints a JSON list of the larger count of
// two encodings. The first argument is the folder with node_modules in it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.argv[2], 'package.json'));
const encodings = ['o200k_base', 'cl100k_base'].map((name) => require(`gpt-tokenizer/encoding/${name}`));
// Text that looks like a special token is text.
const plain = { disallowedSpecial: new Set() };
const texts = JSON.parse(readFileSync(0, 'utf8'));
const counts = texts.map((text) => Math.max(...encodings.map((e) => e.encode(text, plain).length)));
process.stdout.write(JSON.stringify(counts));
