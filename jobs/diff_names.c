/* Gives the differences in the order of databases and names.
 *
 *     named   key: db (8)  name, cut         value: a difference (diff_found_put)
 */
#include "jobs/diff_impl.h"

#include "base/endian.h"

/* ---- differences as bytes ----
 *
 *     difference   db (8)  flags (1)  key of A  key of B
 *     key          present (1)  kind (1)  expiry (8)  record (8)
 */

static void put_key(uint8_t *p, const struct diff_key *key)
{
    p[0] = key->present;
    p[1] = (uint8_t)key->kind;
    rd_put_be64(p + 2, (uint64_t)key->expire_ms);
    rd_put_be64(p + 10, key->record);
}

static struct diff_key get_key(const uint8_t *p)
{
    return (struct diff_key){.present = p[0],
                             .kind = (enum rdb_kind)p[1],
                             .expire_ms = (int64_t)rd_get_be64(p + 2),
                             .record = rd_get_be64(p + 10)};
}

void diff_found_put(uint8_t p[DIFF_FOUND_LEN], const struct diff_found *found)
{
    rd_put_be64(p, found->db);
    p[8] = (uint8_t)found->flags;
    put_key(p + 9, &found->key[DIFF_A]);
    put_key(p + 9 + DIFF_FOUND_KEY_LEN, &found->key[DIFF_B]);
}

static struct diff_found get_found(const uint8_t *p)
{
    return (struct diff_found){.db = rd_get_be64(p),
                               .flags = p[8],
                               .key = {get_key(p + 9), get_key(p + 9 + DIFF_FOUND_KEY_LEN)}};
}

/* ---- the order of names ---- */

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

bool diff_names_each(struct diff *diff, diff_each_fn each, struct rd_err *err)
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
        if (look)
            diff_count_looked(diff, &found);
    }
    return false;
}
