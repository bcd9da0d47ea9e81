#include "capture/shard.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/sink.h"
#include "base/words.h"
#include "capture/capture.h"

#include <errno.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 256 * 1024, NODES_MAX = 1000 };

static size_t n_ids(const struct capture_shard *s)
{
    return s->ids.len / CLIENT_TOPOLOGY_ID_MAX;
}

static const char *id_at(const struct capture_shard *s, size_t i)
{
    return (const char *)s->ids.ptr + i * CLIENT_TOPOLOGY_ID_MAX;
}

static size_t n_places(const struct capture_shard *s)
{
    return s->places.len / sizeof(struct capture_place);
}

static const struct capture_place *place_at(const struct capture_shard *s, size_t i)
{
    return (const struct capture_place *)(const void *)s->places.ptr + i;
}

static bool add_id(struct rd_buf *ids, struct rd_slice id, struct rd_err *err)
{
    char text[CLIENT_TOPOLOGY_ID_MAX] = "";
    if (id.len == 0 || id.len >= sizeof text)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "invalid id of a node");
    memcpy(text, id.ptr, id.len);
    return rd_buf_add(ids, text, sizeof text) || rd_err_nomem(err, sizeof text);
}

static bool add_place(struct rd_buf *places, struct rd_slice host, uint64_t port,
                      struct rd_err *err)
{
    struct capture_place place = {.port = (uint16_t)port};
    if (host.len == 0 || host.len >= sizeof place.host || port == 0 || port > UINT16_MAX)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "invalid address of a node");
    memcpy(place.host, host.ptr, host.len);
    return rd_buf_add(places, &place, sizeof place) || rd_err_nomem(err, sizeof place);
}

/* ---- the file ---- */

static bool save(const struct capture_shard *s, struct rd_err *err)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .buffer = 4096);
    struct rd_sink *out;
    if (!rd_sink_open_file(&out, s->file, &opts, err))
        return false;
    rd_sink_write(out, "shard", 5);
    for (size_t i = 0; i < n_ids(s); i++) {
        rd_sink_byte(out, ' ');
        rd_sink_write(out, id_at(s, i), strlen(id_at(s, i)));
    }
    rd_sink_byte(out, '\n');
    for (size_t i = 0; i < n_places(s); i++) {
        char line[CLIENT_HOST_MAX + 10];
        int n = snprintf(line, sizeof line, "%s %u\n", place_at(s, i)->host, place_at(s, i)->port);
        rd_sink_write(out, line, (size_t)n);
    }
    return rd_sink_close(out, err);
}

static bool take_text(struct capture_shard *s, struct rd_slice text, struct rd_err *err)
{
    struct rd_slice line = rd_word_cut(&text, '\n');
    if (!rd_slice_is(rd_word_cut(&line, ' '), "shard"))
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "it does not begin with \"shard\"");
    while (line.len > 0)
        if (!add_id(&s->ids, rd_word_cut(&line, ' '), err))
            return false;
    while (text.len > 0) {
        uint64_t port = 0;
        line = rd_word_cut(&text, '\n');
        struct rd_slice host = rd_word_cut(&line, ' ');
        if (!rd_num_get_u64(line, &port) || n_places(s) == NODES_MAX)
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "invalid line");
        if (!add_place(&s->places, host, port, err))
            return false;
    }
    return true;
}

bool capture_shard_load(struct capture *c, struct rd_err *err)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = LINE_MAX_BYTES);
    struct capture_shard *s = &c->shard;
    struct rd_err why = {0};
    struct rd_slice all = rd_slice("", 0);
    struct rd_src *src;
    if (!rd_src_open_file(&src, s->file, &opts, &why)) {
        if (why.sys == ENOENT)
            return true;
        rd_err_adopt(err, &why);
        return false;
    }
    enum rd_src_status status = rd_src_need(src, LINE_MAX_BYTES, &all);
    bool ok = status == RD_SRC_END  ? take_text(s, all, err)
              : status == RD_SRC_OK ? rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "it is too long")
                                    : (rd_err_adopt(err, rd_src_err(src)), false);
    rd_err_origin(err, s->file);
    rd_src_close(src);
    return ok;
}

/* ---- asking ---- */

bool capture_shard_seeds(struct capture *c, struct rd_err *err)
{
    const struct capture_shard *s = &c->shard;
    struct capture_watch *w = &c->watch;
    size_t n = n_places(s);
    if (n == 0)
        return true;
    w->seeds = rd_calloc(n, sizeof *w->seeds);
    if (w->seeds == NULL)
        return rd_err_nomem(err, n * sizeof *w->seeds);
    for (size_t i = 0; i < n; i++) {
        const struct capture_place *place = place_at(s, i);
        if (!client_target_at(&w->seeds[i], &w->target, rd_slice_str(place->host), place->port,
                              err))
            return false;
        w->n_seeds++;
    }
    return true;
}

/* The server itself: whether it is a member of a cluster, and which. */
static bool ask_server(struct capture_watch *w, struct client_peer *peer)
{
    return client_topology_exists(peer, &w->member, &w->hidden, &w->err) &&
           (!w->member || (client_topology_my_id(peer, w->id, &w->err) &&
                           client_topology_read(&w->cluster, peer, &w->err)));
}

static bool ask_at(struct capture_watch *w, const struct client_target *target, bool itself)
{
    struct client_peer *peer;
    rd_err_reset(&w->err);
    w->cluster.partial = true; /* another shard may be without a master */
    if (!client_peer_open(&peer, target, &w->err))
        return false;
    bool ok = itself ? ask_server(w, peer) : client_topology_read(&w->cluster, peer, &w->err);
    client_peer_close(peer);
    return ok;
}

/* The other masters first: a server that is cut off from them takes itself for a master. */
void capture_shard_ask(void *capture)
{
    struct capture *c = capture;
    struct capture_watch *w = &c->watch;
    w->member = true;
    if (w->id[0] == '\0')
        w->ok = ask_at(w, &w->target, true);
    for (size_t i = 0; i < w->n_seeds && !w->ok; i++)
        w->ok = ask_at(w, &w->seeds[i], false);
}

void capture_shard_failed(struct capture *c)
{
    struct capture_watch *w = &c->watch;
    if (w->err.reason.id != RESP_REASON_NOPERM)
        return;
    c->shard.off = true;
    capture_event(c, c->links[0], "shard", true, "its shard is not followed after a failover: %s",
                  w->err.text);
}

/* ---- the answer ---- */

static bool is_of_shard(const struct capture_shard *s, const char *id)
{
    for (size_t i = 0; i < n_ids(s); i++)
        if (strcmp(id_at(s, i), id) == 0)
            return true;
    return false;
}

/* The master of the shard: the node of the link, or another one that was a node of the shard. A
 * master that lost all its slots may be a replica of another shard now, which is not followed. */
static const struct client_topology_node *find(const struct capture_shard *s,
                                               const struct client_topology *t, const char *id)
{
    const struct client_topology_node *found = NULL;
    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(t->nodes[i].id, id) == 0)
            return &t->nodes[i];
        if (is_of_shard(s, t->nodes[i].id))
            found = &t->nodes[i];
    }
    return found;
}

static bool same(const struct rd_buf *a, const struct rd_buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

static bool remember(struct capture_shard *s, const struct client_topology *t,
                     const struct client_topology_node *node, struct rd_err *err)
{
    struct rd_buf ids = {0}, places = {0};
    bool ok = add_id(&ids, rd_slice_str(node->id), err);
    for (size_t i = 0; ok && i < node->n_members; i++)
        if (strcmp(node->members[i], node->id) != 0)
            ok = add_id(&ids, rd_slice_str(node->members[i]), err);
    for (size_t i = 0; ok && i < t->n && i < NODES_MAX; i++)
        ok = add_place(&places, rd_slice_str(t->nodes[i].host), t->nodes[i].port, err);
    if (ok && same(&ids, &s->ids) && same(&places, &s->places)) {
        rd_buf_done(&ids);
        rd_buf_done(&places);
        return true;
    }
    rd_buf_done(&s->ids);
    rd_buf_done(&s->places);
    s->ids = ids;
    s->places = places;
    return ok && save(s, err);
}

static bool move(struct capture *c, const struct client_topology_node *node, uint64_t now_ms,
                 struct rd_err *err)
{
    struct capture_link *link = c->links[0];
    struct client_target target;
    if (!client_target_at(&target, &c->target, rd_slice_str(node->host), node->port, err))
        return false;
    capture_link_move(link, &target, now_ms);
    memcpy(link->id, node->id, sizeof link->id);
    return true;
}

bool capture_shard_apply(struct capture *c, uint64_t now_ms, struct rd_err *err)
{
    struct capture_watch *w = &c->watch;
    struct capture_shard *s = &c->shard;
    struct capture_link *link = c->links[0];
    if (!w->member) {
        s->off = true;
        if (w->hidden)
            capture_event(c, link, "shard", false,
                          "the user may not run INFO, so it is unknown whether the server is in a "
                          "cluster; a failover there will not be followed");
        return true;
    }
    if (link->id[0] == '\0')
        memcpy(link->id, w->id, sizeof link->id);
    const struct client_topology_node *node = find(s, &w->cluster, link->id);
    if (node == NULL || node->id[0] == '\0')
        return true;
    /* A replica has the stream of its master: it is left only when it is lost. */
    if (strcmp(node->id, link->id) != 0 && link->state == CAPTURE_WAITING &&
        !move(c, node, now_ms, err))
        return false;
    return remember(s, &w->cluster, node, err);
}

void capture_shard_done(struct capture *c)
{
    rd_buf_done(&c->shard.ids);
    rd_buf_done(&c->shard.places);
}
