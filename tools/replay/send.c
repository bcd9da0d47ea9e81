/* send.c - sends commands and reads replies.
 *
 * Commands are sent without waiting for replies. The number and bytes of unanswered commands are
 * limited: at the limit, replies are read until half of the commands are answered, so that the
 * server always has work. */
#include "base/mem.h"
#include "tools/replay/replay.h"

bool replay_sender_init(struct replay_sender *s, struct client_peer *peer, size_t window,
                        struct rd_err *err)
{
    *s = (struct replay_sender){.peer = peer, .window = window};
    s->ring = rd_calloc(window, sizeof *s->ring);
    return s->ring != NULL || rd_err_nomem(err, window * sizeof *s->ring);
}

void replay_sender_done(struct replay_sender *s)
{
    rd_free(s->ring);
    s->ring = NULL;
}

/* ---- replies ---- */

static void note_error(struct replay_sender *s, const struct replay_sent *sent,
                       struct rd_slice text)
{
    s->n_errors++;
    if (s->n_shown == REPLAY_ERRORS)
        return;
    struct replay_error *error = &s->errors[s->n_shown++];
    error->sent = *sent;
    rd_show_escape(error->text, sizeof error->text, text);
}

/* The reply of EXEC can contain errors. */
static bool take_answer(struct replay_sender *s, struct rd_err *err)
{
    const struct replay_sent *sent = &s->ring[s->first];
    struct resp_node node;
    do {
        if (!client_peer_next(s->peer, &node, err))
            return false;
        if (node.type == RESP_ERROR || node.type == RESP_BULK_ERROR)
            note_error(s, sent, node.text);
    } while (!node.last);
    s->bytes -= sent->len;
    s->first = (s->first + 1) % s->window;
    s->n--;
    return true;
}

bool replay_drain(struct replay_sender *s, struct rd_err *err)
{
    while (s->n > 0)
        if (!take_answer(s, err))
            return false;
    return true;
}

/* ---- commands ---- */

static bool is_full(const struct replay_sender *s)
{
    return s->n == s->window || s->bytes > REPLAY_BYTES;
}

/* A command was written completely. */
static bool push(struct replay_sender *s, const struct replay_sent *sent, struct rd_err *err)
{
    s->ring[(s->first + s->n++) % s->window] = *sent;
    s->bytes += sent->len;
    s->n_sent++;
    if (!is_full(s))
        return true;
    while (s->n > s->window / 2 || s->bytes > REPLAY_BYTES / 2)
        if (!take_answer(s, err))
            return false;
    return true;
}

bool replay_send(struct replay_sender *s, const struct rd_slice *argv, size_t argc,
                 const struct replay_sent *sent, struct rd_err *err)
{
    struct replay_sent named = *sent;
    named.name_len = (uint8_t)(argv[0].len < REPLAY_WORD ? argv[0].len : REPLAY_WORD);
    memcpy(named.name, argv[0].ptr, named.name_len);
    return client_peer_send(s->peer, argv, argc, err) && push(s, &named, err);
}

/* ---- bytes ---- */

enum { SCAN_ARGS, SCAN_LEN, SCAN_BYTES };

static void keep_word(char word[REPLAY_WORD], uint8_t *len, const uint8_t *ptr, size_t n)
{
    size_t room = REPLAY_WORD - (size_t)*len;
    memcpy(word + *len, ptr, n < room ? n : room);
    *len = (uint8_t)(*len + (n < room ? n : room));
}

/* The first bytes of the first two arguments are kept. */
static size_t scan_bytes(struct replay_sender *s, const uint8_t *ptr, size_t len)
{
    struct replay_scan *scan = &s->scan;
    size_t n = len < scan->skip ? len : (size_t)scan->skip;
    size_t text = scan->skip > 2 ? (size_t)(scan->skip - 2 < n ? scan->skip - 2 : n) : 0;
    if (scan->at_arg == 0)
        keep_word(s->scanned.name, &s->scanned.name_len, ptr, text);
    else if (scan->at_arg == 1)
        keep_word(s->scanned.key, &s->scanned.key_len, ptr, text);
    scan->skip -= n;
    return n;
}

/* Consumes bytes up to the end of a command at most. *ret_whole: the end was reached. */
static size_t scan(struct replay_sender *s, const uint8_t *ptr, size_t len, bool *ret_whole)
{
    struct replay_scan *scan = &s->scan;
    size_t i = 0;
    *ret_whole = false;
    while (i < len && !*ret_whole) {
        if (scan->state == SCAN_BYTES) {
            i += scan_bytes(s, ptr + i, len - i);
            if (scan->skip > 0)
                continue;
            *ret_whole = ++scan->at_arg == scan->n_args;
            scan->state = *ret_whole ? SCAN_ARGS : SCAN_LEN;
            continue;
        }
        uint8_t c = ptr[i++];
        if (c >= '0' && c <= '9')
            scan->number = scan->number * 10 + (c - '0');
        if (c != '\n')
            continue;
        if (scan->state == SCAN_ARGS) {
            scan->n_args = scan->number;
            scan->at_arg = 0;
            scan->state = SCAN_LEN;
        } else {
            scan->skip = scan->number + 2;
            scan->state = SCAN_BYTES;
        }
        scan->number = 0;
    }
    return i;
}

static bool sink_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct replay_sender *s = impl;
    while (len > 0) {
        bool whole;
        size_t n = scan(s, ptr, len, &whole);
        if (!client_peer_send_bytes(s->peer, rd_slice(ptr, n), err))
            return false;
        s->scanned.len += n;
        if (whole && !push(s, &s->scanned, err))
            return false;
        if (whole)
            s->scanned = (struct replay_sent){.snapshot = true};
        ptr += n;
        len -= n;
    }
    return true;
}

static bool sink_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

bool replay_sink(struct replay_sender *s, struct rd_sink **ret, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {.write = sink_write, .close = sink_close};
    s->scan = (struct replay_scan){0};
    s->scanned = (struct replay_sent){.snapshot = true};
    return rd_sink_new(ret, &ops, s, NULL, err);
}
