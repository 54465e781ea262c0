"""Reads OpenMetrics text as strictly as its specification, and prints what it holds as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = {}
for family in text_string_to_metric_families(sys.stdin.read()):
    samples = [[sample.name, sample.labels, sample.value] for sample in family.samples]
    families[family.name] = {"type": family.type, "unit": family.unit, "samples": samples}
json.dump(families, sys.stdout)
