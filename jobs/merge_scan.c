/* The first pass over all inputs: finds keys and functions that occur in two of them.
 *
 *     keys     key: hash (16)              value: input (4)  record (8)  db (8)
 *     losers   key: input (4)  record (8)
 */
#include "jobs/merge_impl.h"

#include "base/endian.h"
#include "engine/library.h"
#include "jobs/proof.h"

enum { PLACE_LEN = 20, LOSER_LEN = 12, LIBS_MAX = 1 << 16 };

/* ---- databases ---- */

bool merge_maps_add(void *ctx, const char *value, struct rd_err *err)
{
    struct merge_maps *maps = ctx;
    struct merge_map map = {0};
    const char *colon = strchr(value, ':'), *from = colon != NULL ? colon + 1 : value;
    const char *equals = strchr(from, '=');
    uint64_t input = 1;
    bool ok = equals != NULL &&
              rd_num_get_u64(rd_slice(from, (size_t)(equals - from)), &map.from) &&
              rd_num_get_u64(rd_slice_str(equals + 1), &map.to) &&
              (colon == NULL || rd_num_get_u64(rd_slice(value, (size_t)(colon - value)), &input));
    if (!ok || input == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "not FROM=TO or IN:FROM=TO, where IN is the number of an input, from 1");
    if (maps->n == MERGE_MAPS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "more than %d databases are mapped",
                          MERGE_MAPS_MAX);
    map.input = colon != NULL ? (size_t)input : 0;
    maps->map[maps->n++] = map;
    return true;
}

uint64_t merge_map_db(const struct merge *merge, size_t input, uint64_t db)
{
    const struct merge_maps *maps = &merge->opts->maps;
    for (size_t i = 0; i < maps->n; i++) {
        const struct merge_map *map = &maps->map[i];
        if (map->from == db && (map->input == 0 || map->input == input + 1))
            return map->to;
    }
    return db;
}

/* ---- functions ---- */

static void find_name(const struct merge *merge, struct rd_slice code, struct merge_lib *lib)
{
    struct engine_library parsed;
    struct rd_siphash hash;
    const char *why;
    lib->named = engine_library_parse(code, &parsed, &why);
    if (!lib->named)
        return;
    rd_siphash_begin(&hash, merge->hashing.key);
    rd_siphash_add(&hash, parsed.name.ptr, parsed.name.len);
    lib->name = rd_siphash_end(&hash);
}

static bool same_name(const struct merge_lib *a, const struct merge_lib *b)
{
    return a->named && b->named && rd_hash128_eq(a->name, b->name);
}

/* Of two libraries with the same name, only one can be loaded. */
static void settle_lib(struct merge *merge, struct merge_lib *new)
{
    size_t n;
    struct merge_lib *libs = merge_libs(merge, &n);
    for (size_t i = 0; i < n; i++) {
        struct merge_lib *old = &libs[i];
        bool same = rd_hash128_eq(old->code, new->code);
        if (old->drop || (!same && !same_name(old, new)))
            continue;
        merge->lib_conflicts += !same;
        *(same || merge->opts->policy != MERGE_LAST ? &new->drop : &old->drop) = true;
        return;
    }
}

static bool scan_function(struct merge *merge, size_t input, const struct rdb_event *ev,
                          struct merge_lib *lib, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    const struct rdb_string *code = &ev->function.code;
    struct rd_slice bytes = rdb_string_bytes(code, tmp);
    if (code->first) {
        *lib = (struct merge_lib){.input = input, .offset = ev->offset};
        if (!ev->function.pre_ga)
            find_name(merge, bytes, lib);
        rd_siphash_begin(&merge->code, merge->hashing.key);
        rd_siphash_add_u64(&merge->code, ev->function.pre_ga);
    }
    rd_siphash_add(&merge->code, bytes.ptr, bytes.len);
    if (code->more)
        return true;
    if (merge->libs.len >= LIBS_MAX * sizeof *lib)
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "more than %d functions", LIBS_MAX);
    lib->code = rd_siphash_end(&merge->code);
    settle_lib(merge, lib);
    return rd_buf_add(&merge->libs, lib, sizeof *lib) || rd_err_nomem(err, sizeof *lib);
}

/* ---- keys ---- */

static bool scan_key(struct merge *merge, size_t input, const struct rdb_event *ev,
                     struct rd_err *err)
{
    uint8_t hash[RD_HASH128_LEN], place[PLACE_LEN];
    struct merge_input *in = &merge->inputs[input];
    bool wanted;
    rd_watch_at(merge->watch, rd_src_offset(in->in.src));
    if (!sized_wants(&in->in.sized, ev, &wanted, err))
        return false;
    if (wanted) {
        uint64_t db = merge_map_db(merge, input, ev->key.db);
        rd_hash128_put(hash, rdb_content_key(&merge->hashing, db, ev->key.name));
        rd_put_be32(place, (uint32_t)input);
        rd_put_be64(place + 4, ev->key.record);
        rd_put_be64(place + 12, ev->key.db);
        in->count.seen++;
        if (!sort_add(&merge->keys, rd_slice(hash, sizeof hash), rd_slice(place, sizeof place),
                      err))
            return false;
    }
    return rdb_reader_skip_value(in->in.reader) == RDB_EVENT || again_fail(&in->in, err);
}

static bool scan_event(struct merge *merge, size_t input, const struct rdb_event *ev,
                       struct merge_lib *lib, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_KEY:
        return scan_key(merge, input, ev, err);
    case RDB_FUNCTION:
        return scan_function(merge, input, ev, lib, err);
    case RDB_TRAILER:
        merge->inputs[input].sum = ev->trailer.stored;
        return again_check_end(&merge->inputs[input].in, ev, err) &&
               proof_check(merge->watch, merge->inputs[input].input->path,
                           &merge->inputs[input].in.spool, merge->inputs[input].in.src, ev, err);
    default:
        return true;
    }
}

bool merge_open(struct merge *merge, struct merge_input *input, struct rd_err *err)
{
    if (!input->kept &&
        !again_open(&input->in, merge->watch, input->input, merge->opts->filter, err))
        return false;
    input->kept = input->in.spool.open;
    return again_rewind(&input->in, input->input->path, err);
}

static bool scan_input(struct merge *merge, size_t input, struct rd_err *err)
{
    struct merge_input *in = &merge->inputs[input];
    struct merge_lib lib = {0};
    struct rdb_event ev;
    enum rdb_status status;
    if (!merge_open(merge, in, err))
        return false;
    while ((status = rdb_reader_next(in->in.reader, &ev)) == RDB_EVENT) {
        if (scan_event(merge, input, &ev, &lib, err))
            continue;
        rd_err_origin(err, rd_src_origin(in->in.src));
        return false;
    }
    if (status != RDB_END)
        return again_fail(&in->in, err);
    in->count.dialect = in->in.dialect;
    in->count.version = in->in.version;
    rd_watch_end(merge->watch);
    if (!in->kept)
        again_close(&in->in);
    return true;
}

/* ---- duplicates ---- */

static struct merge_place place_of(const uint8_t *bytes)
{
    return (struct merge_place){.input = rd_get_be32(bytes),
                                .record = rd_get_be64(bytes + 4),
                                .db = rd_get_be64(bytes + 12)};
}

static bool stands_before(const struct merge_place *a, const struct merge_place *b)
{
    return a->input != b->input ? a->input < b->input : a->record < b->record;
}

/* Keeps the first few, by the position of the second occurrence. */
static void note_example(struct merge *merge, const uint8_t *first, const uint8_t *again)
{
    struct merge_conflict new = {place_of(first), place_of(again)};
    size_t at = merge->n_examples;
    while (at > 0 && stands_before(&new.again, &merge->examples[at - 1].again))
        at--;
    if (at == MERGE_EXAMPLES)
        return;
    size_t n = merge->n_examples < MERGE_EXAMPLES ? merge->n_examples++ : MERGE_EXAMPLES - 1;
    memmove(&merge->examples[at + 1], &merge->examples[at], (n - at) * sizeof new);
    merge->examples[at] = new;
}

static bool lose(struct merge *merge, const uint8_t *place, struct rd_err *err)
{
    return sort_add(&merge->losers, rd_slice(place, LOSER_LEN), (struct rd_slice){0}, err);
}

/* Equal keys are ordered by position, so the first one is the first occurrence. */
static bool find_losers(struct merge *merge, struct rd_err *err)
{
    struct rd_slice key, value;
    uint8_t hash[RD_HASH128_LEN], place[PLACE_LEN];
    bool any = false, end;
    if (!sort_begin(&merge->keys, err))
        return false;
    while (sort_next(&merge->keys, &key, &value, &end, err)) {
        if (end)
            return true;
        bool same = any && memcmp(hash, key.ptr, sizeof hash) == 0;
        if (same) {
            merge->conflicts++;
            note_example(merge, place, value.ptr);
            if (!lose(merge, merge->opts->policy == MERGE_LAST ? place : value.ptr, err))
                return false;
        }
        if (!same || merge->opts->policy == MERGE_LAST)
            memcpy(place, value.ptr, sizeof place);
        memcpy(hash, key.ptr, sizeof hash);
        any = true;
    }
    return false;
}

bool merge_scan(struct merge *merge, struct rd_err *err)
{
    if (!sort_init(&merge->keys, MERGE_MEMORY, err))
        return false;
    for (size_t i = 0; i < merge->n_inputs; i++)
        if (!scan_input(merge, i, err))
            return false;
    if (!sort_init(&merge->losers, MERGE_MEMORY / 4, err) || !find_losers(merge, err))
        return false;
    sort_done(&merge->keys);
    return sort_begin(&merge->losers, err);
}
