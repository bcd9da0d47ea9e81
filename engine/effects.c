#include "engine/effects.h"

#include "base/copy.h"
#include "engine/mem.h"

enum { CHUNK_MIN = 4096, SELECT_ARGS = 2 };

/* Arguments are in chunks that never move. */
struct engine_chunk {
    struct engine_chunk *next;
    size_t size;
    size_t used;
    uint8_t bytes[];
};

void engine_effects_reset(struct engine_effects *fx)
{
    fx->n = 0;
    fx->first = 0;
    fx->transaction = false;
    fx->apart = false;
    if (fx->chunks == NULL)
        return;
    while (fx->chunks->next != NULL) {
        struct engine_chunk *chunk = fx->chunks;
        fx->chunks = chunk->next;
        engine_scratch_free(chunk);
    }
    fx->chunks->used = 0;
}

void engine_effects_done(struct engine_effects *fx)
{
    engine_effects_reset(fx);
    engine_scratch_free(fx->chunks);
    engine_scratch_free(fx->list);
    *fx = (struct engine_effects){0};
}

static struct engine_chunk *new_chunk(size_t size)
{
    struct engine_chunk *chunk = engine_scratch_alloc(sizeof *chunk + size);
    *chunk = (struct engine_chunk){.size = size};
    return chunk;
}

/* The first chunk, of the standard size, is kept for the next command. */
static void *take_memory(struct engine_effects *fx, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if (fx->chunks == NULL)
        fx->chunks = new_chunk(CHUNK_MIN);
    if (fx->chunks->size - fx->chunks->used < size) {
        struct engine_chunk *chunk = new_chunk(size > CHUNK_MIN ? size : CHUNK_MIN);
        chunk->next = fx->chunks;
        fx->chunks = chunk;
    }
    void *ptr = fx->chunks->bytes + fx->chunks->used;
    fx->chunks->used += size;
    return ptr;
}

void engine_effects_borrow(struct engine_effects *fx, unsigned db, size_t argc,
                           const struct rd_slice *argv)
{
    if (fx->n == fx->cap) {
        fx->cap = fx->cap > 0 ? fx->cap * 2 : 8;
        fx->list = engine_scratch_realloc(fx->list, fx->cap * sizeof *fx->list);
    }
    fx->list[fx->n++] = (struct engine_effect){.db = db, .argc = argc, .argv = argv};
}

void engine_effects_add(struct engine_effects *fx, unsigned db, size_t argc,
                        const struct rd_slice *argv)
{
    size_t len = 0;
    for (size_t i = 0; i < argc; i++)
        len += argv[i].len;
    struct rd_slice *copy = take_memory(fx, argc * sizeof *copy + len);
    uint8_t *bytes = (uint8_t *)(copy + argc);
    for (size_t i = 0; i < argc; i++) {
        copy[i] = rd_slice(bytes, argv[i].len);
        rd_copy_short(bytes, argv[i].ptr, argv[i].len);
        bytes += argv[i].len;
    }
    engine_effects_borrow(fx, db, argc, copy);
}

static bool write_select(struct rd_sink *sink, unsigned db)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice argv[SELECT_ARGS] = {rd_slice_str("SELECT"),
                                         rd_slice(digits, rd_num_put_u64(digits, db))};
    return rd_resp_put_command(sink, argv, SELECT_ARGS);
}

static bool write_word(struct rd_sink *sink, const char *word)
{
    struct rd_slice arg = rd_slice_str(word);
    return rd_resp_put_command(sink, &arg, 1);
}

bool engine_effects_write(const struct engine_effects *fx, struct rd_sink *sink, unsigned *db)
{
    if (fx->n == 0)
        return true;
    for (size_t i = 0; i < fx->n; i++) {
        bool for_log = !fx->list[i].not_for_log;
        if (for_log && fx->list[i].db != *db && !write_select(sink, fx->list[i].db))
            return false;
        if (for_log)
            *db = fx->list[i].db;
        if (i == fx->first && fx->transaction && !write_word(sink, "MULTI"))
            return false;
        if (for_log && !rd_resp_put_command(sink, fx->list[i].argv, fx->list[i].argc))
            return false;
    }
    return !fx->transaction || write_word(sink, "EXEC");
}
