"""OpenSSH's sshd on a port of the loopback, with keys and a configuration of its own.

    with SSHServer() as ssh:
        ssh.port, ssh.user, ssh.key, ssh.known_hosts, ssh.dir
"""

import getpass
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
START_SECONDS = 600


def missing():
    """Why a test that wants sshd cannot run; None where it can."""
    if not os.path.exists(SSHD) or shutil.which("ssh-keygen") is None:
        return "sshd is not installed"
    return None


def libcurl_leaks():
    """libcurl 8.14, that of Debian 13, and the next ones lose each connection to an SSH server
    (curl issues 17819 and 19293)."""
    done = subprocess.run([os.environ["REDOUBT"], "version", "--json"], stdout=subprocess.PIPE,
                          check=True)
    version = json.loads(done.stdout)["libraries"]["libcurl"]
    return (8, 14) <= tuple(int(n) for n in version.split(".")[:2]) < (8, 18)


class SSHServer:
    """sftp: the command of the SFTP server, in place of sshd's own."""

    def __init__(self, sftp="internal-sftp"):
        self.sftp = sftp

    def path(self, name):
        return os.path.join(self.dir, name)

    def make_key(self, name):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)],
                       check=True)
        with open(self.path(name + ".pub"), encoding="ascii") as file:
            return file.read()

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="redoubt-sshd-")
        self.asan = os.environ.get("ASAN_OPTIONS", "")
        if libcurl_leaks():
            os.environ["ASAN_OPTIONS"] = self.asan + ":detect_leaks=0"
        self.user = getpass.getuser()
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        host, client = self.make_key("host"), self.make_key("client")
        self.key = self.path("client")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.known_hosts = self.path("known_hosts")
        with open(self.known_hosts, "w", encoding="ascii") as file:
            file.write(f"[127.0.0.1]:{self.port} {' '.join(host.split()[:2])}\n")
        with open(self.path("authorized"), "w", encoding="ascii") as file:
            file.write(client)
        with open(self.path("config"), "w", encoding="ascii") as file:
            file.write(f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.path('host')}\n"
                       f"AuthorizedKeysFile {self.path('authorized')}\nStrictModes no\nUsePAM no\n"
                       f"PidFile none\nPermitRootLogin prohibit-password\n"
                       f"PasswordAuthentication no\nSubsystem sftp {self.sftp}\n"
                       "SetEnv SHLVL=2\n")  # bash reads no ~/.bashrc then
        self.start()
        return self

    def start(self):
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", self.path("config")],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    with open(self.path("log"), errors="replace", encoding="utf-8") as log:
                        raise RuntimeError(log.read()[-2000:]) from None
                time.sleep(0.02)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.stop()
        os.environ["ASAN_OPTIONS"] = self.asan
        shutil.rmtree(self.dir, ignore_errors=True)
