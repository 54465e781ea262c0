// Reads pictures with the real mermaid: a JSON list of texts on standard input, a JSON list on
// standard output with what each of them holds, or why it is none.
//
//   node read-mermaid.mjs FOLDER      (FOLDER is what scripts/test-tools filled)
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const folder = resolve(process.argv[2]);
const { JSDOM } = createRequire(join(folder, '/'))('jsdom');
const page = new JSDOM('<!doctype html><body></body>');
globalThis.window = page.window;
globalThis.document = page.window.document;
const entry = join(folder, 'node_modules/mermaid/dist/mermaid.core.mjs');
const { default: mermaid } = await import(pathToFileURL(entry));
mermaid.initialize({ startOnLoad: false, securityLevel: 'strict' });

// What mermaid puts in the place of `#…;` until it draws.
const shown = (label) =>
  (label ?? '').replace(/ﬂ°°(\d+)¶ß/g, (_, code) => String.fromCodePoint(Number(code))).replace(/ﬂ°(\w+)¶ß/g, '&$1;');

const answers = [];
for (const picture of JSON.parse(await text(process.stdin))) {
  try {
    const { diagramType, config } = await mermaid.parse(picture);
    const { db } = await mermaid.mermaidAPI.getDiagramFromText(picture);
    answers.push({
      kind: diagramType,
      config,
      nodes: [...db.getVertices().values()].map((node) => ({
        id: node.id, label: shown(node.text), shape: node.type, classes: node.classes, link: node.link ?? null,
      })),
      edges: db.getEdges().map((edge) => ({
        from: edge.start, to: edge.end, label: shown(edge.text), stroke: edge.stroke, arrow: edge.type,
      })),
      groups: db.getSubGraphs().map((group) => ({ id: group.id, title: shown(group.title), nodes: group.nodes })),
    });
  } catch (error) {
    answers.push({ error: String(error.message ?? error) });
  }
}
process.stdout.write(JSON.stringify(answers));
