#include "aof/text_mode.h"

#include "base/num.h"
#include "base/resp.h"

enum { HEAD = 32 /* bytes of "*COUNT LF" or "$LENGTH LF" */ };

/* ---- detection ---- */

/* The line end at *at; 0: none, or incomplete. */
static size_t line_end(struct rd_slice s, size_t *at)
{
    size_t n = 0;
    while (*at + n < s.len && s.ptr[*at + n] == '\r')
        n++;
    if (*at + n >= s.len || s.ptr[*at + n] != '\n')
        return 0;
    *at += n + 1;
    return n + 1;
}

static bool digits(struct rd_slice s, size_t *at)
{
    size_t from = *at;
    while (*at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9')
        ++*at;
    return *at > from && *at - from <= 10;
}

enum aof_text_mode aof_text_mode_of(struct rd_slice s)
{
    size_t at = 0;
    while (at < s.len && s.ptr[at] == '#') {
        const uint8_t *lf = memchr(s.ptr + at, '\n', s.len - at);
        if (lf == NULL)
            return AOF_TEXT_NONE;
        at = (size_t)(lf - s.ptr) + 1;
    }
    if (at >= s.len || s.ptr[at++] != '*' || !digits(s, &at))
        return AOF_TEXT_NONE;
    size_t end = line_end(s, &at);
    if ((end != 1 && end != 3) || at >= s.len || s.ptr[at++] != '$' || !digits(s, &at) ||
        line_end(s, &at) != end)
        return AOF_TEXT_NONE;
    return end == 1 ? AOF_TEXT_LF : AOF_TEXT_CRLF;
}

/* ---- restoring ---- */

struct restore {
    struct rd_src *src;
    struct rd_sink *sink;
    struct aof_text_result *res;
};

static bool put(struct restore *r, const void *bytes, size_t len)
{
    return rd_sink_write(r->sink, bytes, len);
}

/* Copies n bytes; crs: adds a CR before each LF. */
static bool copy(struct restore *r, uint64_t n, bool crs)
{
    struct rd_slice s;
    while (n > 0 && rd_src_need(r->src, 1, &s) == RD_SRC_OK) {
        size_t len = s.len < n ? s.len : (size_t)n;
        const uint8_t *lf = crs ? memchr(s.ptr, '\n', len) : NULL;
        if (lf != NULL)
            len = (size_t)(lf - s.ptr);
        if (!put(r, s.ptr, len))
            return false;
        rd_src_consume(r->src, len);
        n -= len;
        if (lf == NULL)
            continue;
        if (!put(r, "\r\n", 2))
            return false;
        rd_src_consume(r->src, 1);
        r->res->bytes++;
        n--;
    }
    return n == 0;
}

static bool copy_rest(struct restore *r)
{
    struct rd_slice s;
    enum rd_src_status st;
    while ((st = rd_src_need(r->src, 1, &s)) == RD_SRC_OK) {
        if (!put(r, s.ptr, s.len))
            return false;
        rd_src_consume(r->src, s.len);
    }
    return st == RD_SRC_END;
}

/* Parses "*3 LF": the number and the length of the line. */
static bool head(struct restore *r, char mark, uint64_t *ret, size_t *ret_len)
{
    struct rd_slice s;
    rd_src_need(r->src, HEAD, &s);
    const uint8_t *lf = s.len > 1 ? memchr(s.ptr, '\n', s.len < HEAD ? s.len : HEAD) : NULL;
    if (lf == NULL || s.ptr[0] != mark)
        return false;
    *ret_len = (size_t)(lf - s.ptr) + 1;
    return rd_num_get_u64(rd_slice(s.ptr + 1, *ret_len - 2), ret);
}

/* Whether another argument, or after the last one another command, follows the LF of an argument.
 */
static bool fits_after(struct rd_src *src, bool last)
{
    struct rd_slice s;
    if (rd_src_need(src, 2, &s) == RD_SRC_END)
        return last && (s.len == 0 || (s.len == 2 && s.ptr[0] == '\n'));
    return s.len >= 2 && s.ptr[0] == '\n' &&
           (last ? s.ptr[1] == '*' || s.ptr[1] == '#' : s.ptr[1] == '$');
}

static bool ends_at(struct rd_src *src, uint64_t offset, bool last)
{
    struct rd_slice s;
    if (!rd_src_seek(src, offset, NULL) || rd_src_need(src, 1, &s) != RD_SRC_OK || s.ptr[0] != '\n')
        return false;
    if (rd_src_need(src, 2, &s) == RD_SRC_END)
        return last;
    return fits_after(src, last);
}

/* For an argument that had `len` bytes and begins at `from`: its present length if every LF was CR
 * LF (or UINT64_MAX), and the number of its LFs. */
static uint64_t squeezed(struct rd_src *src, uint64_t from, uint64_t len, uint64_t *ret_lfs)
{
    struct rd_slice s;
    uint64_t was = 0, now = 0, lfs = 0;
    if (!rd_src_seek(src, from, NULL))
        return UINT64_MAX;
    while (was < len && rd_src_need(src, 1, &s) == RD_SRC_OK) {
        size_t i = 0;
        for (; i < s.len && was < len; i++) {
            lfs += s.ptr[i] == '\n';
            was += s.ptr[i] == '\n' ? 2 : 1;
        }
        now += i;
        rd_src_consume(src, i);
    }
    *ret_lfs = lfs;
    return was == len ? now : UINT64_MAX;
}

enum argument { ARG_PLAIN, ARG_SQUEEZED, ARG_DOUBTFUL };

/* ret_now: its length in the file. The position of the source is undefined afterwards. */
static enum argument judge(struct rd_src *src, uint64_t from, uint64_t len, bool last,
                           uint64_t *ret_now)
{
    uint64_t lfs = 0, now = squeezed(src, from, len, &lfs);
    bool plain = ends_at(src, from + len, last);
    bool all = now != UINT64_MAX && ends_at(src, from + now, last);
    *ret_now = plain ? len : now;
    if (plain && (!all || lfs == 0))
        return ARG_PLAIN;
    *ret_now = now;
    return all && !plain ? ARG_SQUEEZED : ARG_DOUBTFUL;
}

/* ---- a command ---- */

enum command { CMD_DONE, CMD_DOUBTFUL, CMD_NONE, CMD_FAILED };

/* The first call only examines; nothing is written of a command that cannot be restored. write: the
 * second call. */
static enum command arguments(struct restore *r, uint64_t n, bool write)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t len, now;
        size_t line;
        if (!head(r, '$', &len, &line) || len > RESP_MAX_BULK)
            return CMD_NONE;
        uint64_t from = rd_src_offset(r->src) + line;
        enum argument arg = judge(r->src, from, len, i + 1 == n, &now);
        if (arg == ARG_DOUBTFUL)
            return CMD_DOUBTFUL;
        if (write && (!rd_src_seek(r->src, from - line, NULL) || !copy(r, line, true) ||
                      !copy(r, now, arg == ARG_SQUEEZED) || !copy(r, 1, true)))
            return CMD_FAILED;
        if (!write && !rd_src_seek(r->src, from + now + 1, NULL))
            return CMD_FAILED;
    }
    return CMD_DONE;
}

static enum command command(struct restore *r)
{
    uint64_t n, from = rd_src_offset(r->src);
    size_t line;
    if (!head(r, '*', &n, &line) || n == 0 || n > INT32_MAX)
        return CMD_NONE;
    if (!rd_src_seek(r->src, from + line, NULL))
        return CMD_FAILED;
    enum command done = arguments(r, n, false);
    if (!rd_src_seek(r->src, from, NULL))
        return CMD_FAILED;
    if (done != CMD_DONE)
        return done;
    return copy(r, line, true) ? arguments(r, n, true) : CMD_FAILED;
}

/* A command that is left unchanged ends before the next line that begins a command. */
static bool copy_doubtful(struct restore *r)
{
    struct rd_slice s;
    bool line = false;
    for (bool first = true; rd_src_need(r->src, 1, &s) == RD_SRC_OK; first = false) {
        if (line && !first && (s.ptr[0] == '*' || s.ptr[0] == '#'))
            return true;
        const uint8_t *lf = memchr(s.ptr, '\n', s.len);
        size_t len = lf != NULL ? (size_t)(lf - s.ptr) + 1 : s.len;
        if (!put(r, s.ptr, len))
            return false;
        rd_src_consume(r->src, len);
        line = lf != NULL;
    }
    return true;
}

static bool annotation(struct restore *r)
{
    struct rd_slice s;
    bool end = false;
    while (!end && rd_src_need(r->src, 1, &s) == RD_SRC_OK) {
        const uint8_t *lf = memchr(s.ptr, '\n', s.len);
        size_t len = lf != NULL ? (size_t)(lf - s.ptr) + 1 : s.len;
        end = lf != NULL;
        if (!copy(r, len, true))
            return false;
    }
    return true;
}

static bool restore_lf(struct restore *r)
{
    struct rd_slice s;
    while (rd_src_need(r->src, 1, &s) == RD_SRC_OK) {
        if (s.ptr[0] == '#') {
            if (!annotation(r))
                return false;
            continue;
        }
        switch (command(r)) {
        case CMD_DONE:
            r->res->commands++;
            break;
        case CMD_DOUBTFUL:
        case CMD_NONE:
            r->res->doubtful++;
            if (!copy_doubtful(r))
                return false;
            break;
        case CMD_FAILED:
            return false;
        }
    }
    return true;
}

/* Removes one CR before every LF. */
static bool restore_crlf(struct restore *r)
{
    struct rd_slice s;
    while (rd_src_need(r->src, 2, &s) == RD_SRC_OK) {
        const uint8_t *cr = memchr(s.ptr, '\r', s.len - 1);
        size_t len = cr != NULL ? (size_t)(cr - s.ptr) : s.len - 1;
        bool extra = cr != NULL && cr[1] == '\n';
        if (cr != NULL && !extra)
            len++;
        if (!put(r, s.ptr, len))
            return false;
        rd_src_consume(r->src, len + extra);
        r->res->bytes += extra;
        if (extra) { /* the LF must not be taken for the second byte of a pair */
            if (!put(r, "\n", 1))
                return false;
            rd_src_consume(r->src, 1);
        }
    }
    return copy_rest(r);
}

bool aof_text_restore(struct rd_src *src, enum aof_text_mode mode, struct rd_sink *sink,
                      struct aof_text_result *ret, struct rd_err *err)
{
    struct restore r = {.src = src, .sink = sink, .res = ret};
    *ret = (struct aof_text_result){0};
    bool ok = mode == AOF_TEXT_LF     ? restore_lf(&r)
              : mode == AOF_TEXT_CRLF ? restore_crlf(&r)
                                      : copy_rest(&r);
    if (rd_src_err(src)->code != RD_ERR_OK) {
        rd_err_adopt(err, rd_src_err(src));
        return false;
    }
    if (!ok)
        rd_err_adopt(err, rd_sink_err(sink));
    return ok;
}
