"""Packs and unpacks what fuzzing found: one archive for each target.

    corpus.py pack FOLDER ARCHIVE
    corpus.py unpack ARCHIVE FOLDER [STAMP]

A file in an archive is named by the SHA-1 of its bytes. The same files always make the same
archive. STAMP is an empty file that is written last, for the build.
"""

import hashlib
import io
import os
import shutil
import sys
import tarfile


def pack(folder, archive):
    contents = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        contents[hashlib.sha1(data).hexdigest()] = data
    part = archive + ".part"
    with tarfile.open(part, "w:xz", format=tarfile.USTAR_FORMAT, preset=9) as tar:
        for name, data in sorted(contents.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    os.replace(part, archive)


def unpack(archive, folder, stamp=None):
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            data = tar.extractfile(member).read()
            if hashlib.sha1(data).hexdigest() != member.name:
                sys.exit(f"{archive}: {member.name}: not the SHA-1 of its bytes")
            with open(os.path.join(part, member.name), "wb") as file:
                file.write(data)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(part, folder)
    if stamp is not None:
        with open(stamp, "w", encoding="ascii"):
            pass


def main(command, *args):
    {"pack": pack, "unpack": unpack}[command](*args)


if __name__ == "__main__":
    main(*sys.argv[1:])
