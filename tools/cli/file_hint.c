#include "tools/cli/file_hint.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD = 8, MAGIC = 9 /* bytes in which another kind of file shows */ };

struct kind {
    const char *magic;
    size_t len;
    const char *hint;
    const char *readers; /* tools that need no hint, each between spaces; NULL: none */
};

#define PACKED(name)                                                                               \
    "it is packed with " name ": unpack it first (gzip, lz4 and zstd are read as they are)"
#define LOG " check-aof show replay "

static const struct kind others[] = {
    {"\xfd\x37zXZ\0", 6, PACKED("xz"), NULL},
    {"BZh", 3, PACKED("bzip2"), NULL},
    {"PK\x03\x04", 4, PACKED("zip"), NULL},
    {"*", 1, "it looks like an append-only log: redoubt check-aof", LOG},
    {"#TS:", 4, "it looks like an append-only log: redoubt check-aof", LOG},
    {"file ", 5, "it looks like the manifest of an append-only log: redoubt check-aof", LOG},
    {"{", 1, "it looks like lines of JSON: redoubt convert --to rdb makes a snapshot of them",
     " convert "},
};

#define DAMAGED "redoubt check-rdb says more, and can save what is whole"

static const struct kind snapshots[] = {
    {"REDIS", 5, DAMAGED, " check-rdb check-aof "},
    {"VALKEY", 6, DAMAGED, " check-rdb check-aof "},
};

#define N_OF(table) (sizeof(table) / sizeof *(table))

static const char *find(const struct kind *kinds, size_t n, const char *head, size_t len,
                        const char *tool)
{
    char word[32];
    snprintf(word, sizeof word, " %.20s ", tool != NULL ? tool : "");
    for (size_t i = 0; i < n; i++) {
        if (len < kinds[i].len || memcmp(head, kinds[i].magic, kinds[i].len) != 0)
            continue;
        bool reads = kinds[i].readers != NULL && strstr(kinds[i].readers, word) != NULL;
        return reads ? NULL : kinds[i].hint;
    }
    return NULL;
}

static size_t read_head(const char *path, char head[HEAD])
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* what a pipe gave is gone */
        return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t len = fread(head, 1, HEAD, file);
    fclose(file);
    return len;
}

const char *file_hint(const struct rd_err *err, const char *tool, const char *path)
{
    char head[HEAD];
    if (err->code != RD_ERR_CORRUPT && err->code != RD_ERR_TRUNCATED &&
        err->code != RD_ERR_CHECKSUM)
        return NULL;
    size_t len = path != NULL ? read_head(path, head) : 0;
    const char *hint = err->offset < MAGIC ? find(others, N_OF(others), head, len, tool) : NULL;
    return hint != NULL ? hint : find(snapshots, N_OF(snapshots), head, len, tool);
}
