#include "tests/chunks/repo.h"

#include "archive/pipe.h"
#include "base/crc64.h"
#include "base/pump.h"
#include "tests/archive/folder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t chance = 1;

uint64_t chunks_repo_draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool draw(void *ret, size_t size, struct rd_err *err)
{
    (void)err;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)ret)[i] = (uint8_t)chunks_repo_draw(&chance);
    return true;
}

void chunks_repo_begin(struct chunks_repo *r, bool sealed)
{
    static const uint8_t bytes[RD_SEAL_KEY] = {7};
    *r = (struct chunks_repo){.sealed = sealed, .keeps_state = true};
    r->store = folder_open(r->path);
    cr_assert(rd_seal_key_set(&r->key, bytes, NULL));
    r->ring = (struct rd_seal_ring){.keys = &r->key, .n_keys = sealed ? 1 : 0};
    r->repo = (struct archive_repo){.store = r->store,
                                    .target = "t",
                                    .ring = &r->ring,
                                    .lock = folder_lock(r->store),
                                    .open_chunks = chunks_open_src};
    snprintf(r->state, sizeof r->state, "%s.state", r->path);
}

void chunks_repo_end(struct chunks_repo *r)
{
    unlink(r->state);
    folder_unlock(r->repo.lock, r->store);
    folder_remove(r->store, r->path);
}

static bool commit(struct chunks_repo *r, const char *id, const struct archive_file *file,
                   struct rd_err *err)
{
    struct archive_manifest m = {.target = "t"};
    struct rd_buf json = {0};
    const struct rd_seal_key *key = r->sealed ? &r->key : NULL;
    snprintf(m.id, sizeof m.id, "%s", id);
    if (r->sealed)
        rd_seal_key_id(&r->key, m.key_id);
    bool ok = archive_manifest_db(&m, 0) != NULL && archive_manifest_add_file(&m, file, err) &&
              archive_manifest_print(&m, key, &json, err) &&
              archive_repo_commit(&r->repo, &m, rd_buf_slice(&json), err);
    rd_buf_done(&json);
    archive_manifest_done(&m);
    return ok;
}

bool chunks_repo_put(struct chunks_repo *r, struct rd_slice bytes, size_t step, struct rd_err *err)
{
    char id[ARCHIVE_ID_MAX];
    struct archive_file file = {.name = "dump.rdb",
                                .object = "dump.rdb.chunks",
                                .compression = ARCHIVE_COMPRESSION_CHUNKS,
                                .sealed = r->sealed};
    struct archive_sets sets;
    if (!archive_repo_list(&r->repo, &sets, err))
        return false;
    archive_make_id(id, 1709164800000 + 1000 * (int64_t)r->n_sets++, 1);
    struct chunks_opts opts = {.repo = &r->repo,
                               .sets = &sets,
                               .id = id,
                               .file = &file,
                               .key = r->sealed ? &r->key : NULL,
                               .state = r->keeps_state ? r->state : NULL,
                               .random = draw};
    struct chunks_writer *w = NULL;
    struct rd_sink *sink, *sums;
    bool ok = chunks_writer_open(&w, &sink, &opts, err);
    if (ok) {
        r->had_parent = opts.parent != NULL;
        ok = archive_sums_open_sink(&sums, sink, &file.plain, err);
        if (!ok)
            rd_sink_abort(sink);
    }
    if (ok) {
        for (size_t at = 0; at < bytes.len; at += step)
            rd_sink_write(sums, bytes.ptr + at, bytes.len - at < step ? bytes.len - at : step);
        ok = rd_sink_close(sums, err);
    }
    if (ok) {
        file.stored = *chunks_writer_stored(w);
        file.added = r->added = chunks_writer_added(w);
        ok = commit(r, id, &file, err);
        if (ok && r->keeps_state)
            chunks_writer_keep(w, NULL);
    }
    chunks_writer_free(w);
    archive_sets_done(&sets);
    return ok;
}

struct archive_sets chunks_repo_list(struct chunks_repo *r)
{
    struct archive_sets sets;
    struct rd_err err = {0};
    cr_assert(archive_repo_list(&r->repo, &sets, &err), "%s", err.text);
    return sets;
}

bool chunks_repo_get(struct chunks_repo *r, size_t i, struct rd_buf *ret, struct rd_err *err)
{
    struct archive_sets sets = chunks_repo_list(r);
    struct rd_src *src;
    cr_assert_lt(i, sets.n);
    bool ok =
        archive_set_open(&r->repo, &sets.sets[i], &sets.sets[i].m.files[0], &r->ring, &src, err);
    if (ok) {
        ok = rd_pump_to_buf(src, SIZE_MAX / 2, ret, err);
        rd_src_close(src);
    }
    archive_sets_done(&sets);
    return ok;
}

static void put_string(struct rd_buf *out, const char *text)
{
    size_t len = strlen(text);
    if (len >= 64)
        rd_buf_add_byte(out, (uint8_t)(0x40 | len >> 8));
    rd_buf_add_byte(out, (uint8_t)len);
    rd_buf_add(out, text, len);
}

static void put_key(struct rd_buf *out, unsigned k, unsigned changed)
{
    char name[40], value[200];
    uint64_t state = k * 2 + 1;
    bool is_changed = changed > 0 && k % 100 == changed % 100;
    state += is_changed ? (uint64_t)changed << 40 : 0;
    snprintf(name, sizeof name, "key:%u", k);
    snprintf(value, sizeof value, "%u %016llx %016llx %0*d", k,
             (unsigned long long)chunks_repo_draw(&state),
             (unsigned long long)chunks_repo_draw(&state), (int)(k % 100), 1);
    if (k % 8 == 0) {
        rd_buf_add_byte(out, 0xfc);
        rd_buf_add(out, "\x01\x02\x03\x04\x05\x06\x00\x00", 8);
    }
    rd_buf_add_byte(out, 0);
    put_string(out, name);
    put_string(out, value);
}

void chunks_repo_snapshot(struct rd_buf *ret, unsigned n, unsigned seed, unsigned changed,
                          unsigned gone)
{
    unsigned *order = calloc(n + 1, sizeof *order);
    uint64_t state = seed;
    uint8_t crc[8];
    rd_buf_reset(ret);
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n; seed > 0 && i > 1; i--) {
        unsigned j = (unsigned)(chunks_repo_draw(&state) % i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
    rd_buf_add(ret, "REDIS0011\xfe\x00", 11);
    for (unsigned i = 0; i < n; i++)
        if (order[i] >= gone)
            put_key(ret, order[i], changed);
    rd_buf_add_byte(ret, 0xff);
    uint64_t sum = rd_crc64(0, ret->ptr, ret->len);
    for (int i = 0; i < 8; i++)
        crc[i] = (uint8_t)(sum >> (8 * i));
    rd_buf_add(ret, crc, sizeof crc);
    free(order);
}
