#include "backup/snapshot.h"

#include <stdio.h>

#include "backup/system.h"
#include "base/num.h"
#include "data/sound.h"
#include "rdb/version.h"
#include "repl/replid.h"

enum { AUX_MAX = 64 };

struct facts {
    struct archive_manifest *m;
    struct rdb_release writer;
    bool no_memory;
};

static void on_aux(struct facts *facts, const struct rdb_event *ev)
{
    struct archive_manifest *m = facts->m;
    char digits[RD_NUM_I64_MAX], text[AUX_MAX];
    struct rd_slice value = rdb_string_bytes(&ev->aux.value, digits);
    int64_t seconds;
    if (ev->aux.value.more || !ev->aux.value.first || value.len >= sizeof text)
        return;
    snprintf(text, sizeof text, "%.*s", (int)value.len, (const char *)value.ptr);
    if (rdb_release_take(&facts->writer, ev->aux.name, value))
        snprintf(m->server, sizeof m->server, "%s %s", facts->writer.valkey ? "valkey" : "redis",
                 facts->writer.version);
    else if (rd_slice_is(ev->aux.name, "ctime") && rd_num_get_i64(value, &seconds) && seconds > 0 &&
             seconds < INT64_MAX / 1000)
        m->data_ms = seconds * 1000;
    else if (rd_slice_is(ev->aux.name, "repl-id") && value.len == REPL_REPLID_LEN)
        snprintf(m->replid, sizeof m->replid, "%.40s", text);
    else if (rd_slice_is(ev->aux.name, "repl-offset"))
        rd_num_get_u64(value, &m->offset);
}

static void on_event(void *ctx, const struct rdb_event *ev)
{
    struct facts *facts = ctx;
    if (ev->kind == RDB_AUX)
        on_aux(facts, ev);
    if (ev->kind != RDB_KEY)
        return;
    struct archive_db *db = archive_manifest_db(facts->m, ev->key.db);
    if (db == NULL) {
        facts->no_memory = facts->m->n_dbs < ARCHIVE_DBS_MAX;
        return;
    }
    db->keys++;
    db->expires += ev->key.expire_ms != RDB_NO_EXPIRE;
}

bool backup_snapshot_take(struct backup_set *set, struct rd_src *src, const char *name,
                          struct rd_err *err)
{
    struct facts facts = {.m = &set->m};
    struct sound sound = {.name = rd_src_origin(src), .event = on_event, .ctx = &facts};
    struct rd_src *tap;
    if (!backup_random(sound.seed, sizeof sound.seed, err) ||
        !backup_set_file_begin(set, name, ARCHIVE_ROLE_RDB, err))
        return false;
    bool ok = backup_set_tap(&tap, src, set, err);
    if (ok) {
        ok = sound_check(&sound, tap, err);
        rd_src_close(tap);
    }
    if (ok && facts.no_memory)
        ok = rd_err_nomem(err, sizeof(struct archive_db));
    if (!backup_set_file_end(set, ok, err))
        return false;
    /* The checksum of a snapshot including its own checksum is 0. */
    set->m.files[set->m.n_files - 1].plain.crc64 = sound.res.stored;
    set->m.rdb_version = (uint64_t)sound.res.version;
    set->m.keys += sound.res.keys;
    set->m.expires += sound.res.expires;
    set->m.functions += sound.res.functions;
    return true;
}
