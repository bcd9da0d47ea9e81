#include "tools/cli/file_hint.h"

#include "base/mem.h"
#include "base/src.h"
#include "rdb/foreign.h"
#include "tools/cli/file_kind.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MAGIC = 9,          /* number of bytes by which other kinds of file are recognised */
    WHOLE_MAX = 1 << 20 /* a reply to DUMP is recognised up to this size */
};

#define DAMAGED "use redoubt check-rdb for details and to save intact keys"

static bool is_snapshot(struct rd_slice head)
{
    return (head.len >= 5 && memcmp(head.ptr, "REDIS", 5) == 0) ||
           (head.len >= 6 && memcmp(head.ptr, "VALKEY", 6) == 0);
}

/* Whether the tool is one of readers, which are between spaces. */
static bool is_one_of(const char *readers, const char *tool)
{
    char word[32];
    snprintf(word, sizeof word, " %.20s ", tool != NULL ? tool : "");
    return readers != NULL && strstr(readers, word) != NULL;
}

static size_t read_head(const char *path, uint8_t *head)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* input from a pipe cannot be read again */
        return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t len = fread(head, 1, WHOLE_MAX, file);
    fclose(file);
    return len;
}

static const char *hint_of(const struct rd_err *err, const char *tool, struct rd_slice head)
{
    if (rd_src_is_packed(head)) /* the tool decompressed it already */
        return NULL;
    if (rdb_foreign_of(head) == RDB_FOREIGN_DRAGONFLY)
        return file_kind_of(head)->hint;
    if (err->code == RD_ERR_UNSUPPORTED)
        return NULL;
    const struct file_kind *kind = err->offset < MAGIC ? file_kind_of(head) : NULL;
    if (kind != NULL)
        return is_one_of(kind->readers, tool) ? NULL : kind->hint;
    return is_snapshot(head) && !is_one_of(" check-rdb check-aof ", tool) ? DAMAGED : NULL;
}

const char *file_hint(const struct rd_err *err, const char *tool, const char *path)
{
    if (err->code != RD_ERR_CORRUPT && err->code != RD_ERR_TRUNCATED &&
        err->code != RD_ERR_CHECKSUM && err->code != RD_ERR_UNSUPPORTED)
        return NULL;
    uint8_t *bytes = rd_alloc(WHOLE_MAX);
    if (bytes == NULL)
        return NULL;
    struct rd_slice head = rd_slice(bytes, path != NULL ? read_head(path, bytes) : 0);
    const char *hint = hint_of(err, tool, head);
    rd_free(bytes);
    return hint;
}
