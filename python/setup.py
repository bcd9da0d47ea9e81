"""Builds the extension with the installed libredoubt, which pkg-config finds. Without network:

    pip install --no-build-isolation .
"""

import glob
import subprocess

from setuptools import Extension, setup


def flags(option):
    done = subprocess.run(["pkg-config", option, "redoubt"], check=True, capture_output=True,
                          encoding="utf-8")
    return done.stdout.split()


setup(ext_modules=[Extension("redoubt._redoubt", sorted(glob.glob("src/*.c")),
                             depends=["src/binding.h"], extra_compile_args=flags("--cflags"),
                             extra_link_args=flags("--libs"))])
