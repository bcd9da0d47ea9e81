/* bench_stream - a capture as that of a busy server, for the benchmarks of what reads captures.
 *
 *     bench_stream DIR BYTES KEYS [VALUE]
 *
 * A snapshot with KEYS keys of all types, then about BYTES of commands that write them: each key as
 * often as any other. VALUE: bytes of a value on average. The same arguments make the same bytes.
 */
#include "base/endian.h"
#include "repl/capture_writer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 256 * 1024, VALUE = 160, TYPES = 5, TURN_US = 20000, COMMAND_MAX = 8192 };

static struct rd_err err;
static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
static char noise[64 * 1024];
static uint64_t n_keys, value_len = VALUE;

static void check(bool ok)
{
    char line[1024];
    if (ok)
        return;
    rd_err_render(&err, line, sizeof line);
    fprintf(stderr, "bench_stream: %s\n", line);
    exit(1);
}

static uint64_t next(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % n;
}

/* Bytes as JSON may have them: some repeat. */
static void make_noise(void)
{
    static const char words[] = "\"name\":\"value\",{}[]0123456789abcdefghijklmnopqrstuvwxyz ";
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = words[next(sizeof words - 1)];
}

/* From 0 to twice the average, and sometimes much longer. */
static struct rd_slice value(void)
{
    uint64_t len = next(64) == 0 ? next(8 * value_len) : next(2 * value_len);
    if (len > COMMAND_MAX / 2)
        len = COMMAND_MAX / 2;
    return rd_slice(noise + next(sizeof noise - len), len);
}

/* ---- the snapshot ---- */

struct out {
    struct repl_capture_writer *w;
    uint8_t buf[ROOM];
    size_t len;
};

static void put(struct out *out, const void *ptr, size_t len)
{
    memcpy(out->buf + out->len, ptr, len);
    out->len += len;
}

static void put_len(struct out *out, size_t len)
{
    uint8_t bytes[5] = {0x80};
    rd_put_be32(bytes + 1, (uint32_t)len);
    put(out, bytes, sizeof bytes);
}

static void put_string(struct out *out, struct rd_slice s)
{
    put_len(out, s.len);
    put(out, s.ptr, s.len);
}

static void put_number(struct out *out, const char *prefix, uint64_t number)
{
    char text[40];
    int len = snprintf(text, sizeof text, "%s%" PRIu64, prefix, number);
    put_string(out, rd_slice(text, (size_t)len));
}

static const char *const prefixes[TYPES] = {"string:", "list:", "set:", "zset:", "hash:"};

/* Types 0 to 5 of the format, as it had them first; 5 is a sorted set with binary scores. */
static void put_key(struct out *out, uint64_t i)
{
    static const uint8_t types[TYPES] = {0, 1, 2, 5, 4};
    const unsigned type = i % TYPES;
    uint8_t score[8] = {0};
    put(out, &types[type], 1);
    put_number(out, prefixes[type], i);
    if (type == 0) {
        put_string(out, value());
        return;
    }
    size_t n = 1 + next(4);
    put_len(out, n);
    for (size_t k = 0; k < n; k++) {
        put_number(out, "element:", k);
        if (type == 3)
            put(out, score, sizeof score);
        else if (type == 4)
            put_string(out, value());
    }
}

static void flush_snapshot(struct out *out)
{
    check(repl_capture_writer_snapshot(out->w, rd_slice(out->buf, out->len), &err));
    out->len = 0;
}

static void make_snapshot(struct out *out, int64_t now_us)
{
    static const uint8_t head[] = {'R', 'E', 'D', 'I', 'S', '0', '0', '0', '9', 0xfe, 0};
    static const uint8_t end[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0};
    struct repl_replid id;
    memset(id.hex, 'a', sizeof id.hex);
    check(repl_capture_writer_begin(out->w, &id, 1000, now_us, &err));
    put(out, head, sizeof head);
    for (uint64_t i = 0; i < n_keys; i++) {
        put_key(out, i);
        if (out->len > ROOM / 2)
            flush_snapshot(out);
    }
    put(out, end, sizeof end);
    flush_snapshot(out);
    check(repl_capture_writer_snapshot_end(out->w, now_us, &err));
}

/* ---- the stream ---- */

static void put_arg(struct out *out, struct rd_slice s)
{
    char head[32];
    int len = snprintf(head, sizeof head, "$%zu\r\n", s.len);
    put(out, head, (size_t)len);
    put(out, s.ptr, s.len);
    put(out, "\r\n", 2);
}

static void put_count(struct out *out, unsigned n)
{
    char head[32];
    int len = snprintf(head, sizeof head, "*%u\r\n", n);
    put(out, head, (size_t)len);
}

static void put_word(struct out *out, const char *prefix, uint64_t number)
{
    char text[40];
    int len = snprintf(text, sizeof text, "%s%" PRIu64, prefix, number);
    put_arg(out, rd_slice(text, (size_t)len));
}

static void put_words(struct out *out, unsigned n, const char *command, unsigned type, uint64_t key)
{
    put_count(out, n);
    put_arg(out, rd_slice_str(command));
    put_word(out, prefixes[type], key);
}

static void put_command(struct out *out)
{
    uint64_t key = next(n_keys);
    unsigned type = key % TYPES;
    bool other = next(4) == 0;
    if (next(32) == 0) {
        put_words(out, 2, "DEL", type, key);
        return;
    }
    switch (type) {
    case 0:
        put_words(out, 3, other ? "APPEND" : "SET", type, key);
        put_arg(out, value());
        return;
    case 1:
        put_words(out, 3, other ? "LPUSH" : "RPUSH", type, key);
        put_arg(out, value());
        return;
    case 2:
        put_words(out, 3, other ? "SREM" : "SADD", type, key);
        put_word(out, "element:", next(10));
        return;
    case 3:
        put_words(out, 4, "ZADD", type, key);
        put_word(out, "", next(1000));
        put_word(out, "element:", next(10));
        return;
    default:
        put_words(out, 4, "HSET", type, key);
        put_word(out, "element:", next(10));
        put_arg(out, value());
    }
}

static void make_stream(struct out *out, uint64_t size, int64_t now_us)
{
    uint64_t done = 0;
    put_count(out, 2);
    put_arg(out, rd_slice_str("SELECT"));
    put_word(out, "", 0);
    while (done < size) {
        while (out->len < ROOM / 2)
            put_command(out);
        done += out->len;
        now_us += TURN_US;
        check(repl_capture_writer_append(out->w, rd_slice(out->buf, out->len), now_us, &err) &&
              repl_capture_writer_flush(out->w, &err));
        out->len = 0;
    }
    printf("%" PRIu64 "\n", done);
}

int main(int argc, char **argv)
{
    static struct out out;
    struct repl_capture_writer_opts opts = {0};
    const int64_t now_us = INT64_C(1700000000000000);
    struct rd_fs fs;
    if (argc < 4 || (n_keys = strtoull(argv[3], NULL, 10)) == 0) {
        fprintf(stderr, "usage: bench_stream DIR BYTES KEYS [VALUE]\n");
        return 2;
    }
    if (argc > 4)
        value_len = strtoull(argv[4], NULL, 10) + 1;
    make_noise();
    check(rd_fs_open_folder(&fs, argv[1], true, &err));
    check(repl_capture_writer_open(&out.w, &fs, &opts, &err));
    make_snapshot(&out, now_us);
    make_stream(&out, strtoull(argv[2], NULL, 10), now_us);
    check(repl_capture_writer_close(out.w, &err));
    rd_fs_close_posix(&fs);
    return 0;
}
