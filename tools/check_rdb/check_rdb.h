/* check_rdb.h - shared by the parts of check-rdb: the results for one file.
 *
 * check_rdb.c fills in a struct check_file; tools/check_rdb/report.c prints it as text and
 * tools/check_rdb/json.c as JSON. Losses beyond FINDINGS_KEPT of one kind are counted but not
 * stored, like findings, so that memory is bounded.
 */
#ifndef TOOLS_CHECK_RDB_CHECK_RDB_H
#define TOOLS_CHECK_RDB_CHECK_RDB_H

#include "base/buf.h"
#include "rdb/check.h"
#include "rdb/damage.h"
#include "tools/cli/file_kind.h"
#include "tools/cli/findings.h"

enum {
    CHECK_AUX = 64,      /* auxiliary fields */
    CHECK_AUX_MAX = 256, /* bytes of a field's value */
    CHECK_RUNS = 10000,  /* runs of records and doubtful keys that are listed */
};

enum check_verdict {
    CHECK_OK,
    CHECK_WARNINGS,
    CHECK_CHECKSUM,
    CHECK_DAMAGED,
    CHECK_TRUNCATED,
    CHECK_UNSUPPORTED,
    CHECK_OTHER, /* another kind of file */
    CHECK_UNREADABLE
};

struct check_loss {
    enum rdb_loss_kind kind;
    uint64_t from, to, at, db, kept;
    bool has_key;
    struct finding_text key, why, resync;
    const struct rdb_type *type;
};

/* A doubtful key. */
struct check_doubt {
    uint64_t offset, db;
    unsigned doubts; /* enum rdb_doubt */
    bool left_out;
    struct finding_text key;
    const struct rdb_type *type;
};

struct check_aux {
    struct finding_text name, value;
};

struct check_file {
    const char *path;
    char name[RD_ERR_TEXT_MAX]; /* the path, escaped for text output */
    bool verbose;               /* the report has all that was found */
    bool once;                  /* can be read only once: standard input, a pipe */
    bool scanned;               /* built from the keys of a server, --scan */
    bool checked;               /* res is set, and the verdict is one of the first six */
    enum check_verdict verdict;
    struct rd_err err; /* why reading or searching it, or writing OUT, failed */
    uint64_t size;     /* decompressed, with trailing bytes; or RD_NO_OFFSET */
    uint64_t torn;     /* where decompression failed, or RD_NO_OFFSET */
    uint64_t damage;   /* the first byte that may be damaged, or RD_NO_OFFSET */
    struct rdb_damage evidence;
    struct rdb_check_result res;
    const struct file_kind *kind; /* of a file that is not a snapshot; or NULL */
    uint64_t whole;               /* keys before the structure breaks */
    uint64_t slots;               /* hash slots announced */

    struct findings findings;
    struct check_aux aux[CHECK_AUX];
    size_t n_aux;

    bool searched; /* the bytes after the damage were searched: salvage and losses are set */
    struct rdb_salvage_result salvage;
    struct check_loss *losses;
    size_t n_losses, cap_losses;
    uint64_t n_loss[RDB_LOSS_PARTIAL + 1]; /* by kind, including those not stored */
    struct rdb_salvage_run *runs;
    size_t n_runs, cap_runs;
    struct check_doubt *doubts;
    size_t n_doubts, cap_doubts;
    uint64_t all_runs, all_doubts; /* including those not stored */
    const char *doubtful;          /* --doubtful: what was written, or NULL */
    bool salvaged;                 /* --salvage was done: out is set, or nothing could be saved */
    const char *out;               /* what was written, or NULL */
    bool well_formed;              /* OUT was read again and has no errors */
    bool filtered;                 /* some keys may be excluded from OUT */
    bool nothing_matched;          /* all of them were, and OUT was not written */
    uint64_t out_keys;
};

static inline struct rd_slice check_slice(const struct check_file *file, struct finding_text text)
{
    return findings_slice(&file->findings, text);
}

const char *check_verdict_word(enum check_verdict verdict);
const char *check_sum_word(enum rdb_sum_state state);
const char *check_loss_word(enum rdb_loss_kind kind);

/* Whether a checksum of the input proves that OUT holds the data as the server saved it. */
static inline bool check_is_verified(const struct check_file *file)
{
    return file->well_formed && file->salvage.proved;
}

/* The error for a file of another kind. */
struct rd_err check_other_kind(const struct check_file *file);

/* Whether a finding ended the check: the structure breaks there. */
bool check_is_structural(const struct finding *f);

/* Sets the verdict, and what belongs to it, after the check and the search. */
void check_judge(struct check_file *file);

int check_status(const struct check_file *file);

/* Whether the filters exclude every key that could be recovered. */
bool check_nothing_matches(const struct check_file *file);

/* The number of keys before the record where the structure breaks. False: it is not known. */
bool check_keys_before(const struct check_file *file, uint64_t *ret);

/* Whether the damage may begin in a record before the unreadable one. */
bool check_is_earlier(const struct check_file *file);

/* Returns the value of an auxiliary field, or an empty slice. */
struct rd_slice check_aux_find(const struct check_file *file, const char *name);

/* Reports a file: its errors on stderr, and unless -q is given a report on out, or with --json an
 * object. */
void check_report(struct cli *cli, FILE *out, const struct check_file *file);

/* Prints one line for an event (-v), if events of its kind are shown. */
void check_report_event(FILE *out, const struct rdb_event *ev);

void check_json_put(struct json_write *json, const struct check_file *file);

/* Implements `redis-check-rdb FILE`, for scripts. */
int check_rdb_compat(struct cli *cli, int argc, char **argv);

/* Prints the lines about one file, or about the snapshot at the beginning of a log. `name` is its
 * name in these lines. Sets *ret_end to the end of the snapshot. */
bool check_rdb_compat_file(const char *path, const char *name, uint64_t *ret_end);

/* ---- tools/check_rdb/folder.c ---- */

struct check_folder {
    char **paths; /* of the snapshots, by name */
    size_t n;
    bool has_log; /* or a capture */
};

/* Call check_folder_done() in any case. */
bool check_folder_list(struct check_folder *folder, const char *path, struct rd_err *err);
void check_folder_done(struct check_folder *folder);

#endif
