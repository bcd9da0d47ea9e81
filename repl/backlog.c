#include "repl/backlog.h"

#include "base/mem.h"

/* Blocks are a sixteenth of the backlog, so that dropping the oldest one drops little. */
enum { BLOCK_MIN = 16 * 1024, PARTS = 16 };

struct repl_block {
    struct repl_block *next;
    uint64_t offset; /* of its first byte */
    size_t len, cap;
    size_t n_readers;
    uint8_t bytes[];
};

struct repl_backlog {
    struct repl_block *first, *last; /* never NULL */
    struct repl_block *spare;        /* reserved, empty */
    uint64_t size;
    uint64_t memory;
};

static struct repl_block *block_new(struct repl_backlog *b, size_t cap)
{
    struct repl_block *block = rd_alloc(sizeof *block + cap);
    if (block == NULL)
        return NULL;
    *block = (struct repl_block){.cap = cap};
    b->memory += sizeof *block + cap;
    return block;
}

static void block_free(struct repl_backlog *b, struct repl_block *block)
{
    b->memory -= sizeof *block + block->cap;
    rd_free(block);
}

bool repl_backlog_new(struct repl_backlog **ret, uint64_t offset, uint64_t size, struct rd_err *err)
{
    struct repl_backlog *b = rd_calloc(1, sizeof *b);
    struct repl_block *block = b == NULL ? NULL : block_new(b, BLOCK_MIN);
    if (block == NULL) {
        rd_free(b);
        return rd_err_nomem(err, BLOCK_MIN);
    }
    block->offset = offset;
    b->first = b->last = block;
    b->size = size;
    *ret = b;
    return true;
}

void repl_backlog_free(struct repl_backlog *b)
{
    if (b == NULL)
        return;
    b->last->next = b->spare;
    for (struct repl_block *block = b->first, *next; block != NULL; block = next) {
        next = block->next;
        block_free(b, block);
    }
    rd_free(b);
}

/* ---- adding ---- */

static size_t block_size(const struct repl_backlog *b, size_t wanted)
{
    uint64_t most = b->size / PARTS > BLOCK_MIN ? b->size / PARTS : BLOCK_MIN;
    if (wanted < BLOCK_MIN)
        return BLOCK_MIN;
    return wanted < most ? wanted : (size_t)most;
}

bool repl_backlog_reserve(struct repl_backlog *b, size_t len)
{
    size_t room = b->last->cap - b->last->len;
    struct repl_block **at = &b->spare;
    for (; *at != NULL; at = &(*at)->next)
        room += (*at)->cap;
    for (; room < len; at = &(*at)->next) {
        *at = block_new(b, block_size(b, len - room));
        if (*at == NULL)
            return false;
        room += (*at)->cap;
    }
    return true;
}

static void trim(struct repl_backlog *b)
{
    while (b->first != b->last && b->first->n_readers == 0 &&
           repl_backlog_end(b) - b->first->next->offset >= b->size) {
        struct repl_block *old = b->first;
        b->first = old->next;
        block_free(b, old);
    }
}

static void begin_spare(struct repl_backlog *b)
{
    struct repl_block *block = b->spare;
    b->spare = block->next;
    block->next = NULL;
    block->offset = repl_backlog_end(b);
    b->last->next = block;
    b->last = block;
}

void repl_backlog_add(struct repl_backlog *b, const void *ptr, size_t len)
{
    const uint8_t *from = ptr;
    while (len > 0) {
        if (b->last->len == b->last->cap)
            begin_spare(b);
        size_t room = b->last->cap - b->last->len, n = len < room ? len : room;
        memcpy(b->last->bytes + b->last->len, from, n);
        b->last->len += n;
        from += n;
        len -= n;
    }
    trim(b);
}

uint64_t repl_backlog_start(const struct repl_backlog *b)
{
    return b->first->offset;
}

uint64_t repl_backlog_end(const struct repl_backlog *b)
{
    return b->last->offset + b->last->len;
}

void repl_backlog_set_size(struct repl_backlog *b, uint64_t size)
{
    b->size = size;
    trim(b);
}

uint64_t repl_backlog_memory(const struct repl_backlog *b)
{
    return sizeof *b + b->memory;
}

/* ---- reading ---- */

bool repl_reader_open(struct repl_reader *r, struct repl_backlog *b, uint64_t offset)
{
    struct repl_block *block = b->first;
    if (offset < repl_backlog_start(b) || offset > repl_backlog_end(b))
        return false;
    while (offset > block->offset + block->len)
        block = block->next;
    block->n_readers++;
    *r = (struct repl_reader){b, block, (size_t)(offset - block->offset)};
    return true;
}

void repl_reader_copy(struct repl_reader *r, const struct repl_reader *from)
{
    *r = *from;
    r->block->n_readers++;
}

struct rd_slice repl_reader_bytes(struct repl_reader *r)
{
    if (r->block == NULL)
        return rd_slice(NULL, 0);
    while (r->at == r->block->len && r->block->next != NULL) {
        r->block->n_readers--;
        r->block = r->block->next;
        r->block->n_readers++;
        r->at = 0;
        trim(r->backlog);
    }
    return rd_slice(r->block->bytes + r->at, r->block->len - r->at);
}

void repl_reader_take(struct repl_reader *r, size_t len)
{
    r->at += len;
}

uint64_t repl_reader_offset(const struct repl_reader *r)
{
    return r->block->offset + r->at;
}

void repl_reader_close(struct repl_reader *r)
{
    if (r->block == NULL)
        return;
    r->block->n_readers--;
    trim(r->backlog);
    *r = (struct repl_reader){NULL, NULL, 0};
}
