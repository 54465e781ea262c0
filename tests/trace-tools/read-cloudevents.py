"""Reads CloudEvents with the official SDK, one a line; prints what it read, one a line."""
import json
import sys

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

for line in sys.stdin.buffer:
    event = JSONFormat().read(CloudEvent, line)
    told = dict(event.get_attributes())
    told["time"] = event.get_time().isoformat()
    told["data"] = event.get_data()
    print(json.dumps(told))
