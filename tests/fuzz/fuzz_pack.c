/* fuzz_pack.c - listpacks, ziplists, zipmaps and intsets: walked in memory and in pieces.
 *
 * The first byte chooses the encoding, the rest is the string. A walk that is shown no more bytes
 * than it asked for must find the same entries, and refuse the same byte.
 */
#include <stdlib.h>
#include <string.h>

#include "rdb/enc/pack_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOB_MAX = 1 << 16 };

struct result {
    bool sound;
    uint64_t n, pos;
    uint64_t bad; /* where, from the beginning of the string */
    uint64_t hash;
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    return (h ^ v) * 0x100000001b3u;
}

static uint64_t hash_entry(uint64_t h, const struct rdb_pack_entry *e)
{
    h = mix(mix(h, e->is_int), e->is_int ? (uint64_t)e->num : e->len);
    for (uint64_t i = 0; !e->is_int && i < e->len; i++)
        h = mix(h, e->str[i]);
    return mix(mix(h, e->head), e->tail);
}

static struct result finish(const struct rdb_pack *pack, enum rdb_pack_status st, uint64_t hash)
{
    struct result res = {.sound = st == RDB_PACK_END, .n = pack->n, .pos = pack->pos, .hash = hash};
    if (st == RDB_PACK_BAD) {
        must(pack->why != NULL);
        res.bad = pack->pos + pack->bad;
    }
    return res;
}

static struct result walk_memory(enum rdb_codec codec, const uint8_t *blob, size_t size)
{
    struct rdb_pack pack;
    struct rdb_pack_entry e;
    uint64_t hash = 1;
    rdb_pack_init(&pack, codec, size);
    enum rdb_pack_status st = rdb_pack_begin(&pack, blob, size);
    while (st == RDB_PACK_ENTRY) {
        const uint8_t *p = blob + pack.pos;
        st = rdb_pack_next(&pack, p, size - (size_t)pack.pos, &e);
        if (st != RDB_PACK_ENTRY)
            break;
        must(e.head + e.len + e.tail <= size - pack.pos);
        hash = hash_entry(hash, &e);
        if (!rdb_pack_pass(&pack, &e, p + e.head + e.len))
            st = RDB_PACK_BAD;
    }
    /* All of it was shown: a head that wants more is cut. */
    if (st == RDB_PACK_WANT) {
        st = RDB_PACK_BAD;
        pack.bad = 0;
        pack.why = "cut";
    }
    return finish(&pack, st, hash);
}

/* A copy of exactly that much, so that a sanitizer sees a look at more. */
static uint8_t *lend(const uint8_t *blob, size_t size, uint64_t at, size_t have)
{
    uint8_t *copy = malloc(have > 0 ? have : 1);
    must(copy != NULL && at <= size && have <= size - at);
    memcpy(copy, blob + at, have);
    return copy;
}

/* One entry, shown as little as possible of it. */
static enum rdb_pack_status entry_in_pieces(struct rdb_pack *pack, const uint8_t *blob, size_t size,
                                            uint64_t *hash)
{
    struct rdb_pack_entry e;
    size_t have = 0;
    for (;;) {
        uint8_t *p = lend(blob, size, pack->pos, have);
        enum rdb_pack_status st = rdb_pack_next(pack, p, have, &e);
        size_t want = pack->want;
        free(p);
        if (st == RDB_PACK_ENTRY)
            break;
        if (st != RDB_PACK_WANT)
            return st;
        must(want > have);
        if (want > size - pack->pos)
            return RDB_PACK_WANT;
        have = want;
    }
    uint8_t *all = lend(blob, size, pack->pos, (size_t)(e.head + e.len + e.tail));
    e.str = all + e.head;
    *hash = hash_entry(*hash, &e);
    bool ok = rdb_pack_pass(pack, &e, all + e.head + e.len);
    free(all);
    return ok ? RDB_PACK_ENTRY : RDB_PACK_BAD;
}

static struct result walk_pieces(enum rdb_codec codec, const uint8_t *blob, size_t size)
{
    struct rdb_pack pack;
    uint64_t hash = 1;
    rdb_pack_init(&pack, codec, size);
    uint8_t *p = lend(blob, size, 0, 0);
    enum rdb_pack_status st = rdb_pack_begin(&pack, p, 0);
    free(p);
    if (st == RDB_PACK_WANT && pack.want <= size) {
        p = lend(blob, size, 0, pack.want);
        st = rdb_pack_begin(&pack, p, pack.want);
        free(p);
    }
    while (st == RDB_PACK_ENTRY)
        st = entry_in_pieces(&pack, blob, size, &hash);
    if (st == RDB_PACK_WANT) {
        st = RDB_PACK_BAD;
        pack.bad = 0;
        pack.why = "cut";
    }
    return finish(&pack, st, hash);
}

static void compare(enum rdb_codec codec, const uint8_t *blob, size_t size)
{
    struct rdb_pack pack;
    struct result a = walk_memory(codec, blob, size);
    struct result b = walk_pieces(codec, blob, size);
    must(a.sound == b.sound && a.n == b.n && a.pos == b.pos && a.bad == b.bad && a.hash == b.hash);
    rdb_pack_init(&pack, codec, size);
    must(rdb_pack_validate(&pack, rd_slice(blob, size)) == a.sound);
    must(a.sound || pack.pos + pack.bad == a.bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > BLOB_MAX)
        return 0;
    compare((enum rdb_codec)(data[0] % RDB_CODEC_COUNT), data + 1, size - 1);
    return 0;
}
