#include "rdb/damage.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void rdb_damage_init(struct rdb_damage *evidence)
{
    *evidence = (struct rdb_damage){.error = RD_NO_OFFSET, .size = RD_NO_OFFSET};
}

void rdb_damage_event(struct rdb_damage *evidence, const struct rdb_event *ev)
{
    if (ev->kind == RDB_DB)
        evidence->dbs[evidence->n_dbs++ % RDB_DAMAGE_DBS] = ev->offset;
}

void rdb_damage_finding(struct rdb_damage *evidence, const struct rdb_finding *f)
{
    if (f->id == RDB_FINDING_DB_SIZE || f->id == RDB_FINDING_SLOT_SIZE)
        evidence->size = earlier(evidence->size, f->offset);
    if (f->severity != RDB_SEVERITY_ERROR || f->id == RDB_FINDING_CHECKSUM)
        return;
    evidence->error = earlier(evidence->error, earlier(f->offset, f->record));
}

bool rdb_damage_want_search(const struct rdb_check_result *checked)
{
    return checked->damaged || (checked->sum != RDB_SUM_OK && checked->errors > 0);
}

/* The start of the database that contains `at`. Events may be ahead of it. */
static uint64_t database_of(const struct rdb_damage *evidence, uint64_t at)
{
    for (uint64_t i = 1; i <= RDB_DAMAGE_DBS && i <= evidence->n_dbs; i++) {
        uint64_t from = evidence->dbs[(evidence->n_dbs - i) % RDB_DAMAGE_DBS];
        if (from <= at)
            return from;
    }
    return earlier(at, RDB_MAGIC_LEN);
}

uint64_t rdb_damage_start(const struct rdb_check_result *checked, const struct rdb_damage *evidence,
                          const struct rdb_salvage_result *searched)
{
    uint64_t at = checked->damaged ? earlier(checked->record, evidence->error) : evidence->error;
    bool bad = checked->sum == RDB_SUM_BAD;
    if (checked->sum == RDB_SUM_OK) /* the file was saved with this fault */
        return at;
    if (searched != NULL && searched->corrected)
        return searched->damage;
    if (at == RD_NO_OFFSET)
        return evidence->size != RD_NO_OFFSET || !bad ? evidence->size : 0;
    if (searched != NULL)
        at = earlier(at, searched->damage);
    else
        at = database_of(evidence, at);
    return earlier(at, evidence->size);
}
