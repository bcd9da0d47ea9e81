#include "aof/check/tail.h"

#include "aof/commands.h"
#include "aof/log.h"

enum {
    PROBES = 4096,       /* false matches after which the search ends */
    PROBE_VIEW = 48,     /* bytes of "*COUNT CRLF $LENGTH CRLF" */
    LONG_MOST = 1 << 30, /* bytes of commands larger than the window, likewise */
    ZERO_BLOCK = 32 * 1024
};

/* Whether "*COUNT CRLF $LENGTH CRLF" is at the beginning. */
static bool looks_like_command(struct rd_slice s)
{
    size_t i = 0;
    for (unsigned part = 0; part < 2; part++) {
        size_t digits = 0;
        if (i >= s.len || s.ptr[i] != (part == 0 ? '*' : '$'))
            return false;
        for (i++; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
            digits++;
        if (digits == 0 || digits > 10 || s.len - i < 2 || s.ptr[i] != '\r' || s.ptr[i + 1] != '\n')
            return false;
        i += 2;
    }
    return true;
}

/* Advances to the next '*' that may begin a command. False: none. */
static bool next_candidate(struct rd_src *src, struct rd_err *err)
{
    struct rd_slice s;
    for (;;) {
        enum rd_src_status st = rd_src_need(src, PROBE_VIEW, &s);
        if (st == RD_SRC_FAIL)
            rd_err_adopt(err, rd_src_err(src));
        if ((st != RD_SRC_OK && st != RD_SRC_END) || s.len == 0)
            return false;
        const uint8_t *star = memchr(s.ptr, '*', s.len);
        size_t before = star != NULL ? (size_t)(star - s.ptr) : s.len;
        if (star == NULL || s.len - before >= PROBE_VIEW || st == RD_SRC_END) {
            rd_src_consume(src, before);
            s.ptr += before;
            s.len -= before;
            if (star == NULL)
                continue;
            if (looks_like_command(s))
                return true;
            before = 1;
        }
        rd_src_consume(src, before);
    }
}

/* Whether a whole command with a known name begins here. err: it could not be read. *n_long counts
 * the bytes of a command that arrived in pieces. */
static bool is_command(struct aof_log *probe, uint64_t *n_long, struct rd_err *err)
{
    struct aof_log_entry e;
    aof_log_restart(probe, 0);
    enum aof_log_status st = aof_log_next(probe, &e);
    bool known = st == AOF_LOG_ENTRY && (e.kind == AOF_LOG_COMMAND || e.kind == AOF_LOG_LONG) &&
                 e.command.argv != NULL && aof_command_known(e.command.argv[0]);
    while (known && st == AOF_LOG_ENTRY && e.kind != AOF_LOG_COMMAND &&
           e.kind != AOF_LOG_LONG_END && *n_long < LONG_MOST) {
        st = aof_log_next(probe, &e);
        *n_long += st == AOF_LOG_ENTRY && e.kind == AOF_LOG_PIECE ? e.len : 0;
    }
    enum rd_err_code code = aof_log_err(probe)->code;
    if (st == AOF_LOG_FAIL && (code == RD_ERR_IO || code == RD_ERR_MEMORY))
        rd_err_adopt(err, aof_log_err(probe));
    return known && st == AOF_LOG_ENTRY &&
           (e.kind == AOF_LOG_COMMAND || e.kind == AOF_LOG_LONG_END);
}

static bool probe_from(struct rd_src *src, struct aof_log *probe, uint64_t from, uint64_t *ret,
                       bool *ret_searched, struct rd_err *err)
{
    uint64_t n_long = 0;
    for (unsigned n = 0; n < PROBES && n_long < LONG_MOST; n++) {
        if (!rd_src_seek(src, from, err))
            return false;
        if (!next_candidate(src, err)) {
            *ret_searched = true;
            return err->code == RD_ERR_OK;
        }
        from = rd_src_offset(src);
        if (is_command(probe, &n_long, err)) {
            *ret = from;
            *ret_searched = true;
            return true;
        }
        if (err->code != RD_ERR_OK)
            return false;
        from++;
    }
    return true;
}

bool aof_tail_search(struct rd_src *src, uint64_t from, uint64_t *ret, bool *ret_searched,
                     struct rd_err *err)
{
    struct aof_log *probe;
    const struct aof_log_opts opts = AOF_LOG_OPTS(.names = true);
    if (!rd_src_can_seek(src))
        return true;
    if (rd_src_size(src) != RD_NO_OFFSET && from >= rd_src_size(src)) {
        *ret_searched = true;
        return true;
    }
    if (!aof_log_new(&probe, src, &opts, err))
        return false;
    bool ok = probe_from(src, probe, from, ret, ret_searched, err);
    aof_log_free(probe);
    return ok;
}

bool aof_tail_zeros(struct rd_src *src, uint64_t from, uint64_t size, uint64_t *ret,
                    struct rd_err *err)
{
    struct rd_slice s;
    size_t block = rd_src_window(src) < ZERO_BLOCK ? rd_src_window(src) : ZERO_BLOCK;
    if (!rd_src_can_seek(src) || size == RD_NO_OFFSET)
        return true;
    for (uint64_t end = size; end > from;) {
        uint64_t begin = end - from > block ? end - block : from;
        size_t n = (size_t)(end - begin);
        if (!rd_src_seek(src, begin, err))
            return false;
        enum rd_src_status st = rd_src_need(src, n, &s);
        if (st == RD_SRC_FAIL)
            rd_err_adopt(err, rd_src_err(src));
        if (st != RD_SRC_OK)
            return st != RD_SRC_FAIL;
        while (n > 0 && s.ptr[n - 1] == 0)
            n--;
        *ret = size - begin - n;
        if (n > 0)
            break;
        end = begin;
    }
    return true;
}
