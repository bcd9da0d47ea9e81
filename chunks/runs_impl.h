/* runs_impl.h - private to chunks/: the index of keys.
 *
 * A run has an entry for each key of the chunks that some sets wrote, with its chunk, and the keys
 * that these sets removed. The newest run that knows a key decides. A new run takes in the runs
 * before it that are not more than twice as long, so there are few. The hash of an entry is cut to
 * six bits more than it takes to number the keys of its run; the chunk shows whether it has the
 * key. The hashes of removed keys are whole.
 */
#ifndef CHUNKS_RUNS_IMPL_H
#define CHUNKS_RUNS_IMPL_H

#include "chunks/state_impl.h"

enum { CHUNKS_PAGE_ENTRIES = 4096 };

struct chunks_entry {
    uint64_t key;
    uint32_t ordinal; /* CHUNKS_GONE: the key was removed */
};

#define CHUNKS_GONE UINT32_MAX

struct chunks_entries {
    struct chunks_entry *at;
    size_t n, cap;
};

bool chunks_entries_reserve(struct chunks_entries *e, size_t cap, struct rd_err *err);
bool chunks_entries_add(struct chunks_entries *e, uint64_t key, uint32_t ordinal,
                        struct rd_err *err);
/* By key; *ret_twice: two entries with chunks have one hash. A removed key is left
 * once, and not at all if it is there again. */
void chunks_entries_sort(struct chunks_entries *e, bool *ret_twice);
void chunks_entries_done(struct chunks_entries *e);

/* Bits of the hashes of a run of n entries. */
unsigned chunks_run_bits(uint64_t n);

/* The plain bytes of the page of the entries from *next on, which is advanced. */
bool chunks_page_print(const struct chunks_entries *e, size_t *next, struct rd_buf *ret,
                       struct rd_err *err);

/* What a page says about a key. */
struct chunks_answer {
    uint32_t ordinals[16]; /* of chunks that may have it */
    size_t n;
    bool many; /* there are more than these */
    bool gone;
};

bool chunks_page_find(struct rd_slice plain, uint64_t n_entries, uint64_t key,
                      struct chunks_answer *ret, struct rd_err *err);
/* Calls each() for the removed keys of a page. */
bool chunks_page_dead(struct rd_slice plain,
                      bool (*each)(void *ctx, uint64_t key, struct rd_err *err), void *ctx,
                      struct rd_err *err);
/* The page of a run that would have the key; NULL: none. */
const struct chunks_page *chunks_run_page(const struct chunks_run *run, uint64_t key);

#endif
