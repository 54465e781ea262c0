#!/usr/bin/env node
// Runs the program of this platform, which npm installed as an optional dependency.
const { spawn } = require("node:child_process");

const name = `@git-handoff/${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "git-handoff.exe" : "git-handoff";
let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(`error: ${name} is not installed: there is no program for this platform, or npm left optional dependencies out`);
  process.exit(9);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ${program} cannot be run: ${error.message}`);
  process.exit(9);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
