"""A small web server in a thread.

    with WebServer(lambda method, path, headers: (200, b"text")) as web:
        ... web.url ...
    web.requests    # (method, path, headers)

An answer of None says nothing until the server ends.
"""

import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def handle_request(self):
        web = self.server.web
        headers = {name.lower(): value for name, value in self.headers.items()}
        with web.lock:
            web.requests.append((self.command, self.path, headers))
            answer = web.answer(self.command, self.path, headers)
        if answer is None:
            web.ended.wait()
            return
        status, body = answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = handle_request


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that is gone


class WebServer:
    def __init__(self, answer=lambda method, path, headers: (200, b"OK")):
        self.answer = answer
        self.requests = []
        self.lock = threading.Lock()
        self.ended = threading.Event()

    def __enter__(self):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.web = self
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def paths(self):
        return [path for _, path, _ in self.requests]
