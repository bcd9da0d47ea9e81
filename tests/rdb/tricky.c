#include "tests/rdb/tricky.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc64.h"
#include "base/endian.h"
#include "rdb/rdb.h"
#include "tests/rdb/key_list.h"

struct maker {
    struct rd_buf *out;
    uint64_t random;
    int version;
    bool valkey;
    unsigned n_names;
    uint64_t keys, expires; /* of the present database */
};

static unsigned pick(struct maker *m, unsigned n)
{
    return (unsigned)(chance_next(&m->random) % n);
}

static void add(struct maker *m, const void *bytes, size_t len)
{
    cr_assert(rd_buf_add(m->out, bytes, len));
}

static void add_byte(struct maker *m, unsigned byte)
{
    cr_assert(rd_buf_add_byte(m->out, (uint8_t)byte));
}

static void add_len(struct maker *m, uint64_t len)
{
    if (len < 64) {
        add_byte(m, (unsigned)len);
    } else if (len < 16384) {
        add_byte(m, 0x40 | (unsigned)(len >> 8));
        add_byte(m, (unsigned)len & 0xff);
    } else {
        uint8_t bytes[5] = {0x80};
        rd_put_be32(bytes + 1, (uint32_t)len);
        add(m, bytes, sizeof bytes);
    }
}

static void add_text(struct maker *m, const char *text)
{
    add_len(m, strlen(text));
    add(m, text, strlen(text));
}

static void add_numbered(struct maker *m, const char *word, unsigned n)
{
    char text[48];
    snprintf(text, sizeof text, "%s:%u", word, n);
    add_text(m, text);
}

static void add_buf(struct maker *m, struct rd_buf *bytes)
{
    add_len(m, bytes->len);
    add(m, bytes->ptr, bytes->len);
    rd_buf_done(bytes);
}

static void add_aux(struct maker *m, const char *name, const char *value)
{
    add_byte(m, RDB_OP_AUX);
    add_text(m, name);
    add_text(m, value);
}

/* What precedes the value: an expiry, the type and a name that is not used twice. */
static void begin_key(struct maker *m, const char *word, unsigned type)
{
    m->keys++;
    if (pick(m, 5) == 0) {
        uint8_t at[8];
        m->expires++;
        add_byte(m, RDB_OP_EXPIRETIME_MS);
        rd_put_le64(at, UINT64_C(1893456000000) + pick(m, 1u << 30));
        add(m, at, sizeof at);
    }
    add_byte(m, type);
    add_numbered(m, word, m->n_names++);
}

/* Records as they are in a file, which are bytes of a value here. */
static struct rd_buf fake_records(struct maker *m, unsigned n)
{
    struct rd_buf bytes = {0};
    struct maker fake = {.out = &bytes, .random = chance_next(&m->random)};
    for (unsigned i = 0; i < n; i++) {
        add_byte(&fake, 0);
        add_numbered(&fake, "fake", 1000 + pick(m, 100000));
        add_numbered(&fake, "nothing", i);
    }
    return bytes;
}

static void add_string(struct maker *m)
{
    begin_key(m, "name", 0);
    add_numbered(m, "value", pick(m, 100000));
}

static void add_set(struct maker *m, unsigned n)
{
    begin_key(m, "set", 2);
    add_len(m, n);
    for (unsigned i = 0; i < n; i++)
        add_numbered(m, "member", i);
}

/* A hash with field expiries, of which most have none. */
static void add_field_hash(struct maker *m, unsigned n)
{
    uint8_t at[8];
    begin_key(m, "hash", 24);
    rd_put_le64(at, UINT64_C(1893456000000));
    add(m, at, sizeof at);
    add_len(m, n);
    for (unsigned i = 0; i < n; i++) {
        add_len(m, i == 0 ? 1 : pick(m, 8) == 0 ? 1 + pick(m, 10000) : 0);
        add_numbered(m, "field", i);
        add_numbered(m, "held", pick(m, 1000));
    }
}

/* The same in Valkey: field, value and time, -1 for none. */
static void add_valkey_hash(struct maker *m, unsigned n)
{
    uint8_t at[8];
    begin_key(m, "hash", 22);
    add_len(m, n);
    for (unsigned i = 0; i < n; i++) {
        add_numbered(m, "field", i);
        add_text(m, pick(m, 2) == 0 ? "" : "held");
        rd_put_le64(at, pick(m, 3) == 0 ? UINT64_C(1893456000000) : UINT64_MAX);
        add(m, at, sizeof at);
    }
}

static void add_fake_string(struct maker *m, unsigned n)
{
    struct rd_buf bytes = fake_records(m, n);
    begin_key(m, "blob", 0);
    add_buf(m, &bytes);
}

static void add_fake_list(struct maker *m, unsigned n)
{
    begin_key(m, "list", 1);
    add_len(m, n);
    for (unsigned i = 0; i < n; i++) {
        struct rd_buf bytes = fake_records(m, 1 + pick(m, 12));
        add_buf(m, &bytes);
    }
}

/* A list of one node, whose elements are records. */
static void add_fake_ziplist(struct maker *m, unsigned n)
{
    struct rd_buf pack = {0};
    uint8_t head[10] = {0};
    size_t last = 0, tail = sizeof head;
    cr_assert(rd_buf_add(&pack, head, sizeof head));
    for (unsigned i = 0; i < n; i++) {
        struct rd_buf bytes = fake_records(m, 1 + pick(m, 12));
        uint8_t lead[7];
        size_t k = 1;
        lead[0] = (uint8_t)last;
        if (last >= 254) {
            lead[0] = 254;
            rd_put_le32(lead + 1, (uint32_t)last);
            k = 5;
        }
        lead[k++] = (uint8_t)(0x40 | bytes.len >> 8);
        lead[k++] = (uint8_t)bytes.len;
        tail = pack.len;
        cr_assert(rd_buf_add(&pack, lead, k) && rd_buf_add(&pack, bytes.ptr, bytes.len));
        last = k + bytes.len;
        rd_buf_done(&bytes);
    }
    cr_assert(rd_buf_add_byte(&pack, 0xff));
    rd_put_le32(pack.ptr, (uint32_t)pack.len);
    rd_put_le32(pack.ptr + 4, (uint32_t)tail);
    rd_put_le16(pack.ptr + 8, (uint16_t)n);
    begin_key(m, "pack", 10);
    add_buf(m, &pack);
}

static void add_nested(struct maker *m)
{
    struct rd_buf inner = {0};
    tricky_make(m->version >= 12 ? 0 : m->version >= 7 ? 6 : 8, chance_next(&m->random), &inner);
    begin_key(m, "backup", 0);
    add_buf(m, &inner);
}

/* A list of snapshots that are cut before their end marks. */
static void add_nested_list(struct maker *m, unsigned n)
{
    begin_key(m, "backups", 1);
    add_len(m, n);
    for (unsigned i = 0; i < n; i++) {
        struct rd_buf inner = {0};
        tricky_make(6, chance_next(&m->random), &inner);
        inner.len -= 1 + pick(m, 30);
        add_buf(m, &inner);
    }
}

/* A string that is a database: selector, size and keys with names like those of the file. */
static void add_fake_db(struct maker *m)
{
    struct rd_buf bytes = {0};
    struct maker fake = {.out = &bytes, .random = chance_next(&m->random), .version = m->version};
    unsigned n = 1 + pick(m, 40);
    add_byte(&fake, RDB_OP_SELECTDB);
    add_len(&fake, pick(m, 16));
    add_byte(&fake, RDB_OP_RESIZEDB);
    add_len(&fake, n);
    add_len(&fake, 0);
    for (unsigned i = 0; i < n; i++) {
        add_byte(&fake, 0);
        add_numbered(&fake, "name", 50000000 + pick(m, 100000));
        add_numbered(&fake, "value", i);
    }
    begin_key(m, "blob", 0);
    add_buf(m, &bytes);
}

static void add_some(struct maker *m, unsigned kind)
{
    switch (kind) {
    case 0:
        if (pick(m, 3) == 0)
            add_field_hash(m, 2 + pick(m, 60));
        break;
    case 1:
        if (pick(m, 3) == 0)
            add_fake_ziplist(m, 1 + pick(m, 4));
        break;
    case 2:
    case 4:
        if (pick(m, 12) == 0)
            add_nested(m);
        break;
    case 3:
        if (pick(m, 3) == 0)
            add_valkey_hash(m, 2 + pick(m, 40));
        break;
    case 5:
        if (pick(m, 3) == 0)
            add_fake_string(m, 1 + pick(m, 40));
        else if (pick(m, 4) == 0)
            add_fake_list(m, 1 + pick(m, 8));
        break;
    case 7:
        if (pick(m, 2) == 0)
            add_field_hash(m, 2 + pick(m, 200));
        if (pick(m, 12) == 0)
            add_nested(m);
        break;
    case 9:
        if (pick(m, 12) == 0)
            add_nested_list(m, 1 + pick(m, 4));
        break;
    case 10:
        if (pick(m, 6) == 0)
            add_fake_db(m);
        break;
    default:
        break;
    }
}

static const char *const names[TRICKY_KINDS] = {
    "hashes with field expiries",   "ziplists whose bytes are records",
    "strings that are snapshots",   "hashes of Valkey 9",
    "snapshots within version 6",   "strings whose bytes are records",
    "plain keys in many databases", "large hashes with field expiries and snapshots",
    "plain keys of version 6",      "lists of cut snapshots",
    "strings that are databases"};
static const int versions[TRICKY_KINDS] = {12, 9, 11, 80, 6, 11, 11, 12, 6, 11, 11};
static const char *const releases[TRICKY_KINDS] = {
    "7.4.1", "6.2.16", "7.2.5", "9.0.0", NULL, "7.2.5", "7.2.5", "7.4.1", NULL, "7.2.5", "7.2.5"};

const char *tricky_name(unsigned kind)
{
    return names[kind];
}

static void add_db(struct maker *m, unsigned kind, unsigned db)
{
    struct rd_buf keys = {0};
    struct rd_buf *out = m->out;
    m->keys = m->expires = 0;
    m->out = &keys;
    for (unsigned i = 0, n = 3 + pick(m, 40); i < n; i++) {
        if (pick(m, 6) == 0)
            add_set(m, 1 + pick(m, 6));
        else
            add_string(m);
        add_some(m, kind);
    }
    m->out = out;
    add_byte(m, RDB_OP_SELECTDB);
    add_len(m, db);
    if (m->version >= 7) {
        add_byte(m, RDB_OP_RESIZEDB);
        add_len(m, m->keys);
        add_len(m, m->expires);
    }
    add(m, keys.ptr, keys.len);
    rd_buf_done(&keys);
}

void tricky_make(unsigned kind, uint64_t seed, struct rd_buf *ret)
{
    char magic[16];
    uint8_t sum[8];
    size_t start = ret->len;
    struct maker m = {.out = ret,
                      .random = seed,
                      .n_names = (unsigned)(seed % 50000) * 1000,
                      .version = versions[kind],
                      .valkey = kind == 3};
    snprintf(magic, sizeof magic, m.valkey ? "VALKEY%03d" : "REDIS%04d", m.version);
    add(&m, magic, RDB_MAGIC_LEN);
    if (releases[kind] != NULL) {
        add_aux(&m, m.valkey ? "valkey-ver" : "redis-ver", releases[kind]);
        add_aux(&m, "redis-bits", "64");
        add_aux(&m, "ctime", "1893456000");
    }
    unsigned dbs = kind == 6 ? 4 : 1 + pick(&m, 3);
    for (unsigned i = 0, db = 0; i < dbs; i++, db += 1 + pick(&m, 3))
        add_db(&m, kind, db);
    add_byte(&m, RDB_OP_EOF);
    rd_put_le64(sum, rd_crc64(0, ret->ptr + start, ret->len - start));
    add(&m, sum, sizeof sum);
}
