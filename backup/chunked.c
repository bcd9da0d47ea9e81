#include "backup/chunked.h"

#include "backup/system.h"
#include "base/digest.h"
#include "base/mem.h"

#include <stdio.h>

struct backup_chunked {
    struct backup_chunked *next;
    struct chunks_writer *writer;
    struct chunks_opts opts;
    struct archive_file file; /* a copy: the set goes on to its next one */
    size_t repo, number;      /* of the file in the manifest; SIZE_MAX: not known */
    char state[BACKUP_PATH_MAX];
};

bool backup_chunked_wanted(const struct backup_target *target, bool *ret, struct rd_err *err)
{
    const char *word = backup_get(target, BACKUP_KEY_STORE);
    *ret = word != NULL && strcmp(word, "chunks") == 0;
    return *ret || word == NULL || strcmp(word, "file") == 0 ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "store must be file or chunks");
}

/* Data of servers. What is small anyway stays readable with other tools. */
bool backup_chunked_role(const struct backup_set *set, enum archive_role role)
{
    return set->chunks && role != ARCHIVE_ROLE_AOF_MANIFEST;
}

/* A file in the spool for each repository and file name. Without it the next set reads the chunks
 * of this one. */
static bool state_path(const struct backup_set *set, struct backup_chunked *c)
{
    char folder[BACKUP_PATH_MAX], hex[RD_DIGEST_HEX];
    uint8_t sum[RD_DIGEST_MAX];
    struct rd_buf name = {0};
    const struct archive_store *store = set->open->stores[c->repo];
    bool ok =
        backup_spool(set->open->target, folder, NULL) &&
        rd_buf_printf(&name, "%s%c%s%c%s", store->origin, 0, set->m.target, 0, set->file.name) &&
        rd_digest_of(RD_DIGEST_SHA256, rd_buf_slice(&name), sum, NULL);
    rd_buf_done(&name);
    if (!ok)
        return false;
    rd_digest_hex(hex, rd_slice(sum, 8));
    int len = snprintf(c->state, sizeof c->state, "%s/chunks-%s.state", folder, hex);
    return len > 0 && (size_t)len < sizeof c->state;
}

bool backup_chunked_begin(struct backup_set *set, size_t i, struct rd_sink **ret,
                          struct rd_err *err)
{
    struct backup_chunked *c = rd_calloc(1, sizeof *c);
    if (c == NULL)
        return rd_err_nomem(err, sizeof *c);
    *c = (struct backup_chunked){.repo = i, .number = SIZE_MAX, .file = set->file};
    c->opts = (struct chunks_opts){.repo = &set->open->repos[i],
                                   .sets = &set->sets[i],
                                   .id = set->m.id,
                                   .file = &c->file,
                                   .number = (unsigned)set->m.n_files,
                                   .key = set->key,
                                   .level = set->chunks_level,
                                   .state = state_path(set, c) ? c->state : NULL,
                                   .random = backup_random};
    if (!chunks_writer_open(&c->writer, ret, &c->opts, err)) {
        rd_free(c);
        return false;
    }
    c->next = set->chunked;
    set->chunked = c;
    return true;
}

void backup_chunked_end(struct backup_set *set)
{
    for (struct backup_chunked *c = set->chunked; c != NULL; c = c->next)
        if (c->number == SIZE_MAX)
            c->number = set->m.n_files;
}

bool backup_chunked_print(const struct backup_set *set, size_t i, struct rd_buf *ret,
                          struct rd_err *err)
{
    for (const struct backup_chunked *c = set->chunked; c != NULL; c = c->next) {
        if (c->repo != i || c->number >= set->m.n_files)
            continue;
        set->m.files[c->number].stored = *chunks_writer_stored(c->writer);
        set->m.files[c->number].added = chunks_writer_added(c->writer);
    }
    return archive_manifest_print(&set->m, set->key, ret, err);
}

void backup_chunked_keep(const struct backup_set *set, size_t i, struct rd_err *ret_note)
{
    for (struct backup_chunked *c = set->chunked; c != NULL; c = c->next)
        if (c->repo == i && c->number < set->m.n_files)
            chunks_writer_keep(c->writer, ret_note);
}

void backup_chunked_done(struct backup_set *set)
{
    struct backup_chunked *next;
    for (struct backup_chunked *c = set->chunked; c != NULL; c = next) {
        next = c->next;
        chunks_writer_free(c->writer);
        rd_free(c);
    }
    set->chunked = NULL;
    for (size_t i = 0; i < BACKUP_STORES; i++)
        archive_sets_done(&set->sets[i]);
}
