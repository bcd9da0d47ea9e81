/* verdict.c - the verdict on a file, and the exit status. */
#include "tools/check_rdb/check_rdb.h"

const char *check_verdict_word(enum check_verdict verdict)
{
    static const char *const words[] = {"ok",        "warnings",    "checksum",   "damaged",
                                        "truncated", "unsupported", "other-kind", "unreadable"};
    return words[verdict];
}

const char *check_sum_word(enum rdb_sum_state state)
{
    static const char *const words[] = {"unknown", "none", "disabled", "ok", "bad"};
    return words[state];
}

const char *check_loss_word(enum rdb_loss_kind kind)
{
    static const char *const words[] = {"range", "key", "partial"};
    return words[kind];
}

bool check_is_structural(const struct finding *f)
{
    return f->id == RDB_FINDING_CORRUPT || f->id == RDB_FINDING_TRUNCATED ||
           f->id == RDB_FINDING_UNSUPPORTED || f->id == RDB_FINDING_LIMIT;
}

bool check_is_earlier(const struct check_file *file)
{
    return file->res.damaged && file->damage < file->res.record;
}

/* Whether only the end of the file is lost. Bytes after the break that hold no key are the tail of
 * a value that happens to look like records. */
static bool only_end_lost(const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    return !file->searched || (sv->ranges <= 1 && !sv->found_end &&
                               sv->keys + sv->keys_dropped + sv->keys_unwanted <= file->whole);
}

static enum check_verdict verdict_of_damage(const struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    bool before = file->searched && file->salvage.first_loss < res->record && !res->newer;
    if (before || (file->searched && file->salvage.corrected))
        return CHECK_DAMAGED; /* the damage begins before the break, or its place is proved */
    if (res->err.code == RD_ERR_UNSUPPORTED)
        return CHECK_UNSUPPORTED;
    return res->err.code == RD_ERR_TRUNCATED && only_end_lost(file) ? CHECK_TRUNCATED
                                                                    : CHECK_DAMAGED;
}

/* Whether the structure breaks inside a value; its key was counted. */
static bool broke_in_key(const struct check_file *file)
{
    for (size_t i = 0; i < file->findings.n; i++)
        if (check_is_structural(&file->findings.all[i]))
            return file->findings.all[i].has_key;
    return false;
}

void check_judge(struct check_file *file)
{
    const struct rdb_check_result *res = &file->res;
    if (file->kind != NULL) {
        file->verdict = CHECK_OTHER;
        file->damage = RD_NO_OFFSET;
        return;
    }
    file->damage = rdb_damage_start(res, &file->evidence, file->searched ? &file->salvage : NULL);
    if (res->damaged) {
        file->whole = res->keys - broke_in_key(file);
        file->verdict = verdict_of_damage(file);
    } else if (res->errors > (res->sum == RDB_SUM_BAD)) {
        file->verdict = CHECK_DAMAGED;
    } else if (res->sum == RDB_SUM_BAD) {
        file->verdict = CHECK_CHECKSUM;
    } else {
        file->verdict = res->warnings > 0 ? CHECK_WARNINGS : CHECK_OK;
    }
}

/* Whether the input is sound and all of it was kept. */
static bool kept_all(const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    return (file->verdict == CHECK_OK || file->verdict == CHECK_WARNINGS) && sv->ranges == 0 &&
           sv->keys_dropped == 0 && sv->keys_doubted == 0 && sv->keys_left_out == 0 &&
           file->torn == RD_NO_OFFSET && !file->res.trailing_data;
}

bool check_nothing_matches(const struct check_file *file)
{
    const struct rdb_salvage_result *sv = &file->salvage;
    bool sound = !file->res.damaged && file->torn == RD_NO_OFFSET;
    return file->filtered && sv->keys == 0 && (sv->keys_unwanted > 0 || sound);
}

static int status_of_salvage(const struct check_file *file)
{
    if (file->out == NULL)
        return CLI_FINDINGS;
    return kept_all(file) ? CLI_OK : CLI_PARTIAL;
}

int check_status(const struct check_file *file)
{
    if (file->salvaged && (file->kind == NULL || file->out != NULL))
        return status_of_salvage(file);
    switch (file->verdict) {
    case CHECK_OK:
        return CLI_OK;
    case CHECK_UNSUPPORTED:
    case CHECK_OTHER:
        return CLI_UNSUPPORTED;
    default:
        return CLI_FINDINGS;
    }
}

bool check_keys_before(const struct check_file *file, uint64_t *ret)
{
    const struct rdb_check_result *res = &file->res;
    /* The framing can be intact where a value is broken: the check then counted keys after it. */
    if (!file->searched || file->salvage.corrected || file->all_runs > file->n_runs) {
        *ret = file->whole;
        return !file->once;
    }
    *ret = 0;
    for (size_t i = 0; i < file->n_runs; i++) {
        if (file->runs[i].to <= res->record)
            *ret += file->runs[i].keys;
    }
    return true;
}
