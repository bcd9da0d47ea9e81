/* correction_misplaced.c - finds bytes that are in the wrong place or missing, by the checksum of
 * the file.
 *
 * CRC-64 is linear, so the checksum at any offset can be computed from both sides: forwards from
 * the start of the file, and backwards from the checksum that is stored at its end. If bytes were
 * inserted, the forward value before them is the backward value after them. If bytes are missing,
 * they lead from the forward to the backward value. For any two values 8 bytes exist that do, so
 * few bytes that do are the missing ones.
 *
 * If two blocks were exchanged, the difference between both checksums is the product of two sums:
 * that of the checksums of the blocks, and that of the powers of x by which their distances to the
 * end multiply them.
 */
#include "rdb/recover/correction.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "base/mem.h"
#include "rdb/rdb.h"

enum {
    WINDOW = 1 << 19,  /* bytes that are searched for an insertion at once */
    STEP = WINDOW / 2, /* longer insertions may not be found */
    WINDOWS_MAX = 16,  /* of each search */
    PROBES = 64,       /* slots of the table that are examined for a value */
    BLOCK_LEAST = 16,  /* bytes of a block */
    BLOCK_MOST = 1 << 20,
    BLOCKS_MAX = 1 << 18,
    PAIRS_MAX = 1 << 21 /* of blocks of one size that are compared */
};

struct search {
    struct rd_src *src;
    uint64_t from, to; /* the search is in this range */
    uint64_t end;      /* of the bytes that the checksum covers */
    uint64_t stored;   /* the checksum at the end of the file */
    uint64_t computed;
    uint64_t block; /* the size of a block */
    uint64_t n;     /* blocks */
    uint64_t *sums; /* of each block; a shorter one at the end of the file is not included */
    struct rdb_correction *ret;
    struct rd_err *err;
};

/* Reads the file once: the checksums of its blocks, and both checksums of the whole. */
static bool read_sums(struct search *f)
{
    struct rd_slice s;
    uint64_t shift = rd_crc64_combine(RD_CRC64_ONE, 0, f->block);
    uint64_t rest = 0;
    if (!rd_src_seek(f->src, 0, f->err))
        return false;
    for (uint64_t i = 0; i < f->n; i++) {
        f->sums[i] = 0;
        if (!rdb_recover_sum(f->src, f->block, &f->sums[i], NULL, f->err))
            return false;
        f->computed = rd_crc64_multiply(f->computed, shift) ^ f->sums[i];
    }
    if (!rdb_recover_sum(f->src, f->end - f->n * f->block, &rest, NULL, f->err))
        return false;
    f->computed = rd_crc64_combine(f->computed, rest, f->end - f->n * f->block);
    if (rd_src_need(f->src, RDB_TRAILER_LEN, &s) != RD_SRC_OK)
        return rdb_recover_truncated(f->src, f->err);
    f->stored = rd_get_le64(s.ptr);
    return true;
}

/* -- inserted and missing bytes -- */

/* The forward values in one window. */
struct table {
    uint64_t *sums;  /* sums[i]: the checksum of everything before bytes[i] */
    uint32_t *slots; /* 1 + index of sums; 0: free */
    uint8_t *bytes;
    size_t mask; /* of slots */
};

/* For windows of at most so many bytes. The table is one block, which begins with the sums. */
static bool table_init(struct table *t, size_t most, struct rd_err *err)
{
    size_t slots = 64;
    while (slots < 2 * most)
        slots *= 2;
    size_t size = (most + 1) * sizeof *t->sums + slots * sizeof *t->slots + most;
    t->sums = rd_alloc(size);
    if (t->sums == NULL)
        return rd_err_nomem(err, size);
    t->slots = (uint32_t *)(t->sums + most + 1);
    t->bytes = (uint8_t *)(t->slots + slots);
    t->mask = slots - 1;
    return true;
}

static void table_done(struct table *t)
{
    rd_free(t->sums);
}

static void table_add(struct table *t, uint32_t i)
{
    size_t at = t->sums[i] & t->mask;
    for (unsigned n = 0; n < PROBES; n++, at = (at + 1) & t->mask) {
        if (t->slots[at] != 0 && t->sums[t->slots[at] - 1] != t->sums[i])
            continue;
        if (t->slots[at] == 0)
            t->slots[at] = i + 1;
        return;
    }
}

/* The first index with that sum, or `none`. */
static size_t table_find(const struct table *t, uint64_t sum, size_t none)
{
    size_t at = sum & t->mask;
    for (unsigned n = 0; n < PROBES && t->slots[at] != 0; n++, at = (at + 1) & t->mask)
        if (t->sums[t->slots[at] - 1] == sum)
            return t->slots[at] - 1;
    return none;
}

/* `at` is the offset of a window, and `len` its size. */
static void search_window(struct search *f, struct table *t, uint64_t at, size_t len)
{
    uint64_t rest = f->end - at - len;
    /* The checksum of the bytes after the window, and what it must be before them. */
    uint64_t after = f->computed ^ rd_crc64_combine(t->sums[len], 0, rest);
    uint64_t back = rd_crc64_split(f->stored, after, rest);
    memset(t->slots, 0, (t->mask + 1) * sizeof *t->slots);
    for (size_t i = 0; i <= len; i++)
        table_add(t, (uint32_t)i);
    for (size_t i = len;; i--) {
        size_t first = table_find(t, back, len);
        if (first < i) {
            f->ret->kind = RDB_CORRECTION_INSERTED;
            f->ret->at = at + first;
            f->ret->len = i - first;
        } else if (f->ret->kind == RDB_CORRECTION_NONE) {
            f->ret->len =
                rd_crc64_between(t->sums[i], back, RDB_RECOVER_MISSING_MOST, f->ret->bytes);
            f->ret->at = at + i;
            if (f->ret->len > 0)
                f->ret->kind = RDB_CORRECTION_MISSING;
        }
        if (i == 0)
            break;
        back = rd_crc64_undo(back, &t->bytes[i - 1], 1);
    }
}

/* Whether the file without the inserted bytes is also its end alone. Then it is another file: a
 * snapshot inside a value, which begins like this one. */
static bool is_end_of_file(struct search *f, const struct rdb_correction *found, bool *ret)
{
    uint64_t first = 0;
    uint64_t second = 0;
    if (!rd_src_seek(f->src, 0, f->err) ||
        !rdb_recover_sum(f->src, found->at, &first, NULL, f->err) ||
        !rd_src_seek(f->src, found->len, f->err) ||
        !rdb_recover_sum(f->src, found->at, &second, NULL, f->err))
        return false;
    *ret = first == second;
    return true;
}

/* Windows overlap, so that an insertion of at most STEP bytes is within one of them. */
static bool search_windows(struct search *f, struct table *t)
{
    uint64_t sum = 0;
    bool ok =
        rd_src_seek(f->src, 0, f->err) && rdb_recover_sum(f->src, f->from, &sum, NULL, f->err);
    uint64_t at = f->from;
    for (unsigned n = 0; ok && n < WINDOWS_MAX && at < f->to; n++, at += STEP) {
        size_t len = f->to - at < WINDOW ? (size_t)(f->to - at) : WINDOW;
        uint64_t ignored = 0;
        ok = rd_src_seek(f->src, at, f->err) &&
             rdb_recover_sum(f->src, len, &ignored, t->bytes, f->err);
        if (!ok)
            break;
        t->sums[0] = sum;
        for (size_t i = 0; i < len; i++)
            t->sums[i + 1] = rd_crc64(t->sums[i], &t->bytes[i], 1);
        search_window(f, t, at, len);
        if (f->ret->kind != RDB_CORRECTION_NONE || at + len == f->to)
            break;
        sum = t->sums[STEP];
    }
    return ok;
}

static bool find_inserted_or_missing(struct search *f)
{
    struct table t = {0};
    bool other = false;
    uint64_t range = f->to - f->from;
    if (!table_init(&t, range < WINDOW ? (size_t)range : WINDOW, f->err))
        return false;
    bool ok = search_windows(f, &t);
    table_done(&t);
    if (ok && f->ret->kind == RDB_CORRECTION_INSERTED)
        ok = is_end_of_file(f, f->ret, &other);
    if (other)
        f->ret->kind = RDB_CORRECTION_NONE;
    return ok;
}

/* -- exchanged blocks -- */

/* The products of one factor and all values of each byte. */
struct multiples {
    uint64_t of[8][256];
};

static void multiples_init(struct multiples *m, uint64_t factor)
{
    for (unsigned byte = 0; byte < 8; byte++) {
        m->of[byte][0] = 0;
        for (unsigned value = 1; value < 256; value++) {
            unsigned rest = value & (value - 1);
            m->of[byte][value] = rest != 0 ? m->of[byte][rest] ^ m->of[byte][value ^ rest]
                                           : rd_crc64_multiply((uint64_t)value << 8 * byte, factor);
        }
    }
}

static inline uint64_t times(const struct multiples *m, uint64_t a)
{
    uint64_t product = 0;
    for (unsigned byte = 0; byte < 8; byte++)
        product ^= m->of[byte][a >> 8 * byte & 0xff];
    return product;
}

/* For each block, the power of x that multiplies its checksum, and the product. */
struct power {
    uint64_t x, product;
};

static void set_powers(const struct search *f, struct power *powers)
{
    uint64_t shift = rd_crc64_combine(RD_CRC64_ONE, 0, f->block);
    uint64_t x = rd_crc64_combine(RD_CRC64_ONE, 0, f->end - f->n * f->block);
    for (uint64_t i = f->n; i-- > 0; x = rd_crc64_multiply(x, shift))
        powers[i] = (struct power){x, rd_crc64_multiply(f->sums[i], x)};
}

/* The block with which block i was exchanged, or n. */
static uint64_t partner_of(const struct search *f, const struct power *powers, uint64_t i)
{
    struct multiples by_sum, by_x;
    multiples_init(&by_sum, f->sums[i]);
    multiples_init(&by_x, powers[i].x);
    uint64_t want = f->stored ^ f->computed ^ powers[i].product;
    for (uint64_t j = 0; j < f->n; j++)
        if ((times(&by_sum, powers[j].x) ^ times(&by_x, f->sums[j]) ^ powers[j].product) == want)
            return j;
    return f->n;
}

static void find_exchanged_of_size(struct search *f, struct power *powers)
{
    uint64_t first = f->from / f->block;
    uint64_t last = f->to / f->block;
    set_powers(f, powers);
    for (uint64_t i = first; i <= last && i < f->n && (i - first) * f->n < PAIRS_MAX; i++) {
        uint64_t other = partner_of(f, powers, i);
        if (other == f->n)
            continue;
        uint64_t low = i < other ? i : other;
        *f->ret = (struct rdb_correction){.kind = RDB_CORRECTION_EXCHANGED,
                                          .at = low * f->block,
                                          .len = f->block,
                                          .other = (i + other - low) * f->block};
        return;
    }
}

/* Blocks of twice the size. */
static void double_blocks(struct search *f)
{
    uint64_t shift = rd_crc64_combine(RD_CRC64_ONE, 0, f->block);
    f->n /= 2;
    f->block *= 2;
    for (uint64_t i = 0; i < f->n; i++)
        f->sums[i] = rd_crc64_multiply(f->sums[2 * i], shift) ^ f->sums[2 * i + 1];
}

static bool find_exchanged(struct search *f)
{
    struct power *powers = rd_calloc(f->n + 1, sizeof *powers);
    if (powers == NULL)
        return rd_err_nomem(f->err, (f->n + 1) * sizeof *powers);
    for (; f->n >= 2 && f->block <= BLOCK_MOST && f->ret->kind == RDB_CORRECTION_NONE;
         double_blocks(f))
        find_exchanged_of_size(f, powers);
    rd_free(powers);
    return true;
}

bool rdb_recover_find_misplaced(struct rd_src *src, uint64_t from, uint64_t to,
                                struct rdb_correction *ret, struct rd_err *err)
{
    struct search f = {.src = src, .block = BLOCK_LEAST, .ret = ret, .err = err};
    uint64_t size = rd_src_size(src);
    *ret = (struct rdb_correction){0};
    if (size == RD_NO_OFFSET || size <= RDB_MAGIC_LEN + RDB_TRAILER_LEN)
        return true;
    f.end = size - RDB_TRAILER_LEN;
    f.to = to < f.end ? to : f.end;
    f.from = from < f.to ? from : f.to;
    while (f.end / f.block > BLOCKS_MAX)
        f.block *= 2;
    f.n = f.end / f.block;
    f.sums = rd_calloc(f.n + 1, sizeof *f.sums);
    if (f.sums == NULL)
        return rd_err_nomem(err, (f.n + 1) * sizeof *f.sums);
    bool ok = read_sums(&f);
    if (ok && f.stored != 0 && f.stored != f.computed)
        ok = find_inserted_or_missing(&f) &&
             (ret->kind != RDB_CORRECTION_NONE || find_exchanged(&f));
    rd_free(f.sums);
    return ok;
}
