// A bot in another language: takes the most urgent work that waits for an agent, and completes it.
//
// Run it with the agent's name in a repository with a ledger. Each command prints one JSON document,
// whose schema is in schemas/output/.

import { spawnSync } from "node:child_process";

interface Claim {
  handoff: { id: string; token: number; summary: string };
}

/** Runs a command, and returns what it answers. */
function handoff<Answer>(...words: string[]): Answer {
  const ran = spawnSync("git-handoff", [...words, "--json"], { encoding: "utf8" });
  const document = JSON.parse(ran.stdout);
  if (!document.ok) {
    const { code, message, hint } = document.error;
    throw new Error(`${code}: ${message}\n${hint}`);
  }
  return document.data;
}

const agent = process.argv[2];
const { handoff: claimed } = handoff<Claim>("claim", "--next", "--as", agent);
// Here the work is done; a bot that hands it on runs `send --to NEXT --set FIELD=VALUE`.
handoff("complete", claimed.id, "--as", agent, "--token", String(claimed.token));
console.log(`completed ${claimed.id}: ${claimed.summary}`);
