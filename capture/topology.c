/* topology.c - assigns a permanent folder to each shard of a cluster.
 *
 * A shard is identified by the address of its master. If that has changed, it is identified by its
 * slots: the master that now serves most of them uses the folder. OUT/topology has a line for each
 * shard, so that the next run finds the folders:
 *
 *     FOLDER HOST PORT ID FIRST-LAST[,FIRST-LAST…]
 */
#include "capture/topology.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/sink.h"
#include "base/words.h"
#include "capture/capture.h"

enum { PATH_SIZE = 4096, LINE_WINDOW = 256 * 1024, N_WORDS = RD_HASH_SLOTS / 64 };

/* ---- slots ---- */

static void add_range(struct capture_slots *slots, unsigned first, unsigned last)
{
    for (unsigned slot = first; slot <= last && slot < RD_HASH_SLOTS; slot++)
        slots->words[slot / 64] |= (uint64_t)1 << (slot % 64);
}

static void slots_of(const struct client_topology_node *node, struct capture_slots *ret)
{
    *ret = (struct capture_slots){{0}};
    for (size_t i = 0; i < node->n_ranges; i++)
        add_range(ret, node->ranges[i].first, node->ranges[i].last);
}

static unsigned n_common(const struct capture_slots *a, const struct capture_slots *b)
{
    unsigned n = 0;
    for (size_t i = 0; i < N_WORDS; i++)
        n += (unsigned)__builtin_popcountll(a->words[i] & b->words[i]);
    return n;
}

/* ---- the file ---- */

static bool topology_path(const struct capture *c, char *path, struct rd_err *err)
{
    int n = snprintf(path, PATH_SIZE, "%s/topology", c->out);
    return (n > 0 && n < PATH_SIZE) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the folder name is too long");
}

static void put_ranges(struct rd_sink *out, const struct capture_slots *slots)
{
    char text[40];
    const char *comma = "";
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        unsigned first = slot;
        while (slot < RD_HASH_SLOTS && capture_slots_have(slots, slot))
            slot++;
        if (slot == first)
            continue;
        int n = snprintf(text, sizeof text, "%s%u-%u", comma, first, slot - 1);
        rd_sink_write(out, text, (size_t)n);
        comma = ",";
    }
}

static bool save(const struct capture *c, struct rd_err *err)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .buffer = 4096);
    char path[PATH_SIZE], line[2 * CLIENT_HOST_MAX + CAPTURE_FOLDER_MAX];
    struct rd_sink *out;
    if (!topology_path(c, path, err) || !rd_sink_open_file(&out, path, &opts, err))
        return false;
    for (size_t i = 0; i < c->n_links; i++) {
        const struct capture_link *link = c->links[i];
        int n = snprintf(line, sizeof line, "%s %s %u %s ", link->folder, link->target.host,
                         link->target.port, link->id[0] != '\0' ? link->id : "-");
        rd_sink_write(out, line, (size_t)n);
        put_ranges(out, &link->slots);
        rd_sink_byte(out, '\n');
    }
    return rd_sink_close(out, err);
}

static bool get_ranges(struct rd_slice text, struct capture_slots *ret)
{
    while (text.len > 0) {
        struct rd_slice range = rd_word_cut(&text, ',');
        uint64_t first, last;
        if (!rd_num_get_u64(rd_word_cut(&range, '-'), &first) || !rd_num_get_u64(range, &last) ||
            first > last || last >= RD_HASH_SLOTS)
            return false;
        add_range(ret, (unsigned)first, (unsigned)last);
    }
    return true;
}

static bool is_folder_name(struct rd_slice name)
{
    return name.len > 0 && name.len < CAPTURE_FOLDER_MAX && name.ptr[0] != '.' &&
           memchr(name.ptr, '/', name.len) == NULL && memchr(name.ptr, '\0', name.len) == NULL;
}

static bool load_line(struct capture *c, struct rd_slice line, struct rd_err *err)
{
    struct rd_slice folder = rd_word_cut(&line, ' '), host = rd_word_cut(&line, ' '),
                    port = rd_word_cut(&line, ' ');
    struct rd_slice id = rd_word_cut(&line, ' ');
    struct capture_slots slots = {{0}};
    struct client_target target;
    struct capture_link *link;
    char name[CAPTURE_FOLDER_MAX];
    uint64_t number;
    if (!is_folder_name(folder) || !rd_num_get_u64(port, &number) ||
        id.len >= CLIENT_TOPOLOGY_ID_MAX || !get_ranges(line, &slots))
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "invalid line");
    memcpy(name, folder.ptr, folder.len);
    name[folder.len] = '\0';
    if (!client_target_at(&target, &c->target, host, number, err) ||
        !capture_add_link(c, &target, name, &link, err))
        return false;
    memcpy(link->id, id.ptr, id.len);
    link->slots = slots;
    return true;
}

static bool load_lines(struct capture *c, struct rd_src *src, struct rd_err *err)
{
    for (;;) {
        struct rd_slice all;
        size_t len = 1;
        enum rd_src_status status;
        while ((status = rd_src_need(src, len, &all)) == RD_SRC_OK && all.ptr[len - 1] != '\n')
            len++;
        if (status == RD_SRC_END && all.len == 0)
            return true;
        if (status != RD_SRC_OK) {
            rd_err_adopt(err, rd_src_err(src));
            return rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET, "the last line is incomplete");
        }
        if (!load_line(c, rd_slice(all.ptr, len - 1), err))
            return false;
        rd_src_consume(src, len);
    }
}

bool capture_topology_load(struct capture *c, struct rd_err *err)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = LINE_WINDOW);
    char path[PATH_SIZE];
    struct rd_src *src;
    struct rd_err why = {0};
    if (mkdir(c->out, 0700) != 0 && errno != EEXIST) {
        rd_err_sys(err, errno, "cannot create the folder");
        rd_err_origin(err, c->out);
        return false;
    }
    if (!topology_path(c, path, err))
        return false;
    if (!rd_src_open_file(&src, path, &opts, &why)) {
        rd_err_adopt(err, why.sys != ENOENT ? &why : &(struct rd_err){.code = RD_ERR_OK});
        return why.sys == ENOENT;
    }
    bool ok = load_lines(c, src, err);
    rd_err_origin(err, path);
    rd_src_close(src);
    return ok;
}

/* ---- changes of the topology ---- */

static struct capture_link *find_by_address(const struct capture *c,
                                            const struct client_topology_node *node)
{
    for (size_t i = 0; i < c->n_links; i++) {
        struct capture_link *link = c->links[i];
        if (!link->known && link->target.port == node->port &&
            strcmp(link->target.host, node->host) == 0)
            return link;
    }
    return NULL;
}

static struct capture_link *find_by_slots(const struct capture *c,
                                          const struct capture_slots *slots)
{
    struct capture_link *best = NULL;
    unsigned most = 0;
    for (size_t i = 0; i < c->n_links; i++) {
        struct capture_link *link = c->links[i];
        unsigned n = link->known ? 0 : n_common(&link->slots, slots);
        if (n > most) {
            most = n;
            best = link;
        }
    }
    return best;
}

static void name_folder(const struct client_topology_node *node, char *name, size_t size)
{
    snprintf(name, size, "%s-%u", node->host, node->port);
    for (char *p = name; *p != '\0'; p++)
        if (*p == '/' || *p == ':' || *p == ' ' || *p == '%' || (p == name && *p == '.'))
            *p = '_';
}

static bool adopt_node(struct capture *c, const struct client_topology_node *node,
                       bool *ret_changed, uint64_t now_ms, struct rd_err *err)
{
    char folder[CAPTURE_FOLDER_MAX];
    struct capture_slots slots;
    struct client_target target;
    slots_of(node, &slots);
    struct capture_link *link = find_by_slots(c, &slots);
    if (!client_target_at(&target, &c->target, rd_slice_str(node->host), node->port, err))
        return false;
    if (link != NULL) {
        capture_link_move(link, &target, now_ms);
    } else {
        name_folder(node, folder, sizeof folder);
        if (!capture_add_link(c, &target, folder, &link, err))
            return false;
    }
    link->known = true;
    link->doubted_ms = 0;
    link->slots = slots;
    snprintf(link->id, sizeof link->id, "%s", node->id);
    *ret_changed = true;
    return true;
}

static void update(struct capture_link *link, const struct client_topology_node *node,
                   bool *ret_changed)
{
    struct capture_slots slots;
    slots_of(node, &slots);
    link->known = true;
    if (link->gone)
        link->state = CAPTURE_WAITING;
    link->gone = false;
    link->doubted_ms = 0;
    if (memcmp(&slots, &link->slots, sizeof slots) == 0 && strcmp(link->id, node->id) == 0)
        return;
    link->slots = slots;
    snprintf(link->id, sizeof link->id, "%s", node->id);
    *ret_changed = true;
}

/* Drops a master whose slots all belong to others now. A failed master keeps its slots: it may come
 * back, or a replica takes over. */
static bool drop_gone(struct capture *c, const struct client_topology *cluster, uint64_t now_ms,
                      struct rd_err *err)
{
    struct capture_slots owned = {{0}};
    for (size_t i = 0; i < cluster->n; i++)
        for (size_t k = 0; k < cluster->nodes[i].n_ranges; k++)
            add_range(&owned, cluster->nodes[i].ranges[k].first, cluster->nodes[i].ranges[k].last);
    for (size_t i = 0; i < c->n_links; i++) {
        struct capture_link *link = c->links[i];
        if (link->known || link->state == CAPTURE_DONE ||
            n_common(&link->slots, &owned) != n_common(&link->slots, &link->slots))
            continue;
        if (link->doubted_ms == 0)
            link->doubted_ms = now_ms;
        if (now_ms - link->doubted_ms <
            CAPTURE_DOUBT_MS) /* the last bytes may still be in transit */
            continue;
        if (!capture_link_leave(link, now_ms, err))
            return false;
        capture_event(c, link, "gone", true, "the master has no slots any more");
    }
    return true;
}

bool capture_topology_apply(struct capture *c, const struct client_topology *cluster,
                            uint64_t now_ms, struct rd_err *err)
{
    bool changed = false;
    for (size_t i = 0; i < c->n_links; i++)
        c->links[i]->known = false;
    for (size_t i = 0; i < cluster->n; i++) {
        struct capture_link *link = find_by_address(c, &cluster->nodes[i]);
        if (link != NULL)
            update(link, &cluster->nodes[i], &changed);
    }
    for (size_t i = 0; i < cluster->n; i++) {
        const struct client_topology_node *node = &cluster->nodes[i];
        bool taken = false;
        for (size_t k = 0; k < c->n_links; k++)
            taken |= c->links[k]->known && c->links[k]->target.port == node->port &&
                     strcmp(c->links[k]->target.host, node->host) == 0;
        if (!taken && !adopt_node(c, node, &changed, now_ms, err))
            return false;
    }
    return drop_gone(c, cluster, now_ms, err) && (!changed || save(c, err));
}
