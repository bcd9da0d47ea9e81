#include "tools/list/list.h"

static uint64_t plain_bytes(const struct archive_manifest *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n_files; i++)
        bytes += m->files[i].plain.bytes;
    return bytes;
}

static void put_dbs(struct json_write *json, const struct archive_manifest *m)
{
    json_key(json, "dbs");
    json_array(json);
    for (size_t i = 0; i < m->n_dbs; i++) {
        json_obj(json);
        json_put_uint(json, "db", m->dbs[i].db);
        json_put_uint(json, "keys", m->dbs[i].keys);
        json_put_uint(json, "expires", m->dbs[i].expires);
        json_end(json);
    }
    json_end(json);
}

static void put_files(struct json_write *json, const struct archive_manifest *m)
{
    json_key(json, "files");
    json_array(json);
    for (size_t i = 0; i < m->n_files; i++) {
        const struct archive_file *file = &m->files[i];
        json_obj(json);
        json_put_str(json, "name", file->name);
        json_put_str(json, "object", file->object);
        json_put_str(json, "role", archive_role_word(file->role));
        json_put_str(json, "compression", archive_compression_word(file->compression));
        json_put_bool(json, "sealed", file->sealed);
        json_put_uint(json, "bytes", file->plain.bytes);
        json_put_uint(json, "stored_bytes", archive_file_bytes(file));
        json_end(json);
    }
    json_end(json);
}

static void put_nodes(struct json_write *json, const struct archive_manifest *m)
{
    if (m->n_nodes == 0)
        return;
    json_put_int(json, "moment_from_us", m->moment_from_us);
    json_put_int(json, "moment_to_us", m->moment_to_us);
    json_key(json, "nodes");
    json_array(json);
    for (size_t i = 0; i < m->n_nodes; i++) {
        const struct archive_node *node = &m->nodes[i];
        json_obj(json);
        json_put_str(json, "id", node->id);
        json_put_str(json, "host", node->host);
        json_put_uint(json, "port", node->port);
        json_put_str(json, "slots", node->slots);
        json_put_str(json, "replid", node->replid);
        json_put_uint(json, "base", node->base);
        json_put_uint(json, "offset", node->offset);
        json_end(json);
    }
    json_end(json);
}

static void put_manifest(struct json_write *json, const struct archive_manifest *m)
{
    json_put_str(json, "source", m->source);
    json_put_str(json, "server", m->server);
    json_put_str(json, "tool", m->tool);
    json_put_int(json, "begin_ms", m->begin_ms);
    json_put_int(json, "end_ms", m->end_ms);
    json_put_int(json, "data_ms", m->data_ms);
    json_put_str(json, "replid", m->replid[0] != '\0' ? m->replid : NULL);
    if (m->replid[0] != '\0')
        json_put_uint(json, "offset", m->offset);
    json_put_uint(json, "bytes", plain_bytes(m));
    if (list_of_snapshot(m)) {
        json_put_uint(json, "keys", m->keys);
        json_put_uint(json, "expires", m->expires);
        put_dbs(json, m);
    }
    json_put_bool(json, "one_moment", !m->scan);
    put_nodes(json, m);
    vault_put_tags(json, m->tags, m->n_tags);
    json_put_str(json, "key_id", m->key_id[0] != '\0' ? m->key_id : NULL);
    json_put_str(json, "signature", archive_signature_word(m->signature));
    put_files(json, m);
}

void list_json_set(struct json_write *json, const struct archive_repo *repo,
                   const struct archive_set *set, const struct list_sizes *sizes)
{
    json_obj(json);
    json_put_str(json, "target", repo->target);
    json_put_str(json, "repository", repo->store->origin);
    json_put_str(json, "id", set->id);
    json_put_str(json, "time", rd_show_time(set->time_ms).s);
    json_put_str(json, "state", list_state(set));
    json_put_bool(json, "good", archive_set_good(set));
    json_put_bool(json, "pinned", set->marked[ARCHIVE_MARK_PINNED]);
    json_put_uint(json, "stored_bytes", set->bytes);
    if (sizes != NULL) {
        json_put_uint(json, "needed_bytes", sizes->needed);
        json_put_uint(json, "freed_bytes", sizes->freed);
    }
    if (set->err == NULL) {
        json_put_uint(json, "missing_files", set->missing);
        put_manifest(json, &set->m);
    } else {
        json_key(json, "error");
        cli_json_err(json, set->err);
    }
    json_end(json);
}

/* From the first to the last command of the chain, whether or not a set is its base; false: it has
 * no command. */
static bool get_span(const struct list_chain *chain, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
    int64_t from_ms = INT64_MAX, to_ms = 0;
    for (size_t i = chain->begin; i < chain->end; i++) {
        const struct archive_segment *s = &chain->stream->segments[i];
        if (s->start == s->end)
            continue;
        from_ms = s->first_ms < from_ms ? s->first_ms : from_ms;
        to_ms = s->latest_ms > to_ms ? s->latest_ms : to_ms;
    }
    *ret_from_ms = from_ms;
    *ret_to_ms = to_ms;
    return from_ms <= to_ms;
}

static void put_span(struct json_write *json, const struct list_chain *chain)
{
    int64_t from_ms, to_ms;
    bool any = get_span(chain, &from_ms, &to_ms);
    json_put_str(json, "begin_time", any ? rd_show_time(from_ms).s : NULL);
    json_put_str(json, "end_time", any ? rd_show_time(to_ms).s : NULL);
}

static void put_times(struct json_write *json, int64_t from_ms, int64_t to_ms)
{
    json_put_str(json, "from_time", rd_show_time(from_ms).s);
    json_put_str(json, "to_time", rd_show_time(to_ms).s);
}

/* The range of times, and its parts without the outages. */
static void put_moments(struct json_write *json, const struct list_chain *chain)
{
    const struct archive_moments *m = &chain->moments;
    if (m->n > 0)
        put_times(json, m->list[0].from_ms, m->list[m->n - 1].to_ms);
    json_key(json, "moments");
    json_array(json);
    for (size_t i = 0; i < m->n; i++) {
        json_obj(json);
        put_times(json, m->list[i].from_ms, m->list[i].to_ms);
        json_end(json);
    }
    json_end(json);
}

/* Only what is between the two times is not known. */
static void put_outages(struct json_write *json, const struct list_chain *chain)
{
    bool recorded = true;
    int64_t from_ms, to_ms;
    bool any = get_span(chain, &from_ms, &to_ms);
    for (size_t i = chain->begin; i < chain->end; i++)
        recorded = recorded && chain->stream->segments[i].recorded;
    json_put_bool(json, "outages_recorded", recorded);
    json_key(json, "outages");
    json_array(json);
    for (size_t i = 0; any && i < chain->outages.n; i++) {
        const struct archive_outage *o = &chain->outages.list[i];
        if (o->until_ms <= from_ms || o->since_ms >= to_ms)
            continue;
        json_obj(json);
        put_times(json, o->since_ms, o->until_ms);
        json_end(json);
    }
    json_end(json);
}

void list_json_chain(struct json_write *json, const struct list_chain *chain)
{
    const struct archive_segment *first = &chain->stream->segments[chain->begin];
    const struct archive_segment *last = &chain->stream->segments[chain->end - 1];
    const struct archive_range *range = &chain->range;
    uint64_t bytes = 0;
    for (const struct archive_segment *s = first; s <= last; s++)
        bytes += s->bytes;
    json_obj(json);
    json_put_str(json, "target", chain->repo->target);
    json_put_str(json, "repository", chain->repo->store->origin);
    json_put_str(json, "run", first->run);
    json_put_str(json, "replid", last->replid);
    json_put_uint(json, "segments", chain->end - chain->begin);
    json_put_uint(json, "missing_segments", chain->lost);
    json_put_uint(json, "stored_bytes", bytes);
    json_put_bool(json, "sealed", last->sealed);
    json_put_uint(json, "start", first->start);
    json_put_uint(json, "end", last->end);
    put_span(json, chain);
    json_put_uint(json, "bases", range->bases);
    if (range->bases > 0) {
        json_put_uint(json, "from_offset", range->from);
        json_put_uint(json, "to_offset", range->to);
    }
    put_moments(json, chain);
    put_outages(json, chain);
    json_end(json);
}

void list_json_pause(struct json_write *json, const struct archive_repo *repo,
                     const struct archive_pause *pause)
{
    json_obj(json);
    json_put_str(json, "target", repo->target);
    json_put_str(json, "repository", repo->store->origin);
    json_put_int(json, "since_ms", pause->since_ms);
    json_put_str(json, "host", pause->host);
    json_put_str(json, "reason", pause->reason);
    json_end(json);
}
