#include "tools/list/list.h"

static uint64_t plain_bytes(const struct archive_manifest *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n_files; i++)
        bytes += m->files[i].plain.bytes;
    return bytes;
}

static void put_dbs(struct cli_json *json, const struct archive_manifest *m)
{
    cli_json_key(json, "dbs");
    cli_json_array(json);
    for (size_t i = 0; i < m->n_dbs; i++) {
        cli_json_obj(json);
        cli_json_put_uint(json, "db", m->dbs[i].db);
        cli_json_put_uint(json, "keys", m->dbs[i].keys);
        cli_json_put_uint(json, "expires", m->dbs[i].expires);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_files(struct cli_json *json, const struct archive_manifest *m)
{
    cli_json_key(json, "files");
    cli_json_array(json);
    for (size_t i = 0; i < m->n_files; i++) {
        const struct archive_file *file = &m->files[i];
        cli_json_obj(json);
        cli_json_put_str(json, "name", file->name);
        cli_json_put_str(json, "object", file->object);
        cli_json_put_str(json, "role", archive_role_word(file->role));
        cli_json_put_str(json, "compression", archive_compression_word(file->compression));
        cli_json_put_bool(json, "sealed", file->sealed);
        cli_json_put_uint(json, "bytes", file->plain.bytes);
        cli_json_put_uint(json, "stored_bytes", archive_file_bytes(file));
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_nodes(struct cli_json *json, const struct archive_manifest *m)
{
    if (m->n_nodes == 0)
        return;
    cli_json_put_int(json, "moment_from_us", m->moment_from_us);
    cli_json_put_int(json, "moment_to_us", m->moment_to_us);
    cli_json_key(json, "nodes");
    cli_json_array(json);
    for (size_t i = 0; i < m->n_nodes; i++) {
        const struct archive_node *node = &m->nodes[i];
        cli_json_obj(json);
        cli_json_put_str(json, "id", node->id);
        cli_json_put_str(json, "host", node->host);
        cli_json_put_uint(json, "port", node->port);
        cli_json_put_str(json, "slots", node->slots);
        cli_json_put_str(json, "replid", node->replid);
        cli_json_put_uint(json, "base", node->base);
        cli_json_put_uint(json, "offset", node->offset);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void put_manifest(struct cli_json *json, const struct archive_manifest *m)
{
    cli_json_put_str(json, "source", m->source);
    cli_json_put_str(json, "server", m->server);
    cli_json_put_str(json, "tool", m->tool);
    cli_json_put_int(json, "begin_ms", m->begin_ms);
    cli_json_put_int(json, "end_ms", m->end_ms);
    cli_json_put_int(json, "data_ms", m->data_ms);
    cli_json_put_str(json, "replid", m->replid[0] != '\0' ? m->replid : NULL);
    if (m->replid[0] != '\0')
        cli_json_put_uint(json, "offset", m->offset);
    cli_json_put_uint(json, "bytes", plain_bytes(m));
    if (list_of_snapshot(m)) {
        cli_json_put_uint(json, "keys", m->keys);
        cli_json_put_uint(json, "expires", m->expires);
        put_dbs(json, m);
    }
    cli_json_put_bool(json, "one_moment", !m->scan);
    put_nodes(json, m);
    cli_json_put_str(json, "key_id", m->key_id[0] != '\0' ? m->key_id : NULL);
    cli_json_put_str(json, "signature", archive_signature_word(m->signature));
    put_files(json, m);
}

void list_json_set(struct cli_json *json, const struct archive_repo *repo,
                   const struct archive_set *set, const struct list_sizes *sizes)
{
    cli_json_obj(json);
    cli_json_put_str(json, "target", repo->target);
    cli_json_put_str(json, "repository", repo->store->origin);
    cli_json_put_str(json, "id", set->id);
    cli_json_put_str(json, "time", rd_show_time(set->time_ms).s);
    cli_json_put_str(json, "state", list_state(set));
    cli_json_put_bool(json, "good", archive_set_good(set));
    cli_json_put_bool(json, "pinned", set->marked[ARCHIVE_MARK_PINNED]);
    cli_json_put_uint(json, "stored_bytes", set->bytes);
    if (sizes != NULL) {
        cli_json_put_uint(json, "needed_bytes", sizes->needed);
        cli_json_put_uint(json, "freed_bytes", sizes->freed);
    }
    if (set->err.code == RD_ERR_OK) {
        cli_json_put_uint(json, "missing_files", set->missing);
        put_manifest(json, &set->m);
    } else {
        cli_json_key(json, "error");
        cli_json_err(json, &set->err);
    }
    cli_json_end(json);
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

static void put_span(struct cli_json *json, const struct list_chain *chain)
{
    int64_t from_ms, to_ms;
    bool any = get_span(chain, &from_ms, &to_ms);
    cli_json_put_str(json, "begin_time", any ? rd_show_time(from_ms).s : NULL);
    cli_json_put_str(json, "end_time", any ? rd_show_time(to_ms).s : NULL);
}

static void put_times(struct cli_json *json, int64_t from_ms, int64_t to_ms)
{
    cli_json_put_str(json, "from_time", rd_show_time(from_ms).s);
    cli_json_put_str(json, "to_time", rd_show_time(to_ms).s);
}

/* The range of times, and its parts without the outages. */
static void put_moments(struct cli_json *json, const struct list_chain *chain)
{
    const struct archive_moments *m = &chain->moments;
    if (m->n > 0)
        put_times(json, m->list[0].from_ms, m->list[m->n - 1].to_ms);
    cli_json_key(json, "moments");
    cli_json_array(json);
    for (size_t i = 0; i < m->n; i++) {
        cli_json_obj(json);
        put_times(json, m->list[i].from_ms, m->list[i].to_ms);
        cli_json_end(json);
    }
    cli_json_end(json);
}

/* Only what is between the two times is not known. */
static void put_outages(struct cli_json *json, const struct list_chain *chain)
{
    bool recorded = true;
    int64_t from_ms, to_ms;
    bool any = get_span(chain, &from_ms, &to_ms);
    for (size_t i = chain->begin; i < chain->end; i++)
        recorded = recorded && chain->stream->segments[i].recorded;
    cli_json_put_bool(json, "outages_recorded", recorded);
    cli_json_key(json, "outages");
    cli_json_array(json);
    for (size_t i = 0; any && i < chain->outages.n; i++) {
        const struct archive_outage *o = &chain->outages.list[i];
        if (o->until_ms <= from_ms || o->since_ms >= to_ms)
            continue;
        cli_json_obj(json);
        put_times(json, o->since_ms, o->until_ms);
        cli_json_end(json);
    }
    cli_json_end(json);
}

void list_json_chain(struct cli_json *json, const struct list_chain *chain)
{
    const struct archive_segment *first = &chain->stream->segments[chain->begin];
    const struct archive_segment *last = &chain->stream->segments[chain->end - 1];
    const struct archive_range *range = &chain->range;
    uint64_t bytes = 0;
    for (const struct archive_segment *s = first; s <= last; s++)
        bytes += s->bytes;
    cli_json_obj(json);
    cli_json_put_str(json, "target", chain->repo->target);
    cli_json_put_str(json, "repository", chain->repo->store->origin);
    cli_json_put_str(json, "run", first->run);
    cli_json_put_str(json, "replid", last->replid);
    cli_json_put_uint(json, "segments", chain->end - chain->begin);
    cli_json_put_uint(json, "missing_segments", chain->lost);
    cli_json_put_uint(json, "stored_bytes", bytes);
    cli_json_put_bool(json, "sealed", last->sealed);
    cli_json_put_uint(json, "start", first->start);
    cli_json_put_uint(json, "end", last->end);
    put_span(json, chain);
    cli_json_put_uint(json, "bases", range->bases);
    if (range->bases > 0) {
        cli_json_put_uint(json, "from_offset", range->from);
        cli_json_put_uint(json, "to_offset", range->to);
    }
    put_moments(json, chain);
    put_outages(json, chain);
    cli_json_end(json);
}
