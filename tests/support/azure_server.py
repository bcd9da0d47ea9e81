"""A small Azure Blob Storage: a container in memory, Shared Key checked by an implementation of its
own.

    with AzureServer() as azure:
        azure.endpoint, azure.account, azure.key, azure.objects, azure.requests
        azure.faults = lambda method, path, n: 503    # as in s3_server.py

What it knows: blobs (GET with ranges, HEAD, PUT with If-None-Match, DELETE), blocks and their
lists, and lists of blobs in pages of `page` names. azure.blocks: those that are not committed.
azure.sas: a shared access signature that it accepts instead of the key. azure.clock: seconds that
it is ahead.
"""

import base64
import hashlib
import hmac
import re
import time
import urllib.parse
from email.utils import formatdate, parsedate_to_datetime
from xml.sax.saxutils import escape

import s3_server
from s3_server import S3Server

STANDARD = ("content-encoding", "content-language", "content-length", "content-md5", "content-type",
            "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since",
            "range")


def signature(key, account, method, target, headers):
    """By the text of "Authorize with Shared Key". headers: names in lower case."""
    path, _, query = target.partition("?")
    lines = [method]
    for name in STANDARD:
        value = headers.get(name, "")
        lines.append("" if (name, value) == ("content-length", "0") else value)
    lines += [f"{n}:{headers[n].strip()}" for n in sorted(headers) if n.startswith("x-ms-")]
    lines.append(f"/{account}{path}")
    found = {}
    for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        found.setdefault(name.lower(), []).append(value)
    lines += [f"{name}:{','.join(sorted(found[name]))}" for name in sorted(found)]
    digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def service(code=None):
    """The headers of each answer of the service; with the code of an error."""
    return (("x-ms-request-id", "0a1b"),) + ((("x-ms-error-code", code),) if code else ())


def error_text(code, more=""):
    return (f'\ufeff<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>it is '
            f"so\nRequestId:0a1b\nTime:2026</Message>{more}</Error>").encode()


class Handler(s3_server.Handler):
    needed, forged = "x-ms-version", "AuthenticationFailed"

    def date_time_string(self, timestamp=None):
        return formatdate(timestamp or time.time() + self.server.s3.clock, usegmt=True)

    def authentic(self, _):
        s3 = self.server.s3
        self.detail = "wrong"
        if s3.sas is not None:
            query = urllib.parse.urlsplit(self.path).query.split("&")
            return set(s3.sas.split("&")) <= set(query) and "Authorization" not in self.headers
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = headers.get("authorization", "").partition("SharedKey ")[2].partition(":")
        date = headers.get("x-ms-date")
        if date is None or abs(parsedate_to_datetime(date).timestamp() - time.time()
                               - s3.clock) > 900:
            self.detail = f"Request date header too old: '{date}'"
            return False
        want = signature(s3.key, s3.account, self.command, self.path, headers)
        self.detail = f"The MAC signature found in the HTTP request '{found[2]}' is another one."
        return found[0] == s3.account and hmac.compare_digest(found[2], want)

    def answer(self, status, body=b"", headers=()):
        super().answer(status, body, (*headers, *service()) if status < 400 else headers)

    def error(self, status, code):
        more = ""
        if code == self.forged:
            more = f"<AuthenticationErrorDetail>{self.detail}</AuthenticationErrorDetail>"
        self.answer(status, error_text(code, more), service(code))

    def serve(self, path, query, body):
        s3 = self.server.s3
        _, account, container, key = (path + "/" if path.count("/") == 2 else path).split("/", 3)
        if (account, container) != (s3.account, s3.bucket):
            self.error(404, "ContainerNotFound")
        elif query.get("comp") == "list":
            self.list(query)
        elif query.get("comp") == "block":
            s3.blocks.setdefault(key, {})[query["blockid"]] = body
            base64.b64decode(query["blockid"], validate=True)
            self.answer(201)
        elif self.command == "PUT":
            self.put(key, query, body)
        elif key not in s3.objects:
            self.error(404, "BlobNotFound")
        elif self.command == "DELETE":
            del s3.objects[key]
            self.answer(202)
        elif self.command == "HEAD":
            self.answer(200, headers=[("Content-Length", str(len(s3.objects[key]))),
                                      ("ETag", f'"0x{s3.etag(key)}"'), *self.modified(key)])
        else:
            self.get(s3.objects[key])

    def put(self, key, query, body):
        s3 = self.server.s3
        if query.get("comp") == "blocklist":
            blocks = s3.blocks.get(key, {})
            named = re.findall("<Uncommitted>([^<]+)</Uncommitted>", body.decode())
            if not all(n in blocks for n in named):
                self.error(400, "InvalidBlockList")
                return
            body = b"".join(blocks[n] for n in named)
        elif self.headers.get("x-ms-blob-type") != "BlockBlob":
            self.error(400, "MissingRequiredHeader")
            return
        if self.refuses(key):
            return
        s3.blocks.pop(key, None)
        s3.objects[key] = body
        s3.times[key] = time.time()
        self.answer(201, headers=[("ETag", f'"0x{s3.etag(key)}"')])

    def refuses(self, key):
        s3 = self.server.s3
        there = self.headers.get("If-None-Match") == "*" and key in s3.objects and s3.conditions
        if there:
            self.error(409, "BlobAlreadyExists")
        return there

    def get(self, data):
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(n) for n in found.groups())
        if first >= len(data):
            self.error(416, "InvalidRange")
            return
        last = min(last, len(data) - 1)
        self.answer(206, data[first:last + 1],
                    [("Content-Range", f"bytes {first}-{last}/{len(data)}")])

    def list(self, query):
        s3 = self.server.s3
        if query.get("restype") != "container":
            self.error(400, "InvalidQueryParameterValue")
            return
        keys = s3.keys(query.get("prefix", ""))
        begin = int(query.get("marker", "2!0=")[2:-1])
        page = keys[begin: begin + s3.page]
        rows = "".join(
            f"<Blob><Name>{escape(k)}</Name><Properties><Last-Modified>x</Last-Modified><Etag>0x"
            f"{s3.etag(k)}</Etag><Content-Length>{len(s3.objects[k])}</Content-Length>"
            "<ResourceType>file</ResourceType></Properties></Blob>" for k in page)
        rows += "".join(
            f"<Blob><Name>{escape(k)}</Name><Properties><Content-Length>0</Content-Length>"
            "<ResourceType>directory</ResourceType></Properties></Blob>" for k in s3.folders)
        more = begin + s3.page < len(keys)
        marker = f"<NextMarker>2!{begin + s3.page}=</NextMarker>" if more else "<NextMarker />"
        self.answer(200, '\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults '
                         f'ContainerName="{s3.bucket}"><Prefix>x</Prefix><Blobs>{rows}</Blobs>'
                         f"{marker}</EnumerationResults>")


class AzureServer(S3Server):
    account, bucket, handler = "redis", "vault", Handler
    key = base64.b64encode(bytes(range(64))).decode()

    def __init__(self, page=5000):
        super().__init__(page)
        self.blocks, self.folders, self.sas, self.clock = {}, [], None, 0

    def __enter__(self):
        super().__enter__()
        self.endpoint = f"{self.url}/{self.account}"
        return self
