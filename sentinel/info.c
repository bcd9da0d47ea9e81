#include "sentinel/info.h"

#include "base/num.h"
#include "base/words.h"
#include "sentinel/sentinel.h"
#include "sentinel/text_impl.h"

enum { DOWN_MAX_S = 1000000000 };

/* "ip=127.0.0.1,port=6380,state=online,…" */
static bool named_address(struct rd_slice text, struct rd_slice *ret_host, int *ret_port)
{
    struct rd_slice part, value, host = {0};
    int port = -1;
    for (bool more = true; more;) {
        more = sentinel_text_cut(&text, ',', &part);
        if (sentinel_text_after(part, "ip=", &value))
            host = value;
        else if (sentinel_text_after(part, "port=", &value) && !sentinel_text_port(value, &port))
            return false;
    }
    *ret_host = host;
    *ret_port = port;
    return host.len > 0 && port > 0;
}

static bool plain_address(struct rd_slice text, struct rd_slice *ret_host, int *ret_port)
{
    struct rd_slice port;
    bool more = sentinel_text_cut(&text, ',', ret_host);
    return more && ret_host->len > 0 && (sentinel_text_cut(&text, ',', &port), true) &&
           sentinel_text_port(port, ret_port) && *ret_port > 0;
}

/* "slave", digits, ":". */
static bool replica_line(struct rd_slice line, struct rd_slice *ret)
{
    struct rd_slice rest, number;
    uint64_t n;
    if (!sentinel_text_after(line, "slave", &rest) || !sentinel_text_cut(&rest, ':', &number) ||
        !rd_num_get_u64(number, &n))
        return false;
    *ret = rest;
    return true;
}

static bool read_address(struct rd_slice text, struct rd_slice *ret_host, int *ret_port)
{
    bool named = text.len > 0 && memmem(text.ptr, text.len, "ip=", 3) != NULL;
    return named ? named_address(text, ret_host, ret_port)
                 : plain_address(text, ret_host, ret_port);
}

static void read_i64(struct rd_slice text, int64_t min, int64_t *ret)
{
    int64_t v;
    if (rd_num_get_i64(text, &v) && v >= min)
        *ret = v;
}

static void read_role(struct rd_slice value, struct sentinel_info *info)
{
    if (rd_slice_is(value, "master"))
        info->role = SENTINEL_INFO_MASTER;
    else if (rd_slice_is(value, "slave"))
        info->role = SENTINEL_INFO_REPLICA;
}

static void read_line(struct rd_slice line, struct sentinel_info *info)
{
    struct rd_slice v;
    if (sentinel_text_after(line, "run_id:", &v) && v.len == SENTINEL_ID_LEN)
        info->run_id = v;
    else if (sentinel_text_after(line, "master_link_down_since_seconds:", &v))
        read_i64(v, 0, &info->master_link_down_s);
    else if (sentinel_text_after(line, "role:", &v))
        read_role(v, info);
    else if (sentinel_text_after(line, "master_host:", &v))
        info->master_host = v;
    else if (sentinel_text_after(line, "master_port:", &v))
        sentinel_text_port(v, &info->master_port);
    else if (sentinel_text_after(line, "master_link_status:", &v))
        info->link = rd_word_is(v, "up");
    else if (sentinel_text_after(line, "slave_priority:", &v))
        read_i64(v, 0, &info->priority);
    else if (sentinel_text_after(line, "slave_repl_offset:", &v))
        read_i64(v, 0, &info->offset);
    else if (sentinel_text_after(line, "replica_announced:", &v))
        info->announced = !rd_slice_is(v, "0");
}

/* Takes the first line off the text, without its end. False: it was the last one. */
static bool next_line(struct rd_slice *text, struct rd_slice *ret)
{
    bool more = sentinel_text_cut(text, '\n', ret);
    if (ret->len > 0 && ret->ptr[ret->len - 1] == '\r')
        ret->len--;
    return more;
}

void sentinel_info_replicas(struct rd_slice text,
                            void (*replica)(void *ctx, struct rd_slice host, int port), void *ctx)
{
    struct rd_slice line, address, host;
    int port;
    for (bool more = true; more;) {
        more = next_line(&text, &line);
        if (replica_line(line, &address) && read_address(address, &host, &port))
            replica(ctx, host, port);
    }
}

void sentinel_info_read(struct rd_slice text, struct sentinel_info *ret)
{
    struct rd_slice line;
    struct sentinel_info info = {.master_link_down_s = -1,
                                 .master_port = -1,
                                 .link = -1,
                                 .priority = -1,
                                 .offset = -1,
                                 .announced = -1};
    for (bool more = true; more;) {
        more = next_line(&text, &line);
        read_line(line, &info);
    }
    if (info.master_link_down_s > DOWN_MAX_S)
        info.master_link_down_s = DOWN_MAX_S;
    *ret = info;
}
