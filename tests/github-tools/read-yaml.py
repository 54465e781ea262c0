"""Prints YAML on standard input as JSON."""

import json
import sys

import yaml

print(json.dumps(yaml.safe_load(sys.stdin)))
