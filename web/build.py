#!/usr/bin/env python3
"""Writes the page that reads snapshots: one HTML file with the tools as WebAssembly in it.

    build.py OUT FOLDER      OUT: the page; FOLDER: for object files and the sources of libraries

The tools are the same sources as in the program. What a page does not have is replaced by the files
beside this one. zlib, lz4, zstd and Lua are compiled from the sources of Debian, which apt checks.
"""

import base64
import glob
import hashlib
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

FOLDERS = ["base", "rdb", "rdb/commands", "rdb/enc", "rdb/read", "rdb/recover", "rdb/write", "aof",
           "aof/check", "aof/read", "aof/recover", "aof/write", "repl", "repl/capture",
           "repl/master", "repl/psync", "json", "data", "stat", "jobs", "engine", "engine/cmd",
           "engine/commands", "engine/script", "engine/value", "rebuild", "tools/cli",
           "tools/input", "tools/page", "tools/check_rdb", "tools/check_aof", "tools/stat",
           "tools/show", "tools/diff", "tools/convert", "web/wasm"]
FILES = ["client/info.c", "client/secret.c", "client/target.c", "client/target_url.c"]
# Not in a page: processors, connections, encryption, databases.
OMITTED = {"base/crc64_x86.c", "base/crc64_arm64.c", "base/digest_openssl.c", "base/seal.c",
           "tools/page/embed.c", "tools/cli/peer_default.c",
           "tools/cli/peer_password.c", "jobs/sqlite.c", "jobs/sqlite_file.c",
           "jobs/sqlite_schema.c", "tools/input/server_in.c",
           "tools/input/live_in.c"}
# Jobs whose tools are not in the page.
OMITTED |= {f"jobs/{name}.c" for name in
            ("merge", "merge_scan", "merge_write", "split", "split_part", "split_ring",
             "split_route")}
PAGES = ["diff", "show", "stat"]
PAGE_PARTS = ["tools/page/head.html", "tools/page/base.css", "{}/page/page.css",
              "tools/page/top.html", "{}/page/body.html", "tools/page/data.html",
              "tools/page/text.js", "tools/page/base.js", "{}/page/page.js",
              "tools/page/foot.html"]

# name, version in Debian, folder, sources, what the compiler gets
LIBRARIES = [
    ("zlib", "zlib-*", ["*.c"], "", []),
    ("lz4", "lz4-*", ["lib/lz4.c", "lib/lz4hc.c", "lib/lz4frame.c", "lib/xxhash.c"], "lib",
     ["-DXXH_NAMESPACE=LZ4_"]),
    ("libzstd", "zstd-*", ["lib/common/*.c", "lib/compress/*.c", "lib/decompress/*.c"], "lib",
     ["-DZSTD_DISABLE_ASM"]),
    ("lua5.1", "lua-*", ["src/l*.c"], "src", []),
]
NOT_COMPILED = {"gzclose.c", "gzlib.c", "gzread.c", "gzwrite.c", "lua.c", "luac.c", "loadlib.c",
                "linit.c", "liolib.c", "loslib.c"}
FLAGS = ["-include", f"{HERE}/wasm/compat.h", "-O2", "-msimd128", "-D_GNU_SOURCE", "-DNDEBUG",
         "-std=gnu11"]
LINK = ["-O1", "-msimd128", "-sWASM_BIGINT", "-sMODULARIZE", "-sEXPORT_NAME=redoubt",
        "-sENVIRONMENT=worker", "-sFILESYSTEM=0", "-sALLOW_MEMORY_GROWTH",
        "-sINITIAL_MEMORY=33554432", "-sMAXIMUM_MEMORY=2147483648", "-sTOTAL_STACK=8388608",
        "-sEXIT_RUNTIME", "-sINVOKE_RUN=0", "-sSUPPORT_LONGJMP=emscripten",
        "-sEXPORTED_RUNTIME_METHODS=callMain", "-sINCOMING_MODULE_JS_API=instantiateWasm,host,"
        "onExit,noInitialRun,thisProgram,printErr,print",
        "--js-library", f"{HERE}/wasm/host.js"]


def run(*command, **more):
    subprocess.run([str(c) for c in command], check=True, **more)


def tools_sources():
    found = []
    for folder in FOLDERS:
        found += sorted(glob.glob(os.path.join(ROOT, folder, "*.c")))
    found += [os.path.join(ROOT, file) for file in FILES]
    return [s for s in found if os.path.relpath(s, ROOT) not in OMITTED]


def fetch(folder):
    """The sources of the libraries, through apt, into folder/sources."""
    sources = os.path.join(folder, "sources")
    done = os.path.join(sources, "done")
    if os.path.exists(done):
        return sources
    shutil.rmtree(sources, ignore_errors=True)
    for sub in ("parts", "lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(sources, sub))
    with open("/etc/os-release", encoding="utf-8") as file:
        release = dict(line.rstrip().replace('"', "").split("=", 1) for line in file if "=" in line)
    suite = release["VERSION_CODENAME"]
    with open(os.path.join(sources, "parts", "debian.sources"), "w", encoding="utf-8") as file:
        file.write("Types: deb-src\nURIs: http://deb.debian.org/debian\n"
                   f"Suites: {suite}\nComponents: main\n"
                   "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
    options = ["-o", f"Dir::State::lists={sources}/lists", "-o", "Dir::Etc::sourcelist=/dev/null",
               "-o", f"Dir::Etc::sourceparts={sources}/parts", "-o", f"Dir::Cache={sources}/cache",
               "-o", "APT::Sandbox::User=root", "-q"]
    run("apt-get", *options, "update", cwd=sources, stdout=sys.stderr)
    run("apt-get", *options, "source", "--download-only", *[lib[0] for lib in LIBRARIES],
        cwd=sources, stdout=sys.stderr)
    for archive in glob.glob(os.path.join(sources, "*.orig.tar.*")):
        if not archive.endswith(".asc"):
            run("tar", "xf", archive, cwd=sources)
    with open(done, "w", encoding="utf-8"):
        pass
    return sources


def objects_of_libraries(sources):
    """(source, flags) of each file, and the -I of all."""
    files, includes = [], []
    for _, pattern, sources_of, include, flags in LIBRARIES:
        folder = glob.glob(os.path.join(sources, pattern) + "/")[0]
        includes.append("-I" + os.path.join(folder, include))
        for glob_of in sources_of:
            for source in sorted(glob.glob(os.path.join(folder, glob_of))):
                if os.path.basename(source) not in NOT_COMPILED:
                    files.append((source, flags + ["-I" + os.path.join(folder, include), "-w"]))
    return files, includes


# emcc looks for acorn where Debian's node does; another node needs to be told.
ENVIRONMENT = {**os.environ, "NODE_PATH": "/usr/share/nodejs"}


def compiler(folder):
    """The command by which emcc compiles: emcc itself takes longer than the compiler."""
    probe = os.path.join(folder, "probe.c")
    with open(probe, "w", encoding="utf-8"):
        pass
    said = subprocess.run(["emcc", "-v", *FLAGS, "-c", probe, "-o", "probe.o"], env=ENVIRONMENT,
                          cwd=folder, check=True, stderr=subprocess.PIPE, text=True).stderr
    line = next(x for x in said.splitlines() if "clang" in x and probe in x)
    words = [w for w in line.split() if w not in (probe, "-v", "-c", "-o", "probe.o")]
    return " ".join(words)


def write_ninja(folder, sources):
    libraries, includes = objects_of_libraries(sources)
    generated = os.path.join(folder, "generated")
    os.makedirs(generated + "/tools", exist_ok=True)
    lua = os.path.join(generated, "lua5.1")
    if not os.path.islink(lua):
        os.symlink(os.path.join(glob.glob(os.path.join(sources, "lua-*/"))[0], "src"), lua)
    lines = [f"compiler = {compiler(folder)}",
             "rule cc", "  command = $compiler $more -MMD -MF $out.d -c $in -o $out",
             "  depfile = $out.d", "  deps = gcc",
             "rule link", f"  command = emcc {' '.join(LINK)} @$out.rsp -o $out",
             "  rspfile = $out.rsp", "  rspfile_content = $in"]
    objects = []
    work = [(s, ["-I" + ROOT, "-I" + generated, "-Wall", "-Werror", *includes])
            for s in tools_sources()] + libraries
    for source, more in work:
        name = os.path.relpath(source, ROOT if source.startswith(ROOT + "/") and
                               not source.startswith(folder + "/") else folder)
        out = os.path.join("objects", name.replace("..", "_") + ".o")
        objects.append(out)
        lines += [f"build {out}: cc {source}", f"  more = {' '.join(more)}"]
    lines += [f"build redoubt.js: link {' '.join(objects)}", "default redoubt.js", ""]
    with open(os.path.join(folder, "build.ninja"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    embed = os.path.join(folder, "embed")
    run("cc", "-O1", "-o", embed, os.path.join(ROOT, "tools/page/embed.c"))
    for tool in PAGES:
        parts = [os.path.join(ROOT, p.format("tools/" + tool)) for p in PAGE_PARTS]
        header = os.path.join(generated, "tools", tool + "_page.h")
        run(embed, tool + "_page", header + ".new", *parts)
        with open(header + ".new", "rb") as new:
            same = os.path.exists(header) and open(header, "rb").read() == new.read()
        os.unlink(header + ".new") if same else os.replace(header + ".new", header)


def compile_tools(folder):
    write_ninja(folder, fetch(folder))
    jobs = os.environ.get("REDOUBT_JOBS")
    run("ninja", "-C", folder, *(["-j", jobs] if jobs else []), env=ENVIRONMENT,
        stdout=sys.stderr)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def between(text, begin, end):
    """The text between two tags of a report, whose script is the last one."""
    at = text.rindex(begin) + len(begin)
    return text[at:text.index(end, at)]


def report_digests(begin, end):
    """Of the reports that the tools write: a frame has the policy of the page around it, too."""
    for tool in PAGES:
        whole = "".join(read(ROOT, part.format("tools/" + tool)) for part in PAGE_PARTS)
        yield digest(between(whole, begin, end))


def policy(script, style, connect):
    """What the page may do: run its own script, and no request."""
    scripts = " ".join([digest(script), *report_digests("<script>", "</script>")])
    styles = " ".join([digest(style), *report_digests("<style>", "</style>")])
    return ("default-src 'none'; "
            f"script-src {scripts} 'wasm-unsafe-eval'; style-src {styles}; worker-src blob:; "
            f"img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'")


def block(name, kind, text):
    assert "</script" not in text
    return f'<script type="{kind}" id="{name}">{text}</script>\n'


def version():
    text = read(ROOT, "meson.build")
    return text.split("version: '")[1].split("'")[0]


def write_page(folder, out):
    page = os.path.join(HERE, "page")
    style = read(ROOT, "tools/page/base.css").replace("<style>\n", "") + read(page, "page.css")
    script = (read(ROOT, "tools/page/text.js") + read(page, "page.js") +
              read(page, "views.js"))
    with open(os.path.join(folder, "redoubt.wasm"), "rb") as file:
        code = base64.b64encode(file.read()).decode()
    worker = read(page, "files.js") + read(folder, "redoubt.js") + read(page, "worker.js")
    blocks = block("worker", "text/plain", worker) + block("wasm", "text/plain", code)
    text = read(page, "page.html")
    for name, value in {"POLICY": policy(script, style, "'none'"), "STYLE": style,
                        "SCRIPT": script, "VERSION": version(), "BLOCKS": blocks}.items():
        text = text.replace(f"%{name}%", value)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(out + ".new", out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: build.py OUT FOLDER")
    work = os.path.abspath(sys.argv[2])
    compile_tools(work)
    write_page(work, os.path.abspath(sys.argv[1]))
