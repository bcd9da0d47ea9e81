#include "jobs/proof.h"

#include "jobs/input.h"
#include "jobs/sized.h"
#include "rdb/check.h"

#include <sys/stat.h>

bool proof_keep(const struct rd_watch *watch, const char *path, struct spool *spool,
                struct rd_src **src, struct rd_err *err)
{
    struct stat st;
    bool again = spool->open || (strcmp(path, "-") != 0 && stat(path, &st) == 0 &&
                                 (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)));
    return again || sized_set_aside(watch, path, spool, src, err);
}

/* Keeps the first finding about a value. A duplicate key is not one. */
static void on_finding(void *ctx, const struct rdb_finding *finding)
{
    struct rd_err *first = ctx;
    char name[100];
    if (finding->severity != RDB_SEVERITY_ERROR || first->code != RD_ERR_OK ||
        finding->id == RDB_FINDING_DUPLICATE_KEY)
        return;
    rd_err_set(first, RD_ERR_CORRUPT, finding->offset, "%s", finding->text);
    first->inner = finding->inner;
    if (!finding->has_key)
        return;
    rd_err_quote(name, sizeof name, finding->key);
    rd_err_doing(first, "%s %s in db %llu",
                 finding->type != NULL ? rdb_kind_name(finding->type->kind) : "key", name,
                 (unsigned long long)finding->db);
}

static bool check(struct rd_src *src, struct rd_err *err)
{
    struct rd_err found = {0};
    struct rdb_check_result res = RDB_CHECK_RESULT();
    const struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.finding = on_finding, .ctx = &found, .part = true);
    if (!rdb_check(src, &opts, &res, err))
        return false;
    if (res.damaged && found.code == RD_ERR_OK)
        found = res.err;
    if (found.code == RD_ERR_OK)
        return true;
    rd_err_adopt(err, &found);
    rd_err_origin(err, rd_src_origin(src));
    return false;
}

static bool check_in_place(struct rd_src *src, struct rd_err *err)
{
    uint64_t at = rd_src_offset(src);
    return rd_src_seek(src, 0, err) && check(src, err) && rd_src_seek(src, at, err);
}

static bool check_again(const struct rd_watch *watch, const char *path, const struct spool *spool,
                        struct rd_err *err)
{
    struct rd_src *src;
    if (spool->open ? !spool_source(spool, path, &src, err)
                    : !rd_watch_open_file(watch, path, &src, err))
        return false;
    bool ok = check(src, err);
    rd_watch_end(watch);
    rd_src_close(src);
    return ok;
}

bool proof_check(const struct rd_watch *watch, const char *path, const struct spool *spool,
                 struct rd_src *src, const struct rdb_event *trailer, struct rd_err *err)
{
    if (trailer->trailer.stored != 0)
        return true;
    rd_watch_end(watch);
    bool in_place = strcmp(path, "-") == 0 && !spool->open;
    if (in_place ? check_in_place(src, err) : check_again(watch, path, spool, err))
        return true;
    rd_watch_hint(watch, "the file has no checksum, so the values were checked; redoubt check-rdb "
                         "--salvage OUT saves intact ones");
    return false;
}
