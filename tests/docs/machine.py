"""A machine for the commands of a guide: a folder with /etc, /var and a redis-server of Debian.

The pages name paths and ports as they are on a Debian host. Here each path is below a scratch
folder and each port is a free one; in what is printed, both have their names of the page again.

    with Machine() as m:
        m.start()                      # as systemctl start redis-server
        m.redis("SET", "k", "v")
        m.run(steps)                   # AssertionError where a page is wrong
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile

import page
import redis_server

SECONDS = 300
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
PORTS = ("6379", "6380", "6400", "26379")
PATH = re.compile(r"(?<![\w/.~-])/(?=(?:etc|var|srv)/)")
PORT = re.compile(r"(?<![\d.,])(" + "|".join(PORTS) + r")\b")
URL = re.compile(r"(?<=redis://)(127\.0\.0\.1|localhost)(?![\w:.])")
# What only 7.0.15 says in these words and figures.
OF_REFERENCE = re.compile(r"^redis-check-rdb |^redis-cli (MEMORY USAGE|--memkeys|--rdb) ")
AS_ROOT = os.geteuid() == 0

CONFIG = """\
bind 127.0.0.1
port {port}
dir {root}/var/lib/redis
repl-diskless-sync-delay 0
repl-ping-replica-period 1
logfile {root}/var/log/redis/redis-server.log
"""

# A server that detaches is not ready at once; a test types the next command sooner than a person.
SERVER = """\
[[ " $* " == *" --daemonize yes "* ]] || exec PROGRAM "$@"
PROGRAM "$@" || exit
port=$(sed -E 's/.*--port ([0-9]+).*/\\1/' <<<"$*")
for try in {{1..3000}}; do
    [ "$({redis_cli} -p "$port" PING 2>/dev/null)" != PONG ] || exit 0
    sleep 0.02
done
exit 1
"""

# What the commands of a page find before the programs of the system. A terminal gets replies of
# redis-cli with their types; the pages show these.
PROGRAMS = {
    "sudo": """\
if [ "$1" = -u ]; then
    user=$2; shift 2
    [ "$(id -u)" != 0 ] || exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
fi
exec "$@"
""",
    "redis-cli": """\
types=
[ "$(readlink /proc/$$/fd/1)" != "$PAGE_OUTPUT" ] || types=--no-raw
exec {redis_cli} -p {port} $types "$@"
""",
    "redoubt": """\
case $1 in archive | backup | check-config | list | prune | restore | unlock | verify)
    [ ! -e {root}/etc/redoubt/redoubt.conf ] || set -- "$@" --config {root}/etc/redoubt/redoubt.conf
esac
exec -a "$0" {redoubt} "$@"
""",
    "systemctl": """\
exec 2>/dev/null
unit=${{@: -1}}
case $unit in
    redis-server)
        command="sudo -u redis redis-server {root}/etc/redis/redis.conf"
        ready() {{ [ "$({redis_cli} -p {port} PING)" = PONG ]; }} ;;
    redoubt-archive@*)
        command="redoubt archive ${{unit#*@}}"
        ready() {{ redoubt list ${{unit#*@}} --json | grep -q '"bases":1'; }} ;;
    *)
        echo "Unit $unit.service not found."
        exit 5 ;;
esac
runs() {{
    [ -n "$pid" ] && [ -d "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status"
}}
stop() {{
    pid=$(cat {root}/run/$unit.pid)
    runs || return 0
    kill -TERM "$pid"
    while runs; do sleep 0.02; done
}}
start() {{
    setsid $command >{root}/var/log/$unit.log 2>&1 &
    pid=$!
    echo "$pid" >{root}/run/$unit.pid
    while runs; do
        ! ready || return 0
        sleep 0.02
    done
    echo "Job for $unit.service failed because the control process exited with error code."
    return 1
}}
case $1 in
    stop) stop ;;
    start | enable) start ;;
    restart) stop; start ;;
    *) echo "Unknown command verb $1."; exit 1 ;;
esac
""",
    "redis-server": SERVER.replace("PROGRAM", "{redis_server}"),
    "redoubt-server": SERVER.replace("PROGRAM", "{redoubt_server}"),
    "chown": """\
[ "$(id -u)" != 0 ] || exec /bin/chown "$@"
shift
ls -d "$@" >/dev/null
""",
}


def _own_children():
    with open("/proc/self/task/%d/children" % os.getpid()) as f:
        return [int(pid) for pid in f.read().split()]


class Machine:
    def __enter__(self):
        # Servers that detach become children of this process, which ends them.
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
        self.before = set(_own_children())
        self.root = tempfile.mkdtemp(prefix="redoubt-guide-")
        self.ports = dict(zip(PORTS, self._free_ports(len(PORTS))))
        self.names = {}  # what a page says: what it is here, for example a time
        os.chmod(self.root, 0o755)
        for folder in ("bin", "home", "run", "etc/redis", "etc/redoubt", "var/lib/redis",
                       "var/log/redis", "var/backups", "var/lib/redoubt"):
            os.makedirs(os.path.join(self.root, folder))
        if AS_ROOT:
            for folder in ("run", "var/lib/redis", "var/log/redis"):
                shutil.chown(os.path.join(self.root, folder), "redis", "redis")
        self.configure()
        self._programs()
        return self

    def __exit__(self, *_):
        while True:
            left = set(_own_children()) - self.before
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    pass
        shutil.rmtree(self.root, ignore_errors=True)

    @staticmethod
    def _free_ports(count):
        found = set()
        while len(found) < count:
            found.add(str(redis_server.free_port()))
        return sorted(found)

    def _programs(self):
        facts = {"redoubt": os.environ["REDOUBT"], "root": self.root, "port": self.ports["6379"],
                 "redis_cli": redis_server.program("cli"),
                 "redis_server": self.server(),
                 "redoubt_server": os.environ.get("REDOUBT_SERVER", "false")}
        for name, text in PROGRAMS.items():
            path = self.path("bin", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/bash\n" + (text.format(**facts) if "{" in text else text))
            os.chmod(path, 0o755)
        os.symlink(os.path.join(os.environ["REDOUBT_SOURCE"], "fixtures"),
                   self.path("home", "fixtures"))

    @staticmethod
    def server():
        """redis-server 7.0.15, whose versions and figures the pages show. Where another one is
        installed, redoubt-server takes its place, which behaves as 7.0.15 does."""
        return redis_server.program() if redis_server.is_reference() else \
            os.environ["REDOUBT_SERVER"]

    def path(self, *names):
        return os.path.join(self.root, *names)

    def configure(self, *lines):
        """Writes redis.conf; the lines are added to it."""
        with open(self.path("etc/redis/redis.conf"), "w", encoding="utf-8") as f:
            f.write(CONFIG.format(root=self.root, port=self.ports["6379"]))
            f.writelines(line + "\n" for line in lines)

    def environment(self):
        return {**os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"],
                "HOME": self.path("home"), "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def shell(self, script):
        """Runs a script of the test and gives what it prints; AssertionError where it fails."""
        done = subprocess.run(["bash", "-ec", self.inward(script)], cwd=self.path("home"),
                              env=self.environment(), stdin=subprocess.DEVNULL, timeout=SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        if done.returncode != 0:
            raise AssertionError(f"{script}: {done.stdout}")
        return done.stdout

    def start(self):
        self.shell("systemctl start redis-server")

    def stop(self):
        self.shell("systemctl stop redis-server")

    def redis(self, *args):
        return subprocess.run([redis_server.program("cli"), "-p", self.ports["6379"], *args],
                              check=True, capture_output=True, encoding="utf-8").stdout.rstrip("\n")

    def inward(self, text):
        """From the names of the page to those of this machine."""
        for name, here in self.names.items():
            text = text.replace(name, here)
        text = URL.sub(r"\1:6379", text)
        text = PORT.sub(lambda found: self.ports[found.group(1)], text)
        return PATH.sub(lambda _: self.root + "/", text)

    def outward(self, text):
        for name, here in self.names.items():
            text = text.replace(here, name)
        text = text.replace(self.root + "/home/", "~/").replace(self.root, "")
        for name, here in self.ports.items():
            text = re.sub(rf"(?<!\d){here}\b", name, text)
        return text

    def printed(self, steps):
        """Runs the steps of a page; yields each command with its output and exit status."""
        script = []
        for number, step in enumerate(steps):
            own = self.path("run", str(number))
            if isinstance(step, page.File):
                with open(own, "w", encoding="utf-8") as f:
                    f.write(self.inward(step.text))
                script.append(f"cp {own} {self.inward(step.path)}")
                continue
            with open(own, "w", encoding="utf-8") as f:
                f.write(self.inward(step.text) + "\n")
            script.append(f"export PAGE_OUTPUT={own}.out")
            script.append(f". {own} >{own}.out 2>&1 </dev/null; echo $? >{own}.status")
        done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=self.path("home"),
                              env=self.environment(), stdin=subprocess.DEVNULL, timeout=SECONDS,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.stderr:
            raise AssertionError(done.stderr.decode())
        for number, step in enumerate(steps):
            if isinstance(step, page.Command):
                own = self.path("run", str(number))
                with open(own + ".out", encoding="utf-8", errors="replace") as f:
                    output = self.outward(f.read())
                with open(own + ".status") as f:
                    yield step, output, int(f.read())

    def run(self, steps):
        """Fails with the first command that does not print what the page shows."""
        for step, output, status in self.printed(steps):
            if OF_REFERENCE.search(step.text) and not redis_server.is_reference():
                continue  # the page is the record
            wrong = page.difference(step.output, output)
            if wrong is not None:
                raise AssertionError(f"$ {step.text}\n{wrong}")
            if status != step.status:
                raise AssertionError(f"$ {step.text}\nexit status {status}\n{output}")
