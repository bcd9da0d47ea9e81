#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/num.h"
#include "repl/master/master_impl.h"

void repl_peer_init(struct repl_peer *peer, struct repl_master *m, struct rd_buf *out)
{
    *peer = (struct repl_peer){.master = m, .out = out};
}

void repl_peer_enlist(struct repl_peer *peer)
{
    struct repl_master *m = peer->master;
    peer->prev = m->last;
    *(m->last != NULL ? &m->last->next : &m->first) = peer;
    m->last = peer;
    m->n_peers++;
}

void repl_peer_done(struct repl_peer *peer)
{
    struct repl_master *m = peer->master;
    repl_reader_close(&peer->reader);
    if (peer->state == REPL_PEER_TALKS)
        return;
    *(peer->prev != NULL ? &peer->prev->next : &m->first) = peer->next;
    *(peer->next != NULL ? &peer->next->prev : &m->last) = peer->prev;
    peer->state = REPL_PEER_TALKS;
    m->n_peers--;
}

bool repl_peer_say(struct repl_peer *peer, const char *fmt, ...)
{
    char line[REPL_REPLID_LEN + 64];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    return rd_buf_add(peer->out, line, (size_t)len);
}

/* ---- REPLCONF ---- */

static bool is_word(struct rd_slice arg, const char *word)
{
    return arg.len == strlen(word) && strncasecmp((const char *)arg.ptr, word, arg.len) == 0;
}

enum { OPTION_WORD_MAX = 63 };

/* The next word of a list; quotes enclose a word. False: the list ends, or a quote is not
 * closed. */
static bool next_word(struct rd_slice *list, char word[OPTION_WORD_MAX + 1], bool *ret_wrong)
{
    size_t at = 0, n = 0;
    char quote = 0;
    while (at < list->len && isspace(list->ptr[at]))
        at++;
    bool found = at < list->len;
    for (; at < list->len && (quote != 0 || !isspace(list->ptr[at])); at++) {
        char c = (char)list->ptr[at];
        if (c == quote)
            quote = 0;
        else if (quote == 0 && (c == '"' || c == '\''))
            quote = c;
        else if (n < OPTION_WORD_MAX)
            word[n++] = c;
    }
    word[n] = '\0';
    *list = rd_slice(list->ptr + at, list->len - at);
    *ret_wrong = quote != 0;
    return found && quote == 0;
}

/* "functions other": words in any order. An unknown word, which is returned, is an error, because
 * its data would be missing. */
static bool read_filter(struct rd_slice list, enum repl_filter *ret, char word[OPTION_WORD_MAX + 1])
{
    bool wrong;
    *ret = REPL_FILTER_NOTHING;
    while (next_word(&list, word, &wrong)) {
        if (strcasecmp(word, "functions") != 0)
            return false;
        *ret = REPL_FILTER_FUNCTIONS;
    }
    word[0] = '\0';
    return !wrong;
}

/* Texts from replicas appear in INFO and in logs, so they must be printable. */
static bool copy_name(char *dst, size_t size, struct rd_slice text)
{
    if (text.len >= size)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!isgraph(text.ptr[i]))
            return false;
    memcpy(dst, text.ptr, text.len);
    dst[text.len] = '\0';
    return true;
}

static bool offset_of(struct rd_slice text, uint64_t *ret)
{
    int64_t value;
    if (!rd_num_get_i64(text, &value) || value < 0)
        return false;
    *ret = (uint64_t)value;
    return true;
}

static const char *read_port(struct repl_peer *peer, struct rd_slice value)
{
    int64_t port;
    if (!rd_num_get_i64(value, &port))
        return "ERR value is not an integer or out of range";
    peer->port = port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
    return NULL;
}

static const char *read_capa(struct repl_peer *peer, struct rd_slice value)
{
    peer->capa |= is_word(value, "eof") ? REPL_CAPA_EOF : 0;
    peer->capa |= is_word(value, "psync2") ? REPL_CAPA_PSYNC2 : 0;
    return NULL;
}

static const char *read_rdb_only(struct repl_peer *peer, struct rd_slice value)
{
    int64_t on;
    if (!rd_num_get_i64(value, &on))
        return "ERR value is not an integer or out of range";
    if (on < 0 || on > 1)
        return "ERR value is out of range, value must between 0 and 1";
    peer->rdb_only = on == 1;
    return NULL;
}

static const char *read_address(struct repl_peer *peer, struct rd_slice value)
{
    if (value.len >= sizeof peer->address)
        return "ERR REPLCONF ip-address provided by replica instance is too long";
    return copy_name(peer->address, sizeof peer->address, value)
               ? NULL
               : "ERR REPLCONF ip-address provided by replica instance is not printable";
}

/* NULL, or the error. */
static const char *option(struct repl_peer *peer, struct rd_slice name, struct rd_slice value)
{
    if (is_word(name, "listening-port"))
        return read_port(peer, value);
    if (is_word(name, "ip-address"))
        return read_address(peer, value);
    if (is_word(name, "capa"))
        return read_capa(peer, value);
    if (is_word(name, "rdb-only"))
        return read_rdb_only(peer, value);
    if (is_word(name, "version"))
        return copy_name(peer->version, sizeof peer->version, value)
                   ? NULL
                   : "ERR Unrecognized version format";
    return "";
}

static enum repl_said wrong(struct repl_peer *peer, const char *text)
{
    repl_peer_say(peer, "-%s\r\n", text);
    return REPL_SAID_WRONG;
}

/* An error that ends with what the replica sent. */
static enum repl_said wrong_word(struct repl_peer *peer, const char *text, struct rd_slice word)
{
    char shown[33];
    size_t n = 0;
    for (; n < word.len && n < sizeof shown - 1; n++)
        shown[n] = isprint(word.ptr[n]) ? (char)word.ptr[n] : ' ';
    shown[n] = '\0';
    repl_peer_say(peer, "-%s: %s\r\n", text, shown);
    return REPL_SAID_WRONG;
}

static enum repl_said refuse_option(struct repl_peer *peer, const char *error, struct rd_slice name,
                                    struct rd_slice value)
{
    if (error[0] == '\0')
        return wrong_word(peer, "ERR Unrecognized REPLCONF option", name);
    if (!is_word(name, "ip-address"))
        return wrong(peer, error);
    repl_peer_say(peer, "-%s: %zu bytes\r\n", error, value.len);
    return REPL_SAID_WRONG;
}

static enum repl_said refuse_filter(struct repl_peer *peer, const char *word)
{
    if (word[0] == '\0')
        return wrong(peer, "ERR Missing rdb-filter-only values");
    return wrong_word(peer, "ERR Unsupported rdb-filter-only option", rd_slice_str(word));
}

static enum repl_said acknowledge(struct repl_peer *peer, size_t argc, const struct rd_slice *argv,
                                  int64_t now_ms)
{
    uint64_t offset;
    if (peer->state == REPL_PEER_TALKS || !offset_of(argv[2], &offset))
        return REPL_SAID_ACK;
    if (offset > peer->ack)
        peer->ack = offset;
    if (argc >= 5 && is_word(argv[3], "fack") && offset_of(argv[4], &offset) &&
        offset > peer->durable)
        peer->durable = offset;
    peer->ack_ms = now_ms;
    if (peer->state != REPL_PEER_PROVES)
        return REPL_SAID_ACK;
    peer->state = REPL_PEER_ONLINE;
    return REPL_SAID_ONLINE;
}

enum repl_said repl_peer_replconf(struct repl_peer *peer, size_t argc, const struct rd_slice *argv,
                                  int64_t now_ms)
{
    if (argc % 2 == 0)
        return wrong(peer, "ERR syntax error");
    for (size_t i = 1; i + 1 < argc; i += 2) {
        if (is_word(argv[i], "ack"))
            return acknowledge(peer, argc, argv, now_ms);
        if (is_word(argv[i], "getack"))
            return REPL_SAID_GETACK;
        char word[OPTION_WORD_MAX + 1];
        if (is_word(argv[i], "rdb-filter-only")) {
            if (!read_filter(argv[i + 1], &peer->filter, word))
                return refuse_filter(peer, word);
            continue;
        }
        const char *error = option(peer, argv[i], argv[i + 1]);
        if (error != NULL)
            return refuse_option(peer, error, argv[i], argv[i + 1]);
    }
    repl_peer_say(peer, "+OK\r\n");
    return REPL_SAID_OPTION;
}

void repl_peer_heard(struct repl_peer *peer, int64_t now_ms)
{
    peer->ack_ms = now_ms;
}

/* ---- PSYNC ---- */

static enum repl_verdict wait_for_snapshot(struct repl_peer *peer, enum repl_verdict why,
                                           int64_t now_ms)
{
    peer->state = REPL_PEER_WAITS;
    peer->waits_ms = peer->ack_ms = now_ms;
    repl_peer_enlist(peer);
    return why;
}

/* A snapshot with part of the data must not replace the file of the server, so it is sent by
 * mark. */
static bool refuses_filter(struct repl_peer *peer)
{
    if (peer->filter == REPL_FILTER_ALL || (peer->capa & REPL_CAPA_EOF) != 0)
        return false;
    repl_peer_say(peer, "-ERR Filtered replica requires EOF capability\r\n");
    return true;
}

/* `from` counts from 0. */
static enum repl_verdict judge(const struct repl_master *m, struct rd_slice id, uint64_t from)
{
    struct repl_replid asked;
    if (rd_slice_is(id, "?"))
        return REPL_ASKS_FULL;
    bool same = repl_replid_get(id, &asked) && repl_replid_eq(&asked, &m->id);
    bool second = !same && repl_replid_get(id, &asked) && repl_replid_is_set(&m->id2) &&
                  repl_replid_eq(&asked, &m->id2);
    if (!same && !second)
        return REPL_OTHER_ID;
    if (second && from > m->second)
        return REPL_PAST_SECOND;
    if (m->backlog == NULL || from < repl_backlog_start(m->backlog))
        return REPL_NOT_HELD;
    return from > m->offset ? REPL_AHEAD : REPL_CONTINUES;
}

enum repl_verdict repl_peer_psync(struct repl_peer *peer, struct rd_slice id, int64_t wanted,
                                  int64_t now_ms)
{
    struct repl_master *m = peer->master;
    uint64_t from = wanted > 0 ? (uint64_t)wanted - 1 : 0;
    if (refuses_filter(peer))
        return REPL_SYNC_REFUSED;
    enum repl_verdict verdict = judge(m, id, from);
    if (verdict == REPL_CONTINUES && wanted <= 0)
        verdict = REPL_NOT_HELD;
    if (verdict != REPL_CONTINUES)
        return wait_for_snapshot(peer, verdict, now_ms);
    bool said = (peer->capa & REPL_CAPA_PSYNC2) != 0
                    ? repl_peer_say(peer, "+CONTINUE %s\r\n", m->id.hex)
                    : repl_peer_say(peer, "+CONTINUE\r\n");
    if (!said)
        return REPL_SYNC_NOMEM;
    repl_reader_open(&peer->reader, m->backlog, from);
    peer->state = REPL_PEER_ONLINE;
    peer->ack_ms = now_ms;
    repl_peer_enlist(peer);
    return REPL_CONTINUES;
}

enum repl_verdict repl_peer_sync(struct repl_peer *peer, int64_t now_ms)
{
    if (refuses_filter(peer))
        return REPL_SYNC_REFUSED;
    peer->old = true;
    return wait_for_snapshot(peer, REPL_ASKS_FULL, now_ms);
}

/* ---- the stream ---- */

struct rd_slice repl_peer_stream(struct repl_peer *peer)
{
    return peer->state == REPL_PEER_ONLINE ? repl_reader_bytes(&peer->reader) : rd_slice(NULL, 0);
}

void repl_peer_sent(struct repl_peer *peer, size_t len)
{
    repl_reader_take(&peer->reader, len);
}

uint64_t repl_peer_pending(const struct repl_peer *peer)
{
    return peer->reader.block != NULL ? peer->master->offset - repl_reader_offset(&peer->reader)
                                      : 0;
}
