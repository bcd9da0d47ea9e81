/* some.c - the keys of a file that begin with something, or that are in some slots.
 *
 * The pages of traits say which chunks may have such keys. All versions of a key that these chunks
 * have are found; if not all items of a chunk are in the set, the index says which one is. */
#include "base/mem.h"
#include "chunks/keys_impl.h"
#include "chunks/runs_impl.h"
#include "chunks/traits_impl.h"

#include <stdlib.h>

enum {
    GAP_MAX = 64 * 1024, /* bytes between two blobs that are read with them */
    SPAN_MAX = 4 * 1024 * 1024,
    PREFIXES_MAX = 64
};

/* The record of a key, in s->raw. */
struct version {
    uint64_t hash, db, at, len;
    uint32_t ordinal;
    uint8_t alike; /* bits that its hash has in common with that of another key of the chunk */
    bool alive;
};

/* The page of a run that was read last. */
struct current {
    const struct chunks_page *page;
    struct rd_buf plain;
};

struct some {
    struct chunks_lookup *l;
    const struct filter *filter;
    uint64_t prefixes[PREFIXES_MAX]; /* hashes */
    size_t n_prefixes;               /* 0: any */
    enum chunks_kind kind;           /* of the page that is read */
    bool *wanted;                    /* of each chunk */
    struct spool raw;
    struct rd_buf versions; /* struct version */
    struct rd_buf hashes;   /* of the keys of a chunk */
    struct current *pages;  /* of each run */
};

static struct version *version_at(const struct some *s, size_t i)
{
    return &((struct version *)(void *)s->versions.ptr)[i];
}

static size_t n_versions(const struct some *s)
{
    return s->versions.len / sizeof(struct version);
}

/* ---- blobs that follow each other in a pack ---- */

struct span {
    const struct chunks_blob *blobs[64];
    size_t n;
};

static bool add_to_span(struct span *span, const struct chunks_blob *b)
{
    if (span->n == sizeof span->blobs / sizeof *span->blobs)
        return false;
    if (span->n > 0) {
        const struct chunks_blob *first = span->blobs[0], *last = span->blobs[span->n - 1];
        uint64_t end = last->offset + last->stored;
        if (b->pack != first->pack || b->offset < end || b->offset - end > GAP_MAX ||
            b->offset + b->stored - first->offset > SPAN_MAX)
            return false;
    }
    span->blobs[span->n++] = b;
    return true;
}

static void read_span(struct some *s, const struct span *span)
{
    if (span->n > 1)
        chunks_fetch_span(&s->l->fetch, span->blobs, span->n);
}

/* ---- which chunks ---- */

/* The longest prefix in what each name begins with. Without one, any chunk may have it. */
static void find_prefixes(struct some *s)
{
    const struct filter_names *names = &s->l->names;
    uint64_t hashes[CHUNKS_PREFIXES_MAX];
    if (names->n > PREFIXES_MAX)
        return;
    for (size_t i = 0; i < names->n; i++) {
        size_t n = chunks_traits_hashes(s->l->recipe.key, names->at[i], hashes);
        if (n == 0) {
            s->n_prefixes = 0;
            return;
        }
        s->prefixes[s->n_prefixes++] = hashes[n - 1];
    }
}

static bool may_have(const struct some *s, const struct chunks_trait *trait)
{
    bool begins = false;
    if (s->kind == CHUNKS_SLOTS)
        return chunks_trait_meets(trait, s->l->names.slots);
    for (size_t i = 0; !begins && i < s->n_prefixes; i++)
        begins = chunks_trait_begins(trait, s->prefixes[i]);
    return begins;
}

static bool on_trait(void *ctx, const struct chunks_trait *trait)
{
    struct some *s = ctx;
    const struct chunks_chunk *chunk = chunks_recipe_find(&s->l->recipe, trait->ordinal);
    if (chunk != NULL && !may_have(s, trait))
        s->wanted[chunk - s->l->recipe.chunks] = false;
    return true;
}

/* Whether the pages of a kind say something about the keys. */
static bool asks_for(const struct some *s, enum chunks_kind kind)
{
    return kind == CHUNKS_SLOTS ? !s->l->names.any_slot : s->n_prefixes > 0;
}

/* Reads pages from i on with one request; returns the page after them. */
static size_t read_leaves(struct some *s, size_t i)
{
    const struct chunks_recipe *r = &s->l->recipe;
    struct span span = {.n = 0};
    for (; i < r->n_leaves; i++)
        if (asks_for(s, r->leaves[i].blob.kind) && !add_to_span(&span, &r->leaves[i].blob))
            break;
    read_span(s, &span);
    return i;
}

/* Whether few chunks are wanted: otherwise reading all of the file is faster. */
static bool are_few(const struct some *s)
{
    const struct chunks_recipe *r = &s->l->recipe;
    uint64_t all = 0, wanted = 0;
    for (size_t i = 0; i < r->n_chunks; i++) {
        all += r->chunks[i].blob.stored;
        wanted += s->wanted[i] ? r->chunks[i].blob.stored : 0;
    }
    return wanted <= all / 2;
}

static enum chunks_found_it choose(struct some *s)
{
    const struct chunks_recipe *r = &s->l->recipe;
    bool ok = true;
    find_prefixes(s);
    if (s->n_prefixes == 0 && s->l->names.any_slot)
        return CHUNKS_UNKNOWN;
    for (size_t i = 0; i < r->n_chunks; i++)
        s->wanted[i] = r->chunks[i].blob.kind == CHUNKS_ITEMS;
    for (size_t i = 0, end = 0; ok && i < r->n_leaves; i++) {
        s->kind = r->leaves[i].blob.kind;
        if (!asks_for(s, s->kind))
            continue;
        end = i < end ? end : read_leaves(s, i);
        rd_buf_reset(&s->l->page);
        ok = chunks_fetch_blob(&s->l->fetch, &r->leaves[i].blob, &s->l->page, NULL) &&
             chunks_traits_each(rd_buf_slice(&s->l->page), on_trait, s, NULL);
    }
    return ok && are_few(s) ? CHUNKS_FOUND : CHUNKS_UNKNOWN;
}

/* ---- all versions of their keys ---- */

/* The first piece of a long item; ABSENT: the recipe has not all of its pieces, so that the item is
 * not in the set. */
static enum chunks_found_it first_piece(struct chunks_lookup *l, struct rd_slice item)
{
    struct chunks_long pieces;
    const struct chunks_chunk *first = NULL, *piece;
    if (!chunks_long_parse(&pieces, item, NULL) || pieces.n == 0)
        return CHUNKS_UNKNOWN;
    struct chunks_in in = chunks_in_of(rd_slice(pieces.at, pieces.len));
    for (size_t i = 0; i < pieces.n; i++) {
        if (!chunks_long_piece(&in, &l->recipe, &piece, NULL))
            return CHUNKS_ABSENT;
        first = first == NULL ? piece : first;
    }
    rd_buf_reset(&l->piece);
    return chunks_fetch_blob(&l->fetch, &first->blob, &l->piece, NULL) ? CHUNKS_FOUND
                                                                       : CHUNKS_UNKNOWN;
}

/* l->name becomes that of an item, which is a key. The name of a long one is at the beginning of
 * its first piece. */
static enum chunks_found_it read_name(struct chunks_lookup *l, const struct chunks_items *items,
                                      uint32_t i)
{
    struct rd_slice bytes = chunks_items_at(items, i);
    if ((items->flags[i] & CHUNKS_LONG) != 0) {
        enum chunks_found_it found = first_piece(l, bytes);
        if (found != CHUNKS_FOUND)
            return found;
        bytes = rd_buf_slice(&l->piece);
    }
    rd_buf_reset(&l->name);
    return chunks_record_name(bytes, &l->name) ? CHUNKS_FOUND : CHUNKS_UNKNOWN;
}

static bool take_item(struct some *s, const struct chunks_chunk *chunk,
                      const struct chunks_items *items, uint32_t i, bool *ret_known,
                      struct rd_err *err)
{
    struct chunks_lookup *l = s->l;
    struct rd_err why = {0};
    struct version v = {.db = chunks_items_db(items, i),
                        .ordinal = chunk->ordinal,
                        .alive = chunk->live == chunk->n_items};
    if ((items->flags[i] & CHUNKS_IS_KEY) == 0)
        return true;
    enum chunks_found_it found = read_name(l, items, i);
    if (found != CHUNKS_FOUND) {
        *ret_known = found == CHUNKS_ABSENT && !v.alive;
        return true;
    }
    const struct rd_slice name = rd_buf_slice(&l->name);
    if (!filter_may_want(s->filter, v.db, &name))
        return true;
    v.hash = chunks_hash_key(l->recipe.key, v.db, name);
    v.at = rd_sink_offset(l->to);
    if (!chunks_lookup_item(l, items, i, &why)) {
        rd_err_adopt(err, rd_sink_err(l->to)->code != RD_ERR_OK ? rd_sink_err(l->to) : &why);
        return false;
    }
    v.len = rd_sink_offset(l->to) - v.at;
    return rd_buf_add(&s->versions, &v, sizeof v) || rd_err_nomem(err, sizeof v);
}

static uint8_t bits_alike(uint64_t a, uint64_t b)
{
    return (a ^ b) == 0 ? 64 : (uint8_t)__builtin_clzll(a ^ b);
}

/* How much the hash of each version from `first` on looks like those of other keys of its chunk. */
static bool compare_hashes(struct some *s, const struct chunks_items *items, size_t first,
                           bool *ret_known, struct rd_err *err)
{
    rd_buf_reset(&s->hashes);
    for (uint32_t i = 0; i < items->n; i++) {
        uint64_t hash = chunks_lookup_hash(s->l, items, i, ret_known);
        if (hash != 0 && !rd_buf_add(&s->hashes, &hash, sizeof hash))
            return rd_err_nomem(err, sizeof hash);
    }
    uint64_t *at = (uint64_t *)(void *)s->hashes.ptr;
    size_t n = s->hashes.len / sizeof *at;
    if (n > 0)
        qsort(at, n, sizeof *at, chunks_compare_hashes);
    for (size_t i = first; i < n_versions(s); i++) {
        struct version *v = version_at(s, i);
        uint64_t *me = n == 0 ? NULL : bsearch(&v->hash, at, n, sizeof *at, chunks_compare_hashes);
        if (me != NULL && me > at)
            v->alike = bits_alike(me[-1], v->hash);
        if (me != NULL && me + 1 < at + n && bits_alike(me[1], v->hash) > v->alike)
            v->alike = bits_alike(me[1], v->hash);
    }
    return true;
}

static enum chunks_found_it take_chunk(struct some *s, size_t index, struct rd_err *err)
{
    const struct chunks_chunk *chunk = &s->l->recipe.chunks[index];
    const struct chunks_loaded *c = chunks_lookup_load(s->l, index, err);
    size_t first = n_versions(s);
    bool known = true;
    if (c == NULL)
        return CHUNKS_FAILED;
    for (uint32_t i = 0; known && i < c->items.n; i++)
        if (!take_item(s, chunk, &c->items, i, &known, err))
            return CHUNKS_FAILED;
    if (known && first < n_versions(s) && chunk->live < chunk->n_items &&
        !compare_hashes(s, &c->items, first, &known, err))
        return CHUNKS_FAILED;
    return known ? CHUNKS_FOUND : CHUNKS_UNKNOWN;
}

/* Reads wanted chunks from i on with one request; returns the chunk after them. */
static size_t read_chunks(struct some *s, size_t i)
{
    struct span span = {.n = 0};
    for (; i < s->l->recipe.n_chunks; i++)
        if (s->wanted[i] && !add_to_span(&span, &s->l->recipe.chunks[i].blob))
            break;
    read_span(s, &span);
    return i;
}

static enum chunks_found_it take_all(struct some *s, struct rd_err *err)
{
    enum chunks_found_it answer = CHUNKS_FOUND;
    size_t end = 0; /* of the chunks that were read */
    if (!spool_sink(&s->raw, &s->l->to, err))
        return CHUNKS_FAILED;
    for (size_t i = 0; answer == CHUNKS_FOUND && i < s->l->recipe.n_chunks; i++) {
        if (!s->wanted[i])
            continue;
        end = i < end ? end : read_chunks(s, i);
        answer = take_chunk(s, i, err);
    }
    struct rd_sink *to = s->l->to;
    s->l->to = NULL;
    if (answer == CHUNKS_FOUND)
        return rd_sink_close(to, err) ? CHUNKS_FOUND : CHUNKS_FAILED;
    rd_sink_abort(to);
    return answer;
}

/* ---- the version that the set has ---- */

static int by_hash(const void *a, const void *b)
{
    const struct version *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static bool read_page(struct some *s, size_t run, uint64_t hash, struct chunks_answer *ret)
{
    const struct chunks_run *r = &s->l->recipe.runs[run];
    struct current *current = &s->pages[run];
    const struct chunks_page *page = chunks_run_page(r, hash);
    *ret = (struct chunks_answer){.n = 0};
    if (page == NULL)
        return true;
    if (current->page != page) {
        rd_buf_reset(&current->plain);
        current->page = page;
        if (!chunks_fetch_blob(&s->l->fetch, &page->blob, &current->plain, NULL))
            return false;
    }
    return chunks_page_find(rd_buf_slice(&current->plain), r->n_entries, hash, ret, NULL) &&
           !ret->many;
}

static bool names(const struct chunks_answer *said, uint32_t ordinal)
{
    for (size_t i = 0; i < said->n; i++)
        if (said->ordinals[i] == ordinal)
            return true;
    return false;
}

/* The newest run that knows the key decides. An entry that may be that of another key of the chunk
 * decides nothing. */
static enum chunks_found_it decide(struct some *s, struct version *v, size_t n)
{
    size_t n_alive = 0;
    for (size_t i = 0; i < n; i++)
        n_alive += v[i].alive;
    if (n_alive > 0)
        return n_alive == 1 ? CHUNKS_FOUND : CHUNKS_UNKNOWN;
    for (size_t run = s->l->recipe.n_runs; run-- > 0;) {
        struct chunks_answer said;
        struct version *found = NULL;
        if (!read_page(s, run, v->hash, &said))
            return CHUNKS_UNKNOWN;
        for (size_t i = 0; i < n; i++) {
            if (!names(&said, v[i].ordinal))
                continue;
            if (found != NULL || v[i].alike >= chunks_run_bits(s->l->recipe.runs[run].n_entries))
                return CHUNKS_UNKNOWN;
            found = &v[i];
        }
        if (found != NULL)
            found->alive = true;
        if (found != NULL || said.gone)
            return CHUNKS_FOUND;
    }
    return CHUNKS_FOUND;
}

static enum chunks_found_it decide_all(struct some *s)
{
    enum chunks_found_it answer = CHUNKS_FOUND;
    size_t n = n_versions(s);
    if (n > 0)
        qsort(s->versions.ptr, n, sizeof(struct version), by_hash);
    for (size_t i = 0, end; answer == CHUNKS_FOUND && i < n; i = end) {
        for (end = i + 1; end < n && version_at(s, end)->hash == version_at(s, i)->hash;)
            end++;
        answer = decide(s, version_at(s, i), end - i);
    }
    return answer;
}

/* ---- the snapshot ---- */

static int by_place(const void *a, const void *b)
{
    const struct version *x = a, *y = b;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static bool copy_record(struct some *s, const struct version *v, struct rd_err *err)
{
    uint8_t bytes[64 * 1024];
    for (uint64_t done = 0; done < v->len;) {
        size_t n = v->len - done < sizeof bytes ? (size_t)(v->len - done) : sizeof bytes;
        if (!spool_read(&s->raw, v->at + done, bytes, n, err))
            return false;
        rd_sink_write(s->l->to, bytes, n);
        done += n;
    }
    return true;
}

static bool write_all(struct some *s, struct rd_err *err)
{
    size_t n = n_versions(s);
    const struct version *before = NULL;
    if (!chunks_lookup_begin(s->l, err))
        return false;
    if (n > 0)
        qsort(s->versions.ptr, n, sizeof(struct version), by_place);
    for (size_t i = 0; i < n; i++) {
        const struct version *v = version_at(s, i);
        if (!v->alive)
            continue;
        if (before == NULL || before->db != v->db)
            chunks_lookup_db(s->l, v->db);
        if (!copy_record(s, v, err))
            return false;
        before = v;
    }
    return chunks_lookup_end(s->l, err);
}

static enum chunks_found_it find_all(struct some *s, struct rd_err *err)
{
    enum chunks_found_it answer = choose(s);
    if (answer == CHUNKS_FOUND)
        answer = take_all(s, err);
    if (answer == CHUNKS_FOUND)
        answer = decide_all(s);
    return answer != CHUNKS_FOUND || write_all(s, err) ? answer : CHUNKS_FAILED;
}

enum chunks_found_it chunks_lookup_some(struct chunks_lookup *l, const struct filter *filter,
                                        struct rd_err *err)
{
    struct some s = {.l = l, .filter = filter};
    s.wanted = rd_calloc(l->recipe.n_chunks + 1, sizeof *s.wanted);
    s.pages = rd_calloc(l->recipe.n_runs + 1, sizeof *s.pages);
    enum chunks_found_it answer = CHUNKS_FAILED;
    if (s.wanted != NULL && s.pages != NULL)
        answer = find_all(&s, err);
    else
        rd_err_nomem(err, l->recipe.n_chunks);
    for (size_t i = 0; s.pages != NULL && i < l->recipe.n_runs; i++)
        rd_buf_done(&s.pages[i].plain);
    rd_free(s.pages);
    rd_free(s.wanted);
    spool_done(&s.raw);
    rd_buf_done(&s.versions);
    rd_buf_done(&s.hashes);
    return answer;
}
