"""Records messages that the nodes of a real cluster send each other, for tests/cluster.

usage: record_bus_by_hand.py ROOT PROGRAM OUTPUT

Starts four nodes by chroot in ROOT ("/": this machine). Each announces the port of a proxy as that
of its bus. OUTPUT has the messages one after the other: of each type and sender's state one, with
and without extensions.
"""

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

BASE = int(os.environ.get("RECORD_PORT", "23100"))
NODES = 4
TYPES = ("ping", "pong", "meet", "fail", "publish", "auth-request", "auth-ack", "update",
         "mfstart", "module", "publishshard")


class Recorder:
    def __init__(self):
        self.kinds = {}
        self.lock = threading.Lock()

    def note(self, message):
        number, count = struct.unpack(">HH", message[12:16])
        if number >= 0x8000:  # Valkey, to nodes that announced that they read these
            return
        extensions = struct.unpack(">H", message[2214:2216])[0]
        key = (number, min(count, 2), extensions, self.of_extensions(message, count, extensions))
        with self.lock:
            if key not in self.kinds:
                self.kinds[key] = message
                print(TYPES[number], key, len(message))

    @staticmethod
    def of_extensions(message, count, extensions):
        at, found = 2256 + 104 * count, []
        for _ in range(extensions):
            size, kind = struct.unpack(">IH", message[at:at + 6])
            found.append(kind)
            at += size
        return tuple(found)


def pump(recorder, source, target):
    data = b""
    try:
        while True:
            more = source.recv(65536)
            if not more:
                break
            target.sendall(more)
            data += more
            while len(data) >= 8:
                size = struct.unpack(">I", data[4:8])[0]
                if len(data) < size:
                    break
                recorder.note(data[:size])
                data = data[size:]
    except OSError:
        pass
    for s in (source, target):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def proxy(recorder, port, to):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        client, _ = listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", to))
        except OSError:
            client.close()
            continue
        for pair in ((client, server), (server, client)):
            threading.Thread(target=pump, args=(recorder, *pair), daemon=True).start()


class Node:
    def __init__(self, root, program, i):
        self.port = BASE + i
        self.root = root
        self.dir = tempfile.mkdtemp(prefix="bus", dir=os.path.join(root, "tmp"))
        inside = "/" + os.path.relpath(self.dir, root)
        self.command = [program, "--port", str(self.port), "--cluster-enabled", "yes", "--dir",
                        inside, "--save", "", "--cluster-node-timeout", "2000", "--logfile", "log",
                        "--cluster-announce-bus-port", str(BASE + 200 + i), "--cluster-port",
                        str(BASE + 100 + i), "--cluster-announce-hostname", f"host-{i}.example"]
        if "7.0" not in subprocess.run(self.inside(program, "--version"),
                                       capture_output=True, text=True).stdout:
            self.command += ["--cluster-announce-human-nodename", f"node-{i}"]
        self.process = None
        self.start()

    def inside(self, *command):
        return ["chroot", self.root, *command] if self.root != "/" else list(command)

    def start(self):
        self.process = subprocess.Popen(self.inside(*self.command))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def cli(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *map(str, words)],
                              capture_output=True, text=True)
        return done.stdout.strip()


def wait(what, condition, seconds=30):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return
        time.sleep(0.1)
    raise SystemExit(f"{what}: never")


def has(node, text):
    return text in node.cli("cluster", "nodes") + node.cli("cluster", "info")


def play(nodes):
    """What makes them send each type."""
    for node in nodes:
        wait("start", lambda n=node: n.cli("ping") == "PONG")
    for i, node in enumerate(nodes[:3]):
        node.cli("cluster", "addslotsrange", i * 5462, min(16383, i * 5462 + 5461))
    for i in range(1, NODES):
        nodes[0].cli("cluster", "meet", "127.0.0.1", nodes[i].port, BASE + 200 + i)
    for node in nodes:
        wait("join", lambda n=node: has(n, "cluster_known_nodes:4") and not has(n, "handshake"))
    time.sleep(3)
    nodes[3].cli("cluster", "replicate", nodes[0].cli("cluster", "myid"))
    wait("replica", lambda: "master_link_status:up" in nodes[3].cli("info", "replication"))
    wait("ok", lambda: has(nodes[0], "cluster_state:ok"))
    nodes[1].cli("publish", "channel", "a message")
    for node in nodes:
        node.cli("spublish", "shard", "another")
    time.sleep(2)
    nodes[3].cli("cluster", "failover")
    wait("manual failover", lambda: "role:master" in nodes[3].cli("info", "replication"))
    wait("its end", lambda: "master_link_status:up" in nodes[0].cli("info", "replication"))
    time.sleep(3)
    nodes[3].kill()
    wait("failover", lambda: "role:master" in nodes[0].cli("info", "replication"))
    time.sleep(1)
    nodes[3].start()
    wait("return", lambda: "role:slave" in nodes[3].cli("info", "replication"))
    time.sleep(1)
    nodes[1].cli("cluster", "forget", nodes[3].cli("cluster", "myid"))
    time.sleep(2)


def main():
    root, program, output = sys.argv[1:]
    recorder = Recorder()
    for i in range(NODES):
        threading.Thread(target=proxy, args=(recorder, BASE + 200 + i, BASE + 100 + i),
                         daemon=True).start()
    nodes = []
    try:
        for i in range(NODES):
            nodes.append(Node(root, program, i))
        play(nodes)
    finally:
        for node in nodes:
            node.kill()
            shutil.rmtree(node.dir)
    missing = set(range(len(TYPES))) - {7, 9} - {key[0] for key in recorder.kinds}
    if missing:
        print("missing", *(TYPES[kind] for kind in missing))
    with open(output, "wb") as f:
        for key in sorted(recorder.kinds):
            f.write(recorder.kinds[key])


if __name__ == "__main__":
    main()
