"""What a header declares is used by code, not only by its own tests."""

import re

import headers
import tree

# Functions that only tests call, by what tests need. The list only shrinks.
TESTS_ONLY = {
    # what a test compares with, or looks into
    "aof_command_name", "aof_writer_rewriting",
    "cluster_last_vote_epoch", "cluster_paused", "engine_lp_entry_size",
    "engine_lp_entry_size_int", "history_index_reader_verify", "json_double", "rd_crc64_impl_name",
    "rd_crc64_impls", "rd_seal_plain_size", "rdb_pack_validate", "rdb_put_int",
    "repl_capture_reader_torn", "sentinel_epoch", "settings_secret",
    # what a test does to an object that programs do not do
    "aof_writer_annotate", "backup_base_free", "backup_base_new", "engine_effects_write",
    "engine_load", "rd_mem_even", "rd_mem_set_hooks", "rd_src_open_trickle",
    "repl_capture_writer_cut", "server_free",
}


def words():
    """How often each word is in the code, and the functions that it defines and declares."""
    counts, named = {}, {}
    for folder in (*tree.LAYERS, "python/src"):
        for path in tree.files(".c", ".h", under=folder):
            for word in re.findall(r"[A-Za-z]\w+", tree.without_comments(tree.read(path))):
                counts[word] = counts.get(word, 0) + 1
            if path.endswith(".h"):
                for name, public in headers.declared(path):
                    named.setdefault(name, []).append(public)
    return counts, named


def unused():
    """The functions that are declared once, defined once, and nothing else. Not those of the
    installed headers, which programs of others call, and not those that a macro defines."""
    counts, named = words()
    return {name for name, public in named.items()
            if not any(public) and counts[name] == len(public) + 1}


class Used(tree.Lint):
    def test_each_function_of_a_header_is_called(self):
        found = unused()
        self.none([f"{name}() is called by nothing but tests"
                   for name in sorted(found - TESTS_ONLY)])
        self.none([f"{name}() is called: remove it here" for name in sorted(TESTS_ONLY - found)])
