/* ndjson_read_impl.h - private to ndjson_read*.c.
 *
 *     ndjson_read.c          lines, and what is in them beside values
 *     ndjson_read_value.c    values, but for
 *     ndjson_read_stream.c   streams
 */
#ifndef DATA_NDJSON_READ_IMPL_H
#define DATA_NDJSON_READ_IMPL_H

#include "base/buf.h"
#include "rdb/encode.h"
#include "json/read.h"
#include "data/ndjson_read.h"

enum {
    NDJSON_WORD = 32,           /* bytes of a member's name, a type, an encoding */
    NDJSON_NAME_MAX = 16 << 20, /* bytes of a key's name */
    NDJSON_HELD_MAX = 4 << 20   /* bytes of a string in memory */
};

/* A field's expiry; its name is part of ndjson_reader.ttl_names. */
struct ndjson_ttl {
    size_t at;
    size_t len;
    int64_t expire_ms;
};

struct ndjson_reader {
    struct json_read in;
    struct ndjson_read_opts opts;
    struct rd_err err;
    enum rdb_dialect dialect; /* of the target */
    int version;
    bool started;  /* the header was returned */
    bool got_line; /* a header line was read */
    struct rdb_encoder *encoder;
    /* the current database of the target */
    uint64_t db; /* RDB_UNKNOWN: none */
    /* the events that remain for the current line */
    struct rdb_event event; /* of a line that is not a key */
    bool has_event;
    bool has_key;
    bool db_given, slot_given;
    /* the line */
    struct rd_buf key;
    bool has_name, has_db, has_value;
    uint64_t key_db;
    enum rdb_kind kind;
    bool has_kind;
    const struct rdb_type *type;     /* of the staged value */
    const struct rdb_type *encoding; /* as named in the line, or NULL */
    int64_t expire_ms;
    uint64_t idle_s, freq, key_slot;
    struct rd_buf name;      /* of an aux field */
    struct rd_buf meta;      /* of the key, as stored */
    struct rd_buf slot_info; /* an aux field that waits for its key */
    uint64_t offset;         /* of the line */
    uint64_t line;
    /* the value */
    struct stage value;
    struct stage plain; /* the value: a hash whose expiries follow, or the snapshot that contains a
                           stream */
    struct rd_buf text; /* the string read last */
    struct stage long_text;
    bool is_long;
    uint64_t text_len;
    struct rd_buf ttl_names;
    struct rd_buf ttls; /* struct ndjson_ttl */
    struct ndjson_groups *groups;
};

/* Reads a string into r->text, or r->long_text if it is long. */
bool ndjson_read_string(struct ndjson_reader *r, enum json_form form);

/* Appends a string to buf; at most NDJSON_NAME_MAX bytes. */
bool ndjson_read_name(struct ndjson_reader *r, enum json_form form, struct rd_buf *buf);

/* Passes the string that was read to put(), in one or more events. */
bool ndjson_read_emit(struct ndjson_reader *r, struct rdb_event *ev,
                      bool (*put)(void *ctx, const struct rdb_event *ev, struct rd_err *err),
                      void *ctx);

bool ndjson_read_value(struct ndjson_reader *r);
bool ndjson_read_ttls(struct ndjson_reader *r);

/* At the end of the line: brings the value into its final form. */
bool ndjson_read_finish(struct ndjson_reader *r);

bool ndjson_read_stream(struct ndjson_reader *r);
void ndjson_read_stream_done(struct ndjson_reader *r);

#endif
