// Waits for a handoff by a task, with the official client of tasks.
//
// Usage: tasks.mjs MODULES VERSION PROGRAM... prints a JSON document of what it saw. MODULES is the
// folder with node_modules in it; VERSION is 2025-11-25, with a handshake, or 2026-07-28. 87.1 and
// 88.1 wait for the agent that the program acts as.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [modules, version, program, ...args] = process.argv.slice(2);
const client = join(modules, 'node_modules/@modelcontextprotocol/ext-tasks/dist/client/index.js');
const { withTasks } = await import(pathToFileURL(client));

const extension = 'io.modelcontextprotocol/tasks';
const clientInfo = { name: 'test', version: '1' };
const meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': { extensions: { [extension]: {} } },
};
const isStateless = version === '2026-07-28';

const server = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const open = new Map();
const methods = [];
createInterface({ input: server.stdout }).on('line', (line) => {
  const { id, result, error } = JSON.parse(line);
  open.get(id)(error ? { kind: 'error', error } : { kind: 'result', result });
});
let count = 0;
const write = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const dispatch = ({ method, params = {} }) => {
  methods.push(method);
  const framed = isStateless ? { ...params, _meta: { ...params._meta, ...meta } } : params;
  const id = ++count;
  const answered = new Promise((resolve) => open.set(id, resolve));
  write({ id, method, params: framed });
  return answered;
};
const request = async (method, params) => {
  const answer = await dispatch({ method, params });
  if (answer.kind === 'error') throw new Error(JSON.stringify(answer.error));
  return answer.result;
};

const shake = { protocolVersion: version, capabilities: {}, clientInfo };
const { capabilities } = await request(isStateless ? 'server/discover' : 'initialize', isStateless ? {} : shake);
if (!isStateless) write({ method: 'notifications/initialized' });
const nothing = () => () => {};
const session = withTasks({
  endpointId: 'test',
  taskCapabilities: isStateless
    ? { generation: 'v2', capabilities: capabilities.extensions[extension] }
    : { generation: 'v1', capabilities: capabilities.tasks },
  dispatch,
  onServerRequest: nothing,
  onNotification: nothing,
  onInvalidated: nothing,
  invalidated: false,
}, {});

const asTask = { task: { preference: 'require' } };
const waiting = await session.callTool('handoff_wait', { targets: ['87.1'] }, asTask);
const claimed = await session.callTool('handoff_claim', { id: '87.1' });
await claimed.settle();
const completed = await session.callTool('handoff_complete', { id: '87.1' });
await completed.settle();
const { outcome } = await waiting.settle();
const cancelled = await session.callTool('handoff_wait', { targets: ['88.1'] }, asTask);
await cancelled.cancel();
const seen = {
  kinds: [waiting.kind, claimed.kind],
  status: outcome.status,
  ok: outcome.result.structuredContent.ok,
  cancelled: (await cancelled.settle()).outcome.status,
  methods: [...new Set(methods)],
};
await session.close();
server.stdin.end();
process.stdout.write(JSON.stringify(seen));
