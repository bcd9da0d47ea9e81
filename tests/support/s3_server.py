"""A small S3: buckets in memory, AWS Signature Version 4 checked by an implementation of its own.

    with S3Server() as s3:
        s3.url, s3.access_key, s3.secret_key, s3.objects, s3.requests
        s3.faults = lambda method, path, n: 503    # the n-th request: a status, a Fault, or None

A fault may also be "cut" (the request is not done, and the connection ends) or "lost" (it is done,
and the connection ends before the answer).

What it knows: objects (GET with ranges, HEAD, PUT with If-None-Match, DELETE), uploads in parts,
and lists of version 2, in pages of `page` keys, and of uploads. s3.conditions = False: it ignores
If-None-Match, as some stores do. s3.props: what objects were given, such as their tags; an object
with a lock is stored only with the right checksum. s3.delay: seconds that each request is on its
way; s3.most: how many of them were on their way at a time. S3Server(google=True) speaks as Google
Cloud Storage does.
"""

import base64
import dataclasses
import hashlib
import hmac
import http.server
import re
import socket
import threading
import time
import urllib.parse
from email.utils import formatdate
from xml.sax.saxutils import escape


NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


@dataclasses.dataclass
class Fault:
    """An answer in place of the right one. body: bytes, or a function that changes the right
    body."""
    status: int = None  # None: the right one
    body: object = None
    headers: tuple = ()
    done: bool = False  # the request is done first
    sent: int = None  # so many bytes of the body are sent, then the connection ends


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are sent apart: each answer would wait for 40 ms
    forged = "SignatureDoesNotMatch"

    @property
    def needed(self):
        return f"{self.server.s3.dialect[-1]}-content-sha256"

    def log_message(self, *_):
        pass

    # ---- signatures ----

    def authentic(self, body):
        algorithm, secret, service, ends, x = self.server.s3.dialect
        found = re.fullmatch(rf"{algorithm} "
                             rf"Credential=([^/]+)/(\d{{8}})/([^/]+)/{service}/{ends}, ?"
                             r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization", ""))
        s3 = self.server.s3
        if not found or found.group(1) != s3.access_key:
            return False
        _, date, region, names, signature = found.groups()
        names = names.split(";")
        stamp = self.headers.get(f"{x}-date", "")
        if "host" not in names or f"{x}-date" not in names or not stamp.startswith(date):
            return False
        declared = self.headers.get(self.needed)
        actual = hashlib.sha256(body).hexdigest()
        if declared not in ("UNSIGNED-PAYLOAD", actual):
            return False
        parts = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
        quote = urllib.parse.quote
        canonical = "\n".join([
            self.command,
            quote(urllib.parse.unquote(parts.path), safe="/~"),
            "&".join(sorted(f"{quote(k, safe='~')}={quote(v, safe='~')}" for k, v in query)),
            "".join(f"{n}:{' '.join(self.headers.get(n, '').split())}\n" for n in names),
            ";".join(names),
            declared,
        ])
        scope = f"{date}/{region}/{service}/{ends}"
        text = "\n".join([algorithm, stamp, scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        key = (secret + s3.secret_key).encode()
        for step in (date, region, service, ends):
            key = sign(key, step)
        return hmac.compare_digest(sign(key, text).hex(), signature)

    # ---- answers ----

    def answer(self, status, body=b"", headers=()):
        body = body if isinstance(body, bytes) else body.encode()
        fault = self.fault
        if fault is not None:
            status = fault.status or status
            headers = fault.headers or (headers if fault.body is None else ())
            if fault.body is not None:
                body = fault.body(body) if callable(fault.body) else fault.body
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body if fault is None else body[:fault.sent])
        if fault is not None and fault.sent is not None:
            self.end()

    def end(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def error(self, status, code):
        self.answer(status, f"<Error><Code>{code}</Code><Message>it is so</Message></Error>")

    def handle_request(self):
        s3 = self.server.s3
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        s3.under_way += 1
        s3.most = max(s3.most, s3.under_way)
        time.sleep(s3.delay)  # on the way: requests do not wait for each other
        s3.under_way -= 1
        with s3.lock:
            s3.requests.append((self.command, self.path, dict(self.headers)))
            fault = s3.faults(self.command, self.path, len(s3.requests)) if s3.faults else None
            self.fault = fault if isinstance(fault, Fault) else None
            if fault == "cut":
                self.end()
                return
            if fault == "lost":
                self.fault = Fault(done=True)
                self.answer = lambda *_, **__: self.end()
            if isinstance(fault, int):
                self.error(fault, "SlowDown")
            elif self.fault and not self.fault.done:
                self.answer(200)
            elif self.needed not in self.headers:
                self.error(400, "InvalidRequest")  # as S3 does
            elif not self.authentic(body):
                self.error(403, self.forged)
            else:
                self.serve(urllib.parse.unquote(parts.path), query, body)
            if fault == "lost":
                del self.answer

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    # ---- what it knows ----

    def serve(self, path, query, body):
        s3 = self.server.s3
        host = self.headers.get("Host", "").split(":")[0]
        if host.startswith(s3.bucket + "."):
            path = f"/{s3.bucket}{path}"
        _, bucket, key = (path + "/" if path.count("/") == 1 else path).split("/", 2)
        if bucket != s3.bucket:
            self.error(404, "NoSuchBucket")
        elif key == "" and "uploads" in query:
            self.list_uploads(query)
        elif key == "":
            self.list(query)
        elif "uploads" in query or "uploadId" in query:
            self.upload(key, query, body)
        elif self.command == "PUT":
            source = self.headers.get("x-goog-copy-source") if s3.google else None
            if source and not self.refuses(key):
                self.copy(urllib.parse.unquote(source), key)
            if source or self.refuses(key) or self.lacks_checksum(body, self.headers):
                return
            s3.objects[key] = body
            s3.props[key] = self.props()
            s3.times[key] = time.time()
            self.answer(200, headers=[("ETag", f'"{hashlib.md5(body).hexdigest()}"')])
        elif self.command == "DELETE":
            s3.objects.pop(key, None)
            self.answer(204)
        elif key not in s3.objects:
            self.error(404, "NoSuchKey")
        elif self.command == "HEAD":
            data = s3.objects[key]
            self.answer(200, headers=[("Content-Length", str(len(data))),
                                      ("ETag", f'"{hashlib.md5(data).hexdigest()}"'),
                                      *self.modified(key)])
        else:
            self.get(s3.objects[key])

    def refuses(self, key):
        s3 = self.server.s3
        name, value = ("x-goog-if-generation-match", "0") if s3.google else ("If-None-Match", "*")
        there = self.headers.get(name) == value and key in s3.objects and s3.conditions
        if there:
            self.error(412, "PreconditionFailed")
        return there

    def copy(self, source, key):
        s3 = self.server.s3
        s3.objects[key] = s3.objects[source.removeprefix(f"/{s3.bucket}/")]
        s3.props[key] = self.props()
        self.answer(200, f'<CopyObjectResult xmlns="{NAMESPACE}"><ETag>&quot;{s3.etag(key)}&quot;'
                         "</ETag></CopyObjectResult>")

    def props(self):
        x = self.server.s3.dialect[-1]
        return {name.lower(): value for name, value in self.headers.items()
                if name.lower().startswith((f"{x}-object-lock", f"{x}-storage-class",
                                            f"{x}-tagging", f"{x}-server-side"))}

    def lacks_checksum(self, body, wanted):
        """Whether a request is refused because bytes under a lock must have a checksum."""
        sent = self.headers.get("x-amz-checksum-sha256")
        right = base64.b64encode(hashlib.sha256(body).digest()).decode()
        is_locked = any(name.lower().startswith("x-amz-object-lock") for name in wanted)
        if sent == right or (sent is None and not is_locked):
            return False
        self.error(400, "BadDigest" if sent else "InvalidRequest")
        return True

    def modified(self, key):
        date = formatdate(self.server.s3.times.get(key, 0), usegmt=True)
        return [("Last-Modified", date)] if key in self.server.s3.times else []

    def get(self, data):
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if found:
            self.answer(206, data[int(found.group(1)): int(found.group(2)) + 1])
        else:
            self.answer(200, data)

    def list(self, query):
        s3 = self.server.s3
        keys = s3.keys(query.get("prefix", ""))
        begin = int(query.get("continuation-token", "t/0=")[2:-1])
        page = keys[begin: begin + s3.page]
        more = begin + s3.page < len(keys)
        encode = urllib.parse.quote_plus if query.get("encoding-type") == "url" else escape
        rows = "".join(f"<Contents><Key>{encode(k)}</Key>"
                       f"<Size>{len(s3.objects[k])}</Size>"
                       f"<ETag>&quot;{s3.etag(k)}&quot;</ETag></Contents>" for k in page)
        tag = "NextContinuationToken"
        token = f"<{tag}>t/{begin + s3.page}=</{tag}>" if more else ""
        kind = "<EncodingType>url</EncodingType>" if encode is not escape else ""
        self.answer(200, f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns='
                         f'"{NAMESPACE}"><IsTruncated>{str(more).lower()}</IsTruncated>{kind}'
                         f"{rows}{token}</ListBucketResult>")

    def list_uploads(self, query):
        s3 = self.server.s3
        found = sorted((key, upload) for upload, (key, _) in s3.uploads.items()
                       if key.startswith(query.get("prefix", "")))
        marker = (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        found = [f for f in found if f > marker]
        page, more = found[:s3.page], len(found) > s3.page
        rows = "".join(f"<Upload><Key>{escape(k)}</Key><UploadId>{u}</UploadId></Upload>"
                       for k, u in page)
        nexts = (f"<NextKeyMarker>{escape(page[-1][0])}</NextKeyMarker>"
                 f"<NextUploadIdMarker>{page[-1][1]}</NextUploadIdMarker>") if more else ""
        self.answer(200, f"<ListMultipartUploadsResult><IsTruncated>{str(more).lower()}"
                         f"</IsTruncated>{nexts}{rows}</ListMultipartUploadsResult>")

    def upload(self, key, query, body):
        s3 = self.server.s3
        if "uploads" in query:
            s3.n_uploads += 1
            upload = f"id/{s3.n_uploads}+"
            s3.uploads[upload] = (key, {})
            s3.began[upload] = self.props()
            if (self.headers.get("x-amz-checksum-algorithm") != "SHA256" and
                    "x-amz-object-lock-mode" in s3.began[upload]):
                self.error(400, "InvalidRequest")
                return
            self.answer(200, f'<InitiateMultipartUploadResult xmlns="{NAMESPACE}"><UploadId>'
                             f"{upload}</UploadId></InitiateMultipartUploadResult>")
        elif query["uploadId"] not in s3.uploads:
            self.error(404, "NoSuchUpload")
        elif self.command == "PUT":
            if self.lacks_checksum(body, s3.began[query["uploadId"]]):
                return
            s3.uploads[query["uploadId"]][1][int(query["partNumber"])] = body
            self.answer(200, headers=[("ETag", f'"{hashlib.md5(body).hexdigest()}"')])
        elif self.command == "POST":
            if not s3.google and self.refuses(key):
                return
            if s3.google and "x-goog-if-generation-match" in self.headers:
                self.error(400, "InvalidArgument")  # there are no conditions of uploads in parts
                return
            parts = s3.uploads.pop(query["uploadId"])[1]
            named = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>\"(\w+)\"</ETag>",
                               body.decode())
            given = s3.began.pop(query["uploadId"])
            sums = re.findall(r"<ChecksumSHA256>([^<]+)</ChecksumSHA256>", body.decode())
            right = [base64.b64encode(hashlib.sha256(parts[n]).digest()).decode()
                     for n in sorted(parts)]
            if sums != ([] if "x-amz-object-lock-mode" not in given else right):
                self.error(400, "InvalidPart")
                return
            whole = [hashlib.md5(parts[int(n)]).hexdigest() == etag for n, etag in named]
            if len(named) != len(parts) or not all(whole):
                self.answer(200, "<Error><Code>InvalidPart</Code><Message>no</Message></Error>")
                return
            s3.objects[key] = b"".join(parts[n] for n in sorted(parts))
            s3.props[key] = given
            self.answer(200, f'<CompleteMultipartUploadResult xmlns="{NAMESPACE}"/>')
        else:
            del s3.uploads[query["uploadId"]]
            self.answer(204)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that is gone


class S3Server:
    access_key, secret_key = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    bucket, handler = "vault", Handler

    def __init__(self, page=1000, google=False):
        self.google = google
        self.dialect = (("GOOG4-HMAC-SHA256", "GOOG4", "storage", "goog4_request", "x-goog")
                        if google else ("AWS4-HMAC-SHA256", "AWS4", "s3", "aws4_request", "x-amz"))
        self.objects, self.uploads, self.requests = {}, {}, []
        self.times = {}  # Last-Modified of objects
        self.props, self.began = {}, {}  # of objects, and of uploads
        self.etags = {}  # of objects that were listed, with their bytes
        self.faults, self.page, self.lock = None, page, threading.Lock()
        self.delay = self.under_way = self.most = 0
        self.conditions, self.n_uploads = True, 0

    def etag(self, key):
        data, known = self.objects[key], self.etags.get(key)
        if known is None or known[0] is not data:
            known = self.etags[key] = data, hashlib.md5(data).hexdigest()
        return known[1]

    def keys(self, prefix):
        return sorted(k for k in self.objects if k.startswith(prefix))

    def __enter__(self):
        self.server = Server(("127.0.0.1", 0), self.handler)
        self.server.s3 = self
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
