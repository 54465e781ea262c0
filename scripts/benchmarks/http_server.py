"""Serves bare repositories over smart HTTP on a free loopback port, through `git http-backend`.

`bench-http.py ROOT COUNT MS` prints the address, then serves until it is ended. For each connection one byte is appended to the file
COUNT; each answer takes MS milliseconds longer, half of them before the repository is looked at and half of them after that.
For measuring only: it knows no users, and whoever reaches the port may push.
"""

import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT, COUNT, DELAY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), float(sys.argv[3]) / 1e3
BACKEND = os.path.join(
    subprocess.run(["git", "--exec-path"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), "git-http-backend"
)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet for a small answer

    def setup(self):
        super().setup()
        with open(COUNT, "ab", buffering=0) as file:
            file.write(b".")

    def log_message(self, *_):
        pass

    def body(self):
        """The request's body, also one that comes in chunks."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def answer(self):
        body = self.body()
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.environ["GIT_CONFIG_GLOBAL"],
            "GIT_PROJECT_ROOT": ROOT,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GATEWAY_INTERFACE": "CGI/1.1",
            "SERVER_PROTOCOL": self.request_version,
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_USER": "bench",  # without a user, http-backend takes no push
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        time.sleep(DELAY / 2)
        ran = subprocess.run([BACKEND], input=body, stdout=subprocess.PIPE, env=env)
        time.sleep(DELAY / 2)
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line]
        status = next((value for name, value in lines if name == "Status"), "200 OK" if ran.returncode == 0 else "500 Failed")
        code, _, reason = status.partition(" ")
        self.send_response_only(int(code), reason)
        for name, value in lines:
            if name not in ("Status", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    do_GET = do_POST = answer


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
