#include "tools/input/snapshot_in.h"
#include "tools/restore/restore.h"

#include <inttypes.h>
#include <stdio.h>

/* The objects of the set, then those of the stream. */
static size_t n_objects(const struct restore *run)
{
    const struct backup_plan *plan = &run->r.plan;
    bool stream = run->r.want.goal != BACKUP_GOAL_SET && plan->first <= plan->last;
    return run->r.set->m.n_files + (stream ? plan->last + 1 - plan->first : 0);
}

static void get_object(const struct restore *run, size_t i, char name[ARCHIVE_NAME_MAX],
                       uint64_t *ret_bytes)
{
    const struct archive_manifest *m = &run->r.set->m;
    if (i < m->n_files) {
        snprintf(name, ARCHIVE_NAME_MAX, "%s", m->files[i].object);
        *ret_bytes = m->files[i].stored.bytes;
        return;
    }
    const struct archive_segment *s =
        &run->r.plan.stream.segments[run->r.plan.first + (i - m->n_files)];
    archive_segment_bound(name, s);
    *ret_bytes = s->bytes;
}

static void put_json(struct restore *run)
{
    struct json_write *json = &run->cli->out;
    char name[ARCHIVE_NAME_MAX];
    uint64_t bytes;
    json_put_str(json, "target", run->r.repo->target);
    json_put_str(json, "repository", run->r.repo->store->origin);
    json_put_str(json, "id", run->r.set->id);
    json_put_str(json, "to", run->shown);
    json_put_bool(json, "dry_run", run->dry_run);
    json_put_str(json, "layout",
                 restore_sends(run)                             ? "server"
                 : backup_lay_out_is_log(&run->out, run->r.set) ? "aof"
                                                                : "rdb");
    if (run->r.want.goal != BACKUP_GOAL_SET) {
        json_put_str(json, "replid", run->r.plan.base->m.replid);
        json_put_uint(json, "base_offset", run->r.plan.base->m.offset);
        json_put_uint(json, "offset", run->r.plan.offset);
        json_put_uint(json, "commands", run->r.counts.commands);
    }
    json_put_uint(json, "refused", run->r.counts.refused);
    json_put_uint(json, "unknown", run->r.counts.unknown);
    json_put_bool(json, "one_moment", !run->r.set->m.scan);
    if (backup_restore_is_cluster(run->r.set))
        json_put_uint(json, "masters", run->r.set->m.n_nodes);
    if (!run->dry_run && (restore_converts(run) || restore_sends(run)))
        json_put_uint(json, "keys", run->keys - run->earlier);
    if (run->masters > 0)
        json_put_uint(json, "sent_to_masters", run->masters);
    if (run->r.cost.n_requests > 0) {
        json_put_uint(json, "read_requests", run->r.cost.n_requests);
        json_put_uint(json, "read_bytes", run->r.cost.n_bytes);
        json_put_uint(json, "set_bytes", run->r.cost.set_bytes);
    }
    if (run->r.kept.id[0] != '\0') {
        json_put_str(json, "kept_of", run->r.kept.id);
        json_put_uint(json, "kept_bytes", run->r.kept.kept);
        json_put_uint(json, "read_requests", run->r.kept.n_requests);
        json_put_uint(json, "read_bytes", run->r.kept.n_bytes);
    }
    json_key(json, "objects");
    json_array(json);
    for (size_t i = 0; i < n_objects(run); i++) {
        get_object(run, i, name, &bytes);
        json_str(json, name);
    }
    json_end(json);
}

static void print_moment(const struct restore *run)
{
    const struct backup_plan *plan = &run->r.plan;
    const struct archive_manifest *m = &run->r.set->m;
    if (backup_restore_is_cluster(run->r.set))
        printf("  %zu masters, each at a moment between %s and %s\n", m->n_nodes,
               rd_show_time(m->moment_from_us / 1000).s,
               rd_show_time(m->moment_to_us / 1000 + 1).s);
    if (run->r.want.goal == BACKUP_GOAL_SET)
        return;
    printf("  the data at offset %" PRIu64 " of %s", plan->offset, plan->base->m.replid);
    if (plan->last_us != 0)
        printf(", last command at %s", rd_show_time(plan->last_us / 1000).s);
    printf("\n");
}

static void print_keys(const struct restore *run)
{
    uint64_t n = run->keys - run->earlier;
    printf("  %s key%s sent", rd_show_count(n).s, rd_show_plural(n));
    if (run->masters > 0)
        printf(" to the %zu master%s of a cluster", run->masters, rd_show_plural(run->masters));
    printf("\n");
}

/* What the index of a set in chunks saved. */
static void print_cost(const struct restore *run)
{
    const struct chunks_cost *cost = &run->r.cost;
    if (cost->n_requests > 0)
        printf("  read %s in %" PRIu64 " request%s, of %s that the set has\n",
               rd_show_bytes(cost->n_bytes).s, cost->n_requests, rd_show_plural(cost->n_requests),
               rd_show_bytes(cost->set_bytes).s);
}

/* What the file that was replaced saved. */
static void print_kept(const struct restore *run)
{
    const struct chunks_over *kept = &run->r.kept;
    if (kept->id[0] != '\0')
        printf("  took %s of the file that was there, of set %s, and read %s in %" PRIu64
               " request%s\n",
               rd_show_bytes(kept->kept).s, kept->id, rd_show_bytes(kept->n_bytes).s,
               kept->n_requests, rd_show_plural(kept->n_requests));
}

/* Each command succeeded on the server, so the data is not the same now. */
static void warn_of_refused(struct restore *run)
{
    const struct rebuild_counts *counts = &run->r.counts;
    if (counts->refused == 0)
        return;
    run->cli->partial = true;
    cli_warn(run->cli, "%s command%s failed, and the effect of %s is not restored; the first is %s",
             rd_show_count(counts->refused).s, rd_show_plural(counts->refused),
             counts->refused == 1 ? "it" : "them", counts->first_refused);
}

static void warn_of_damaged(struct restore *run)
{
    uint64_t n = run->r.lost.n_records;
    if (n == 0)
        return;
    run->cli->partial = true;
    cli_warn(run->cli, "%s record%s left out, because %s chunks are damaged or missing",
             rd_show_count(n).s, n == 1 ? " was" : "s were", n == 1 ? "its" : "their");
}

void restore_report(struct restore *run)
{
    char name[ARCHIVE_NAME_MAX];
    uint64_t bytes;
    snapshot_in_warn_unknown(run->cli, &run->r.counts, run->r.keep_unknown);
    warn_of_refused(run);
    warn_of_damaged(run);
    if (run->cli->json) {
        if (run->step != RESTORE_ONE)
            json_obj(&run->cli->out);
        put_json(run);
        if (run->step != RESTORE_ONE)
            json_end(&run->cli->out);
        return;
    }
    if (run->cli->quiet || strcmp(run->to, "-") == 0)
        return;
    printf("%s: set %s of %s, %s %s\n", run->shown, run->r.set->id, run->r.repo->target,
           run->dry_run ? "would be restored from" : "restored from", run->r.repo->store->origin);
    print_moment(run);
    if (restore_sends(run) && !run->dry_run)
        print_keys(run);
    print_cost(run);
    print_kept(run);
    for (size_t i = 0; run->dry_run && i < n_objects(run); i++) {
        get_object(run, i, name, &bytes);
        printf("  %s, %s\n", name, rd_show_bytes(bytes).s);
    }
    if (run->r.want.goal == BACKUP_GOAL_TIME && run->r.plan.silence_ms > 0)
        cli_note(run->cli,
                 "an older version archived this part and did not record interruptions: the data "
                 "may be up to %s older than the time",
                 rd_show_duration((uint64_t)run->r.plan.silence_ms).s);
    if (run->r.set->m.scan)
        cli_note(run->cli,
                 "the keys of this set were read at different times: see --scan of backup");
    if (run->r.set->m.key_id[0] == '\0' && backup_restore_has_keys(&run->r))
        cli_note(run->cli,
                 "this set is not sealed, although the target has a key: it may have been "
                 "replaced");
    bool last = run->target + 1 == run->vault.config.n_targets;
    if (last && !restore_sends(run) && !backup_lay_out_is_log(&run->out, run->r.set))
        cli_note(run->cli, "a server with appendonly yes does not load dump.rdb: see --layout aof");
}
