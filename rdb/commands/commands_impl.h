/* commands_impl.h - private to rdb_commands.
 *
 *     ../commands.c        the public functions; records other than values; strings
 *     out.c                commands under construction
 *     collection.c         lists, sets, sorted sets, hashes: many elements per command
 *     commands_stream.c    streams and their groups
 *     commands_pending.c   the pending entries, from the framing of a value
 *
 * Commands are built in `out`, which is flushed to the sink between commands. A command whose
 * number of arguments is not final yet is `open`: its header is provisional and is corrected when
 * the command is closed.
 *
 * A function that fails sets rdb_commands.err, unless the sink or the memory failed.
 */
#ifndef RDB_COMMANDS_COMMANDS_IMPL_H
#define RDB_COMMANDS_COMMANDS_IMPL_H

#include "base/buf.h"
#include "base/copy.h"
#include "base/endian.h"
#include "base/num.h"
#include "rdb/commands.h"
#include "rdb/plain.h"

enum {
    CMD_FLUSH = 128 * 1024, /* bytes of `out` at which it is flushed to the sink */
    CMD_KEPT = 1024 * 1024, /* larger buffers are freed */
    CMD_SHORT = 256,        /* bytes that are copied without a call */
    CMD_AROUND = 32,        /* overhead of a bulk string: $, length, CR LF twice */
    CMD_IDS_MAX = 8 << 20   /* bytes of the ids of a stream's entries */
};

struct cmd_pending {
    struct rdb_stream_id id;
    int64_t delivery_ms;
    uint64_t delivery_count;
    bool gone; /* its entry was deleted */
};

/* IDs in ascending order, stored as differences. */
struct cmd_ids {
    struct rd_buf bytes;
    struct rdb_stream_id last;
    bool full; /* nothing more was added after `last` */
};

struct cmd_ids_cursor {
    size_t at;
    struct rdb_stream_id id; /* before `at`; 0-0: none */
};

/* IDs of pending entries, ascending. Those before n_made belong to entries that are created to be
 * claimed and deleted again; IDs from `next` on are greater than any entry so far. */
struct cmd_announced {
    struct rdb_stream_id *ids;
    size_t n, cap;
    size_t n_made, next;
};

struct cmd_stream {
    uint64_t n_entries;
    uint64_t strings_left; /* of the entry */
    bool skips;            /* it is omitted */
    struct rdb_stream_id first_id;
    struct rdb_stream_id top_id; /* of the last entry so far */
    struct cmd_ids ids;
    struct cmd_announced announced;
    struct rdb_stream_id last_id;
    uint64_t length;
    uint64_t entries_added;
    struct rdb_stream_id max_deleted_id;
    bool has_offsets;
    struct rd_buf group;    /* its name, a bulk string; empty: none */
    struct rd_buf consumer; /* … of the consumer */
    bool consumer_made;
    bool sorted;
    struct cmd_ids_cursor cursor;
    struct cmd_pending *pending;
    size_t n_pending, cap_pending;
};

enum cmd_state {
    CMD_RECORDS,  /* between records */
    CMD_KEY,      /* KEY was put */
    CMD_VALUE,    /* inside a value */
    CMD_SKIP,     /* inside an omitted value, or the items of an omitted record */
    CMD_FUNCTION, /* inside the code of a function */
    CMD_PAYLOAD   /* between restore_begin and restore_end */
};

struct rdb_commands {
    struct rd_sink *sink;
    struct rdb_commands_opts opts;
    struct rdb_omitted_counts loss;
    struct rd_err err;
    enum cmd_state state;
    bool failed;
    uint64_t offset;
    struct rd_buf out;
    /* the key */
    struct rd_buf key; /* a bulk string */
    size_t key_at;     /* where the name begins in it */
    size_t key_len;
    const struct rdb_type *type;
    uint64_t db;
    uint64_t selected; /* RDB_UNKNOWN: none */
    int64_t expire_ms;
    uint64_t idle_s;
    uint64_t freq;
    uint64_t payload_end;
    uint64_t n_metadata; /* omitted records that belong to the next key */
    /* the open command */
    bool open;
    bool fixed;        /* its header is final, and `out` may be flushed to the sink */
    size_t command_at; /* in `out` */
    size_t guess;      /* the number of arguments in its header */
    size_t guess_len;  /* digits of it */
    size_t n_units;    /* elements in it */
    size_t unit_at;    /* where the last one begins in `out` */
    /* the collection */
    const char *verb; /* a bulk string */
    size_t per_unit;  /* arguments of an element */
    uint64_t left;    /* elements that remain, or RDB_UNKNOWN */
    bool has_ttl;
    struct rd_buf held;  /* a member or field in pieces, or for the next command */
    struct rd_buf field; /* that may expire */
    struct rd_buf after; /* commands to be added after the open one */
    struct cmd_stream stream;
};

/* Sets the error; returns false. */
bool rdb_cmd_misuse(struct rdb_commands *c, const char *what);

/* Data that no command can create. */
struct cmd_refusal {
    enum rdb_omitted what;
    const char *name;        /* of the data, for the error */
    const char *command;     /* that creates it, but not in this server; or NULL */
    struct rd_slice element; /* see struct rdb_omission */
    struct rd_slice group;
};

/* With opts.lossy, counts and reports the omission (true). Else sets the error, which names the
 * key (false). */
bool rdb_cmd_refuse(struct rdb_commands *c, const struct cmd_refusal *r);

static inline bool rdb_cmd_has(const struct rdb_commands *c, int version)
{
    return c->opts.version == 0 || c->opts.version >= version;
}

/* out.c */

/* Makes room for `more` bytes at the end of buf. */
static inline bool rdb_cmd_room(struct rd_buf *buf, size_t more)
{
    return RD_LIKELY(buf->cap - buf->len >= more) || rd_buf_reserve(buf, more);
}

/* Writes "$n CRLF" at p, where 8 more bytes can be written; returns its end. */
static inline uint8_t *rdb_cmd_bulk_head(uint8_t *p, uint64_t n)
{
    if (RD_LIKELY(n < 10)) {
        rd_put_le32(p, (uint32_t)('$' | ('0' + n) << 8 | '\r' << 16 | '\n' << 24));
        return p + 4;
    }
    if (RD_LIKELY(n < 100)) {
        rd_put_le64(p, '$' | ('0' + n / 10) << 8 | ('0' + n % 10) << 16 | (uint64_t)'\r' << 24 |
                           (uint64_t)'\n'
                               << 32);
        return p + 5;
    }
    *p++ = '$';
    p += rd_num_put_u64((char *)p, n);
    *p++ = '\r';
    *p++ = '\n';
    return p;
}

/* Appends a bulk string to buf, which has room for it and CMD_AROUND more bytes. */
static inline void rdb_cmd_bulk_fast(struct rd_buf *buf, struct rd_slice text)
{
    uint8_t *p = rdb_cmd_bulk_head(buf->ptr + buf->len, text.len);
    if (text.len < CMD_SHORT)
        rd_copy_short(p, text.ptr, text.len);
    else
        memcpy(p, text.ptr, text.len);
    p += text.len;
    *p++ = '\r';
    *p++ = '\n';
    buf->len = (size_t)(p - buf->ptr);
}

/* As rdb_cmd_bulk_fast(), for the digits of a number, fewer than CMD_SHORT. */
static inline void rdb_cmd_bulk_number(struct rd_buf *buf, struct rd_slice text)
{
    uint8_t *p = rdb_cmd_bulk_head(buf->ptr + buf->len, text.len);
    rd_copy_short(p, text.ptr, text.len);
    p += text.len;
    *p++ = '\r';
    *p++ = '\n';
    buf->len = (size_t)(p - buf->ptr);
}

static inline struct rd_slice rdb_cmd_text(const struct rdb_text *text, char digits[RD_NUM_I64_MAX])
{
    return text->is_int ? rd_slice(digits, rd_num_put_i64(digits, text->num))
                        : rd_slice(text->ptr, text->len);
}

bool rdb_cmd_bulk(struct rd_buf *buf, struct rd_slice text);
bool rdb_cmd_bulk_str(struct rd_buf *buf, const char *text);
bool rdb_cmd_bulk_i64(struct rd_buf *buf, int64_t v);
bool rdb_cmd_bulk_u64(struct rd_buf *buf, uint64_t v);
bool rdb_cmd_bulk_id(struct rd_buf *buf, struct rdb_stream_id id);

/* Begins a command whose number of arguments is known: "*n", the verb, which is a bulk string. */
bool rdb_cmd_head(struct rd_buf *buf, size_t n_args, const char *verb);
bool rdb_cmd_add(struct rd_buf *buf, const struct rd_buf *bytes);

/* The same for one with a key as its first argument. */
bool rdb_cmd_head_key(struct rdb_commands *c, size_t n_args, const char *verb);

/* A string that arrives in pieces, as an argument of a command with a final header. *ret_ends is
 * true if it is complete. */
bool rdb_cmd_piece(struct rdb_commands *c, const struct rdb_string *s, bool *ret_ends);

/* Flushes `out` to the sink if it is long enough. Call between commands, or in one with a final
 * header. */
bool rdb_cmd_flush(struct rdb_commands *c, size_t least);

#define CMD_VERB3(word) "$3\r\n" word "\r\n"
#define CMD_VERB4(word) "$4\r\n" word "\r\n"
#define CMD_VERB5(word) "$5\r\n" word "\r\n"
#define CMD_VERB6(word) "$6\r\n" word "\r\n"
#define CMD_VERB7(word) "$7\r\n" word "\r\n"

/* collection.c */
bool rdb_cmd_collection_begin(struct rdb_commands *c, const struct rdb_event *ev);
bool rdb_cmd_collection_elem(struct rdb_commands *c, const struct rdb_event *ev);
bool rdb_cmd_collection_texts(struct rdb_commands *c, const struct rdb_text *texts, size_t n);
bool rdb_cmd_collection_end(struct rdb_commands *c);

/* commands_stream.c */
bool rdb_cmd_stream_announce(struct rdb_commands *c, const struct rdb_stream_id *ids, size_t n);
void rdb_cmd_stream_begin(struct rdb_commands *c);
bool rdb_cmd_stream_event(struct rdb_commands *c, const struct rdb_event *ev);
bool rdb_cmd_stream_entry(struct rdb_commands *c, struct rdb_stream_id id,
                          const struct rdb_text *texts, size_t n);
bool rdb_cmd_stream_end(struct rdb_commands *c);
void rdb_cmd_stream_done(struct rdb_commands *c);

#endif
