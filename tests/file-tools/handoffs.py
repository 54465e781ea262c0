"""Orchestrators and specialists that share nothing but a folder: they write a request, move it on with
os and shutil, and look for its outcome, with the calls of the protocol's own document."""

import json
import os
import shutil
import sys
import time
from datetime import datetime


def now():
    return datetime.utcnow().isoformat() + "Z"


def place(state, handoff_id):
    return f"handoffs/{state}/{handoff_id}.json"


def read(path):
    with open(path, "r") as f:
        return json.load(f)


def write(path, handoff):
    with open(path, "w") as f:
        json.dump(handoff, f, indent=2)


def create(handoff_id, source, target, data):
    request = {
        "handoff_id": handoff_id,
        "timestamp": now(),
        "status": "pending",
        "source": {"agent_id": source, "phase": 11, "agent_type": "orchestrator"},
        "target": {"agent_id": target, "phase": 13, "agent_type": "specialist"},
        "context": {"project_id": "loans", "tech_stack": {"framework": "React", "version": "19.1"}},
        "input": {"schema": f"{target.strip('@')}.input.schema.json", "data": json.loads(data)},
        "timeout_seconds": 300,
    }
    os.makedirs("handoffs/pending", exist_ok=True)
    write(place("pending", handoff_id), request)


def pick_up(handoff_id):
    if not os.path.exists(place("pending", handoff_id)):
        sys.exit(f"not found: {handoff_id}")
    path = place("in-progress", handoff_id)
    os.makedirs("handoffs/in-progress", exist_ok=True)
    shutil.move(place("pending", handoff_id), path)
    handoff = read(path)
    handoff["status"] = "in_progress"
    handoff["started_at"] = now()
    write(path, handoff)


def complete(handoff_id):
    handoff = read(place("in-progress", handoff_id))
    handoff["status"] = "completed"
    handoff["completed_at"] = now()
    handoff["execution_time_seconds"] = 332
    handoff["output"] = {
        "artifact_id": "loan-list-1",
        "artifact_path": "artifacts/phase-13-react/loan-list-1.json",
        "artifact_type": "react-components",
        "schema_compliance": "valid",
    }
    handoff["validation"] = {
        "status": "passed",
        "typescript_errors": 0,
        "eslint_warnings": 0,
        "tests_passing": True,
        "coverage_percentage": 87,
    }
    os.makedirs("handoffs/completed", exist_ok=True)
    shutil.move(place("in-progress", handoff_id), place("completed", handoff_id))
    write(place("completed", handoff_id), handoff)


def fail(handoff_id, message):
    handoff = read(place("in-progress", handoff_id))
    handoff["status"] = "failed"
    handoff["failed_at"] = now()
    handoff["error"] = {
        "code": "PROCESSING_ERROR",
        "message": message,
        "severity": "error",
        "timestamp": now(),
    }
    handoff["retry_available"] = True
    handoff["retry_count"] = handoff.get("retry_count", 0)
    os.makedirs("handoffs/failed", exist_ok=True)
    shutil.move(place("in-progress", handoff_id), place("failed", handoff_id))
    write(place("failed", handoff_id), handoff)


def retry(handoff_id):
    """The orchestrator asks again: the file goes back, with one more attempt behind it."""
    handoff = read(place("failed", handoff_id))
    handoff["status"] = "pending"
    handoff["retry_count"] += 1
    for name in ("error", "failed_at", "retry_available", "started_at"):
        handoff.pop(name, None)
    shutil.move(place("failed", handoff_id), place("pending", handoff_id))
    write(place("pending", handoff_id), handoff)


def wait(handoff_id, timeout_seconds):
    start = time.time()
    while time.time() - start < float(timeout_seconds):
        if os.path.exists(place("completed", handoff_id)):
            print(read(place("completed", handoff_id))["output"]["artifact_path"])
            return
        if os.path.exists(place("failed", handoff_id)):
            sys.exit(read(place("failed", handoff_id))["error"]["message"])
        time.sleep(0.05)
    sys.exit(f"{handoff_id} timed out after {timeout_seconds}s")


globals()[sys.argv[1]](*sys.argv[2:])
