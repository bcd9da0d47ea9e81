"""redoubt check-rdb: the code of function libraries and scripts is compiled, but not run."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from test_check_rdb import CheckRdbTest, rdb, string  # noqa: E402


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


class Code(CheckRdbTest):
    LIBRARY = b"\xf5" + string(b"#!lua name=a\nlocal a = 1")
    SCRIPT = b"\xfa" + string(b"lua") + string(b"return 1")

    def notes(self, *args):
        status, file = self.one(*args, self.write("f.rdb", self.data))
        self.assertEqual((status, file["verdict"]), (0, "ok"))
        return {f["id"]: f["text"] for f in file["findings"] if f["severity"] == "info"}

    def test_code_that_was_not_run_or_compiled_is_reported_as_a_note(self):
        two = self.LIBRARY + self.LIBRARY.replace(b"=a", b"=b")
        for self.data, one, several in (
                (rdb(self.LIBRARY), "1 function library", "1 function library"),
                (rdb(two), "2 function libraries", "2 function libraries"),
                (rdb(self.SCRIPT, version=9), None, "1 script"),
                (rdb(self.LIBRARY, self.SCRIPT, self.SCRIPT), "1 function library",
                 "1 function library and 2 scripts"), (rdb(), None, None)):
            want = one and (f"the code of {one} was compiled, but not run: servers refuse the file "
                            "if it fails")
            self.assertEqual(self.notes().get("code-not-run"), want)
            want = several and (f"the code of {several} was not compiled: servers refuse the file "
                                "if it does not compile")
            self.assertEqual(self.notes("--quick").get("code-not-compiled"), want)

    def test_code_that_does_not_compile_is_an_error_and_not_saved(self):
        for bad, text in (
                (b"\xf5" + string(b"#!lua name=b\nthis is\x9b not Lua"),
                 "function library that does not compile; servers refuse it: "
                 "code:1: '=' expected near 'is'"),
                (b"\xf5" + string(b"#!lua name=b\n\x1bLua"),
                 "function library that does not compile; servers refuse it: byte code"),
                (b"\xfa" + string(b"lua") + string(b"return ("),
                 "script that does not compile; servers refuse it: "
                 "code:1: unexpected symbol near '<eof>'")):
            name = self.write("f.rdb", rdb(self.LIBRARY, bad, self.SCRIPT))
            status, file = self.one(name)
            found = {f["id"]: f["text"] for f in file["findings"]}
            self.assertEqual((status, found["code-does-not-compile"]), (1, text))
            self.check("--salvage", "out.rdb", "--force", name)
            data = bytes_of(self.path("out.rdb"))
            self.assertTrue(self.LIBRARY in data and self.SCRIPT in data)
            self.assertNotIn(bad, data)
            self.assertEqual(self.one("out.rdb")[0], 0)


if __name__ == "__main__":
    unittest.main()
