#include "rdb/recover/transfer.h"

#include "base/endian.h"
#include "base/mem.h"
#include "rdb/rdb.h"
#include "rdb/recover/correction.h"
#include "rdb/version.h"

#include <string.h>

enum {
    LOOK = 64 << 10, /* bytes in which the snapshot must begin */
    MARK_LEN = 40,   /* of "$EOF:", the mark that follows the snapshot */
    NEWLINES = 4,    /* after the mark */
    UNIT_MAX = 3,    /* bytes of the input that were one byte */
    PLACES = 1024    /* remembered to seek in changed text */
};

/* -- one byte of the original -- */

/* Characters of Windows-1252 that Latin-1 does not have, for the bytes from 0x80. 0: none. */
static const uint16_t windows[] = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                   0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
                                   0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                   0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

/* The byte that was taken for a character. */
static bool byte_of(unsigned character, uint8_t *ret)
{
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        if (windows[i] == character) {
            *ret = (uint8_t)(0x80 + i);
            return true;
        }
    }
    *ret = (uint8_t)character;
    return character < 0x100;
}

static size_t size_of_character(uint8_t first)
{
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
                                           : 0;
}

/* The character at `p`, of which `n` bytes are there. The number of its bytes; 0: it is none. */
static size_t decode_character(const uint8_t *p, size_t n, uint8_t *ret)
{
    size_t size = size_of_character(p[0]);
    if (size == 0 || size > n)
        return 0;
    unsigned character = size == 1 ? p[0] : size == 2 ? p[0] & 0x1f : p[0] & 0xf;
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (p[i] & 0x3f);
    }
    return byte_of(character, ret) ? size : 0;
}

/* The byte of the original at `p`, of which at most UNIT_MAX bytes are there unless the input ends.
 * The number of its bytes in the input. */
static size_t decode(unsigned text, const uint8_t *p, size_t n, uint8_t *ret)
{
    *ret = p[0];
    if ((text & RDB_TEXT_CRLF) != 0 && p[0] == '\r' && n > 1 && p[1] == '\n') {
        *ret = '\n';
        return 2;
    }
    if ((text & RDB_TEXT_UTF8) == 0 || p[0] < 0x80)
        return 1;
    size_t size = decode_character(p, n, ret);
    return size > 0 ? size : 1;
}

/* -- which changes are possible -- */

struct survey {
    unsigned possible; /* enum rdb_text_change: nothing contradicts it yet */
    uint64_t lines;    /* CR LF */
    uint64_t wide;     /* characters that are not ASCII */
    uint64_t extra;    /* their bytes after the first one */
    bool cr;           /* the last byte */
};

static size_t survey_one(struct survey *s, const uint8_t *p, size_t n)
{
    uint8_t byte;
    size_t size = (s->possible & RDB_TEXT_UTF8) != 0 ? decode_character(p, n, &byte) : 1;
    if (size == 0) {
        s->possible &= ~(unsigned)RDB_TEXT_UTF8;
        size = 1;
    }
    s->wide += size > 1;
    s->extra += size - 1;
    if (p[0] == '\n' && !s->cr)
        s->possible &= ~(unsigned)RDB_TEXT_CRLF;
    s->lines += p[0] == '\n';
    s->cr = p[0] == '\r';
    return size;
}

static bool survey_text(struct rd_src *src, struct survey *ret, struct rd_err *err)
{
    struct rd_slice s;
    *ret = (struct survey){.possible = RDB_TEXT_CRLF | RDB_TEXT_UTF8};
    if (!rd_src_seek(src, 0, err))
        return false;
    while (ret->possible != 0) {
        enum rd_src_status st = rd_src_need(src, UNIT_MAX, &s);
        if (st == RD_SRC_FAIL)
            return rdb_recover_truncated(src, err);
        if (s.len == 0)
            break;
        size_t at = 0;
        while (at < s.len && (s.len - at >= UNIT_MAX || st == RD_SRC_END))
            at += survey_one(ret, s.ptr + at, s.len - at);
        rd_src_consume(src, at);
    }
    if (ret->lines == 0)
        ret->possible &= ~(unsigned)RDB_TEXT_CRLF;
    if (ret->wide == 0)
        ret->possible &= ~(unsigned)RDB_TEXT_UTF8;
    return true;
}

/* -- where the snapshot begins and ends -- */

/* Whether it is UTF-8 without control characters that programs do not print. */
static bool is_text(struct rd_slice s)
{
    for (size_t i = 0; i < s.len;) {
        size_t size = size_of_character(s.ptr[i]);
        bool plain = s.ptr[i] >= ' ' || strchr("\t\n\r\033", s.ptr[i]) != NULL;
        if (size == 0 || size > s.len - i || s.ptr[i] == '\0' || !plain)
            return false;
        for (size_t k = 1; k < size; k++)
            if ((s.ptr[i + k] & 0xc0) != 0x80)
                return false;
        i += size;
    }
    return true;
}

/* The last line before the snapshot, without its line end. */
static struct rd_slice last_line(struct rd_slice before)
{
    size_t to = before.len;
    if (to > 0 && before.ptr[to - 1] == '\n')
        to--;
    if (to > 0 && before.ptr[to - 1] == '\r')
        to--;
    size_t from = to;
    while (from > 0 && before.ptr[from - 1] != '\n')
        from--;
    return rd_slice(before.ptr + from, to - from);
}

static bool begins(struct rd_slice s, const char *text)
{
    return s.len >= strlen(text) && memcmp(s.ptr, text, strlen(text)) == 0;
}

/* "$123": the length of a payload. */
static bool read_length(struct rd_slice line, uint64_t *ret)
{
    enum { DIGITS_MAX = 18 };
    uint64_t len = 0;
    if (line.len < 2 || line.len > 1 + DIGITS_MAX || line.ptr[0] != '$')
        return false;
    for (size_t i = 1; i < line.len; i++) {
        if (line.ptr[i] < '0' || line.ptr[i] > '9')
            return false;
        len = len * 10 + (line.ptr[i] - '0');
    }
    *ret = len;
    return true;
}

/* Whether a line is a reply to PSYNC, or empty: a master sends newlines while it prepares the
 * snapshot. */
static bool is_reply(struct rd_slice before)
{
    size_t at = 0;
    while (at < before.len && (before.ptr[at] == '\n' || before.ptr[at] == '\r'))
        at++;
    before = rd_slice(before.ptr + at, before.len - at);
    return before.len == 0 || begins(before, "+") || begins(before, "$");
}

/* The mark at the end of the source ends the snapshot, if it is there. */
static bool cut_mark(struct rd_src *src, struct rd_slice mark, struct rdb_transfer *ret,
                     struct rd_err *err)
{
    enum { TAIL = MARK_LEN + NEWLINES };
    uint64_t size = rd_src_size(src);
    uint8_t wanted[MARK_LEN];
    struct rd_slice s;
    uint64_t tail = ret->len < TAIL ? ret->len : TAIL;
    memcpy(wanted, mark.ptr, MARK_LEN);
    if (!rd_src_seek(src, size - tail, err))
        return false;
    if (tail == 0 || rd_src_need(src, (size_t)tail, &s) == RD_SRC_FAIL)
        return tail == 0 || rdb_recover_truncated(src, err);
    for (size_t i = s.len; i-- > 0;) {
        if (i + MARK_LEN <= s.len && memcmp(s.ptr + i, wanted, MARK_LEN) == 0) {
            ret->after = s.len - i;
            ret->len -= ret->after;
            break;
        }
    }
    return true;
}

/* What precedes the snapshot, and where it ends. */
static bool look_around(struct rd_src *src, struct rd_slice before, struct rdb_transfer *ret,
                        struct rd_err *err)
{
    struct rd_slice line = last_line(before);
    uint64_t len;
    ret->before = before.len == 0                         ? RDB_BEFORE_NONE
                  : !is_text(before)                      ? RDB_BEFORE_BYTES
                  : is_reply(before) || begins(line, "$") ? RDB_BEFORE_REPLICATION
                                                          : RDB_BEFORE_TEXT;
    if (read_length(line, &len) && len < ret->len) {
        ret->after = ret->len - len;
        ret->len = len;
        return true;
    }
    if (!begins(line, "$EOF:") || line.len != strlen("$EOF:") + MARK_LEN)
        return true;
    return cut_mark(src, rd_slice(line.ptr + line.len - MARK_LEN, MARK_LEN), ret, err);
}

/* The source is without the changes of the text. */
static bool find_snapshot(struct rd_src *src, struct rdb_transfer *ret, struct rd_err *err)
{
    uint64_t size = rd_src_size(src);
    struct rd_slice s;
    size_t at;
    if (!rd_src_seek(src, 0, err))
        return false;
    if (rd_src_need(src, size < LOOK ? (size_t)size : LOOK, &s) == RD_SRC_FAIL)
        return rdb_recover_truncated(src, err);
    ret->found = rdb_header_find(s, &at) && (at > 0 || ret->text != 0);
    if (!ret->found)
        return true;
    ret->at = at;
    ret->len = size - at;
    return look_around(src, rd_slice(s.ptr, at), ret, err);
}

bool rdb_recover_find_transfer(struct rd_src *src, unsigned text, struct rdb_transfer *ret,
                               struct rd_err *err)
{
    struct survey survey;
    struct rd_src *plain = NULL;
    uint64_t size = rd_src_size(src);
    *ret = (struct rdb_transfer){0};
    if (size == RD_NO_OFFSET || size <= RDB_MAGIC_LEN || !rd_src_can_seek(src))
        return true;
    if (!survey_text(src, &survey, err))
        return false;
    ret->text = survey.possible & text;
    if ((ret->text & RDB_TEXT_CRLF) != 0)
        size -= survey.lines;
    if ((ret->text & RDB_TEXT_UTF8) != 0)
        size -= survey.extra;
    const struct rdb_transfer whole = {.text = ret->text, .len = size};
    bool ok = rdb_recover_open_restored(&plain, src, &whole, err) && find_snapshot(plain, ret, err);
    rd_src_close(plain);
    return ok;
}

/* -- a snapshot after another one -- */

/* The next header at or after `from`, or RD_NO_OFFSET. */
static bool next_header(struct rd_src *src, uint64_t from, uint64_t *ret, struct rd_err *err)
{
    struct rd_slice s;
    size_t i;
    *ret = RD_NO_OFFSET;
    if (!rd_src_seek(src, from, err))
        return false;
    for (;;) {
        if (rd_src_need(src, RDB_MAGIC_LEN + 1, &s) == RD_SRC_FAIL)
            return rdb_recover_truncated(src, err);
        if (s.len <= RDB_MAGIC_LEN)
            return true;
        if (rdb_header_find(s, &i)) {
            *ret = rd_src_offset(src) + i;
            return true;
        }
        rd_src_consume(src, s.len - RDB_MAGIC_LEN);
    }
}

/* Whether the length before `at` says that all bytes from there on are in a string: a snapshot may
 * be a value. */
static bool is_value(struct rd_src *src, uint64_t at, uint64_t len, bool *ret, struct rd_err *err)
{
    struct rd_slice s;
    if (!rd_src_seek(src, at - RDB_MAGIC_LEN, err))
        return false;
    if (rd_src_need(src, RDB_MAGIC_LEN, &s) == RD_SRC_FAIL || s.len < RDB_MAGIC_LEN)
        return rdb_recover_truncated(src, err);
    const uint8_t *end = s.ptr + RDB_MAGIC_LEN;
    uint64_t len14 = (uint64_t)(end[-2] & 0x3f) << 8 | end[-1];
    *ret = (end[-9] == 0x81 && rd_get_be64(end - 8) >= len) ||
           (end[-5] == 0x80 && rd_get_be32(end - 4) >= len) ||
           ((end[-2] & 0xc0) == 0x40 && len14 == len);
    return true;
}

static bool prove_last(struct rd_src *src, struct rdb_transfer *t, struct rd_err *err)
{
    struct rd_src *plain;
    bool value = false;
    if (!is_value(src, t->at, t->len, &value, err))
        return false;
    if (value)
        return true;
    bool ok = rdb_recover_open_restored(&plain, src, t, err);
    if (!ok)
        return false;
    ok = rdb_recover_prove(plain, t->len, &t->found, NULL, err);
    rd_src_close(plain);
    return ok;
}

bool rdb_recover_find_last(struct rd_src *src, struct rdb_transfer *ret, struct rd_err *err)
{
    enum { TRIED_MAX = 8 }; /* each is read to the end */
    uint64_t size = rd_src_size(src), at = RDB_MAGIC_LEN;
    *ret = (struct rdb_transfer){0};
    if (size == RD_NO_OFFSET || size <= 2 * RDB_MAGIC_LEN || !rd_src_can_seek(src))
        return true;
    for (unsigned i = 0; i < TRIED_MAX && !ret->found; i++) {
        if (!next_header(src, at, &at, err))
            return false;
        if (at == RD_NO_OFFSET)
            return true;
        *ret = (struct rdb_transfer){.before = RDB_BEFORE_SNAPSHOT, .at = at, .len = size - at};
        if (!prove_last(src, ret, err))
            return false;
        at++;
    }
    return true;
}

/* -- the source -- */

struct restored {
    struct rd_src *inner;
    struct rdb_transfer transfer;
    uint64_t at;      /* the next byte, without the changes of the text */
    uint64_t decoded; /* the inner source is at this one */
    /* Offsets of every `step`th byte in the inner source: those that were read. */
    uint64_t places[PLACES];
    size_t n_places;
    uint64_t step;
};

/* Remembers where the byte `decoded` is. When all places are used, every second one is kept. */
static void remember(struct restored *r)
{
    if (r->decoded != r->n_places * r->step)
        return;
    r->places[r->n_places++] = rd_src_offset(r->inner);
    if (r->n_places < PLACES)
        return;
    for (size_t i = 0; i < PLACES / 2; i++)
        r->places[i] = r->places[2 * i];
    r->n_places = PLACES / 2;
    r->step *= 2;
}

/* Moves the inner source to the last remembered place before `at`, unless it is nearer. */
static bool go_near(struct restored *r, struct rd_err *err)
{
    uint64_t i = r->at / r->step;
    if (i >= r->n_places)
        i = r->n_places > 0 ? r->n_places - 1 : 0;
    uint64_t there = i * r->step;
    if (r->decoded <= r->at && r->decoded >= there)
        return true;
    r->decoded = r->n_places > 0 ? there : 0;
    return rd_src_seek(r->inner, r->n_places > 0 ? r->places[i] : 0, err);
}

static enum rd_src_status read_text(struct restored *r, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct rd_slice s;
    *ret_len = 0;
    if (!go_near(r, err))
        return RD_SRC_FAIL;
    while (*ret_len == 0) {
        enum rd_src_status st = rd_src_need(r->inner, UNIT_MAX, &s);
        if (st == RD_SRC_FAIL)
            rd_err_adopt(err, rd_src_err(r->inner));
        if (st == RD_SRC_FAIL || st == RD_SRC_MORE || s.len == 0)
            return st;
        size_t left = s.len;
        while (left > 0 && (left >= UNIT_MAX || st == RD_SRC_END) && *ret_len < cap) {
            uint8_t byte;
            size_t n = decode(r->transfer.text, s.ptr + (s.len - left), left, &byte);
            remember(r);
            rd_src_consume(r->inner, n);
            left -= n;
            if (r->decoded++ == r->at) {
                buf[(*ret_len)++] = byte;
                r->at++;
            }
        }
    }
    return RD_SRC_OK;
}

static enum rd_src_status read_part(struct restored *r, uint8_t *buf, size_t cap, size_t *ret_len,
                                    struct rd_err *err)
{
    struct rd_slice s;
    *ret_len = 0;
    if (rd_src_offset(r->inner) != r->at && !rd_src_seek(r->inner, r->at, err))
        return RD_SRC_FAIL;
    enum rd_src_status st = rd_src_need(r->inner, 1, &s);
    if (st == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(r->inner));
    if (st != RD_SRC_OK)
        return st;
    *ret_len = s.len < cap ? s.len : cap;
    memcpy(buf, s.ptr, *ret_len);
    rd_src_consume(r->inner, *ret_len);
    r->at += *ret_len;
    return RD_SRC_OK;
}

static enum rd_src_status restored_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                        struct rd_err *err)
{
    struct restored *r = impl;
    uint64_t end = r->transfer.at + r->transfer.len;
    *ret_len = 0;
    if (r->at >= end)
        return RD_SRC_END;
    size_t most = cap < end - r->at ? cap : (size_t)(end - r->at);
    return r->transfer.text != 0 ? read_text(r, buf, most, ret_len, err)
                                 : read_part(r, buf, most, ret_len, err);
}

static bool restored_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct restored *r = impl;
    (void)err;
    r->at = r->transfer.at + offset;
    return true;
}

bool rdb_recover_open_restored(struct rd_src **ret, struct rd_src *inner,
                               const struct rdb_transfer *transfer, struct rd_err *err)
{
    static const struct rd_src_ops ops = {
        .read = restored_read, .seek = restored_seek, .close = rd_free};
    const struct rd_src_opts opts =
        RD_SRC_OPTS(.origin = rd_src_origin(inner), .total = transfer->len, .sized = true);
    struct restored *r = rd_alloc(sizeof *r);
    if (r == NULL)
        return rd_err_nomem(err, sizeof *r);
    *r = (struct restored){.inner = inner, .transfer = *transfer, .at = transfer->at, .step = 4096};
    if (!rd_src_seek(inner, 0, err)) {
        rd_free(r);
        return false;
    }
    return rd_src_new(ret, &ops, r, &opts, err);
}
