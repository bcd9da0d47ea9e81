#include "chunks/split_impl.h"

#include "base/siphash.h"

#include <string.h>

enum { WINDOW = 256 * 1024, COMPACT = 4 * 1024 * 1024, LONGEST_NAME = 16 * 1024 * 1024 };

uint64_t chunks_hash_key(const uint8_t key[CHUNKS_KEY], uint64_t db, struct rd_slice name)
{
    struct rd_siphash hash;
    rd_siphash_begin(&hash, key);
    rd_siphash_add_u64(&hash, db);
    rd_siphash_add(&hash, name.ptr, name.len);
    struct rd_hash128 sum = rd_siphash_end(&hash);
    return sum.lo != 0 ? sum.lo : 1;
}

uint64_t chunks_hash_item(const uint8_t key[CHUNKS_KEY], uint64_t db, struct rd_slice bytes)
{
    struct rd_siphash hash;
    rd_siphash_begin(&hash, key + RD_SIPHASH_KEY);
    rd_siphash_add_u64(&hash, db);
    rd_siphash_add(&hash, bytes.ptr, bytes.len);
    return rd_siphash_end(&hash).lo;
}

/* The table of the rolling hash is secret, so that sizes of pieces reveal nothing of the content.
  */
static void make_gear(struct chunks_split *s)
{
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        s->gear[i] = chunks_hash_item(s->key, UINT64_MAX, rd_slice(&byte, 1));
    }
}

bool chunks_split_init(struct chunks_split *s, const uint8_t key[CHUNKS_KEY],
                       const struct chunks_split_ops *ops, struct rd_err *err)
{
    const struct rd_src_opts src = RD_SRC_OPTS(.window = WINDOW);
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES, .no_sum = true,
                                                        .newer = true, .updates = true);
    *s = (struct chunks_split){.ops = *ops};
    memcpy(s->key, key, CHUNKS_KEY);
    make_gear(s);
    return rd_src_open_push(&s->push, &src, err) && rdb_reader_new(&s->reader, s->push, &opts, err);
}

void chunks_split_done(struct chunks_split *s)
{
    rdb_reader_free(s->reader);
    rd_src_close(s->push);
    rd_buf_done(&s->raw);
    rd_buf_done(&s->name);
    s->reader = NULL;
    s->push = NULL;
}

static uint64_t begin_of(const struct chunks_split *s)
{
    return s->raw_at + s->used;
}

/* The length of the next piece among n bytes of the item, or 0: it does not end here. */
static size_t find_cut(struct chunks_split *s, const uint8_t *bytes, size_t n)
{
    const uint64_t mask = ((uint64_t)1 << CHUNKS_PIECE_BITS) - 1;
    if (s->scanned < CHUNKS_PIECE_MIN - 64) {
        s->scanned = CHUNKS_PIECE_MIN - 64;
        s->roll = 0;
    }
    while (s->scanned < n) {
        s->roll = (s->roll << 1) + s->gear[bytes[s->scanned++]];
        /* The high bits have seen the last 64 bytes. */
        bool cut =
            s->scanned >= CHUNKS_PIECE_MIN && (s->roll >> (64 - CHUNKS_PIECE_BITS) & mask) == 0;
        if (cut || s->scanned == CHUNKS_PIECE_MAX) {
            size_t len = (size_t)s->scanned;
            s->scanned = 0;
            return len;
        }
    }
    return 0;
}

/* Passes on the pieces of a long item that end before `to`, or all of them. */
static bool cut_pieces(struct chunks_split *s, uint64_t to, bool all, struct rd_err *err)
{
    while (begin_of(s) < to) {
        size_t n = (size_t)(to - begin_of(s));
        const uint8_t *bytes = s->raw.ptr + s->used;
        size_t len = find_cut(s, bytes, n);
        if (len == 0 && !all)
            return true;
        len = len == 0 ? n : len;
        if (!s->ops.piece(s->ops.ctx, rd_slice(bytes, len), err))
            return false;
        s->used += len;
    }
    if (all)
        s->scanned = 0;
    return true;
}

/* The item ends before `to`. */
static bool end_item(struct chunks_split *s, uint64_t to, struct rd_err *err)
{
    struct chunks_item item = {.is_key = s->in_value, .db = s->db};
    size_t n = (size_t)(to - begin_of(s));
    item.hash = s->in_value ? s->hash : 0;
    item.name = s->in_value ? rd_buf_slice(&s->name) : rd_slice("", 0);
    item.is_long = s->is_long || n > CHUNKS_ITEM_MAX;
    if (item.is_long) {
        s->is_long = true;
        if (!cut_pieces(s, to, true, err))
            return false;
    } else {
        item.bytes = rd_slice(s->raw.ptr + s->used, n);
        s->used += n;
    }
    s->is_long = false;
    s->in_value = false;
    return s->ops.item(s->ops.ctx, &item, err);
}

static bool on_event(struct chunks_split *s, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind == RDB_TEMPLATE || ev->kind == RDB_UPDATE || ev->kind == RDB_KEY_META_BEGIN)
        s->bound = true;
    if (ev->kind != RDB_KEY)
        return true;
    if ((ev->key.record > begin_of(s) || s->is_long) && !end_item(s, ev->key.record, err))
        return false;
    s->db = ev->key.db;
    s->hash = chunks_hash_key(s->key, ev->key.db, ev->key.name);
    s->in_value = true;
    rd_buf_reset(&s->name);
    return rd_buf_add(&s->name, ev->key.name.ptr, ev->key.name.len) ||
           rd_err_nomem(err, ev->key.name.len);
}

/* Reads as far as the bytes reach. */
static bool pump(struct chunks_split *s, struct rd_err *err)
{
    while (!s->opaque) {
        struct rdb_event ev;
        enum rdb_status status =
            s->in_value ? rdb_reader_skip_value(s->reader) : rdb_reader_next(s->reader, &ev);
        if (status == RDB_MORE)
            return true;
        if (status != RDB_EVENT) {
            s->opaque = true; /* the end, or what is not understood */
            s->bound = s->bound || status == RDB_FAIL;
            s->in_value = false;
        } else if (s->in_value) {
            if (!end_item(s, rd_src_offset(s->push), err))
                return false;
        } else if (!on_event(s, &ev, err)) {
            return false;
        }
    }
    return true;
}

/* Up to where bytes certainly belong to the item. */
static uint64_t certain(const struct chunks_split *s)
{
    if (s->opaque)
        return s->end;
    return s->in_value ? rd_src_offset(s->push) : rdb_reader_record(s->reader);
}

/* Bytes that were passed on make room. */
static void compact(struct chunks_split *s)
{
    if (s->used == s->raw.len || s->used >= COMPACT) {
        memmove(s->raw.ptr, s->raw.ptr + s->used, s->raw.len - s->used);
        s->raw.len -= s->used;
        s->raw_at += s->used;
        s->used = 0;
    }
}

static bool after_bytes(struct chunks_split *s, struct rd_err *err)
{
    uint64_t to = certain(s);
    if (to > begin_of(s) && to - begin_of(s) > CHUNKS_ITEM_MAX)
        s->is_long = true;
    bool ok = !s->is_long || to <= begin_of(s) || cut_pieces(s, to, false, err);
    compact(s);
    return ok;
}

bool chunks_split_add(struct chunks_split *s, struct rd_slice bytes, struct rd_err *err)
{
    while (bytes.len > 0) {
        size_t n = bytes.len < WINDOW / 4 ? bytes.len : WINDOW / 4;
        size_t room = s->opaque ? n : rd_src_push_room(s->push);
        n = room < n ? room : n;
        if (!rd_buf_add(&s->raw, bytes.ptr, n))
            return rd_err_nomem(err, n);
        s->end += n;
        if (!s->opaque && !rd_src_push(s->push, rd_slice(bytes.ptr, n)))
            return rd_err_nomem(err, n);
        bytes.ptr += n;
        bytes.len -= n;
        if (!pump(s, err) || !after_bytes(s, err))
            return false;
    }
    return true;
}

bool chunks_split_end(struct chunks_split *s, struct rd_err *err)
{
    rd_src_push_end(s->push);
    if (!pump(s, err))
        return false;
    return s->end == begin_of(s) && !s->is_long ? true : end_item(s, s->end, err);
}

/* ---- names of records ---- */

static uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t number = 0;
    for (size_t i = 0; i < n; i++)
        number = number << 8 | p[i];
    return number;
}

/* A length at *at. False: it is not one, or bytes are missing. */
static bool get_length(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    const uint8_t *p = *at;
    size_t left = (size_t)(end - p);
    if (left == 0)
        return false;
    size_t n = p[0] < 0x40 ? 1 : p[0] < 0x80 ? 2 : p[0] == 0x80 ? 5 : p[0] == 0x81 ? 9 : left + 1;
    if (n > left)
        return false;
    *ret = n == 1 ? p[0] : n == 2 ? big_endian(p, 2) & 0x3fff : big_endian(p + 1, n - 1);
    *at += n;
    return true;
}

static bool get_integer(const uint8_t *p, const uint8_t *end, struct rd_buf *ret)
{
    char digits[RD_NUM_I64_MAX];
    size_t n = (size_t)1 << (*p & 3);
    if ((size_t)(end - p) < n + 1)
        return false;
    uint32_t number = 0;
    for (size_t i = 0; i < n; i++)
        number |= (uint32_t)p[1 + i] << (8 * i);
    int32_t value = n == 1 ? (int8_t)number : n == 2 ? (int16_t)number : (int32_t)number;
    return rd_buf_add(ret, digits, rd_num_put_i64(digits, value));
}

/* A compressed name, read as if it were a value. */
static bool get_packed(const uint8_t *p, const uint8_t *end, struct rd_buf *ret)
{
    const uint8_t *after = p + 1, type = 0;
    uint64_t packed, len;
    struct rd_buf value = {0};
    struct rd_src *src = NULL;
    struct rdb_reader *reader = NULL;
    struct rdb_event ev;
    if (!get_length(&after, end, &packed) || !get_length(&after, end, &len) ||
        packed > (uint64_t)(end - after) || len > LONGEST_NAME)
        return false;
    size_t before = ret->len;
    bool ok = rd_buf_add(&value, &type, 1) &&
              rd_buf_add(&value, p, (size_t)(after - p) + (size_t)packed) &&
              rd_src_open_memory(&src, rd_buf_slice(&value), NULL, NULL) &&
              rdb_reader_new_value(&reader, src, RDB_REDIS, RDB_VERSION_CHECKSUM, NULL, NULL);
    while (ok && rdb_reader_next(reader, &ev) == RDB_EVENT)
        if (ev.kind == RDB_ELEM)
            ok = rd_buf_add(ret, ev.elem.str.ptr, ev.elem.str.len);
    rdb_reader_free(reader);
    rd_src_close(src);
    rd_buf_done(&value);
    return ok && ret->len - before == len;
}

static bool get_string(const uint8_t *p, const uint8_t *end, struct rd_buf *ret)
{
    uint64_t len;
    if (p == end)
        return false;
    if (*p >= 0xc0)
        return *p <= 0xc2 ? get_integer(p, end, ret) : *p == 0xc3 && get_packed(p, end, ret);
    return get_length(&p, end, &len) && len <= (uint64_t)(end - p) &&
           rd_buf_add(ret, p, (size_t)len);
}

bool chunks_record_name(struct rd_slice record, struct rd_buf *ret)
{
    const uint8_t *p = record.ptr, *end = p + record.len;
    uint64_t idle;
    for (; p < end && *p >= RDB_OP_IDLE; p++) {
        size_t n = *p == RDB_OP_EXPIRETIME_MS ? 8
                   : *p == RDB_OP_EXPIRETIME  ? 4
                   : *p == RDB_OP_FREQ        ? 1
                                              : 0;
        if (*p == RDB_OP_IDLE) {
            const uint8_t *after = p + 1;
            if (!get_length(&after, end, &idle))
                return false;
            n = (size_t)(after - p - 1);
        } else if (n == 0) {
            return false;
        }
        if ((size_t)(end - p) <= n)
            return false;
        p += n;
    }
    /* Numbers of types are below those of opcodes that may come before a type. */
    return p < end && *p < RDB_OP_RAM_LRU && get_string(p + 1, end, ret);
}
