/* version.c - finds out which version wrote the file. The header contains it. If the header is
 * damaged, the aux fields name the release, and the contents need a version that supports them.
 */
#include "rdb/recover/recover_impl.h"

#include "base/mem.h"
#include "rdb/version.h"

enum { PROBED_MAX = 64 };

struct release {
    const char *prefix;
    int version;
};

/* The RDB version that a server of that release writes. */
static int version_of_release(struct rd_slice name, struct rd_slice value,
                              enum rdb_dialect *dialect)
{
    static const struct release redis[] = {{"3.2.", 7},  {"4.", 8},    {"5.", 9},    {"6.0.", 9},
                                           {"6.2.", 9},  {"7.0.", 10}, {"7.2.", 11}, {"7.4.", 12},
                                           {"8.0.", 12}, {"8.2.", 12}, {"8.4.", 12}, {"8.6.", 13},
                                           {"8.8.", 14}, {"8.10.", 15}};
    static const struct release valkey[] = {
        {"7.2.", 11}, {"8.", 11}, {"9.0.", 80}, {"9.1.", 80}, {"9.2.", 81}};
    struct rdb_release release = {0};
    if (!rdb_release_take(&release, name, value))
        return 0;
    const struct release *table = release.valkey ? valkey : redis;
    size_t n = release.valkey ? sizeof valkey / sizeof *valkey : sizeof redis / sizeof *redis;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(release.version, table[i].prefix, strlen(table[i].prefix)) == 0) {
            *dialect = table[i].version >= RDB_VERSION_VALKEY_MIN ? RDB_VALKEY : RDB_REDIS;
            return table[i].version;
        }
    }
    return 0;
}

/* Reads the fields before the keys to find out which release wrote the file. 0: unknown. */
static int probe_release(struct scan *s, enum rdb_dialect *dialect)
{
    if (!rdb_recover_scan_at(s, RDB_MAGIC_LEN, 0, UINT64_MAX))
        return 0;
    for (int i = 0; i < PROBED_MAX; i++) {
        struct rdb_event ev;
        char tmp[RD_NUM_I64_MAX];
        if (rdb_reader_next(s->reader, &ev) != RDB_EVENT || ev.kind != RDB_AUX)
            return 0;
        int version =
            version_of_release(ev.aux.name, rdb_string_bytes(&ev.aux.value, tmp), dialect);
        if (version != 0)
            return version;
    }
    return 0;
}

/* Dialect and version of the header; false if it is not a header. */
static bool read_header(struct scan *s, enum rdb_dialect *dialect, int *version, bool *ret)
{
    struct rdb_reader *r;
    struct rdb_event ev;
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.newer = true);
    s->limit.stop = s->size;
    if (!rd_src_seek(s->src, 0, &s->err) || !rdb_reader_new(&r, s->src, &opts, &s->err))
        return false;
    *ret = rdb_reader_next(r, &ev) == RDB_EVENT;
    if (*ret) {
        *dialect = ev.header.dialect;
        *version = ev.header.version;
    }
    rdb_reader_free(r);
    rd_src_sum_stop(s->src);
    return true;
}

static void plan_reset(struct plan *plan, enum rdb_dialect dialect, int version, bool guessed)
{
    plan->dialect = dialect;
    plan->version = version;
    plan->guessed = guessed;
}

/* Surveys and grades the file as one of a version. */
static bool attempt(struct scan *s, struct rd_src *src, const struct rdb_salvage_opts *opts,
                    struct plan *plan, struct rd_err *err)
{
    rdb_recover_scan_done(s);
    if (!rdb_recover_scan_init(s, src, opts, err))
        return false;
    if (!rdb_recover_scan_version(s, plan->dialect, plan->version)) {
        rd_err_adopt(err, &s->err);
        return false;
    }
    s->sealed = plan->sealed;
    if (!rdb_recover_survey(s, plan, err))
        return false;
    rdb_recover_grade(s, plan);
    return true;
}

/* Whether it continues where the other one had to stop first, after the runs that both have. */
static bool goes_on(const struct plan *a, const struct plan *b)
{
    size_t i = 0;
    while (i + 1 < a->n && i + 1 < b->n && a->spans[i].from == b->spans[i].from &&
           a->spans[i].to == b->spans[i].to)
        i++;
    return a->spans[i].to > b->spans[i].to;
}

/* Whether it also has fewer lost ranges and more keys. */
static bool is_more(const struct plan *a, const struct plan *b)
{
    return a->good > b->good && a->n < b->n && goes_on(a, b);
}

/* Keeps the other plan in the place of *ret if it is better, and frees the one that is not kept. */
static void choose(struct plan *ret, struct plan *other, bool better)
{
    rdb_recover_plan_done(better ? ret : other);
    if (better)
        *ret = *other;
}

/* Another version may support what this one does not. The better result stays in *ret. */
static bool try_other(struct scan *s, struct rd_src *src, const struct rdb_salvage_opts *opts,
                      enum rdb_dialect dialect, int version, struct plan *ret, struct rd_err *err)
{
    if (dialect == ret->dialect && version <= ret->version)
        return true;
    struct plan other = {.sealed = ret->sealed, .header_version = ret->header_version};
    plan_reset(&other, dialect, version, true);
    bool ok = attempt(s, src, opts, &other, err);
    choose(ret, &other, ok && is_more(&other, ret));
    return ok;
}

struct choice {
    enum rdb_dialect dialect;
    int version;
    bool guessed;
};

bool rdb_recover_is_whole(const struct plan *plan, uint64_t size)
{
    return plan->n == 1 && plan->found_end && plan->end == size && plan->damage == RD_NO_OFFSET &&
           !plan->unsupported;
}

/* The header and the release that is named disagree. Either the header is damaged, or the file was
 * converted to another version. The older version is correct unless the newer one reads more: every
 * server that reads the newer one also reads a file of the older one. */
static bool settle(struct scan *s, struct rd_src *src, const struct rdb_salvage_opts *opts,
                   const struct choice *header, const struct choice *release, struct plan *ret,
                   struct rd_err *err)
{
    bool newer = header->version > release->version;
    const struct choice *first = newer ? release : header;
    const struct choice *second = newer ? header : release;
    plan_reset(ret, first->dialect, first->version, first->guessed);
    if (!attempt(s, src, opts, ret, err))
        return false;
    if (rdb_recover_is_whole(ret, rd_src_size(src)))
        return true;
    struct plan other = {.sealed = ret->sealed, .header_version = ret->header_version};
    plan_reset(&other, second->dialect, second->version, second->guessed);
    bool ok = attempt(s, src, opts, &other, err);
    bool fewer = other.good == ret->good && other.n < ret->n;
    choose(ret, &other, ok && (other.good > ret->good || fewer));
    return ok;
}

/* Without a header, the end mark is not followed by a checksum in a file of an early version. */
static bool try_early(struct scan *s, struct rd_src *src, const struct rdb_salvage_opts *opts,
                      struct plan *ret, struct rd_err *err)
{
    struct plan other = {.sealed = false, .header_version = ret->header_version};
    plan_reset(&other, RDB_REDIS, RDB_VERSION_CHECKSUM - 1, true);
    bool ok = attempt(s, src, opts, &other, err);
    const struct span *last = ok && other.n > 0 ? &other.spans[other.n - 1] : NULL;
    choose(ret, &other, last != NULL && last->to_end && other.good > ret->good);
    return ok;
}

/* Reads the file as one of other versions than that of the header, or that is assumed. */
static bool try_others(struct scan *s, struct rd_src *src, const struct rdb_salvage_opts *opts,
                       struct plan *ret, struct rd_err *err)
{
    if (ret->guessed && !ret->sealed && !(ret->found_end && ret->end == rd_src_size(src)) &&
        !try_early(s, src, opts, ret, err))
        return false;
    return try_other(s, src, opts, RDB_REDIS, RDB_RECOVER_VERSION_ALL, ret, err) &&
           try_other(s, src, opts, RDB_REDIS, RDB_VERSION_REDIS_MAX, ret, err) &&
           try_other(s, src, opts, RDB_VALKEY, RDB_VERSION_VALKEY_MIN, ret, err);
}

bool rdb_recover_plan(struct scan *s, struct rd_src *src, bool sealed,
                      const struct rdb_salvage_opts *opts, struct plan *ret, struct rd_err *err)
{
    enum rdb_dialect dialect = RDB_REDIS, release = RDB_REDIS;
    int version = 0;
    bool known = false;
    ret->sealed = sealed;
    if (!rdb_recover_scan_init(s, src, opts, err))
        return false;
    if (!rdb_recover_scan_version(s, RDB_REDIS, RDB_RECOVER_VERSION_ALL) ||
        !read_header(s, &dialect, &version, &known)) {
        rd_err_adopt(err, &s->err);
        return false;
    }
    ret->header_version = known ? version : 0;
    int by_release = probe_release(s, &release);
    rd_err_reset(&s->err);
    /* A checksum that matches proves the header, too. */
    bool differ =
        !sealed && by_release != 0 && known && (by_release != version || release != dialect);
    if (differ) {
        const struct choice header = {dialect, version, !rdb_version_known(dialect, version)};
        const struct choice other = {release, by_release, true};
        if (!settle(s, src, opts, &header, &other, ret, err))
            return false;
    } else {
        if (by_release != 0 && !known)
            plan_reset(ret, release, by_release, true);
        else if (known)
            plan_reset(ret, dialect, version, !rdb_version_known(dialect, version));
        else
            plan_reset(ret, RDB_REDIS, RDB_RECOVER_VERSION_ALL, true);
        if (!attempt(s, src, opts, ret, err))
            return false;
    }
    if ((ret->unsupported || (ret->guessed && by_release == 0)) &&
        !try_others(s, src, opts, ret, err))
        return false;
    rdb_recover_scan_done(s);
    if (!rdb_recover_scan_init(s, src, opts, err))
        return false;
    ret->by_release = by_release;
    s->sealed = ret->sealed;
    if (rdb_recover_scan_version(s, ret->dialect, ret->version))
        return true;
    rd_err_adopt(err, &s->err);
    return false;
}

void rdb_recover_plan_done(struct plan *plan)
{
    rd_free(plan->spans);
    plan->spans = NULL;
    plan->n = plan->cap = 0;
}
