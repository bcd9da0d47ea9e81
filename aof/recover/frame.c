/* frame.c - reads the framing of a command without its arguments.
 *
 *     *2 CRLF $6 CRLF SELECT CRLF $1 CRLF 0 CRLF
 *     #TS:1700000000 CRLF
 */
#include "aof/recover/frame.h"

#include "aof/log.h"
#include "base/num.h"
#include "base/resp.h"
#include "base/resp_frame.h"

enum { NUMBER_MAX = 12, LOOK_MAX = 64, LINE_MAX = 1 << 20 };

void aof_recover_in_init(struct aof_recover_in *in, struct rd_src *src, struct rd_err *err)
{
    *in = (struct aof_recover_in){.src = src, .size = rd_src_size(src), .err = err};
}

static size_t look_outside(struct aof_recover_in *in, uint64_t at, size_t want, const uint8_t **ret)
{
    in->win = rd_slice(NULL, 0);
    if (in->failed || at >= in->size)
        return 0;
    if (!rd_src_seek(in->src, at, in->err)) {
        in->failed = true;
        return 0;
    }
    enum rd_src_status status = rd_src_need(in->src, want, &in->win);
    if (status == RD_SRC_FAIL || status == RD_SRC_MORE) {
        rd_err_adopt(in->err, rd_src_err(in->src));
        in->win = rd_slice(NULL, 0);
        in->failed = true;
        return 0;
    }
    in->off = at;
    *ret = in->win.ptr;
    return in->win.len;
}

void aof_recover_in_without(struct aof_recover_in *in, struct aof_recover_in *of, uint64_t from,
                            uint64_t to)
{
    *in = (struct aof_recover_in){.of = of,
                                  .size = of->size - (to - from),
                                  .err = of->err,
                                  .hole = from,
                                  .hole_len = to - from};
}

/* At most 64 bytes of the view are asked for, and they may lie on both sides of the hole. */
static size_t look_around(struct aof_recover_in *in, uint64_t at, size_t want, const uint8_t **ret)
{
    if (at >= in->hole)
        return aof_recover_look(in->of, at + in->hole_len, want, ret);
    size_t len = aof_recover_look(in->of, at, want, ret);
    if (at + len <= in->hole)
        return len;
    size_t before = (size_t)(in->hole - at);
    if (before >= want)
        return before;
    memcpy(in->seam, *ret, before);
    len = aof_recover_look(in->of, in->hole + in->hole_len, want - before, ret);
    if (len > sizeof in->seam - before)
        len = sizeof in->seam - before;
    memcpy(in->seam + before, *ret, len);
    *ret = in->seam;
    return before + len;
}

size_t aof_recover_look(struct aof_recover_in *in, uint64_t at, size_t want, const uint8_t **ret)
{
    if (in->of != NULL)
        return look_around(in, at, want, ret);
    if (RD_LIKELY(at >= in->off && at - in->off < in->win.len)) {
        size_t skip = (size_t)(at - in->off);
        if (in->win.len - skip >= want || in->off + in->win.len >= in->size) {
            *ret = in->win.ptr + skip;
            return in->win.len - skip;
        }
    }
    return look_outside(in, at, want, ret);
}

int aof_recover_byte(struct aof_recover_in *in, uint64_t at)
{
    const uint8_t *p;
    return aof_recover_look(in, at, 1, &p) > 0 ? p[0] : -1;
}

/* A number and CRLF at *at, which moves after them, to the first wrong byte, or to the end of the
 * file. */
static enum rd_resp_scan number(struct aof_recover_in *in, uint64_t *at, uint64_t *ret)
{
    const uint8_t *p = NULL;
    size_t pos = 0;
    int64_t value = 0;
    size_t len = aof_recover_look(in, *at, NUMBER_MAX + 2, &p);
    if (len > NUMBER_MAX + 2)
        len = NUMBER_MAX + 2;
    enum rd_resp_scan scan = rd_resp_scan_number(rd_slice(p, len), 0, false, &value, &pos);
    if (scan == RD_RESP_SHORT && pos > NUMBER_MAX + 1) {
        scan = RD_RESP_BAD; /* more digits than a number has, and no end of the file */
        pos = NUMBER_MAX;
    }
    *at += pos;
    *ret = (uint64_t)value;
    return scan;
}

static enum frame_status broken(struct frame *f, enum frame_status status, uint64_t at,
                                const char *why)
{
    f->bad = at;
    f->why = why;
    return status;
}

static enum frame_status bad_number(struct frame *f, enum rd_resp_scan n, uint64_t at,
                                    const char *why)
{
    if (n == RD_RESP_SHORT)
        return broken(f, FRAME_CUT, at, "the file ends inside a command");
    return broken(f, FRAME_BROKEN, at, why);
}

/* Digits are alike: keys differ in their numbers. */
static uint64_t shape(uint64_t hash, const uint8_t *p, size_t len)
{
    bool in_number = false;
    for (size_t i = 0; i < len; i++) {
        bool digit = p[i] >= '0' && p[i] <= '9';
        if (!(digit && in_number))
            hash = (hash ^ (digit ? '0' : p[i])) * 0x100000001b3u;
        in_number = digit;
    }
    return (hash ^ 0xff) * 0x100000001b3u;
}

/* The first two arguments identify the command. */
static void note_argument(struct aof_recover_in *in, struct frame *f, uint64_t at, uint64_t len)
{
    const uint8_t *p;
    if (f->done > 1 || len > FRAME_NAME || aof_recover_look(in, at, (size_t)len, &p) < len)
        return;
    f->shape = shape(f->done == 0 ? 0xcbf29ce484222325u : f->shape, p, (size_t)len);
    if (f->done == 0) {
        memcpy(f->name, p, (size_t)len);
        f->name_len = (size_t)len;
    } else {
        f->has_db = rd_num_get_u64(rd_slice(p, (size_t)len), &f->db) && f->db <= INT32_MAX;
    }
}

static enum frame_status argument(struct aof_recover_in *in, struct frame *f, uint64_t *at)
{
    uint64_t len = 0;
    int byte = aof_recover_byte(in, *at);
    f->args[f->done % FRAME_ARGS] = *at;
    if (byte < 0)
        return broken(f, FRAME_CUT, *at, "the file ends inside a command");
    if (byte != '$')
        return broken(f, FRAME_BROKEN, *at, "expected '$'");
    *at += 1;
    enum rd_resp_scan n = number(in, at, &len);
    if (n != RD_RESP_WHOLE)
        return bad_number(f, n, *at, "bad length of an argument");
    if (len > RESP_MAX_BULK)
        return broken(f, FRAME_BROKEN, *at, "argument is too long");
    f->bulk = len;
    if (*at > in->size || in->size - *at < len + 2)
        return broken(f, FRAME_CUT, in->size, "the file ends inside a command");
    f->bulk = 0;
    uint64_t end = *at + len;
    const uint8_t *p;
    if (aof_recover_look(in, end, 2, &p) < 2)
        return broken(f, FRAME_CUT, in->size, "the file ends inside a command");
    if (p[0] != '\r' || p[1] != '\n')
        return broken(f, FRAME_BROKEN, end + (p[0] == '\r'), "no CRLF after an argument");
    note_argument(in, f, *at, len);
    *at = end + 2;
    f->done++;
    return FRAME_OK;
}

/* Parses a line up to its LF; it is damaged if it contains a NUL, or a CR that is not at its end.
 */
static enum frame_status annotation(struct aof_recover_in *in, struct frame *f)
{
    uint64_t at = f->start;
    const uint8_t *p;
    uint8_t last = 0;
    f->kind = FRAME_ANNOTATION;
    while (at - f->start < LINE_MAX) {
        size_t len = aof_recover_look(in, at, 1, &p);
        if (len == 0)
            return broken(f, FRAME_CUT, at, "the file ends inside an annotation");
        for (size_t i = 0; i < len; i++, at++) {
            if (p[i] == 0 || (last == '\r' && p[i] != '\n'))
                return broken(f, FRAME_BROKEN, at, "bad byte in an annotation");
            last = p[i];
            if (last != '\n')
                continue;
            f->end = at + 1;
            size_t line = (size_t)(f->end - f->start);
            if (line <= LOOK_MAX && aof_recover_look(in, f->start, line, &p) >= line) {
                size_t trim = line >= 2 && p[line - 2] == '\r' ? 2 : 1;
                aof_annotation_time(rd_slice(p, line - trim), &f->time_s);
            }
            return FRAME_OK;
        }
    }
    return broken(f, FRAME_BROKEN, at, "annotation is too long");
}

enum frame_status aof_recover_frame(struct aof_recover_in *in, uint64_t at, struct frame *f)
{
    *f = (struct frame){.start = at, .end = at, .time_s = AOF_NO_TIME};
    int first = aof_recover_byte(in, at);
    enum frame_status status = FRAME_OK;
    if (first < 0)
        return in->failed ? FRAME_FAIL : FRAME_END;
    if (first == '#') {
        status = annotation(in, f);
        return in->failed ? FRAME_FAIL : status;
    }
    if (first != '*')
        return broken(f, FRAME_BROKEN, at, "expected '*'");
    uint64_t count = 0;
    at++;
    enum rd_resp_scan n = number(in, &at, &count);
    if (n != RD_RESP_WHOLE || count == 0 || count > INT32_MAX) {
        status = bad_number(f, n, at, "bad count of arguments");
        return in->failed ? FRAME_FAIL : status;
    }
    f->argc = count;
    while (f->done < count && status == FRAME_OK)
        status = argument(in, f, &at);
    f->end = at;
    return in->failed ? FRAME_FAIL : status;
}

bool aof_recover_arg(struct aof_recover_in *in, uint64_t *at)
{
    struct frame f = {.done = 2};
    uint64_t end = *at;
    if (argument(in, &f, &end) != FRAME_OK || in->failed)
        return false;
    *at = end;
    return true;
}

static uint8_t upper(uint8_t c)
{
    return c >= 'a' && c <= 'z' ? (uint8_t)(c - 'a' + 'A') : c;
}

/* The number of different letters; SIZE_MAX: the lengths differ. */
static size_t distance(const struct frame *f, const char *name)
{
    size_t n = 0;
    if (f->name_len != strlen(name))
        return SIZE_MAX;
    for (size_t i = 0; i < f->name_len; i++)
        n += upper(f->name[i]) != (uint8_t)name[i];
    return n;
}

bool aof_recover_is(const struct frame *f, const char *name)
{
    return f->kind == FRAME_COMMAND && distance(f, name) == 0;
}

bool aof_recover_is_near(const struct frame *f, const char *name)
{
    return f->kind == FRAME_COMMAND && f->argc == 1 && distance(f, name) == 1;
}

static bool has_bit(const uint64_t bits[64], uint64_t hash)
{
    return (bits[hash >> 58] >> (hash >> 52 & 63) & 1) != 0;
}

static void set_bit(uint64_t bits[64], uint64_t hash)
{
    bits[hash >> 58] |= (uint64_t)1 << (hash >> 52 & 63);
}

static uint64_t with_argc(const struct frame *f, uint64_t argc)
{
    return (f->shape ^ (argc + 1)) * 0x9e3779b97f4a7c15u;
}

bool aof_recover_forms_has(const struct aof_recover_forms *forms, const struct frame *f)
{
    return has_bit(forms->bits, f->shape);
}

bool aof_recover_forms_has_argc(const struct aof_recover_forms *forms, const struct frame *f,
                                uint64_t argc)
{
    return has_bit(forms->argc_bits, with_argc(f, argc));
}

void aof_recover_forms_add(struct aof_recover_forms *forms, const struct frame *f)
{
    forms->n++;
    forms->n_new += !aof_recover_forms_has(forms, f);
    set_bit(forms->bits, f->shape);
    set_bit(forms->argc_bits, with_argc(f, f->argc));
}

bool aof_recover_is_name(const struct frame *f)
{
    if (f->name_len == 0)
        return false;
    for (size_t i = 0; i < f->name_len; i++) {
        uint8_t c = upper(f->name[i]);
        bool inner = i > 0 && ((c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-');
        if ((c < 'A' || c > 'Z') && !inner)
            return false;
    }
    return true;
}
