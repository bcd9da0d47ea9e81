"""Certificates for tests of TLS, made with the openssl program.

    certificates.make(folder)     # ca.crt, server.crt, server.key, client.crt, client.key
"""

import os
import subprocess


def openssl(*args, cwd):
    subprocess.run(["openssl", *args], cwd=cwd, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def make(folder):
    """An authority, a server at 127.0.0.1 and "here.test", and a client."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "2", cwd=folder)
    with open(os.path.join(folder, "names"), "w", encoding="ascii") as f:
        f.write("subjectAltName=IP:127.0.0.1,DNS:here.test\n")
    for name in ("server", "client"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", cwd=folder)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                "-CAcreateserial", "-out", f"{name}.crt", "-days", "2", "-extfile", "names",
                cwd=folder)
