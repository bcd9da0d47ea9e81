/* bitmap.c - bitmaps of Redis 8.12, which are the strings that their bits make up.
 *
 *     33        length:len  str
 *     str       buckets:u64  { high:u32  bitmap }*           high: of the bits' numbers, ascending
 *     bitmap    0000303a:u32  n:u32                   |      without runs
 *               n-1:u16 303b:u16 … has-runs[n/8]             303b is the low half of a u32
 *               { key:u16  members-1:u16 }*n                 key: the next 16 bits, ascending
 *               offset:u32 *n                                if n is 4 or more, or without runs
 *               container*n
 *     container member:u16 *members                   |      up to 4096 members
 *               bits[8192]                            |      more
 *               n:u16  { first:u16  last-first:u16 }*n       has-runs
 *
 * This is the portable 64-bit form of Roaring. Bit 0 is the highest one of the first byte, as for
 * SETBIT. The length counts zeros at the end.
 *
 * The containers ascend, so that the string is made from its first byte to its last.
 */
#include "rdb/read/reader_impl.h"

enum {
    COOKIE_PLAIN = 12346,
    COOKIE_RUNS = 12347,
    CONTAINERS_MAX = 1 << 16,
    WITHOUT_OFFSETS = 4, /* fewer containers, with runs, have no offsets */
    ARRAY_MAX = 4096,    /* members; more are bits */
    CHUNK_BITS = 1 << 16,
    CHUNK = CHUNK_BITS / 8,
    NUMBERS = 8, /* the longest field that is parsed at once */
    STRING_MAX = 512 << 20
};

static int bad(struct rdb_reader *r, const char *why)
{
    return rdb_read_corrupt_in(r, r->feed.off, rdb_feed_pos(&r->feed), why);
}

/* Makes n bytes of the string available. */
static int need(struct rdb_reader *r, size_t n)
{
    int st = rdb_feed_need(r, n);
    return st == RDB_END ? bad(r, "bitmap that ends early") : st;
}

static uint64_t start_of(const struct bits *b)
{
    return (uint64_t)b->high << 29 | (uint64_t)b->key * CHUNK;
}

struct container {
    uint16_t key;
    uint32_t members;
    bool runs;
};

static struct container container_of(const struct bits *b, uint32_t i)
{
    const uint8_t *p = b->head.ptr + b->flags_len + (size_t)i * 4;
    return (struct container){.key = rd_get_le16(p),
                              .members = (uint32_t)rd_get_le16(p + 2) + 1,
                              .runs = b->flags_len > 0 && (b->head.ptr[i / 8] >> (i % 8) & 1) != 0};
}

/* -- the heads -- */

static int read_count(struct rdb_reader *r)
{
    int st = need(r, 8);
    if (st != STEP_ON)
        return st;
    r->bits.buckets = rd_get_le64(r->feed.p);
    r->feed.p += 8;
    r->bits.phase = BITS_BUCKET;
    return STEP_ON;
}

static int read_bucket(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    if (b->buckets == 0) {
        b->phase = BITS_END;
        return STEP_ON;
    }
    int st = need(r, 4);
    if (st != STEP_ON)
        return st;
    uint32_t high = rd_get_le32(r->feed.p);
    if (b->any && high <= b->high)
        return bad(r, "bitmap whose parts do not ascend");
    b->high = high;
    b->any = true;
    b->buckets--;
    r->feed.p += 4;
    b->phase = BITS_COOKIE;
    return STEP_ON;
}

static int read_cookie(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    int st = need(r, 4);
    if (st != STEP_ON)
        return st;
    uint32_t cookie = rd_get_le32(r->feed.p);
    b->flags_len = 0;
    if ((cookie & 0xffff) == COOKIE_RUNS) {
        b->n = (cookie >> 16) + 1;
        b->flags_len = (b->n + 7) / 8;
    } else if (cookie == COOKIE_PLAIN) {
        st = need(r, 8);
        if (st != STEP_ON)
            return st;
        b->n = rd_get_le32(r->feed.p + 4);
        if (b->n > CONTAINERS_MAX)
            return bad(r, "bitmap with more parts than there can be");
        r->feed.p += 4;
    } else {
        return bad(r, "bitmap in an unknown form");
    }
    r->feed.p += 4;
    b->offsets_left = b->flags_len > 0 && b->n < WITHOUT_OFFSETS ? 0 : b->n;
    b->i = 0;
    rd_buf_reset(&b->head);
    b->phase = BITS_HEAD;
    return STEP_ON;
}

/* The flags, keys and numbers of members of all containers. */
static int read_head(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    size_t whole = b->flags_len + (size_t)b->n * 4;
    while (b->head.len < whole) {
        int st = need(r, 1);
        if (st != STEP_ON)
            return st;
        size_t n = (size_t)(r->feed.end - r->feed.p);
        n = n < whole - b->head.len ? n : whole - b->head.len;
        if (!rd_buf_add(&b->head, r->feed.p, n))
            return rdb_read_nomem(r, n);
        r->feed.p += n;
    }
    for (uint32_t i = 1; i < b->n; i++)
        if (container_of(b, i).key <= container_of(b, i - 1).key)
            return bad(r, "bitmap whose parts do not ascend");
    b->phase = BITS_OFFSETS;
    return STEP_ON;
}

/* They follow from the numbers of members; readers do not use them. */
static int pass_offsets(struct rdb_reader *r)
{
    for (; r->bits.offsets_left > 0; r->bits.offsets_left--) {
        int st = need(r, 4);
        if (st != STEP_ON)
            return st;
        r->feed.p += 4;
    }
    r->bits.phase = BITS_CONTAINER;
    return STEP_ON;
}

/* -- containers -- */

static int begin_container(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    if (b->i == b->n) {
        b->phase = BITS_BUCKET;
        return STEP_ON;
    }
    struct container c = container_of(b, b->i);
    b->left = c.members;
    if (c.runs) {
        int st = need(r, 2);
        if (st != STEP_ON)
            return st;
        b->left = rd_get_le16(r->feed.p);
        r->feed.p += 2;
    } else if (c.members > ARRAY_MAX) {
        b->left = CHUNK;
    }
    b->key = c.key;
    b->next = 0;
    b->members = 0;
    b->last = 0;
    memset(b->chunk, 0, CHUNK);
    b->phase = BITS_MEMBERS;
    return STEP_ON;
}

static void set_bit(struct bits *b, uint32_t bit)
{
    b->chunk[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    b->last = bit;
    b->members++;
}

static int read_array(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    for (; b->left > 0; b->left--) {
        int st = need(r, 2);
        if (st != STEP_ON)
            return st;
        uint32_t bit = rd_get_le16(r->feed.p);
        if (bit < b->next)
            return bad(r, "bitmap whose members do not ascend");
        set_bit(b, bit);
        b->next = bit + 1;
        r->feed.p += 2;
    }
    return STEP_ON;
}

/* Runs do not touch each other. */
static int read_runs(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    for (; b->left > 0; b->left--) {
        int st = need(r, 4);
        if (st != STEP_ON)
            return st;
        uint32_t first = rd_get_le16(r->feed.p);
        uint32_t last = first + rd_get_le16(r->feed.p + 2);
        if (first < b->next || last >= CHUNK_BITS)
            return bad(r, "bitmap whose runs do not ascend");
        for (uint32_t bit = first; bit <= last; bit++)
            set_bit(b, bit);
        b->next = last + 2;
        r->feed.p += 4;
    }
    return STEP_ON;
}

/* Here bit 0 is the lowest one of its byte. */
static uint8_t mirrored(uint8_t byte)
{
    byte = (uint8_t)((byte & 0xf0) >> 4 | (byte & 0x0f) << 4);
    byte = (uint8_t)((byte & 0xcc) >> 2 | (byte & 0x33) << 2);
    return (uint8_t)((byte & 0xaa) >> 1 | (byte & 0x55) << 1);
}

static int read_bits(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    while (b->left > 0) {
        int st = need(r, 1);
        if (st != STEP_ON)
            return st;
        for (; b->left > 0 && r->feed.p < r->feed.end; b->left--) {
            uint32_t at = CHUNK - b->left;
            uint8_t byte = *r->feed.p++;
            b->chunk[at] = mirrored(byte);
            b->members += (uint32_t)__builtin_popcount(byte);
            if (byte != 0)
                b->last = at * 8 + 31 - (uint32_t)__builtin_clz(byte);
        }
    }
    return STEP_ON;
}

static int read_members(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    struct container c = container_of(b, b->i);
    int st = c.runs ? read_runs(r) : c.members > ARRAY_MAX ? read_bits(r) : read_array(r);
    if (st != STEP_ON)
        return st;
    if (b->members != c.members)
        return bad(r, "bitmap with another number of members than it announces");
    if (start_of(b) + b->last / 8 >= b->length)
        return bad(r, "bitmap with a member beyond its length");
    b->i++;
    b->full = true;
    b->phase = BITS_CONTAINER;
    return STEP_ON;
}

/* Reads up to the next container: then bits.full is set, or the phase is BITS_END. */
static int next_container(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    int st = STEP_ON;
    while (st == STEP_ON && !b->full && b->phase != BITS_END) {
        switch (b->phase) {
        case BITS_COUNT:
            st = read_count(r);
            break;
        case BITS_BUCKET:
            st = read_bucket(r);
            break;
        case BITS_COOKIE:
            st = read_cookie(r);
            break;
        case BITS_HEAD:
            st = read_head(r);
            break;
        case BITS_OFFSETS:
            st = pass_offsets(r);
            break;
        case BITS_CONTAINER:
            st = begin_container(r);
            break;
        case BITS_MEMBERS:
            st = read_members(r);
            break;
        case BITS_BEGIN:
        case BITS_END:
            break;
        }
    }
    return st;
}

/* -- the string -- */

static bool parse_length(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev)
{
    (void)arg;
    (void)ev;
    return rdb_cur_len(c, &r->bits.length);
}

/* A bit's number has 63 bits. */
int rdb_bitmap_begin(struct rdb_reader *r, struct rdb_event *ev)
{
    enum { LENGTH_BITS = 60 };
    struct bits *b = &r->bits;
    struct cur c;
    int st = rdb_read_parse(r, parse_length, 0, ev, &c);
    if (st != STEP_ON)
        return st;
    if (b->length >> LENGTH_BITS != 0)
        return rdb_read_corrupt(r, rdb_read_offset(r), "bitmap longer than a server can have");
    if (rdb_read_gives(r) && b->length > STRING_MAX)
        return rdb_read_fail(r, RD_ERR_UNSUPPORTED, rdb_read_offset(r),
                             "bitmap longer than a string can be (512 MiB)");
    rdb_read_consume(r, (size_t)(c.p - c.base));
    b->phase = BITS_BEGIN;
    b->any = b->full = b->shown = b->done = false;
    b->given = 0;
    rd_buf_reset(&b->piece);
    ev->value.count = ev->value.nodes = RDB_UNKNOWN;
    ev->value.min_expire_ms = RDB_NO_EXPIRE;
    ev->value.module_id = 0;
    return rdb_value_open(r, ev);
}

static int begin_string(struct rdb_reader *r)
{
    struct rdb_str_head head;
    struct rd_slice s;
    size_t want = 1;
    for (;; want = head.size) {
        int st = rdb_read_need(r, want, &s);
        if (st != RDB_EVENT)
            return st;
        enum rdb_parse rc = rdb_str_head_parse(s.ptr, s.len, &head);
        if (rc == RDB_PARSE_OK)
            break;
        if (rc == RDB_PARSE_BAD)
            return rdb_read_corrupt(r, rdb_read_offset(r), "not a string");
    }
    uint64_t off = rdb_read_offset(r);
    if (head.kind == RDB_STR_INT)
        return rdb_read_corrupt(r, off, "an integer where a bitmap should be");
    if (head.kind == RDB_STR_LZF && !rdb_lzf_possible(head.stored, head.total))
        return rdb_read_corrupt(r, off, "compressed string of impossible length");
    if (r->bits.chunk == NULL && (r->bits.chunk = rd_alloc(CHUNK)) == NULL)
        return rdb_read_nomem(r, CHUNK);
    if (!rd_buf_reserve(&r->bits.piece, 1))
        return rdb_read_nomem(r, 1);
    rdb_feed_begin(r, &head, off);
    /* So that the bytes are followed if the window moves. */
    r->walk.active = true;
    r->walk.started = false;
    r->bits.phase = BITS_COUNT;
    return STEP_ON;
}

/* Adds n bytes of the string: those at `from`, or zeros. */
static bool add(struct bits *b, const uint8_t *from, uint64_t n)
{
    if (!rd_buf_reserve(&b->piece, (size_t)n))
        return false;
    if (from != NULL)
        memcpy(b->piece.ptr + b->piece.len, from, (size_t)n);
    else
        memset(b->piece.ptr + b->piece.len, 0, (size_t)n);
    b->piece.len += (size_t)n;
    return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Makes the next piece of the string. */
static int fill(struct rdb_reader *r)
{
    struct bits *b = &r->bits;
    for (;;) {
        int st = next_container(r);
        if (st != STEP_ON)
            return st;
        uint64_t at = b->given + b->piece.len, start = b->full ? start_of(b) : b->length;
        uint64_t room = least(r->piece - b->piece.len, b->length - at);
        bool inside = at >= start;
        if (b->full && inside && at - start == CHUNK) {
            b->full = false;
            continue;
        }
        if (room == 0 && b->full && at == b->length) {
            b->full = false; /* what follows is verified before the last piece is given */
            continue;
        }
        if (room == 0)
            return STEP_ON;
        uint64_t n = inside ? least(room, CHUNK - (at - start)) : least(room, start - at);
        if (!add(b, inside ? b->chunk + (at - start) : NULL, n))
            return rdb_read_nomem(r, (size_t)n);
    }
}

static int give_piece(struct rdb_reader *r, struct rdb_event *ev)
{
    struct bits *b = &r->bits;
    if (b->shown)
        rd_buf_reset(&b->piece);
    b->shown = false;
    int st = fill(r);
    if (st != STEP_ON)
        return st;
    *ev = (struct rdb_event){.kind = RDB_ELEM, .offset = r->feed.off, .inner = RD_NO_OFFSET};
    ev->elem.role = RDB_ROLE_STRING;
    ev->elem.expire_ms = RDB_NO_EXPIRE;
    ev->elem.str = (struct rdb_string){.ptr = b->piece.ptr,
                                       .len = b->piece.len,
                                       .total = b->length,
                                       .first = b->given == 0,
                                       .more = b->given + b->piece.len < b->length};
    b->given += b->piece.len;
    b->shown = true;
    b->done = !ev->elem.str.more;
    return RDB_EVENT;
}

/* The portable form is read up to its end, and the string ends there. */
static int end(struct rdb_reader *r)
{
    struct feed *f = &r->feed;
    if (f->p < f->end || f->left > 0)
        return bad(r, "bytes after a bitmap");
    rdb_feed_end(r);
    r->walk.active = false;
    r->n_elems++;
    r->pc++;
    return STEP_ON;
}

int rdb_bitmap_run(struct rdb_reader *r, struct rdb_event *ev)
{
    struct bits *b = &r->bits;
    int st = STEP_ON;
    if (r->detail == RDB_DETAIL_FRAMES) {
        st = rdb_read_pass(r, false);
        r->pc += st == STEP_ON;
        return st;
    }
    if (b->phase == BITS_BEGIN)
        st = begin_string(r);
    if (st == STEP_ON && rdb_read_gives(r) && !b->done)
        return give_piece(r, ev);
    while (st == STEP_ON && b->phase != BITS_END) {
        b->full = false;
        st = next_container(r);
    }
    return st == STEP_ON ? end(r) : st;
}

void rdb_bitmap_done(struct rdb_reader *r)
{
    rd_free(r->bits.chunk);
    rd_buf_done(&r->bits.head);
    rd_buf_done(&r->bits.piece);
}
