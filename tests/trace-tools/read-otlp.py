"""Decodes OTLP JSON lines with the official protobuf definitions; prints each as
the protobuf message's own JSON, ids in hexadecimal again."""
import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

IDS = ("traceId", "spanId", "parentSpanId")


def ids(value, convert):
    """OTLP has ids in hexadecimal where protobuf's JSON has base64."""
    if isinstance(value, list):
        for item in value:
            ids(item, convert)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in IDS:
                value[key] = convert(item)
            else:
                ids(item, convert)


def from_hex(text):
    assert text == text.lower(), text
    return base64.b64encode(bytes.fromhex(text)).decode()


def to_hex(text):
    return base64.b64decode(text).hex()


for line in sys.stdin:
    document = json.loads(line)
    ids(document, from_hex)
    for kind in (TracesData, ExportTraceServiceRequest):
        message = json_format.ParseDict(document, kind(), ignore_unknown_fields=False)
        again = kind.FromString(message.SerializeToString())
    decoded = json_format.MessageToDict(again)
    ids(decoded, to_hex)
    print(json.dumps(decoded))
