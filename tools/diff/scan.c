/* Reads both files into records, sorts them and compares them.
 *
 *     keys    key: hash (16)                 value: side (1)  db (8)  one key
 *     found   key: side (1)  record (8)      value: db (8)  flags (1)  both keys
 *     named   key: db (8)  name, cut         value: the same
 *
 *     one key:  present (1)  kind (1)  expiry (8)  record (8)  content (16)
 */
#include "tools/diff/priv.h"

#include "base/endian.h"

enum { KEY_LEN = 34, FOUND_LEN = 9 + 2 * KEY_LEN };

static bool is_near(int64_t a, int64_t b, uint64_t tolerance_ms)
{
    if (a == b)
        return true;
    if (a == RDB_NO_EXPIRE || b == RDB_NO_EXPIRE)
        return false;
    uint64_t apart = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    return apart <= tolerance_ms;
}

bool diff_same_expiry(const struct diff *diff, int64_t a, int64_t b)
{
    return diff->ignore_expire || is_near(a, b, diff->tolerance_ms);
}

bool diff_same_key_expiry(const struct diff *diff, int64_t a, int64_t b)
{
    bool rough = diff->live_result[DIFF_A].rough || diff->live_result[DIFF_B].rough;
    uint64_t least = rough ? LIVE_ROUGH_MS : 0;
    return diff->ignore_expire ||
           is_near(a, b, diff->tolerance_ms > least ? diff->tolerance_ms : least);
}

bool diff_is_due(const struct diff *diff, enum diff_side side, int64_t expire_ms)
{
    return diff->judge_due && expire_ms != RDB_NO_EXPIRE && expire_ms <= diff->due_ms[side];
}

bool diff_must_look(const struct diff *diff, const struct diff_found *found)
{
    return (diff->tolerance_ms > 0 || diff->judge_due) && (found->flags & DIFF_VALUE) != 0 &&
           found->key[DIFF_A].kind == RDB_KIND_HASH;
}

/* ---- records ---- */

static void put_one(uint8_t *p, const struct diff_key *key)
{
    p[0] = key->present;
    p[1] = (uint8_t)key->kind;
    rd_put_be64(p + 2, (uint64_t)key->expire_ms);
    rd_put_be64(p + 10, key->record);
    rd_hash128_put(p + 18, key->content);
}

static struct diff_key get_one(const uint8_t *p)
{
    return (struct diff_key){.present = p[0],
                             .kind = (enum rdb_kind)p[1],
                             .expire_ms = (int64_t)rd_get_be64(p + 2),
                             .record = rd_get_be64(p + 10),
                             .content = rd_hash128_get(p + 18)};
}

static void put_found(uint8_t *p, const struct diff_found *found)
{
    rd_put_be64(p, found->db);
    p[8] = (uint8_t)found->flags;
    put_one(p + 9, &found->key[DIFF_A]);
    put_one(p + 9 + KEY_LEN, &found->key[DIFF_B]);
}

static struct diff_found get_found(const uint8_t *p)
{
    return (struct diff_found){
        .db = rd_get_be64(p), .flags = p[8], .key = {get_one(p + 9), get_one(p + 9 + KEY_LEN)}};
}

/* ---- one file ---- */

/* The key that is being read. */
struct reading {
    enum diff_side side;
    struct rdb_content content;
    uint8_t hash[RD_HASH128_LEN];
    uint64_t db;
    struct diff_key key;
    bool in_value; /* false: in a record of a module */
    struct rd_siphash function;
};

static bool scan_key(struct diff *diff, struct reading *at, const struct rdb_event *ev,
                     struct rd_err *err)
{
    struct again *in = &diff->in[at->side];
    bool wanted;
    cli_tick(diff->cli);
    if (!sized_wants(&in->sized, ev, &wanted, err))
        return false;
    if (!wanted)
        return rdb_reader_skip_value(in->reader) == RDB_EVENT || again_fail(in, err);
    rd_hash128_put(at->hash, rdb_content_key(&diff->hashing, ev->key.db, ev->key.name));
    at->db = ev->key.db;
    at->key = (struct diff_key){.present = true,
                                .kind = ev->key.type->kind,
                                .expire_ms = ev->key.expire_ms,
                                .record = ev->key.record};
    at->in_value = true;
    return true;
}

static bool end_key(struct diff *diff, struct reading *at, struct rd_err *err)
{
    uint8_t value[9 + KEY_LEN];
    at->key.content = rdb_content_sum(&at->content);
    at->in_value = false;
    diff->counts.keys[at->side]++;
    value[0] = (uint8_t)at->side;
    rd_put_be64(value + 1, at->db);
    put_one(value + 9, &at->key);
    return sort_add(&diff->keys, rd_slice(at->hash, sizeof at->hash), rd_slice(value, sizeof value),
                    err);
}

/* The order of libraries does not matter. */
static void scan_function(struct diff *diff, struct reading *at, const struct rdb_string *code)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice bytes = rdb_string_bytes(code, tmp);
    if (code->first)
        rd_siphash_begin(&at->function, diff->hashing.key);
    rd_siphash_add(&at->function, bytes.ptr, bytes.len);
    if (code->more)
        return;
    diff->functions[at->side] =
        rd_hash128_add(diff->functions[at->side], rd_siphash_end(&at->function));
    diff->n_functions[at->side]++;
}

static bool scan_event(struct diff *diff, struct reading *at, const struct rdb_event *ev,
                       struct rd_err *err)
{
    if (at->in_value)
        return rdb_content_put(&at->content, ev, err) &&
               (ev->kind != RDB_VALUE_END || end_key(diff, at, err));
    if (ev->kind == RDB_KEY)
        return scan_key(diff, at, ev, err);
    if (ev->kind == RDB_FUNCTION)
        scan_function(diff, at, &ev->function.code);
    return ev->kind != RDB_TRAILER || again_check_end(&diff->in[at->side], ev, err);
}

static bool scan_file(struct diff *diff, enum diff_side side, struct rd_err *err)
{
    struct again *in = &diff->in[side];
    struct reading at = {.side = side};
    struct rdb_event ev;
    enum rdb_status status;
    rdb_content_init(&at.content, &diff->hashing);
    if (!again_rewind(in, diff->shown[side], err))
        return false;
    while ((status = rdb_reader_next(in->reader, &ev)) == RDB_EVENT) {
        if (scan_event(diff, &at, &ev, err))
            continue;
        rd_err_origin(err, in->src->origin);
        return false;
    }
    cli_progress_end(diff->cli);
    return status == RDB_END || again_fail(in, err);
}

/* ---- comparison ---- */

static void count(struct diff *diff, const struct diff_found *found)
{
    struct diff_counts *counts = &diff->counts;
    if (!found->key[DIFF_A].present || !found->key[DIFF_B].present) {
        counts->only[found->key[DIFF_A].present ? DIFF_A : DIFF_B]++;
        return;
    }
    counts->different++;
    counts->type += (found->flags & DIFF_TYPE) != 0;
    counts->expiry += (found->flags & DIFF_EXPIRY) != 0;
    counts->value += (found->flags & DIFF_VALUE) != 0;
}

/* The key exists on both sides. */
static bool hold(struct diff *diff, struct diff_found *found, struct rd_err *err)
{
    const struct diff_key *a = &found->key[DIFF_A], *b = &found->key[DIFF_B];
    uint8_t key[9], value[FOUND_LEN];
    if (a->present && b->present) {
        if (a->kind != b->kind)
            found->flags |= DIFF_TYPE;
        else if (!rd_hash128_eq(a->content, b->content))
            found->flags |= DIFF_VALUE;
        if (!diff_same_key_expiry(diff, a->expire_ms, b->expire_ms))
            found->flags |= DIFF_EXPIRY;
        if (found->flags == 0)
            return true;
    } else if (diff_is_due(diff, a->present ? DIFF_A : DIFF_B,
                           a->present ? a->expire_ms : b->expire_ms)) {
        diff->n_due++;
        return true;
    }
    if (!diff_must_look(diff, found))
        count(diff, found);
    key[0] = a->present ? DIFF_A : DIFF_B;
    rd_put_be64(key + 1, found->key[key[0]].record);
    put_found(value, found);
    return sort_add(&diff->found, rd_slice(key, sizeof key), rd_slice(value, sizeof value), err);
}

/* If a key occurs twice (SCAN may return a key again), the later record counts. */
static void take_key(struct diff *diff, struct diff_key *key, uint8_t side, struct diff_key one)
{
    if (key->present)
        diff->counts.keys[side]--;
    if (!key->present || one.record > key->record)
        *key = one;
}

static bool hold_all(struct diff *diff, struct rd_err *err)
{
    struct rd_slice key, value;
    uint8_t hash[RD_HASH128_LEN];
    struct diff_found found = {0};
    bool any = false, end;
    if (!sort_begin(&diff->keys, err))
        return false;
    while (sort_next(&diff->keys, &key, &value, &end, err)) {
        if (any && (end || memcmp(hash, key.ptr, sizeof hash) != 0)) {
            if (!hold(diff, &found, err))
                return false;
            found = (struct diff_found){0};
        }
        if (end)
            return true;
        memcpy(hash, key.ptr, sizeof hash);
        found.db = rd_get_be64(value.ptr + 1);
        take_key(diff, &found.key[value.ptr[0]], value.ptr[0], get_one(value.ptr + 9));
        any = true;
    }
    return false;
}

bool diff_scan(struct diff *diff, struct rd_err *err)
{
    if (!sort_init(&diff->keys, DIFF_MEMORY, err) || !scan_file(diff, DIFF_A, err) ||
        !scan_file(diff, DIFF_B, err) || !sort_init(&diff->found, DIFF_MEMORY / 4, err) ||
        !hold_all(diff, err))
        return false;
    sort_done(&diff->keys);
    diff->functions_differ =
        !diff->no_functions && !rd_hash128_eq(diff->functions[DIFF_A], diff->functions[DIFF_B]);
    return true;
}

/* ---- in the order of names ---- */

/* Reads the names, in the order of the files. */
static bool name_all(struct diff *diff, struct rd_err *err)
{
    struct rd_slice key, value;
    struct rdb_event ev;
    uint8_t name[8 + DIFF_NAME_SORTED];
    bool end;
    if (!sort_begin(&diff->found, err))
        return false;
    while (sort_next(&diff->found, &key, &value, &end, err)) {
        if (end)
            return true;
        uint64_t db = rd_get_be64(value.ptr);
        if (!again_seek(&diff->in[key.ptr[0]], rd_get_be64(key.ptr + 1), db, &ev, err))
            return false;
        size_t len = ev.key.name.len < DIFF_NAME_SORTED ? ev.key.name.len : DIFF_NAME_SORTED;
        rd_put_be64(name, db);
        if (len > 0)
            memcpy(name + 8, ev.key.name.ptr, len);
        if (!sort_add(&diff->named, rd_slice(name, 8 + len), value, err))
            return false;
    }
    return false;
}

/* Reads the whole name if it was cut for sorting. */
static bool whole_name(struct diff *diff, const struct diff_found *found, struct rd_slice cut,
                       struct rd_err *err)
{
    struct rd_slice name = cut;
    struct rdb_event ev;
    enum diff_side side = found->key[DIFF_A].present ? DIFF_A : DIFF_B;
    if (cut.len == DIFF_NAME_SORTED) {
        if (!again_seek(&diff->in[side], found->key[side].record, found->db, &ev, err))
            return false;
        name = ev.key.name;
    }
    rd_buf_reset(&diff->name);
    return rd_buf_add(&diff->name, name.ptr, name.len) || rd_err_nomem(err, name.len);
}

bool diff_each(struct diff *diff, diff_each_fn each, struct rd_err *err)
{
    struct rd_slice key, value;
    bool end;
    if (!sort_init(&diff->named, DIFF_MEMORY / 2, err) || !name_all(diff, err))
        return false;
    sort_done(&diff->found);
    if (!sort_begin(&diff->named, err))
        return false;
    while (sort_next(&diff->named, &key, &value, &end, err)) {
        if (end)
            return true;
        struct diff_found found = get_found(value.ptr);
        bool look = diff_must_look(diff, &found);
        if (!whole_name(diff, &found, rd_slice(key.ptr + 8, key.len - 8), err) ||
            !each(diff, &found, rd_buf_slice(&diff->name), err))
            return false;
        if (look && found.flags != 0)
            count(diff, &found);
    }
    return false;
}
