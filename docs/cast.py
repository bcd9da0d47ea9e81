"""Records the screencast of the README: who changed this key, and how it is taken back.

    REDOUBT=build/release/tools/redoubt docs/cast.py OUT.cast

Starts a redis-server on a free port, writes to it what the story needs, and runs the commands of
the story. Their output is real; only the typing is made up. The result is a file of asciinema,
version 2: a line of JSON with the size of the terminal, and a line for each piece of output with
its time.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

WIDTH, HEIGHT = 100, 28
KEY, THINK, READ = 0.04, 0.6, 2.5  # seconds: of a key, before a command, after its output

BEFORE = (("HSET", "cart:9", "owner", "Ann", "items", "3", "total", "17.50"),
          ("HINCRBYFLOAT", "cart:9", "total", "4.25"),
          ("HSET", "cart:9", "voucher", "SPRING"),
          ("HSET", "cart:9", "total", "0", "items", "0"),
          ("HSET", "cart:9", "note", "call me"))


class Cast:
    def __init__(self):
        self.now, self.events = 0.0, []

    def put(self, text, after=0.0):
        self.events.append([round(self.now, 3), "o", text.replace("\n", "\r\n")])
        self.now += after

    def type(self, text):
        self.put("$ ", THINK)
        for letter in text:
            self.put(letter, KEY)
        self.put("\n", 0.1)

    def write(self, path):
        head = {"version": 2, "width": WIDTH, "height": HEIGHT, "env": {"TERM": "xterm-256color"},
                "title": "Who changed this key?"}
        with open(path, "w", encoding="utf-8") as out:
            for line in [head, *self.events]:
                out.write(json.dumps(line) + "\n")


class Story:
    """The commands, in a folder of their own, with the program under its name."""

    def __init__(self, folder, port):
        self.cast, self.folder, self.port = Cast(), folder, port
        path = os.path.dirname(os.path.abspath(os.environ["REDOUBT"]))
        self.env = {**os.environ, "PATH": path + ":" + os.environ["PATH"], "CLICOLOR_FORCE": "1"}

    def tell(self, shown):
        """Runs a line as a shell does; the server is localhost in what is shown."""
        self.cast.type(shown)
        done = subprocess.run(shown.replace("//localhost", f"//127.0.0.1:{self.port}"), shell=True,
                              cwd=self.folder, env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=True)
        text = done.stdout.decode()
        self.cast.put(text, READ)
        return text

    def send(self, *words):
        subprocess.run(["redis-cli", "-p", str(self.port), *words], check=True,
                       stdout=subprocess.DEVNULL)

    def info(self, field):
        said = subprocess.run(["redis-cli", "-p", str(self.port), "INFO", "replication"],
                              capture_output=True, check=True).stdout.decode()
        return next((line.split(":", 1)[1].strip() for line in said.splitlines()
                     if line.startswith(field + ":")), "")


def wait(condition):
    while not condition():
        time.sleep(0.05)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def tell_all(story):
    story.cast.put("# Everything that the server writes is recorded: redoubt capture\n", 1.0)
    story.tell("redoubt history cart:9 --patch")
    story.cast.put("# Somebody emptied the cart. Who wrote what is in it now?\n", 1.0)
    blame = story.tell("redoubt blame cart:9")
    place = next(line.split()[1] for line in blame.splitlines() if '"items"' in line)
    story.cast.put("# Take back that one command, and nothing that came after it.\n", 1.0)
    story.tell(f"redoubt undo --command {place} --to redis://localhost --dry-run")
    story.tell(f"redoubt undo --command {place} --to redis://localhost --save back.resp")


def main():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        story = Story(folder, port)
        server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "",
                                   "--repl-diskless-sync-delay", "0", "--dir", folder],
                                  stdout=subprocess.DEVNULL)
        capture = None
        try:
            wait(lambda: subprocess.run(["redis-cli", "-p", str(port), "PING"],
                                        capture_output=True, check=False).stdout == b"PONG\n")
            capture = subprocess.Popen([os.environ["REDOUBT"], "capture",
                                        f"redis://127.0.0.1:{port}", "-o", "capture", "-q"],
                                       cwd=folder)
            wait(lambda: "state=online" in story.info("slave0"))
            for words in BEFORE:
                story.send(*words)
                time.sleep(0.3)
            wait(lambda: f"offset={story.info('master_repl_offset')}," in story.info("slave0"))
            capture.terminate()
            capture.wait()
            tell_all(story)
        finally:
            for process in (capture, server):
                if process is not None:
                    process.kill()
                    process.wait()
        story.cast.write(sys.argv[1])


if __name__ == "__main__":
    main()
