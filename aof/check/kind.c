#include "aof/check/kind.h"

#include <string.h>

struct entry {
    const char *magic;
    size_t len;
    size_t at;
    struct aof_kind kind;
};

#define UNPACK "decompress it first"
#define ENCODE "convert it to plain bytes first, or use a copy that no editor has saved"

static const struct entry entries[] = {
    {"\x1f\x8b", 2, 0, {"it is compressed with gzip", UNPACK}},
    {"\x04\x22\x4d\x18", 4, 0, {"it is compressed with lz4", UNPACK}},
    {"\x28\xb5\x2f\xfd", 4, 0, {"it is compressed with zstd", UNPACK}},
    {"\xfd\x37zXZ", 5, 0, {"it is compressed with xz", UNPACK}},
    {"BZh", 3, 0, {"it is compressed with bzip2", UNPACK}},
    {"PK\x03\x04", 4, 0, {"it is a zip archive", UNPACK}},
    {"ustar", 5, 257, {"it is a tar archive", UNPACK}},
    {"RDCAPT\r\n",
     8,
     0,
     {"it is a segment of a capture", "redoubt show reads the capture's folder"}},
    {"\xff\xfe", 2, 0, {"it is text in UTF-16", ENCODE}},
    {"\xfe\xff", 2, 0, {"it is text in UTF-16", ENCODE}},
    {"*\0001\0\r\0", 6, 0, {"it is text in UTF-16", ENCODE}},
    {"*\0002\0\r\0", 6, 0, {"it is text in UTF-16", ENCODE}},
    {"*\0003\0\r\0", 6, 0, {"it is text in UTF-16", ENCODE}},
    {"\xef\xbb\xbf", 3, 0, {"it begins with a UTF-8 byte order mark", ENCODE}},
    {"\xd4\xc3\xb2\xa1", 4, 0, {"it is a trace of network packets", NULL}},
    {"\x0a\x0d\x0d\x0a", 4, 0, {"it is a trace of network packets", NULL}},
    {"\x7f"
     "ELF",
     4,
     0,
     {"it is a program", NULL}},
    {"<", 1, 0, {"it looks like HTML or XML", NULL}},
    {"{",
     1,
     0,
     {"it looks like JSON", "redoubt convert --to rdb makes a snapshot of lines of JSON"}},
    {"[", 1, 0, {"it looks like JSON", NULL}},
    {"+", 1, 0, {"it looks like replies of a server, not like commands", NULL}},
    {"-", 1, 0, {"it looks like replies of a server, not like commands", NULL}},
    {":", 1, 0, {"it looks like replies of a server, not like commands", NULL}},
    {"$", 1, 0, {"it looks like replies of a server, not like commands", NULL}},
};

static const struct aof_kind zeros = {"its first bytes are zero bytes", NULL};

const struct aof_kind *aof_kind_of(struct rd_slice head)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *e = &entries[i];
        if (head.len >= e->at + e->len && memcmp(head.ptr + e->at, e->magic, e->len) == 0)
            return &e->kind;
    }
    return head.len > 0 && head.ptr[0] == 0 ? &zeros : NULL;
}
