"""Small snapshots of a server with its own account, for fixtures/.

usage: fixtures.py ROOTS SERVER FOLDER      by hand, as root

tests/support/manifest.py lists them in the manifest afterwards.
"""

import json
import os
import shutil
import sys

import account
import data
import servers


def write(server, folder, name, description):
    path = os.path.join(folder, name)
    facts = account.read(server)
    shutil.copyfile(server.save(), path + ".rdb")
    made = {"file": name + ".rdb", "dataset": name, "description": description, **facts}
    with open(path + ".json", "w", encoding="ascii") as file:
        json.dump(made, file, indent=0, separators=(",", ":"))
        file.write("\n")


def main(roots, name, folder):
    kind = next(k for k in servers.find(roots) if k.name == name)
    os.makedirs(folder, exist_ok=True)
    with servers.Server(kind) as server:
        data.fill_small(server, 1)
        write(server, folder, "all-types", "random keys of all types that the server has")
    with servers.Server(kind) as server:
        if server.has(data.VECTORS):
            data.fill_vectors(server, 2)
            write(server, folder, "vectors", "vector sets of all kinds")
    with servers.Server(kind, {"cluster-enabled": "yes"}) as server:
        server.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        while b"cluster_state:ok" not in server.command("CLUSTER", "INFO"):
            pass
        server.pipeline([("SET", f"key:{i}", i) for i in range(20)])
        write(server, folder, "cluster", "cluster mode, all slots")


if __name__ == "__main__":
    main(*sys.argv[1:])
