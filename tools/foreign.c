#include "tools/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD = 8 };

struct kind {
    const char *magic;
    size_t len;
    const char *hint;
    const char *readers; /* tools, each between spaces; NULL: none */
};

#define PACKED(name)                                                                               \
    "it is packed with " name ": unpack it first (gzip and lz4 are read as they are)"

static const struct kind kinds[] = {
    {"\x28\xb5\x2f\xfd", 4, PACKED("zstd"), NULL},
    {"\xfd\x37zXZ\0", 6, PACKED("xz"), NULL},
    {"BZh", 3, PACKED("bzip2"), NULL},
    {"PK\x03\x04", 4, PACKED("zip"), NULL},
    {"*", 1, "it looks like an append-only log: redoubt check-aof", " check-aof show replay "},
    {"#TS:", 4, "it looks like an append-only log: redoubt check-aof", " check-aof show replay "},
    {"file ", 5, "it looks like the manifest of an append-only log: redoubt check-aof",
     " check-aof show replay "},
    {"{", 1, "it looks like lines of JSON: redoubt convert --to rdb makes a snapshot of them",
     " convert "},
};

static bool reads(const struct kind *kind, const char *tool)
{
    char word[32];
    snprintf(word, sizeof word, " %.20s ", tool != NULL ? tool : "");
    return kind->readers != NULL && strstr(kind->readers, word) != NULL;
}

const char *foreign_hint(const char *path, const char *tool)
{
    char head[HEAD] = {0};
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* what a pipe gave is gone */
        return NULL;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    size_t len = fread(head, 1, sizeof head, file);
    fclose(file);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *kind = &kinds[i];
        if (len >= kind->len && memcmp(head, kind->magic, kind->len) == 0)
            return reads(kind, tool) ? NULL : kind->hint;
    }
    return NULL;
}
