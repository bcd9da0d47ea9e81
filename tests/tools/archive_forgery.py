"""What someone who can write to a repository, but has no key, does to an archive: a random forgery
at a time. Files are only those that the store has, other targets' among them, and what can be made
without the key."""

import hashlib
import os
import re
import shutil
import subprocess

from backup_case import REDOUBT


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def with_digest(body, rest):
    """A manifest with the SHA-256 that anybody can compute."""
    return body + b',\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'"' + rest


class Forger:
    """segments and sets: paths, from old to new. plain: segments as a capture has them. other: the
    segments and sets of another target with the same key."""

    def __init__(self, chance, segments, sets, plain, other, folder):
        self.chance = chance
        self.segments, self.sets = segments, sets
        self.plain, self.other, self.folder = plain, other, folder

    def forge(self):
        """(what was done, whether verify must find it)"""
        kind = self.chance.choice([name for name in dir(self) if name.startswith("forge_")])
        return kind, getattr(self, kind)()

    def one(self):
        return self.chance.choice(self.segments)

    def two(self):
        return sorted(self.chance.sample(self.segments, 2))

    def manifest(self):
        return os.path.join(self.chance.choice(self.sets), "manifest.json")

    # ---- segments ----

    def forge_not_sealed_under_a_sealed_name(self):
        write(self.one(), self.chance.choice(self.plain))
        return True

    def forge_not_sealed_under_its_own_name(self):
        path = self.one()
        if self.chance.randrange(2):
            os.remove(path)
        write(path.removesuffix(".sealed"), self.chance.choice(self.plain))
        return True

    def forge_sealed_with_a_key_of_their_own(self):
        path, key = self.one(), os.path.join(self.folder, "theirs")
        if not os.path.exists(key):
            subprocess.run([REDOUBT, "seal", "--make-key", key], check=True)
        name = "/".join(path.split("/")[-5:])
        made = subprocess.run([REDOUBT, "seal", "--key-file", key, "--name", name],
                              input=self.chance.choice(self.plain), capture_output=True, check=True)
        write(path, made.stdout)
        return False  # its key is not known

    def forge_a_segment_of_another_target(self):
        write(self.one(), read(self.chance.choice(self.other[0])))
        return True

    def forge_an_older_one_in_the_place_of_a_later_one(self):
        older, later = self.two()
        write(later, read(older))
        return True

    def forge_two_that_change_places(self):
        a, b = self.two()
        of_a, of_b = read(a), read(b)
        write(a, of_b)
        write(b, of_a)
        return True

    def forge_an_older_one_as_the_next_one(self):
        last, older = self.segments[-1], self.one()
        number, _, end, rest = os.path.basename(last).split("-", 3)
        name = f"{int(number) + 1:08}-{end}-{int(end) + self.chance.randrange(1, 500)}-{rest}"
        write(os.path.join(os.path.dirname(last), name), read(older))
        return True

    def forge_other_times_in_a_name(self):
        path = self.one()
        parts = os.path.basename(path).split("-")  # NUMBER-START-END-FIRST-LATEST-SINCE-UNTIL.seg…
        until, ending = parts[6].split(".", 1)
        parts[6] = until
        at = self.chance.randrange(3, 7)
        was = int(parts[at])
        parts[at] = str(self.chance.choice((0, was + self.chance.randrange(-60000, 60000))
                                           if was else (int(parts[4]), int(parts[3]) - 5000)))
        if int(parts[at]) == was or int(parts[at]) < 0:
            return False
        os.rename(path, os.path.join(os.path.dirname(path), "-".join(parts) + "." + ending))
        return True

    def forge_other_offsets_in_a_name(self):
        path = self.one()
        parts = os.path.basename(path).split("-")
        parts[self.chance.choice((1, 2))] = str(int(parts[2]) + self.chance.randrange(1, 99))
        os.rename(path, os.path.join(os.path.dirname(path), "-".join(parts)))
        return True

    # ---- sets ----

    def forge_a_manifest_with_another_place(self):
        path = self.manifest()
        text = read(path)
        at = text.rindex(b',\n "sha256"')
        word = self.chance.choice((b"offset", b"begin_ms"))
        body = re.sub(rb'"%s": (\d+)' % word, lambda m: b'"%s": %d' % (
            word, max(0, int(m[1]) + self.chance.randrange(-500, 500))), text[:at])
        write(path, with_digest(body, text[text.rindex(b',\n "hmac"'):]))
        return body != text[:at]

    def forge_a_manifest_without_its_signature(self):
        path = self.manifest()
        text = read(path)
        body = re.sub(rb'\n "key_id": "[0-9a-f]+",', b"", text[: text.rindex(b',\n "sha256"')])
        write(path, with_digest(body, b"}\n"))
        return True

    def forge_no_manifest(self):
        os.remove(self.manifest())
        return False  # as if prune had been interrupted

    def forge_a_set_of_another_target(self):
        path = self.chance.choice(self.sets)
        shutil.rmtree(path)
        shutil.copytree(self.chance.choice(self.other[1]), path)
        return True

    def forge_a_set_under_a_new_id(self):
        path = self.chance.choice(self.sets)
        name = os.path.basename(path)
        shutil.copytree(path, os.path.join(os.path.dirname(path), f"2099{name[4:]}"))
        return True

    def forge_a_snapshot_of_another_set(self):
        path = self.chance.choice(self.sets)
        theirs = self.chance.choice(self.other[1])
        for name in os.listdir(path):
            if name != "manifest.json":
                write(os.path.join(path, name), read(os.path.join(theirs, name)))
        return True

    def forge_a_mark_of_damage(self):
        path = self.chance.choice(self.sets)
        marks = os.path.join(os.path.dirname(os.path.dirname(path)), "marks")
        write(os.path.join(marks, os.path.basename(path) + ".damaged"), b"")
        return False
