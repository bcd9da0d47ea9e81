#include "backup/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aof/check.h"
#include "backup/system.h"
#include "base/pump.h"
#include "base/show.h"
#include "capture/segment_in.h"
#include "data/sound.h"
#include "data/spool.h"

/* A set under verification. */
struct job {
    struct backup_verify *v;
    struct backup_open *open;
    struct archive_repo *repo;
    struct archive_set *set;
    enum backup_level level; /* of this set */
    struct backup_verified out;
    bool hurt;                /* a chunk of the set is damaged, which was reported */
    struct rd_err foreign;    /* why the given keys do not verify the signature */
    uint64_t keys;            /* in all snapshots */
    const struct rd_src *src; /* that is read */
    uint64_t done;            /* bytes of the files before it */
    char finding[RD_ERR_TEXT_MAX + 300];
};

/* ---- manifest and digests ---- */

static bool has_chunks(const struct archive_set *set)
{
    for (size_t i = 0; i < set->m.n_files; i++)
        if (set->m.files[i].compression == ARCHIVE_COMPRESSION_CHUNKS)
            return true;
    return false;
}

/* Without a key, digests can be verified, but not the signature. Contents need the key. */
static bool check_manifest(struct job *job, struct rd_err *err)
{
    struct archive_set *set = job->set;
    struct rd_err why = {0};
    job->out.unsealed = set->refused;
    bool proved = archive_set_prove(job->repo, set, &why);
    bool unknown = !set->refused && set->err == NULL && !has_chunks(set) &&
                   set->m.signature == ARCHIVE_SIGNATURE_UNKNOWN;
    if (!proved && !(unknown && job->level < BACKUP_LEVEL_PARSE)) {
        rd_err_adopt(err, &why);
        return false;
    }
    if (!proved && backup_keys_given(&job->open->keys))
        job->foreign = why;
    job->out.authentic = set->m.signature == ARCHIVE_SIGNATURE_VALID;
    return set->missing == 0 || rd_err_set(err, RD_ERR_TRUNCATED, RD_NO_OFFSET,
                                           "files of the set are missing or have another size");
}

static void tick(void *ctx)
{
    const struct job *job = ctx;
    rd_watch_at(job->v->watch, job->done + rd_src_offset(job->src));
}

/* Reads to the end; the source itself compares. */
static bool drain(struct job *job, struct rd_src *src, struct rd_err *err)
{
    job->src = src;
    bool ok = rd_pump(src, NULL, tick, job, err);
    job->done += rd_src_offset(src);
    return ok;
}

/* The bytes of the file are those of the manifest. Without the key, nothing is known. */
static bool check_chunks(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    struct rd_src *src;
    if (job->level >= BACKUP_LEVEL_PARSE)
        return true; /* they are read then */
    if (!archive_set_open(job->repo, job->set, file, &job->open->keys.ring, &src, err))
        return false;
    bool ok = drain(job, src, err);
    rd_src_close(src);
    return ok;
}

static bool check_digests(struct job *job, struct rd_err *err)
{
    const struct archive_manifest *m = &job->set->m;
    bool ok = true;
    for (size_t i = 0; ok && i < m->n_files; i++) {
        struct rd_src *src;
        ok = archive_set_open_stored(job->repo, job->set, &m->files[i], &src, err);
        if (ok) {
            ok = drain(job, src, err);
            rd_src_close(src);
        }
        if (ok && m->files[i].compression == ARCHIVE_COMPRESSION_CHUNKS)
            ok = check_chunks(job, &m->files[i], err);
    }
    return ok;
}

/* ---- what is inside ---- */

static bool open_plain(struct job *job, const struct archive_file *file, struct rd_src **ret,
                       struct rd_err *err)
{
    return archive_set_open(job->repo, job->set, file, &job->open->keys.ring, ret, err);
}

static bool parse_snapshot(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    struct sound sound = {.name = file->object};
    struct rd_src *src;
    if (!backup_random(sound.seed, sizeof sound.seed, err) || !open_plain(job, file, &src, err))
        return false;
    bool ok = sound_check(&sound, src, err);
    rd_src_close(src);
    job->keys += ok ? sound.res.keys : 0;
    return ok;
}

static bool open_of_log(void *ctx, const struct aof_file *file, struct rd_src **ret,
                        struct rd_err *err)
{
    struct job *job = ctx;
    const struct archive_file *found = backup_stored_file(&job->set->m, file->name);
    if (found == NULL)
        return rd_err_sys(err, ENOENT, "%s is not in the set", file->name);
    return open_plain(job, found, ret, err);
}

static void on_finding(void *ctx, const struct aof_finding *finding)
{
    struct job *job = ctx;
    if (finding->severity == RDB_SEVERITY_ERROR && job->finding[0] == '\0')
        snprintf(job->finding, sizeof job->finding, "%.200s%s%s",
                 finding->file != NULL ? finding->file : "", finding->file != NULL ? ": " : "",
                 finding->text);
}

static bool parse_log(struct job *job, const struct archive_file *manifest, struct rd_err *err)
{
    struct spool keys = {0};
    struct rdb_spool for_keys = spool_for_keys(&keys);
    struct aof_check_opts opts =
        AOF_CHECK_OPTS(.open = open_of_log, .finding = on_finding, .ctx = job, .spool = &for_keys);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_src *src;
    if (!backup_random(opts.seed, sizeof opts.seed, err) || !open_plain(job, manifest, &src, err))
        return false;
    bool ok = aof_check(src, &opts, &res, err);
    if (ok && res.verdict > AOF_VERDICT_WARNED)
        ok = rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "%s", job->finding);
    aof_check_done(&res);
    rd_src_close(src);
    spool_done(&keys);
    return ok;
}

/* Reads all plain bytes to their end, whatever the check of their contents needs of them. */
static bool parse_rest(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    struct rd_src *src;
    if (!open_plain(job, file, &src, err))
        return false;
    bool ok = drain(job, src, err);
    rd_src_close(src);
    return ok;
}

/* A part of the stream of a master of a cluster. */
static bool parse_stream(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    struct segment_in in;
    struct repl_capture_event ev;
    struct rd_src *src;
    uint64_t number, start;
    if (sscanf(file->name, "shard-%*u-%" SCNu64 "-%" SCNu64 ".seg", &number, &start) != 2)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "the file name is not the name of a segment");
    if (!open_plain(job, file, &src, err) || !segment_in_open(&in, src, number, start, err))
        return false;
    bool ok = segment_in_verify(&in, err);
    while (ok && segment_in_next(&in, &ev, err))
        ;
    ok = ok && !in.failed;
    segment_in_close(&in);
    return ok;
}

static bool parse_file(struct job *job, const struct archive_file *file, struct rd_err *err)
{
    switch (file->role) {
    case ARCHIVE_ROLE_RDB:
        return parse_snapshot(job, file, err);
    case ARCHIVE_ROLE_STREAM:
        return parse_stream(job, file, err);
    default:
        return parse_rest(job, file, err) &&
               (file->role != ARCHIVE_ROLE_AOF_MANIFEST || parse_log(job, file, err));
    }
}

static bool parse_all(struct job *job, struct rd_err *err)
{
    const struct archive_manifest *m = &job->set->m;
    for (size_t i = 0; i < m->n_files; i++) {
        if (parse_file(job, &m->files[i], err))
            continue;
        rd_err_origin(err, m->files[i].object);
        return false;
    }
    bool snapshots = m->files[0].role == ARCHIVE_ROLE_RDB;
    return !snapshots || job->keys == m->keys ||
           rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                      "its number of keys differs from the manifest");
}

static bool load_all(struct job *job, struct rd_err *err)
{
    job->out.load = (struct backup_load){.watch = job->v->watch,
                                         .repo = job->repo,
                                         .set = job->set,
                                         .ring = &job->open->keys.ring,
                                         .program = job->v->server,
                                         .now_ms = job->v->now_ms};
    job->out.loaded = backup_load(&job->out.load, err);
    return job->out.loaded;
}

/* ---- the verdict ---- */

static bool check(struct job *job, struct rd_err *err)
{
    enum backup_level level = job->level;
    if (job->hurt)
        return check_manifest(job, err) &&
               rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                          "chunks of the set are missing or damaged, as reported above");
    return check_manifest(job, err) && (level < BACKUP_LEVEL_DIGEST || check_digests(job, err)) &&
           (level < BACKUP_LEVEL_PARSE || parse_all(job, err)) &&
           (level < BACKUP_LEVEL_LOAD || load_all(job, err));
}

/* Where a mark cannot be written, nothing else is wrong. */
static void remember(struct job *job)
{
    struct rd_err err = {0};
    struct archive_set *set = job->set;
    bool good = job->out.verdict == BACKUP_GOOD;
    if ((!good && job->out.verdict != BACKUP_DAMAGED) || job->out.unsealed ||
        set->marked[ARCHIVE_MARK_DAMAGED] == !good ||
        (good &&
         (job->level == BACKUP_LEVEL_LIST || set->m.signature == ARCHIVE_SIGNATURE_UNKNOWN)))
        return;
    if (!archive_repo_mark(job->repo, set->id, ARCHIVE_MARK_DAMAGED, !good, &err))
        rd_watch_detail(job->v->watch, "cannot mark %s: %s", set->id, err.text);
}

/* By `prune`, since the sets were listed. */
static bool is_removed(const struct job *job, const struct rd_err *err)
{
    return archive_store_is_missing(err) && archive_set_gone(job->repo, job->set);
}

/* False: it cannot be known. */
static bool judge(struct job *job, bool good)
{
    struct backup_verified *out = &job->out;
    out->verdict = good                                       ? BACKUP_GOOD
                   : out->err.reason.id == RD_SEAL_REASON_KEY ? BACKUP_UNKNOWN_KEY
                   : out->load.refused                        ? BACKUP_NOT_LOADED
                   : out->unsealed                            ? BACKUP_UNSEALED
                                                              : BACKUP_DAMAGED;
    return good || out->verdict == BACKUP_UNKNOWN_KEY || out->load.refused ||
           backup_is_damage(&out->err);
}

static void report(struct job *job)
{
    struct backup_verify *v = job->v;
    enum backup_verdict verdict = job->out.verdict;
    if (v->verified != NULL)
        v->verified(v->ctx, &job->out);
    if (verdict == BACKUP_UNKNOWN_KEY) {
        v->n_unknown++;
        return;
    }
    remember(job);
    v->n_good += verdict == BACKUP_GOOD;
    v->n_bad += verdict != BACKUP_GOOD;
}

/* False where it cannot be known. */
static bool verify_set(struct job *job, struct rd_err *ret)
{
    struct backup_verify *v = job->v;
    struct rd_err *err = &job->out.err;
    job->out.repo = job->repo;
    job->out.set = job->set;
    job->out.level = job->level;
    rd_watch_begin(v->watch, job->set->id, job->set->bytes, NULL);
    bool good = check(job, err);
    rd_watch_end(v->watch);
    if (good && job->foreign.code != RD_ERR_OK) {
        good = false;
        rd_err_adopt(err, &job->foreign);
    }
    if (!good && is_removed(job, err)) {
        rd_watch_note(v->watch, "%s %s was removed meanwhile", job->repo->target, job->set->id);
        return true;
    }
    if (!judge(job, good)) {
        rd_err_adopt(ret, err);
        rd_err_doing(ret, "the set %s of %s", job->set->id, job->repo->target);
        return false;
    }
    report(job);
    return true;
}

/* ---- a repository ---- */

/* Of what is not in the part of the day, only the list is compared. Chunks are proved by their
 * packs, so that of a set that shares them nothing is read, unless it is parsed. */
static enum backup_level level_of(struct backup_verify *v, const struct archive_set *set)
{
    if (v->sample.of == 0)
        return v->level;
    bool read = backup_sample_has(&v->sample, set->id) &&
                (v->level >= BACKUP_LEVEL_PARSE || !has_chunks(set));
    v->n_sets++;
    v->n_sets_read += read;
    return read ? v->level : BACKUP_LEVEL_LIST;
}

/* ret_wrong: the first set whose manifest cannot be used, for example one of a newer version. */
static bool verify_sets(struct backup_verify *v, struct backup_open *open,
                        struct archive_repo *repo, struct archive_sets *sets, const bool *hurt,
                        struct rd_err *ret_wrong, struct rd_err *err)
{
    const struct archive_set *only =
        v->id != NULL ? archive_sets_find(sets, v->id, backup_now_ms()) : NULL;
    bool ok = true;
    if (v->id != NULL && only == NULL)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s has no set %s in %s", repo->target,
                        rd_show_quote(rd_slice_str(v->id)).s, repo->store->origin);
    for (size_t i = 0; ok && i < sets->n; i++) {
        struct job job = {.v = v, .open = open, .repo = repo, .set = &sets->sets[i]};
        job.hurt = hurt != NULL && hurt[i];
        struct rd_err why = {0};
        if (job.set->incomplete || (only != NULL && only != job.set))
            continue;
        job.level = level_of(v, job.set);
        if (verify_set(&job, &why))
            continue;
        ok = job.set->err != NULL; /* the store works: others may be read */
        rd_err_adopt(ok ? ret_wrong : err, &why);
    }
    return ok;
}

static bool verify_stream(struct backup_verify *v, struct backup_open *open,
                          struct archive_repo *repo, const struct archive_sets *sets,
                          struct rd_err *err)
{
    struct backup_verify_stream stream = {.watch = v->watch,
                                          .repo = repo,
                                          .sets = sets,
                                          .ring = &open->keys.ring,
                                          .level = v->level,
                                          .sample = v->sample,
                                          .listed = v->stream_listed,
                                          .damaged = v->segment_damaged,
                                          .ctx = v->ctx};
    bool ok = backup_verify_stream(&stream, err);
    v->n_damaged_segments += stream.n_damaged;
    v->n_unknown_segments += stream.n_unknown;
    v->n_segments += stream.n_segments;
    v->n_segments_read += stream.n_read;
    if (stream.is_listed && v->stream_verified != NULL)
        v->stream_verified(v->ctx, &stream);
    return ok;
}

/* The sets of another repository, or of another target, do not make up for it. */
static void look_for_none(struct backup_verify *v, const struct archive_repo *repo,
                          const struct archive_sets *sets)
{
    if (v->id != NULL)
        return;
    for (size_t i = 0; i < sets->n; i++)
        if (!sets->sets[i].incomplete)
            return;
    v->n_empty++;
    rd_watch_warn(v->watch, "%s has no set in %s", repo->target, repo->store->origin);
}

struct examining {
    struct backup_verify *v;
    struct archive_repo *repo;
};

static void on_damage(void *ctx, const struct chunks_damage *damage)
{
    const struct examining *e = ctx;
    if (e->v->chunks_damaged != NULL)
        e->v->chunks_damaged(e->v->ctx, e->repo, damage);
}

static bool wants_pack(void *ctx, const char *pack)
{
    const struct examining *e = ctx;
    return backup_sample_has(&e->v->sample, pack);
}

/* Each pack once, whatever the number of sets that need it. */
static bool examine(struct backup_verify *v, struct archive_repo *repo, struct archive_sets *sets,
                    struct chunks_examine *x, struct rd_err *err)
{
    struct examining e = {v, repo};
    const struct archive_set *only =
        v->id != NULL ? archive_sets_find(sets, v->id, backup_now_ms()) : NULL;
    bool any = false;
    *x = (struct chunks_examine){.repo = repo,
                                 .sets = sets,
                                 .only = only,
                                 .presence = v->level < BACKUP_LEVEL_DIGEST,
                                 .wants = wants_pack,
                                 .found = on_damage,
                                 .ctx = &e};
    for (size_t i = 0; i < sets->n; i++)
        any = any || (has_chunks(&sets->sets[i]) && (only == NULL || only == &sets->sets[i]));
    if (!any)
        return true;
    rd_watch_begin(v->watch, "chunks", 0, NULL);
    bool ok = chunks_examine(x, err);
    rd_watch_end(v->watch);
    v->n_damaged_chunks += x->n_damaged;
    v->n_packs += x->n_packs;
    v->n_packs_read += x->n_read;
    return ok;
}

bool backup_verify(struct backup_verify *v, struct backup_open *open, size_t i, struct rd_err *err)
{
    struct chunks_examine x = {0};
    struct archive_repo *repo = &open->repos[i];
    struct archive_sets sets;
    struct rd_err wrong = {0};
    repo->exact = true;
    if (!backup_list(v->watch, repo, &sets, err))
        return false;
    look_for_none(v, repo, &sets);
    bool ok = examine(v, repo, &sets, &x, err) &&
              verify_sets(v, open, repo, &sets, x.hurt, &wrong, err) &&
              (v->id != NULL || verify_stream(v, open, repo, &sets, err));
    chunks_examine_done(&x);
    archive_sets_done(&sets);
    if (ok)
        rd_err_adopt(err, &wrong);
    return ok && wrong.code == RD_ERR_OK;
}
