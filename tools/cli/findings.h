/* findings.h - stores the findings of a check until they are printed.
 *
 * The checks of snapshots and logs pass findings to a callback; their texts and names are valid
 * during the call. They are copied here, up to FINDINGS_KEPT of each word; further ones are only
 * counted, so that memory is bounded.
 *
 *     struct findings found = {0};
 *     if (findings_count(&found, f->word, f->severity))          ... in the callback
 *         findings_add(&found, &(struct finding){.id = f->id, …,
 *                                                .text = findings_keep(&found, text)});
 *     ok = found.err.code == RD_ERR_OK;                        ... after the check
 *     findings_print(cli, stdout, &found);
 *     findings_done(&found);
 */
#ifndef TOOLS_CLI_FINDINGS_H
#define TOOLS_CLI_FINDINGS_H

#include "aof/check.h"
#include "base/buf.h"
#include "rdb/check.h"
#include "tools/cli/cli.h"

enum {
    FINDINGS_KEPT = 100, /* of one word */
#define X(...) +1
    FINDINGS_WORDS = 0 AOF_FINDINGS(X) AOF_MANIFEST_PROBLEMS(X) RDB_FINDINGS(X) RDB_NOTES(X)
#undef X
};

/* A run of bytes in findings.bytes. */
struct finding_text {
    size_t at, len;
};

struct finding {
    unsigned id;      /* struct aof_finding.id or struct rdb_finding.id */
    const char *word; /* static */
    enum rdb_severity severity;
    uint64_t offset, inner; /* or RD_NO_OFFSET */
    uint64_t record;        /* of a snapshot */
    bool has_file;          /* of a log; else the manifest, or the log as a whole */
    struct finding_text file, text;
    uint64_t line, command; /* of a log; 0: unknown */
    bool has_key;           /* in a snapshot */
    struct finding_text key;
    uint64_t db;
    const struct rdb_type *type;
};

struct finding_count {
    const char *word;
    enum rdb_severity severity;
    uint64_t n;
};

struct findings {
    struct rd_buf bytes; /* texts and names, also others of the tool's */
    struct finding *all;
    size_t n, cap;
    struct finding_count counts[FINDINGS_WORDS];
    size_t n_counts;
    struct rd_err err; /* out of memory */
};

/* Counts a finding; returns whether it is to be stored. */
bool findings_count(struct findings *found, const char *word, enum rdb_severity severity);
void findings_add(struct findings *found, const struct finding *f);

/* Copies bytes. If memory runs out, sets found->err and returns an empty text. */
struct finding_text findings_keep(struct findings *found, struct rd_slice bytes);

static inline struct rd_slice findings_slice(const struct findings *found, struct finding_text text)
{
    return rd_slice(found->bytes.ptr + text.at, text.len);
}

/* Prints the findings as text, errors first. */
void findings_print(struct cli *cli, FILE *out, const struct findings *found);

/* `hash "user:1" in db 0` */
void findings_print_key(FILE *out, struct rd_slice key, const struct rdb_type *type, uint64_t db);

/* Writes the members findings and findings_by_id of an open object. `log`: a finding has a position
 * in a log (file, line, command) instead of a record of a snapshot. */
void findings_json(struct json_write *json, const struct findings *found, bool log);

/* The member findings_total. */
void findings_json_total(struct json_write *json, uint64_t errors, uint64_t warnings,
                         uint64_t infos);

/* Frees the findings and zeroes the struct. A zeroed struct is allowed. */
void findings_done(struct findings *found);

#endif
