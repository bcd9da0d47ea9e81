/* client_peer_ask.c - commands and replies, blocking. */
#include "base/crc16.h"
#include "base/mem.h"
#include "base/num.h"
#include "client/peer_impl.h"

#include <errno.h>
#include <poll.h>

enum { ARGS_MAX = 16, REPLY_DEPTH = 32, HEADER_MAX = 32 };

/* ---- bytes ---- */

static bool out_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct client_peer *peer = impl;
    while (len > 0 && !peer->write_failed) {
        size_t n = 0;
        struct rd_err why = {0};
        enum client_status status = client_peer_write_some(peer, rd_slice(ptr, len), &n, &why);
        if (status == CLIENT_WAIT &&
            !client_peer_poll(peer, client_peer_events(peer, true), "no answer", err))
            return false;
        if (status == CLIENT_FAIL && why.sys != EPIPE && why.sys != ECONNRESET) {
            rd_err_adopt(err, &why);
            return false;
        }
        /* The reason may be in the last message of the peer, which is read first. */
        peer->write_failed = status == CLIENT_FAIL;
        ptr += n;
        len -= n;
    }
    return true;
}

static bool out_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

/* Waits for a byte. Queued output is sent first. */
static enum rd_src_status in_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                  struct rd_err *err)
{
    struct client_peer *peer = impl;
    if (!client_peer_flush(peer, err))
        return RD_SRC_FAIL;
    for (;;) {
        switch (client_peer_read_some(peer, buf, cap, ret_len, err)) {
        case CLIENT_OK:
            return RD_SRC_OK;
        case CLIENT_END:
            return RD_SRC_END;
        case CLIENT_FAIL:
            return RD_SRC_FAIL;
        case CLIENT_WAIT:
            break;
        }
        if (!client_peer_poll(peer, POLLIN, "no answer", err))
            return RD_SRC_FAIL;
    }
}

/* The blocking source is created with the first command. */
static bool prepare(struct client_peer *peer, struct rd_err *err)
{
    static const struct rd_sink_ops out_ops = {.write = out_write, .close = out_close};
    static const struct rd_src_ops in_ops = {.read = in_read};
    const struct rd_sink_opts out_opts =
        RD_SINK_OPTS(.buffer = 64 * 1024, .origin = peer->target->name);
    const struct rd_src_opts in_opts = RD_SRC_OPTS(.origin = peer->target->name);
    if (peer->replies != NULL)
        return true;
    return (peer->out != NULL || rd_sink_new(&peer->out, &out_ops, peer, &out_opts, err)) &&
           (peer->in != NULL || rd_src_new(&peer->in, &in_ops, peer, &in_opts, err)) &&
           rd_resp_reply_new(&peer->replies, peer->in, REPLY_DEPTH, NULL, err);
}

struct rd_src *client_peer_src(struct client_peer *peer)
{
    return prepare(peer, NULL) ? peer->in : NULL;
}

bool client_peer_fail(const struct client_peer *peer, struct rd_err *err)
{
    if (peer->in != NULL && rd_src_err(peer->in)->code != RD_ERR_OK)
        rd_err_adopt(err, rd_src_err(peer->in));
    else
        rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          (struct rd_err_reason){.id = CLIENT_REASON_CLOSED},
                          "the server closed the connection");
    rd_err_origin(err, peer->target->name);
    return false;
}

/* ---- commands ---- */

bool client_peer_flush(struct client_peer *peer, struct rd_err *err)
{
    if (peer->out == NULL || rd_sink_flush(peer->out))
        return true;
    rd_err_adopt(err, rd_sink_err(peer->out));
    rd_err_origin(err, peer->target->name);
    return false;
}

static bool sent(struct client_peer *peer, bool ok, struct rd_err *err)
{
    if (ok)
        return true;
    rd_err_adopt(err, rd_sink_err(peer->out));
    rd_err_origin(err, peer->target->name);
    return false;
}

bool client_peer_send(struct client_peer *peer, const struct rd_slice *argv, size_t argc,
                      struct rd_err *err)
{
    return prepare(peer, err) && sent(peer, rd_resp_put_command(peer->out, argv, argc), err);
}

bool client_peer_send_bytes(struct client_peer *peer, struct rd_slice bytes, struct rd_err *err)
{
    return prepare(peer, err) && sent(peer, rd_sink_write(peer->out, bytes.ptr, bytes.len), err);
}

static size_t split_words(const char *line, struct rd_slice argv[ARGS_MAX])
{
    size_t argc = 0;
    for (line += strspn(line, " "); *line != '\0' && argc < ARGS_MAX; line += strspn(line, " ")) {
        argv[argc] = rd_slice(line, strcspn(line, " "));
        line += argv[argc++].len;
    }
    return argc;
}

bool client_peer_send_line(struct client_peer *peer, const char *line, struct rd_err *err)
{
    struct rd_slice argv[ARGS_MAX];
    return client_peer_send(peer, argv, split_words(line, argv), err);
}

/* ---- replies ---- */

/* A malformed reply is an error of the peer, not damage in a file. */
static bool reply_failed(const struct client_peer *peer, enum resp_status status,
                         struct rd_err *err)
{
    const struct rd_err *why = rd_resp_reply_err(peer->replies);
    if (status == RESP_END || why->code == RD_ERR_TRUNCATED)
        rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                          (struct rd_err_reason){.id = CLIENT_REASON_CLOSED},
                          "the server closed the connection");
    else if (why->code == RD_ERR_CORRUPT)
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "invalid reply: %.150s", why->text);
    else
        rd_err_adopt(err, why);
    rd_err_origin(err, peer->target->name);
    return false;
}

bool client_peer_next(struct client_peer *peer, struct resp_node *ret, struct rd_err *err)
{
    if (!prepare(peer, err))
        return false;
    enum resp_status status = rd_resp_reply_next(peer->replies, ret);
    return status == RESP_NODE || reply_failed(peer, status, err);
}

/* The text up to a blank, which is consumed, or to the end. */
static struct rd_slice cut_word(struct rd_slice *text)
{
    const uint8_t *blank = memchr(text->ptr, ' ', text->len);
    size_t len = blank != NULL ? (size_t)(blank - text->ptr) : text->len;
    struct rd_slice word = rd_slice(text->ptr, len);
    *text = rd_slice(text->ptr + len + (blank != NULL), text->len - len - (blank != NULL));
    return word;
}

/* "MOVED 3999 127.0.0.1:6381"; the host may be empty, and an IPv6 address has no brackets. */
static void note_redirect(struct client_peer *peer, struct rd_slice text)
{
    struct client_peer_redirect r = {.port = 0};
    uint64_t slot, port;
    cut_word(&text);
    struct rd_slice number = cut_word(&text), place = cut_word(&text);
    const uint8_t *colon = place.len > 0 ? memrchr(place.ptr, ':', place.len) : NULL;
    size_t len = colon != NULL ? (size_t)(colon - place.ptr) : 0;
    bool ok = colon != NULL && rd_num_get_u64(number, &slot) && slot < RD_HASH_SLOTS &&
              rd_num_get_u64(rd_slice(colon + 1, place.len - len - 1), &port) && port > 0 &&
              port <= UINT16_MAX && len < sizeof r.host;
    if (ok) {
        r.slot = (unsigned)slot;
        r.port = (uint16_t)port;
        memcpy(r.host, len > 0 ? (const char *)place.ptr : peer->target->host,
               len > 0 ? len : strlen(peer->target->host));
    }
    peer->redirect = r;
}

const struct client_peer_redirect *client_peer_redirect(const struct client_peer *peer)
{
    return &peer->redirect;
}

/* The text of an error is made printable and truncated, so that it does not hide our own. */
bool client_peer_refused(struct client_peer *peer, struct rd_slice text, struct rd_err *err)
{
    char line[180];
    const struct rd_err_reason reason = {.id = rd_resp_error_reason(text)};
    if (reason.id == RESP_REASON_MOVED || reason.id == RESP_REASON_ASK)
        note_redirect(peer, text);
    rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, reason, "%s",
                      rd_err_printable(line, sizeof line, text));
    rd_err_origin(err, peer->target->name);
    return false;
}

static bool is_error(const struct resp_node *node)
{
    return node->type == RESP_ERROR || node->type == RESP_BULK_ERROR;
}

bool client_peer_next_value(struct client_peer *peer, struct resp_node *ret, struct rd_err *err)
{
    struct resp_node node;
    if (!client_peer_next(peer, &node, err))
        return false;
    if (is_error(&node))
        return client_peer_refused(peer, node.text, err);
    if (!node.last) {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "unexpected list in the reply");
        rd_err_origin(err, peer->target->name);
        return false;
    }
    *ret = node;
    return true;
}

/* Reads the line of a string's header, of any length; *ret is the text after `$`. */
static bool see_header(struct client_peer *peer, struct rd_slice *ret, struct rd_err *err)
{
    struct rd_slice s;
    for (size_t n = 1;; n = s.len + 1) {
        if (rd_src_need(peer->in, n, &s) != RD_SRC_OK)
            return client_peer_fail(peer, err);
        const uint8_t *end = s.ptr[0] == '$' ? memmem(s.ptr, s.len, "\r\n", 2) : s.ptr;
        if (end != NULL || s.len > HEADER_MAX) {
            *ret = rd_slice(s.ptr, end != NULL ? (size_t)(end - s.ptr) : 0);
            return true;
        }
    }
}

bool client_peer_next_header(struct client_peer *peer, bool *ret_is_string, uint64_t *ret_len,
                             struct rd_err *err)
{
    struct rd_slice header;
    uint64_t len;
    if (!prepare(peer, err) || !see_header(peer, &header, err))
        return false;
    *ret_is_string =
        header.len > 1 && rd_num_get_u64(rd_slice(header.ptr + 1, header.len - 1), &len);
    if (!*ret_is_string)
        return true;
    rd_src_consume(peer->in, header.len + 2);
    *ret_len = len;
    return true;
}

bool client_peer_end_string(struct client_peer *peer, struct rd_err *err)
{
    struct rd_slice s;
    if (rd_src_need(peer->in, 2, &s) != RD_SRC_OK)
        return client_peer_fail(peer, err);
    if (memcmp(s.ptr, "\r\n", 2) != 0) {
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "no line end after a string");
        rd_err_origin(err, peer->target->name);
        return false;
    }
    rd_src_consume(peer->in, 2);
    return true;
}

/* ---- logging in ---- */

static bool expect_ok(struct client_peer *peer, struct rd_err *err)
{
    struct resp_node node;
    return client_peer_next_value(peer, &node, err);
}

static bool send_auth(struct client_peer *peer, struct rd_err *err)
{
    const struct client_target *target = peer->target;
    struct rd_slice argv[3] = {rd_slice_str("AUTH")};
    size_t argc = 1;
    if (target->user != NULL)
        argv[argc++] = rd_slice_str(target->user);
    argv[argc++] = rd_slice_str(target->password != NULL ? target->password : "");
    return client_peer_send(peer, argv, argc, err);
}

static bool send_select(struct client_peer *peer, struct rd_err *err)
{
    char number[RD_NUM_I64_MAX + 1];
    const struct rd_slice argv[] = {rd_slice_str("SELECT"),
                                    rd_slice(number, rd_num_put_u64(number, peer->target->db))};
    return client_peer_send(peer, argv, 2, err);
}

bool client_peer_login(struct client_peer *peer, struct rd_err *err)
{
    const struct client_target *target = peer->target;
    bool auth = target->user != NULL || target->password != NULL;
    bool select = target->has_db && target->db != 0;
    return (!auth || (send_auth(peer, err) && expect_ok(peer, err))) &&
           (!select || (send_select(peer, err) && expect_ok(peer, err)));
}
