"""Prints the type and name of every key of a snapshot, through ctypes.

    python3 list_keys.py dump.rdb
"""

import ctypes
import ctypes.util
import os
import sys

RDB_EVENT, RDB_END = 0, 2  # enum rdb_status: its numbers never change
RDB_KEY = 11               # enum rdb_event_kind
RDB_DETAIL_FRAMES = 3      # enum rdb_detail


class Slice(ctypes.Structure):
    _fields_ = [("ptr", ctypes.POINTER(ctypes.c_uint8)), ("len", ctypes.c_size_t)]

    def __bytes__(self):
        return ctypes.string_at(self.ptr, self.len)


class Type(ctypes.Structure):
    """struct rdb_type, up to the kind."""

    _fields_ = [("id", ctypes.c_int), ("number", ctypes.c_uint8), ("since", ctypes.c_uint8),
                ("family", ctypes.c_int), ("kind", ctypes.c_int)]


class Key(ctypes.Structure):
    """The beginning of event.key."""

    _fields_ = [("name", Slice), ("type", ctypes.POINTER(Type)), ("db", ctypes.c_uint64)]


class Event(ctypes.Structure):
    """struct rdb_event, for events of kind RDB_KEY, with room for the other kinds."""

    _fields_ = [("kind", ctypes.c_int), ("offset", ctypes.c_uint64), ("inner", ctypes.c_uint64),
                ("raw", Slice), ("key", Key), ("rest", ctypes.c_uint8 * 512)]


class Options(ctypes.Structure):
    """The beginning of struct rdb_reader_opts. The size says where it ends."""

    _fields_ = [("size", ctypes.c_size_t), ("detail", ctypes.c_int)]


class Err(ctypes.Structure):
    """struct rd_err, of which only rd_err_render() knows the fields."""

    _fields_ = [("bytes", ctypes.c_uint64 * 256)]


def load():
    lib = ctypes.CDLL(os.environ.get("LIBREDOUBT") or ctypes.util.find_library("redoubt"))
    lib.rdb_kind_name.restype = ctypes.c_char_p
    lib.rdb_reader_err.restype = ctypes.c_void_p
    for function in (lib.rd_src_open_file, lib.rd_src_decompress, lib.rdb_reader_new):
        function.restype = ctypes.c_bool
    lib.rd_src_close.argtypes = lib.rdb_reader_free.argtypes = [ctypes.c_void_p]
    return lib


def check(lib, ok, err):
    if not ok:
        line = ctypes.create_string_buffer(1024)
        lib.rd_err_render(err, line, ctypes.c_size_t(len(line)))
        raise SystemExit(line.value.decode())


def keys(lib, path):
    """Yields (type, name) of each key."""
    src, reader, event, err = ctypes.c_void_p(), ctypes.c_void_p(), Event(), Err()
    opts = Options(size=ctypes.sizeof(Options), detail=RDB_DETAIL_FRAMES)
    check(lib, lib.rd_src_open_file(ctypes.byref(src), path, None, ctypes.byref(err)),
          ctypes.byref(err))
    try:
        check(lib, lib.rd_src_decompress(ctypes.byref(src), ctypes.byref(err)), ctypes.byref(err))
        check(lib, lib.rdb_reader_new(ctypes.byref(reader), src, ctypes.byref(opts),
                                      ctypes.byref(err)),
              ctypes.byref(err))
        status = lib.rdb_reader_next(reader, ctypes.byref(event))
        while status == RDB_EVENT:
            if event.kind == RDB_KEY:
                kind = lib.rdb_kind_name(event.key.type.contents.kind)
                yield kind.decode(), bytes(event.key.name)
                if lib.rdb_reader_skip_value(reader) != RDB_EVENT:
                    break
            status = lib.rdb_reader_next(reader, ctypes.byref(event))
        check(lib, status == RDB_END, ctypes.c_void_p(lib.rdb_reader_err(reader)))
    finally:
        lib.rdb_reader_free(reader)
        lib.rd_src_close(src)


def main():
    for kind, name in keys(load(), os.fsencode(sys.argv[1])):
        print(kind, name)


main()
