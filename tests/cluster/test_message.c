#include "cluster/message.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "cluster/message_impl.h"
#include "tests/cluster/write_again.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const char *const servers[] = {"redis-7.0.15", "redis-8.6.3", "valkey-9.1.2"};

/* ---- messages of real servers ---- */

static struct rd_buf recorded(const char *server)
{
    char path[4096];
    struct rd_buf all = {0};
    const char *dir = getenv("REDOUBT_FIXTURES");
    snprintf(path, sizeof path, "%s/%s/bus.bin", dir != NULL ? dir : "fixtures", server);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    for (int c; (c = fgetc(f)) != EOF;)
        rd_buf_add_byte(&all, (uint8_t)c);
    fclose(f);
    return all;
}

static void same_bytes(struct rd_slice bytes, const char *name)
{
    struct cluster_message m;
    struct rd_buf again = {0};
    struct rd_err err = {0};
    cr_assert(cluster_message_read(&m, bytes, &err), "%s: %s at %ju", name, err.text,
              (uintmax_t)err.offset);
    cr_assert(write_again(&m, &again));
    cr_expect(rd_slice_eq(rd_buf_slice(&again), bytes), "%s: type %d", name, (int)m.type);
    rd_buf_done(&again);
}

/* Calls each() for each recorded message of a server. */
static void each_recorded(const char *server, void (*each)(struct rd_slice bytes, const char *name))
{
    struct rd_buf all = recorded(server);
    struct rd_slice rest = rd_buf_slice(&all);
    size_t len;
    while (rest.len > 0) {
        cr_assert_eq(cluster_message_frame(rest, &len, NULL), CLUSTER_FRAME_READY);
        each(rd_slice(rest.ptr, len), server);
        rest = rd_slice(rest.ptr + len, rest.len - len);
    }
    rd_buf_done(&all);
}

Test(cluster_message, messages_of_real_servers_are_read_and_written_to_the_same_bytes)
{
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++)
        each_recorded(servers[i], same_bytes);
}

static unsigned seen_types, seen_extensions;

static void note_kinds(struct rd_slice bytes, const char *name)
{
    struct cluster_message m;
    struct cluster_extension extension;
    size_t at = 0;
    cr_assert(cluster_message_read(&m, bytes, NULL), "%s", name);
    seen_types |= 1U << m.type;
    while (cluster_extension_next(&m, &at, &extension))
        seen_extensions |= 1U << extension.type;
}

/* All but MODULE; and hostnames, names for people, forgotten nodes and shards. */
Test(cluster_message, real_servers_sent_every_type_and_extension)
{
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++)
        each_recorded(servers[i], note_kinds);
    cr_expect_eq(seen_types, 0x7ffU & ~(1U << CLUSTER_MESSAGE_MODULE));
    cr_expect_eq(seen_extensions & 0xfU, 0xfU);
}

static void what_it_says(struct rd_slice bytes, const char *name)
{
    struct cluster_message m;
    struct cluster_gossip entry;
    struct cluster_extension extension;
    size_t at = 0;
    cr_assert(cluster_message_read(&m, bytes, NULL), "%s", name);
    cr_expect_eq(m.bus_port, m.port + 200);
    for (size_t i = 0; i < m.n_gossip; i++) {
        cluster_gossip_at(&m, i, &entry);
        cr_expect_str_eq(entry.address, "127.0.0.1");
        cr_expect_eq(entry.bus_port, entry.port + 200);
        cr_expect_not(cluster_id_eq(&entry.id, &m.sender));
    }
    while (cluster_extension_next(&m, &at, &extension)) {
        if (extension.type == CLUSTER_EXTENSION_HOSTNAME)
            cr_expect_eq(memcmp(extension.content.ptr, "host-", 5), 0);
        else if (extension.type == CLUSTER_EXTENSION_HUMAN_NAME)
            cr_expect_eq(memcmp(extension.content.ptr, "node-", 5), 0);
        else if (extension.type == CLUSTER_EXTENSION_FORGOTTEN)
            cr_expect(extension.seconds > 50 && extension.seconds <= 60);
    }
    if (m.type == CLUSTER_MESSAGE_PUBLISH)
        cr_expect(rd_slice_is(m.channel, "channel") && rd_slice_is(m.payload, "a message"));
    if (m.type == CLUSTER_MESSAGE_PUBLISH_SHARD)
        cr_expect(rd_slice_is(m.channel, "shard") && rd_slice_is(m.payload, "another"));
    if (m.type == CLUSTER_MESSAGE_UPDATE)
        cr_expect_eq(cluster_slots_count(&m.about_slots), 5462);
    if (m.type == CLUSTER_MESSAGE_AUTH_REQUEST)
        cr_expect(m.flags & CLUSTER_BUS_REPLICA);
}

Test(cluster_message, real_messages_say_what_the_cluster_did)
{
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++)
        each_recorded(servers[i], what_it_says);
}

/* ---- every parser's tests ---- */

static void frames_of(struct rd_slice bytes, size_t piece)
{
    struct rd_buf got = {0};
    size_t n = 0, len = 0, found = 0;
    while (n < bytes.len || got.len > 0) {
        enum cluster_frame frame = cluster_message_frame(rd_buf_slice(&got), &len, NULL);
        if (frame == CLUSTER_FRAME_READY) {
            same_bytes(rd_slice(got.ptr, len), "a piece");
            memmove(got.ptr, got.ptr + len, got.len - len);
            got.len -= len;
            found++;
            continue;
        }
        cr_assert_eq(frame, CLUSTER_FRAME_MORE);
        size_t more = bytes.len - n < piece ? bytes.len - n : piece;
        cr_assert_gt(more, 0);
        cr_assert(rd_buf_add(&got, bytes.ptr + n, more));
        n += more;
    }
    cr_expect_gt(found, 8);
    rd_buf_done(&got);
}

Test(cluster_message, frames_are_found_in_pieces_of_any_length)
{
    static const size_t pieces[] = {1, 2, 3, 7, 4096, 1 << 20};
    struct rd_buf all = recorded(servers[0]);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        frames_of(rd_buf_slice(&all), pieces[i]);
    rd_buf_done(&all);
}

/* A message that ends earlier, where memory ends, and says so in its length. */
static void prefixes(struct rd_slice bytes, const char *name)
{
    size_t step = bytes.len > 4096 ? 7 : 1;
    for (size_t len = 0; len < bytes.len; len += len < CLUSTER_HEADER_LEN - 8 ? 97 : step) {
        struct cluster_message m;
        struct rd_err err = {0};
        uint8_t *cut = guard_new(bytes.ptr, len);
        cr_expect_not(cluster_message_read(&m, rd_slice(cut, len), &err), "%s: %zu", name, len);
        if (len >= CLUSTER_AT_VERSION)
            rd_put_be32(cut + CLUSTER_AT_LENGTH, (uint32_t)len);
        err = (struct rd_err){.code = RD_ERR_OK};
        cr_expect_not(cluster_message_read(&m, rd_slice(cut, len), &err), "%s: %zu", name, len);
        cr_expect_eq(err.code, len < CLUSTER_AT_VERSION ? RD_ERR_TRUNCATED : RD_ERR_CORRUPT);
        guard_free(cut);
    }
}

Test(cluster_message, every_prefix_is_refused, .timeout = 60)
{
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++)
        each_recorded(servers[i], prefixes);
}

static void flips(struct rd_slice bytes, const char *name)
{
    uint8_t *copy = guard_new(bytes.ptr, bytes.len);
    for (size_t at = 0; at < bytes.len; at++) {
        if (at >= CLUSTER_AT_SLOTS && at < CLUSTER_AT_MASTER)
            continue;
        for (unsigned bit = 0; bit < 8; bit++) {
            struct cluster_message m;
            struct rd_err err = {0};
            copy[at] ^= (uint8_t)(1U << bit);
            bool ok = cluster_message_read(&m, rd_slice(copy, bytes.len), &err);
            cr_expect_eq(ok, err.code == RD_ERR_OK, "%s", name);
            if (ok) {
                struct rd_buf again = {0};
                cr_expect(write_again(&m, &again));
                rd_buf_done(&again);
            }
            copy[at] ^= (uint8_t)(1U << bit);
        }
    }
    guard_free(copy);
}

Test(cluster_message, flipped_bits_are_read_or_refused_with_a_reason, .timeout = 120)
{
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++)
        each_recorded(servers[i], flips);
}

Test(cluster_message, a_failed_allocation_leaves_the_bytes_as_they_were)
{
    const struct cluster_message m = {.type = CLUSTER_MESSAGE_FAIL, .sender = {A}, .about = {B}};
    struct rd_buf bytes = {0};
    alloc_fault_begin(1);
    bool ok = cluster_message_write(&m, &bytes);
    struct alloc_fault_result r = alloc_fault_end();
    cr_expect_not(ok);
    cr_expect(r.failed);
    cr_expect_eq(bytes.len, 0);
}

/* ---- what is refused ---- */

static struct rd_buf ping(void)
{
    struct rd_buf bytes = {0}, gossip = {0}, extensions = {0};
    const struct cluster_gossip entry = {.id = {B}, .address = "10.0.0.2", .port = 1};
    const struct cluster_extension name = {.type = CLUSTER_EXTENSION_HOSTNAME,
                                           .content = rd_slice_str("abcdefgh")};
    const struct cluster_extension unknown = {.type = 77, .content = rd_slice_str("12345")};
    struct cluster_message m = {.type = CLUSTER_MESSAGE_PING,
                                .sender = {A},
                                .address = "10.0.0.1",
                                .n_gossip = 1,
                                .n_extensions = 2};
    cr_assert(cluster_gossip_add(&gossip, &entry));
    cr_assert(cluster_extension_add(&extensions, &name));
    cr_assert(cluster_extension_add(&extensions, &unknown));
    m.gossip = rd_buf_slice(&gossip);
    m.extensions = rd_buf_slice(&extensions);
    cr_assert(cluster_message_write(&m, &bytes));
    rd_buf_done(&gossip);
    rd_buf_done(&extensions);
    return bytes;
}

enum { EXT = CLUSTER_HEADER_LEN + CLUSTER_GOSSIP_LEN, EXT2 = EXT + 24, PING_LEN = EXT2 + 16 };

Test(cluster_message, what_does_not_fit_is_refused_where_it_is)
{
    static const struct {
        size_t at;
        const char *bytes;
        size_t len;
        enum rd_err_code code;
        uint64_t offset;
    } cases[] = {
        {0, "RCmc", 4, RD_ERR_CORRUPT, 0},
        {CLUSTER_AT_LENGTH, "\0\0\10\317", 4, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH},
        {CLUSTER_AT_LENGTH, "\377\377\377\377", 4, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH},
        {CLUSTER_AT_VERSION, "\0\2", 2, RD_ERR_UNSUPPORTED, CLUSTER_AT_VERSION},
        {CLUSTER_AT_TYPE, "\0\13", 2, RD_ERR_UNSUPPORTED, CLUSTER_AT_TYPE},
        {CLUSTER_AT_TYPE, "\200\4", 2, RD_ERR_UNSUPPORTED, CLUSTER_AT_TYPE},
        {CLUSTER_AT_TYPE, "\0\3", 2, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH},
        {CLUSTER_AT_TYPE, "\0\4", 2, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH},
        {CLUSTER_AT_TYPE, "\0\5", 2, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH},
        {CLUSTER_AT_TYPE, "\0\7", 2, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH},
        {CLUSTER_AT_TYPE, "\0\11", 2, RD_ERR_CORRUPT, CLUSTER_AT_LENGTH},
        {CLUSTER_AT_COUNT, "\377\377", 2, RD_ERR_CORRUPT, CLUSTER_AT_COUNT},
        {CLUSTER_AT_COUNT, "\0\2", 2, RD_ERR_CORRUPT, CLUSTER_AT_COUNT},
        {CLUSTER_AT_COUNT, "\0\0", 2, RD_ERR_CORRUPT, CLUSTER_HEADER_LEN},
        {CLUSTER_AT_SENDER, " ", 1, RD_ERR_CORRUPT, CLUSTER_AT_SENDER},
        {CLUSTER_AT_MASTER, "x", 1, RD_ERR_CORRUPT, CLUSTER_AT_MASTER},
        {CLUSTER_AT_ADDRESS, "a b", 3, RD_ERR_CORRUPT, CLUSTER_AT_ADDRESS},
        {CLUSTER_AT_EXTENSIONS, "\0\3", 2, RD_ERR_CORRUPT, PING_LEN},
        {CLUSTER_AT_EXTENSIONS, "\0\1", 2, RD_ERR_CORRUPT, EXT2},
        {CLUSTER_HEADER_LEN, "-", 1, RD_ERR_CORRUPT, CLUSTER_HEADER_LEN},
        {CLUSTER_HEADER_LEN + 48, "\n", 1, RD_ERR_CORRUPT, CLUSTER_HEADER_LEN + 48},
        {EXT, "\0\0\0\0", 4, RD_ERR_CORRUPT, EXT},
        {EXT, "\0\0\0\31", 4, RD_ERR_CORRUPT, EXT},
        {EXT, "\377\377\377\370", 4, RD_ERR_CORRUPT, EXT},
        {EXT + 8, "a b", 3, RD_ERR_CORRUPT, EXT},
        {EXT + 16, "abcdefgh", 8, RD_ERR_CORRUPT, EXT},
        {EXT + 4, "\0\1\0\0 ", 5, RD_ERR_CORRUPT, EXT},
        {EXT + 4, "\0\2", 2, RD_ERR_CORRUPT, EXT},
        {EXT + 4, "\0\3", 2, RD_ERR_CORRUPT, EXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rd_buf bytes = ping();
        struct cluster_message m;
        struct rd_err err = {0};
        cr_assert_eq(bytes.len, PING_LEN);
        cr_assert(cluster_message_read(&m, rd_buf_slice(&bytes), NULL));
        memcpy(bytes.ptr + cases[i].at, cases[i].bytes, cases[i].len);
        cr_expect_not(cluster_message_read(&m, rd_buf_slice(&bytes), &err), "case %zu", i);
        cr_expect_eq(err.code, cases[i].code, "case %zu: %s", i, err.text);
        cr_expect_eq(err.offset, cases[i].offset, "case %zu: %ju", i, (uintmax_t)err.offset);
        rd_buf_done(&bytes);
    }
}

Test(cluster_message, unknown_extensions_are_passed_over)
{
    struct rd_buf bytes = ping();
    struct cluster_message m;
    struct cluster_extension e;
    size_t at = 0;
    cr_assert(cluster_message_read(&m, rd_buf_slice(&bytes), NULL));
    cr_assert(cluster_extension_next(&m, &at, &e));
    cr_expect(rd_slice_is(e.content, "abcdefgh"));
    cr_assert(cluster_extension_next(&m, &at, &e));
    cr_expect_eq(e.type, 77);
    cr_expect_eq(e.content.len, 8);
    cr_expect_not(cluster_extension_next(&m, &at, &e));
    rd_buf_done(&bytes);
}

Test(cluster_message, a_message_of_a_module_comes_back)
{
    const struct cluster_message m = {.type = CLUSTER_MESSAGE_MODULE,
                                      .sender = {A},
                                      .master = {B},
                                      .module = 0x1122334455667788,
                                      .module_type = 9,
                                      .payload = rd_slice_str("payload")};
    struct cluster_message got;
    struct rd_buf bytes = {0};
    cr_assert(cluster_message_write(&m, &bytes));
    cr_assert(cluster_message_read(&got, rd_buf_slice(&bytes), NULL));
    cr_expect_eq(got.module, m.module);
    cr_expect_eq(got.module_type, 9);
    cr_expect(rd_slice_is(got.payload, "payload"));
    cr_expect_str_eq(got.master.s, B);
    rd_buf_done(&bytes);
}

Test(cluster_message, a_length_that_no_message_has_ends_the_connection)
{
    struct rd_err err = {0};
    size_t len;
    cr_expect_eq(cluster_message_frame(rd_slice_str("RC"), &len, &err), CLUSTER_FRAME_MORE);
    cr_expect_eq(cluster_message_frame(rd_slice_str("RX"), &len, &err), CLUSTER_FRAME_BAD);
    err = (struct rd_err){.code = RD_ERR_OK};
    cr_expect_eq(cluster_message_frame(rd_slice("RCmb\0\0\0\1", 8), &len, &err), CLUSTER_FRAME_BAD);
    cr_expect_eq(err.offset, CLUSTER_AT_LENGTH);
}

Test(cluster_message, words_are_those_of_statistics)
{
    cr_expect_str_eq(cluster_message_word(CLUSTER_MESSAGE_PING), "ping");
    cr_expect_str_eq(cluster_message_word(CLUSTER_MESSAGE_PUBLISH_SHARD), "publishshard");
}
