"""A receiver of OTLP over HTTP on this machine, which decodes what real collectors decode."""

import gzip
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """Listens at a free port until it is closed.

    Attributes:
        status: The status that it answers.
        silent: While set, it takes requests and does not answer.
        endless: Whether it answers 64 MiB; ``sent`` counts what was taken of them.
        raw: The bodies of all requests.
        spans: The spans, each with the attributes of its resource under ``resource``.
    """

    def __init__(self):
        self.status, self.raw, self.requests = 200, [], []
        self.silent = threading.Event()
        self.endless, self.sent = False, 0
        self._go_on = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.requests.append((self.path, dict(self.headers)))
                if outer.silent.is_set():
                    outer._go_on.wait(60)
                if outer.status == 200:
                    outer.raw.append((self.path, body))
                self.send_response(outer.status)
                self.send_header("content-length", str(64 << 20) if outer.endless else "0")
                self.end_headers()
                with suppress(OSError):  # the connection was closed
                    for _ in range(64 * outer.endless):
                        self.wfile.write(bytes(1 << 20))
                        outer.sent += 1 << 20

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._go_on.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def spans(self):
        found = []
        for path, body in self.raw:
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    about = values(resource.resource.attributes)
                    for scope in resource.scope_spans:
                        found += [Span(one, about) for one in scope.spans]
        return found

    @property
    def metrics(self):
        """The latest value of each time series of each process: `{name: {(instance, attributes): value}}`.

        The value of a histogram is the number of its measurements and their sum.
        """
        found = {}
        for path, body in self.raw:
            if path == "/v1/metrics":
                for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    instance = values(resource.resource.attributes).get("service.instance.id", "")
                    for scope in resource.scope_metrics:
                        for metric in scope.metrics:
                            series = found.setdefault(metric.name, {})
                            for point in points(metric):
                                about = frozenset(values(point.attributes).items())
                                series[instance, about] = value(point)
        return found


class Span:
    def __init__(self, one, resource):
        self.name, self.resource = one.name, resource
        self.trace, self.id, self.parent = one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex()
        self.start, self.end = one.start_time_unix_nano, one.end_time_unix_nano
        self.attributes, self.failed = values(one.attributes), one.status.code == 2


def points(metric):
    return getattr(metric, metric.WhichOneof("data")).data_points


def value(point):
    if hasattr(point, "bucket_counts"):
        return point.count, point.sum
    return getattr(point, point.WhichOneof("value"))


def values(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
