#include "archive/catalogue.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/zstd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC "redoubt-catalogue 1\n"

enum {
    LINE_MAX_BYTES = ARCHIVE_ID_MAX + ARCHIVE_VERSION_MAX + 24,
    DIGITS_MAX = 18, /* of a number */
    STALE = 64       /* copies of sets that are gone, beside as many as there are sets */
};

/* ---- names ---- */

static bool name_of(char ret[ARCHIVE_NAME_MAX], const struct archive_repo *repo, uint64_t number,
                    struct rd_err *err)
{
    int len =
        snprintf(ret, ARCHIVE_NAME_MAX, "%s/catalogue/%08" PRIu64 ".zst", repo->target, number);
    return (len > 0 && len < ARCHIVE_NAME_MAX) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

struct finding {
    struct archive_catalogues *found;
    size_t prefix; /* bytes of a name before the number */
};

static void add_old(struct archive_catalogues *found, uint64_t number)
{
    if (number != 0 && found->n_old < ARCHIVE_CATALOGUES_OLD)
        found->old[found->n_old++] = number;
}

static void on_object(void *arg, const struct archive_listed *object)
{
    struct finding *f = arg;
    const char *name = object->name + f->prefix;
    size_t digits = strspn(name, "0123456789");
    uint64_t number = 0;
    for (size_t i = 0; i < digits && digits <= DIGITS_MAX; i++)
        number = 10 * number + (uint64_t)(name[i] - '0');
    if (digits < 8 || number == 0 || strncmp(name + digits, ".zst", 4) != 0)
        return;
    if (name[digits + 4] != '\0') {
        snprintf(f->found->leftover, sizeof f->found->leftover, "%s", name);
        return;
    }
    uint64_t older = number < f->found->newest ? number : f->found->newest;
    f->found->newest = number > f->found->newest ? number : f->found->newest;
    add_old(f->found, older);
}

bool archive_catalogue_find(struct archive_repo *repo, struct archive_catalogues *ret,
                            struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct archive_catalogues found = {.newest = 0};
    struct finding f = {.found = &found};
    f.prefix = (size_t)snprintf(folder, sizeof folder, "%s/catalogue", repo->target) + 1;
    if (!repo->store->ops->list(repo->store, folder, on_object, &f, err))
        return false;
    *ret = found;
    return true;
}

/* ---- reading ---- */

struct input {
    struct rd_src *src;
    const struct archive_catalogue_reader *reader;
    uint64_t left; /* bytes that may come */
    struct rd_buf text;
};

static bool take(struct input *in, size_t n, struct rd_err *err)
{
    rd_src_consume(in->src, n);
    in->left -= n < in->left ? n : in->left;
    return in->left > 0 || rd_err_set(err, RD_ERR_LIMIT, rd_src_offset(in->src),
                                      "the catalogue is much larger than all manifests");
}

static bool ends_early(struct input *in, enum rd_src_status status, struct rd_err *err)
{
    if (status == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(in->src));
        return false;
    }
    return rd_err_set(err, RD_ERR_TRUNCATED, rd_src_offset(in->src), "the catalogue was cut");
}

/* A line without its end. */
static bool read_line(struct input *in, char ret[LINE_MAX_BYTES], struct rd_err *err)
{
    struct rd_slice s;
    for (size_t len = 0; len < LINE_MAX_BYTES;) {
        enum rd_src_status status = rd_src_need(in->src, 1, &s);
        if (status != RD_SRC_OK)
            return ends_early(in, status, err);
        char c = (char)s.ptr[0];
        if (!take(in, 1, err))
            return false;
        ret[len++] = c == '\n' ? '\0' : c;
        if (c == '\n')
            return true;
    }
    return rd_err_set(err, RD_ERR_CORRUPT, rd_src_offset(in->src),
                      "a line of the catalogue is too long");
}

static bool read_text(struct input *in, uint64_t size, bool wanted, struct rd_err *err)
{
    struct rd_slice s;
    rd_buf_reset(&in->text);
    while (size > 0) {
        enum rd_src_status status = rd_src_need(in->src, 1, &s);
        if (status != RD_SRC_OK)
            return ends_early(in, status, err);
        size_t n = s.len < size ? s.len : (size_t)size;
        if (wanted && !rd_buf_add(&in->text, s.ptr, n))
            return rd_err_nomem(err, n);
        if (!take(in, n, err))
            return false;
        size -= n;
    }
    return true;
}

/* "ID SIZE VERSION", then the text. *ret_more: not the end. */
static bool read_copy(struct input *in, bool *ret_more, struct rd_err *err)
{
    char line[LINE_MAX_BYTES];
    uint64_t size;
    if (!read_line(in, line, err))
        return false;
    *ret_more = strcmp(line, "end") != 0;
    if (!*ret_more)
        return true;
    char *number = strchr(line, ' '), *version = number != NULL ? strchr(number + 1, ' ') : NULL;
    if (version == NULL || number - line >= ARCHIVE_ID_MAX ||
        !rd_num_get_u64(rd_slice(number + 1, (size_t)(version - number - 1)), &size) ||
        size > ARCHIVE_MANIFEST_MAX)
        return rd_err_set(err, RD_ERR_CORRUPT, rd_src_offset(in->src),
                          "a line of the catalogue is not valid");
    *number = '\0';
    version++;
    bool wanted = in->reader->wanted(in->reader->ctx, line, version, size);
    if (!read_text(in, size, wanted, err))
        return false;
    *ret_more =
        !wanted || in->reader->copy(in->reader->ctx, line, version, rd_buf_slice(&in->text));
    return true;
}

static bool read_all(struct input *in, struct rd_err *err)
{
    char line[LINE_MAX_BYTES];
    if (!read_line(in, line, err))
        return false;
    if (strncmp(line, MAGIC, strlen(MAGIC) - 1) != 0 || line[strlen(MAGIC) - 1] != '\0')
        return rd_err_set(err, RD_ERR_UNSUPPORTED, 0, "the catalogue has another format");
    bool more = true;
    while (more)
        if (!read_copy(in, &more, err))
            return false;
    return true;
}

bool archive_catalogue_read(struct archive_repo *repo, uint64_t number,
                            const struct archive_catalogue_reader *reader, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_src *object;
    struct input in = {.reader = reader, .left = reader->max};
    if (!name_of(name, repo, number, err) ||
        !repo->store->ops->get(repo->store, name, &object, err))
        return false;
    if (!rd_zstd_open_own_src(&in.src, object, err)) {
        rd_src_close(object);
        return false;
    }
    bool ok = read_all(&in, err);
    rd_src_close(in.src);
    rd_buf_done(&in.text);
    return ok;
}

/* ---- writing ---- */

struct output {
    struct rd_sink *sink;
    const struct archive_set **sets; /* that the catalogue had, by id */
    size_t n;
    bool failed;
};

static int compare_ids(const void *a, const void *b)
{
    const struct archive_set *const *x = a, *const *y = b;
    return strcmp((*x)->id, (*y)->id);
}

static const struct archive_set *find_set(const struct output *out, const char *id)
{
    struct archive_set key;
    const struct archive_set *wanted = &key;
    snprintf(key.id, sizeof key.id, "%s", id);
    const struct archive_set *const *found =
        out->n > 0 ? bsearch(&wanted, out->sets, out->n, sizeof *out->sets, compare_ids) : NULL;
    return found != NULL ? *found : NULL;
}

static bool stays(void *ctx, const char *id, const char *version, uint64_t size)
{
    const struct archive_set *set = find_set(ctx, id);
    return set != NULL && strcmp(set->version, version) == 0 && set->manifest_bytes == size;
}

static bool put_copy(void *ctx, const char *id, const char *version, struct rd_slice text)
{
    struct output *out = ctx;
    char line[LINE_MAX_BYTES];
    int len = snprintf(line, sizeof line, "%s %zu %s\n", id, text.len, version);
    out->failed = len < 0 || (size_t)len >= sizeof line ||
                  !rd_sink_write(out->sink, line, (size_t)len) ||
                  !rd_sink_write(out->sink, text.ptr, text.len);
    return !out->failed;
}

/* What cannot be read of the old one is read from the sets at the next listing. */
static bool put_all(struct output *out, struct archive_repo *repo, const struct archive_sets *sets)
{
    const struct archive_catalogue_reader reader = {
        .wanted = stays, .copy = put_copy, .ctx = out, .max = sets->catalogues.max};
    if (!rd_sink_write(out->sink, MAGIC, strlen(MAGIC)))
        return false;
    if (out->n > 0)
        archive_catalogue_read(repo, sets->catalogues.newest, &reader, NULL);
    for (size_t i = 0; !out->failed && i < sets->n; i++)
        if (sets->sets[i].fresh)
            put_copy(out, sets->sets[i].id, sets->sets[i].version,
                     rd_buf_slice(&sets->sets[i].text));
    return !out->failed && rd_sink_write(out->sink, "end\n", strlen("end\n"));
}

static bool open_sink(struct archive_repo *repo, const char *name, struct rd_sink **ret,
                      struct rd_err *err)
{
    struct rd_sink *object;
    if (!archive_store_put(repo->store, name, &object, err))
        return false;
    if (rd_zstd_open_sink(ret, object, 0, err))
        return true;
    rd_sink_abort(object);
    return false;
}

/* Another run may have written this one: its copies are as good. */
static bool write_new(struct archive_repo *repo, const struct archive_sets *sets,
                      struct output *out, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct rd_err wrong = {0};
    if (!name_of(name, repo, sets->catalogues.newest + 1, err))
        return false;
    bool ok = open_sink(repo, name, &out->sink, &wrong);
    if (ok && !put_all(out, repo, sets)) {
        rd_err_adopt(&wrong, rd_sink_err(out->sink));
        rd_sink_abort(out->sink);
        ok = false;
    } else if (ok) {
        ok = rd_sink_close(out->sink, &wrong);
    }
    if (ok || archive_store_exists(&wrong))
        return true;
    rd_err_adopt(err, &wrong);
    return false;
}

static bool remove_old(struct archive_repo *repo, const struct archive_catalogues *found,
                       struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    for (size_t i = 0; i < found->n_old; i++)
        if (!name_of(name, repo, found->old[i], err) ||
            !repo->store->ops->remove(repo->store, name, err))
            return false;
    return true;
}

static bool remove_leftover(struct archive_repo *repo, const struct archive_catalogues *found,
                            struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    int len = snprintf(name, sizeof name, "%s/catalogue/%s", repo->target, found->leftover);
    return found->leftover[0] == '\0' || (size_t)len >= sizeof name ||
           repo->store->ops->remove(repo->store, name, err);
}

static void clean(struct archive_repo *repo)
{
    char folder[ARCHIVE_NAME_MAX];
    snprintf(folder, sizeof folder, "%s/catalogue", repo->target);
    if (repo->store->ops->clean != NULL)
        repo->store->ops->clean(repo->store, folder);
}

static bool is_due(const struct archive_sets *sets)
{
    size_t n_fresh = 0, n_used = 0;
    for (size_t i = 0; i < sets->n; i++) {
        n_fresh += sets->sets[i].fresh;
        n_used += sets->sets[i].catalogued;
    }
    return n_fresh >= sets->catalogues.due || sets->catalogues.n_copies > 2 * n_used + STALE;
}

static bool update(struct archive_repo *repo, const struct archive_sets *sets, struct rd_err *err)
{
    struct output out = {.n = 0};
    clean(repo);
    out.sets = rd_alloc((sets->n + 1) * sizeof *out.sets);
    if (out.sets == NULL)
        return rd_err_nomem(err, sets->n * sizeof *out.sets);
    for (size_t i = 0; i < sets->n; i++)
        if (sets->sets[i].catalogued)
            out.sets[out.n++] = &sets->sets[i];
    if (out.n > 0)
        qsort(out.sets, out.n, sizeof *out.sets, compare_ids);
    bool ok = write_new(repo, sets, &out, err) && remove_old(repo, &sets->catalogues, err);
    rd_free(out.sets);
    return ok;
}

bool archive_catalogue_update(struct archive_repo *repo, const struct archive_sets *sets,
                              struct rd_err *err)
{
    bool due = is_due(sets);
    if (sets->catalogues.due == 0 || (!due && sets->catalogues.leftover[0] == '\0'))
        return true;
    return archive_repo_check_lock(repo, err) && remove_leftover(repo, &sets->catalogues, err) &&
           (!due || update(repo, sets, err));
}
