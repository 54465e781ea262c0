"""A bot in another language: takes the most urgent work that waits for an agent, and completes it.

Run `python bot.py AGENT` in a repository with a ledger. Each command prints one JSON document,
whose schema is in schemas/output/.
"""

import json
import subprocess
import sys


def handoff(*words):
    """Runs a command, and returns what it answers."""
    ran = subprocess.run(["git-handoff", *words, "--json"], capture_output=True, text=True, check=False)
    document = json.loads(ran.stdout)
    if not document["ok"]:
        error = document["error"]
        sys.exit(f"{error['code']}: {error['message']}\n{error['hint']}")
    return document["data"]


agent = sys.argv[1]
claimed = handoff("claim", "--next", "--as", agent)["handoff"]
# Here the work is done; a bot that hands it on runs `send --to NEXT --set FIELD=VALUE`.
done = handoff("complete", claimed["id"], "--as", agent, "--token", str(claimed["token"]))
print(f"completed {done['handoff']['id']}: {claimed['summary']}")
