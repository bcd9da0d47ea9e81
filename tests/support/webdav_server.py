"""A small WebDAV server: folders and files in memory, with Basic or Digest authentication.

    with WebDAVServer() as dav:
        dav.url, dav.user, dav.password, dav.files, dav.folders, dav.requests
        dav.faults = lambda method, path, n: 503    # the n-th request: a status, a Fault, or None

Faults are those of s3_server. What it knows: GET with ranges, PUT, DELETE, MKCOL, MOVE, and
PROPFIND of depth 0 and 1. dav.login: "basic", "digest" or None. dav.overwrites = True: it ignores
"Overwrite: F". dav.ranges = False: it ignores Range. dav.absolute: it names URLs, not paths.
dav.certificate: a folder of certificates.make(), for TLS. dav.keeps: bytes of a file that it keeps.
"""

import base64
import hashlib
import re
import ssl
import threading
import time
import urllib.parse
from email.utils import formatdate
from xml.sax.saxutils import escape

import s3_server
from s3_server import Fault

NONCE = "4e6f2061697220"


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


class Handler(s3_server.Handler):
    # ---- logins ----

    def authentic(self, _=b""):
        dav, said = self.server.dav, self.headers.get("Authorization", "")
        if dav.login is None:
            return True
        if dav.login == "basic":
            return said == "Basic " + base64.b64encode(
                f"{dav.user}:{dav.password}".encode()).decode()
        words = dict(re.findall(r'(\w+)="?([^",]+)"?', said))
        if not said.startswith("Digest ") or words.get("nonce") != NONCE:
            return False
        secret = md5(f"{dav.user}:dav:{dav.password}")
        return words.get("uri") == self.path and words.get("response") == md5(
            f"{secret}:{NONCE}:{words['nc']}:{words['cnonce']}:auth:"
            f"{md5(self.command + ':' + self.path)}")

    def refuse(self):
        asks = {"basic": 'Basic realm="dav"',
                "digest": f'Digest realm="dav", nonce="{NONCE}", qop="auth", algorithm=MD5'}
        self.answer(401, b"who are you?", [("WWW-Authenticate", asks[self.server.dav.login])])

    # ---- requests ----

    def handle_dav(self):
        dav = self.server.dav
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.unquote(self.path)
        with dav.lock:
            dav.requests.append((self.command, path, dict(self.headers)))
            fault = dav.faults(self.command, path, len(dav.requests)) if dav.faults else None
            self.fault = fault if isinstance(fault, Fault) else None
            if fault == "cut":
                self.end()
                return
            if fault == "lost":
                self.answer = lambda *_, **__: self.end()
            if isinstance(fault, int):
                self.answer(fault, b"<html>it is so</html>")
            elif self.fault and not self.fault.done:
                self.answer(200)
            elif not self.authentic():
                self.refuse()
            else:
                getattr(self, self.command.lower())(path.rstrip("/"), body)
            if fault == "lost":
                del self.answer

    do_GET = do_PUT = do_DELETE = do_MKCOL = do_MOVE = do_PROPFIND = handle_dav

    def get(self, path, _):
        dav = self.server.dav
        if path not in dav.files:
            self.answer(404, b"<html>not here</html>")
            return
        data = dav.files[path]
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not found or not dav.ranges:
            self.answer(200, data)
            return
        begin, end = int(found.group(1)), min(int(found.group(2)) + 1, len(data))
        self.answer(206, data[begin:end],
                    [("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")])

    def put(self, path, body):
        dav = self.server.dav
        if path.rpartition("/")[0] not in dav.folders:
            self.answer(409)
            return
        self.answer(204 if path in dav.files else 201)
        dav.files[path] = body[:dav.keeps]
        dav.times[path] = time.time()

    def delete(self, path, _):
        dav = self.server.dav
        inside = [p for p in [*dav.files, *dav.folders] if (p + "/").startswith(path + "/")]
        for name in inside:
            dav.files.pop(name, None)
            dav.folders.discard(name)
        self.answer(204 if inside else 404)

    def mkcol(self, path, _):
        dav = self.server.dav
        if path in dav.folders or path in dav.files:
            self.answer(405)
        elif path.rpartition("/")[0] not in dav.folders:
            self.answer(409)
        else:
            dav.folders.add(path)
            self.answer(201)

    def move(self, path, _):
        dav = self.server.dav
        there = urllib.parse.urlsplit(self.headers["Destination"]).path
        there = urllib.parse.unquote(there).rstrip("/")
        exists = there in dav.files or there in dav.folders
        if path not in dav.files and path not in dav.folders:
            self.answer(404)
        elif there.rpartition("/")[0] not in dav.folders:
            self.answer(409)
        elif exists and self.headers.get("Overwrite") == "F" and not dav.overwrites:
            self.answer(412)
        else:
            for name in [p for p in dav.files if (p + "/").startswith(path + "/")]:
                dav.files[there + name[len(path):]] = dav.files.pop(name)
                dav.times[there + name[len(path):]] = dav.times.pop(name, 0)
            for name in [p for p in dav.folders if (p + "/").startswith(path + "/")]:
                dav.folders.remove(name)
                dav.folders.add(there + name[len(path):])
            self.answer(204 if exists else 201)

    def propfind(self, path, _):
        dav = self.server.dav
        if path not in dav.files and path not in dav.folders:
            self.answer(404, b"<html>not here</html>")
            return
        names = [path]
        if self.headers["Depth"] == "1":
            names += sorted(p for p in [*dav.files, *dav.folders]
                            if p != path and p.rpartition("/")[0] == path)
        rows = "".join(dav.row(name) for name in names)
        self.answer(207, f'<?xml version="1.0"?>\n<x:multistatus xmlns:x="DAV:">{rows}'
                         "</x:multistatus>")


class WebDAVServer:
    user, password = "me@here", "s3cret: ü"

    def __init__(self, login="basic", certificate=None):
        self.files, self.folders, self.times = {}, {"", "/srv"}, {}
        self.requests, self.faults, self.lock = [], None, threading.Lock()
        self.login, self.certificate = login, certificate
        self.overwrites, self.ranges, self.absolute, self.keeps = False, True, False, None

    def row(self, path):
        """What PROPFIND says of a file or folder."""
        href = ("http://another.name" if self.absolute else "") + urllib.parse.quote(path)
        date = formatdate(self.times.get(path, 0), usegmt=True)
        if path in self.folders:
            href += "/"
            date = formatdate(self.times.get(path), usegmt=True)
            props = ("<x:resourcetype><x:collection/></x:resourcetype>"
                     f"<x:getlastmodified>{date}</x:getlastmodified>")
        else:
            etag = hashlib.md5(self.files[path]).hexdigest()
            props = (f"<x:resourcetype/><x:getcontentlength>{len(self.files[path])}"
                     f'</x:getcontentlength><x:getetag>"{etag}"</x:getetag>'
                     f"<x:getlastmodified>{date}</x:getlastmodified>")
        return (f"<x:response><x:href>{escape(href)}</x:href><x:propstat><x:prop>{props}</x:prop>"
                "<x:status>HTTP/1.1 200 OK</x:status></x:propstat><x:propstat><x:prop>"
                "<x:displayname/></x:prop><x:status>HTTP/1.1 404 Not Found</x:status>"
                "</x:propstat></x:response>")

    def __enter__(self):
        self.server = s3_server.Server(("127.0.0.1", 0), Handler)
        self.server.dav = self
        self.port = self.server.server_address[1]
        scheme = "webdav"
        if self.certificate:
            scheme = "webdavs"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{self.certificate}/server.crt",
                                    f"{self.certificate}/server.key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
