#include "repl/stream.h"

#include <strings.h>

#include "base/num.h"

void repl_stream_init(struct repl_stream *s, uint64_t offset, uint64_t db, bool in_multi)
{
    *s = (struct repl_stream){
        .offset = offset, .safe = offset, .db = db, .safe_db = db, .in_multi = in_multi};
}

static bool is_word(struct rd_slice arg, const char *word)
{
    size_t len = strlen(word);
    return arg.len == len && strncasecmp((const char *)arg.ptr, word, len) == 0;
}

static enum repl_kind kind_of(size_t argc, const struct rd_slice *argv)
{
    switch (argv[0].len) {
    case 4:
        if (is_word(argv[0], "PING"))
            return REPL_PING;
        return is_word(argv[0], "EXEC") ? REPL_EXEC : REPL_WRITE;
    case 5:
        return is_word(argv[0], "MULTI") ? REPL_MULTI : REPL_WRITE;
    case 6:
        return is_word(argv[0], "SELECT") ? REPL_SELECT : REPL_WRITE;
    case 7:
        return is_word(argv[0], "DISCARD") ? REPL_EXEC : REPL_WRITE;
    case 8:
        if (argc >= 2 && is_word(argv[0], "REPLCONF") && is_word(argv[1], "GETACK"))
            return REPL_GETACK;
        return REPL_WRITE;
    default:
        return REPL_WRITE;
    }
}

static void move(struct repl_stream *s, uint64_t len)
{
    s->offset += len;
    if (s->in_multi)
        return;
    s->safe = s->offset;
    s->safe_db = s->db;
}

bool repl_stream_take(struct repl_stream *s, size_t argc, const struct rd_slice *argv, uint64_t len,
                      struct repl_place *ret, struct rd_err *err)
{
    enum repl_kind kind = kind_of(argc, argv);
    uint64_t db = s->db;
    bool was_open = s->in_multi;
    if (kind == REPL_SELECT && (argc != 2 || !rd_num_get_u64(argv[1], &db)))
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "SELECT without a database");
    s->db = db;
    *ret = (struct repl_place){.kind = kind,
                               .offset = s->offset,
                               .len = len,
                               .db = db,
                               .in_multi = was_open || kind == REPL_MULTI,
                               .multi = s->safe};
    ret->stray = was_open ? kind == REPL_MULTI : kind == REPL_EXEC;
    s->in_multi = ret->in_multi && kind != REPL_EXEC;
    move(s, len);
    return true;
}

void repl_stream_pass(struct repl_stream *s, uint64_t len)
{
    move(s, len);
}
