/* attach.c - connects to the target, reads the positions, and finds where each stream continues. */
#include "tools/migrate/migrate.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "client/info.h"

struct rd_slice migrate_group_key(const struct migrate *m, size_t group, char dst[MIGRATE_KEY_MAX])
{
    return migrate_key(dst, m->name, m->target.clustered ? m->tags->text[group] : NULL);
}

void migrate_detach(struct migrate *m)
{
    migrate_target_disconnect(&m->target);
    m->attached = false;
    m->rounds[0].sent = m->rounds[1].sent = false;
}

/* ---- the streams ---- */

static bool add_stream(struct migrate *m, const struct migrate_link *link, struct rd_err *err)
{
    struct migrate_stream **streams = rd_realloc(m->streams, (m->n_streams + 1) * sizeof(*streams));
    struct migrate_stream *stream = streams != NULL ? rd_calloc(1, sizeof *stream) : NULL;
    if (streams != NULL)
        m->streams = streams;
    if (stream == NULL)
        return rd_err_nomem(err, sizeof *stream);
    memcpy(stream->folder, link->folder, sizeof stream->folder);
    int n = snprintf(stream->path, sizeof stream->path, "%s%s%s", m->spool,
                     link->folder[0] != '\0' ? "/" : "", link->folder);
    stream->index = (int)m->n_streams;
    m->streams[m->n_streams++] = stream;
    return (n > 0 && (size_t)n < sizeof stream->path) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the name of the folder is too long");
}

struct migrate_stream *migrate_find_stream(const struct migrate *m, const char *folder)
{
    for (size_t i = 0; i < m->n_streams; i++)
        if (strcmp(m->streams[i]->folder, folder) == 0)
            return m->streams[i];
    return NULL;
}

bool migrate_find_streams(struct migrate *m, struct rd_err *err)
{
    size_t n, cap = MIGRATE_STREAMS_MAX;
    struct migrate_link *links = rd_calloc(cap, sizeof *links);
    if (links == NULL)
        return rd_err_nomem(err, cap * sizeof *links);
    bool ok = migrate_source_look(&m->source, links, cap, &n, err);
    for (size_t i = 0; ok && i < n; i++) {
        struct migrate_stream *stream = migrate_find_stream(m, links[i].folder);
        if (stream == NULL) {
            ok = add_stream(m, &links[i], err);
            if (!ok)
                break;
            stream = m->streams[m->n_streams - 1];
            m->attached = false;
        }
        memcpy(stream->name, links[i].name, sizeof stream->name);
        stream->received = links[i].received;
        stream->up = links[i].up;
        stream->gone = links[i].gone;
        stream->slots = links[i].slots;
    }
    rd_free(links);
    return ok && migrate_owners_begin(m, err);
}

/* ---- positions in the spool ---- */

static bool is_of_chapter(const struct repl_capture_segment *segment,
                          const struct migrate_position *at)
{
    return segment->chapter_start <= at->offset &&
           (repl_replid_eq(&segment->replid, &at->replid) ||
            (repl_replid_is_set(&segment->replid2) && at->offset <= segment->offset2 &&
             repl_replid_eq(&segment->replid2, &at->replid)));
}

/* A position at the end of one chapter is also at the start of the next one, which continues it. */
static bool find_place(const struct migrate_stream *stream, const struct migrate_position *at,
                       struct migrate_place *ret)
{
    const struct repl_capture_list *list = &stream->in.list;
    for (size_t i = list->n; i-- > 0;)
        if (is_of_chapter(&list->segments[i], at)) {
            *ret = (struct migrate_place){list->segments[i].chapter, at->offset};
            return true;
        }
    return false;
}

/* ---- positions of the target ---- */

static bool send_gets(struct migrate *m, struct rd_err *err)
{
    char key[MIGRATE_KEY_MAX];
    for (size_t g = 0; g < m->target.n_groups; g++) {
        const struct rd_slice argv[] = {rd_slice_str("HGETALL"), migrate_group_key(m, g, key)};
        if (!client_peer_send(migrate_target_node(&m->target, g)->peer, argv, 2, err))
            return false;
    }
    for (size_t i = 0; i < m->target.n_nodes; i++)
        if (!client_peer_flush(m->target.nodes[i].peer, err))
            return false;
    return true;
}

static bool take_field(struct migrate *m, size_t group, struct rd_slice name, struct rd_slice value,
                       struct rd_err *err)
{
    struct migrate_position at;
    for (size_t i = 0; i < m->n_streams; i++) {
        struct migrate_stream *stream = m->streams[i];
        size_t len = strlen(stream->folder);
        if (name.len != len + 3 || memcmp(name.ptr, "at:", 3) != 0 ||
            memcmp(name.ptr + 3, stream->folder, len) != 0 || !stream->is_open)
            continue;
        if (!migrate_position_get(value, &at))
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                              "the position of the migration is not valid");
        if (find_place(stream, &at, &stream->applied[group]))
            return true;
        m->anew = m->recopy;
        if (!m->recopy)
            cli_hint(m->cli, "--recopy begins a new full copy");
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the target is at offset %llu of history %s, which the spool does not "
                          "contain",
                          (unsigned long long)at.offset, at.replid.hex);
    }
    return true;
}

static void take_mark(struct migrate *m, const struct client_peer_item *fields)
{
    const struct client_peer_item *mark = client_peer_item_find(fields, "copy");
    if (mark == NULL || mark->text.len >= sizeof m->mark)
        return;
    memcpy(m->mark, mark->text.ptr, mark->text.len);
    m->mark[mark->text.len] = '\0';
    m->has_mark = true;
}

static bool take_gets(struct migrate *m, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = true;
    for (size_t g = 0; ok && g < m->target.n_groups; g++) {
        struct migrate_node *node = migrate_target_node(&m->target, g);
        ok = client_peer_read_reply(node->peer, &reply, err);
        if (ok)
            take_mark(m, &reply.items[0]);
        for (size_t i = 0; ok && i + 1 < reply.items[0].n_children; i += 2)
            ok = take_field(m, g, client_peer_item_at(&reply.items[0], i)->text,
                            client_peer_item_at(&reply.items[0], i + 1)->text, err);
    }
    client_peer_reply_done(&reply);
    return ok;
}

bool migrate_find_position(struct migrate *m, struct migrate_position *ret, bool *ret_found,
                           struct rd_err *err)
{
    char key[MIGRATE_KEY_MAX];
    struct client_peer_reply reply = {0};
    const struct rd_slice argv[] = {rd_slice_str("HGET"), migrate_group_key(m, 0, key),
                                    rd_slice_str("at:")};
    bool ok = client_peer_ask_argv(migrate_target_node(&m->target, 0)->peer, argv, 3, &reply, err);
    *ret_found = ok && !reply.items[0].null && migrate_position_get(reply.items[0].text, ret);
    client_peer_reply_done(&reply);
    return ok;
}

/* ---- opening ---- */

/* A stream whose snapshot has not arrived yet has no segment. */
static bool open_stream(struct migrate *m, struct migrate_stream *stream, struct rd_err *err)
{
    size_t size = m->target.n_groups * sizeof *stream->applied;
    if (stream->is_open)
        rebuild_stream_close(&stream->in);
    stream->is_open = false;
    rd_free(stream->applied);
    stream->applied = rd_calloc(1, size);
    if (stream->applied == NULL)
        return rd_err_nomem(err, size);
    if (!rebuild_stream_open(&stream->in, stream->path, true, err))
        return false;
    stream->is_open = stream->in.list.n > 0;
    if (!stream->is_open)
        rebuild_stream_close(&stream->in);
    return true;
}

static int compare(const struct migrate_place *a, const struct migrate_place *b)
{
    if (a->chapter != b->chapter)
        return a->chapter < b->chapter ? -1 : 1;
    return a->offset == b->offset ? 0 : a->offset < b->offset ? -1 : 1;
}

/* The earliest position of the groups; chapter 0 if one has none. */
static struct migrate_place earliest(const struct migrate *m, const struct migrate_stream *stream)
{
    struct migrate_place least = stream->applied[0];
    for (size_t g = 1; g < m->target.n_groups; g++)
        if (compare(&stream->applied[g], &least) < 0)
            least = stream->applied[g];
    return least;
}

/* The segment with the last snapshot. */
static const struct repl_capture_segment *find_base(const struct migrate_stream *stream)
{
    const struct repl_capture_list *list = &stream->in.list;
    for (size_t i = list->n; i-- > 0;)
        if (list->segments[i].has_snapshot)
            return &list->segments[i];
    return NULL;
}

static bool settle(struct migrate *m, struct migrate_stream *stream, bool *ret_again,
                   struct rd_err *err)
{
    struct migrate_place at = earliest(m, stream);
    if (at.chapter == 0) {
        const struct repl_capture_segment *base = find_base(stream);
        if (base == NULL) {
            cli_hint(m->cli, "remove the spool to begin a new copy");
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "the target has no position, and the spool has no snapshot any more");
        }
        if (!migrate_copy(m, stream, base, ret_again, err))
            return false;
        at = earliest(m, stream);
    }
    stream->read = stream->safe = at;
    stream->caught_up = false;
    if (repl_capture_reader_seek(stream->in.reader, at.chapter, at.offset, err))
        return true;
    rd_err_origin(err, stream->path);
    return false;
}

/* Masters that joined later wait until the others have come so far. */
static void leave_late(struct migrate *m)
{
    bool fresh = true;
    for (size_t i = 0; i < m->n_streams; i++)
        fresh &= !m->streams[i]->is_open || earliest(m, m->streams[i]).chapter == 0;
    for (size_t i = 0; i < m->n_streams; i++) {
        struct migrate_stream *stream = m->streams[i];
        bool has_none = stream->is_open && earliest(m, stream).chapter == 0;
        stream->late = !fresh && has_none && m->n_streams > 1 && !stream->known && !stream->joins;
        if (!stream->late)
            continue;
        rebuild_stream_close(&stream->in);
        stream->is_open = false;
    }
}

static bool is_ready(const struct migrate *m)
{
    for (size_t i = 0; i < m->n_streams; i++)
        if (!m->streams[i]->is_open && !m->streams[i]->gone)
            return false;
    return m->n_streams > 0;
}

bool migrate_attach(struct migrate *m, bool *ret_again, struct rd_err *err)
{
    bool ok = true;
    *ret_again = false;
    migrate_detach(m);
    if (!migrate_target_connect(&m->target, m->name, err)) {
        *ret_again = err->code == RD_ERR_PROTOCOL;
        return false;
    }
    m->connected = true;
    m->plan.cluster = m->target.clustered;
    m->plan.several_dbs = m->target.several_dbs;
    for (size_t i = 0; ok && i < m->n_streams; i++)
        ok = open_stream(m, m->streams[i], err);
    if (!ok)
        return false;
    if (!is_ready(m))
        return true; /* not attached: the snapshot has not arrived */
    m->has_mark = false;
    if (!send_gets(m, err) || !take_gets(m, err)) {
        *ret_again = err->code == RD_ERR_PROTOCOL;
        return false;
    }
    leave_late(m);
    for (size_t i = 0; ok && i < m->n_streams; i++)
        if (m->streams[i]->is_open)
            ok = settle(m, m->streams[i], ret_again, err);
    if (ok)
        migrate_owners_rewind(m);
    if (ok)
        cli_progress_begin(m->cli, m->target.first.name, RD_NO_OFFSET);
    m->attached = ok;
    m->result.attaches += ok;
    return ok;
}
