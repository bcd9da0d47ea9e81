/* ndjson_impl.h - private to ndjson*.c: the state of the output, and writing text to the sink. */
#ifndef DATA_NDJSON_IMPL_H
#define DATA_NDJSON_IMPL_H

#include "base/buf.h"
#include "data/module_types.h"
#include "data/ndjson.h"

/* Type 27 keeps entries that no consumer owns. */
#define NDJSON_NO_OWNER SIZE_MAX

struct ndjson_pending {
    struct rdb_stream_id id;
    int64_t delivery_ms;
    uint64_t delivery_count;
    size_t owner; /* index of the consumer, or NDJSON_NO_OWNER */
};

/* A part of a rd_buf. */
struct ndjson_span {
    size_t at;
    size_t len;
};

enum ndjson_part {
    NDJSON_ENTRIES,   /* before the STREAM event */
    NDJSON_GROUPS,    /* inside "groups", between two groups */
    NDJSON_IN_GROUP,  /* collecting pending entries and consumers */
    NDJSON_NACKS,     /* inside a group's "nacked" */
    NDJSON_PRODUCERS, /* inside "idmp", between two producers */
    NDJSON_PRODUCED,  /* inside a producer's "ids" */
    NDJSON_ENDED
};

struct ndjson_stream {
    enum ndjson_part part;
    uint64_t n_groups, n_nacked, n_producers, n_produced;
    uint64_t pairs_left; /* of the entry */
    bool pair_started;
    bool sorted; /* pending entries, by ID */
    struct ndjson_pending *pending;
    size_t n_pending, cap_pending;
    struct rd_buf consumers;   /* their objects, separated by commas */
    struct ndjson_span *names; /* of the quoted names in `consumers` */
    size_t n_names, cap_names;
};

/* Longer documents are shown as strings. */
enum { NDJSON_DOCUMENT_MAX = 1 << 20, NDJSON_TREE_MAX = 256, NDJSON_LOOPS = 2 };

struct ndjson_loop {
    const struct module_field *body;
    uint64_t left; /* elements, with the current one */
    bool silent;   /* not shown */
};

struct ndjson_branch {
    uint64_t left; /* values, with the current one */
    bool object;
};

enum ndjson_tree {
    NDJSON_TREE_VALUE,   /* the code of a value */
    NDJSON_TREE_CONTENT, /* what the code announces */
    NDJSON_TREE_PAIR,    /* the code of a pair */
    NDJSON_TREE_NAME,
    NDJSON_TREE_DONE
};

/* The value of a module. */
struct ndjson_module {
    const struct module_type *type; /* NULL: not known */
    unsigned version;
    const struct module_field *at;
    uint64_t regs[MODULE_REGISTERS];
    struct ndjson_loop loops[NDJSON_LOOPS];
    struct ndjson_branch branches[NDJSON_TREE_MAX];
    unsigned depth; /* of loops or branches */
    enum ndjson_tree expect;
    unsigned node;      /* the code of the value whose content comes */
    bool named;         /* the name of the value is written */
    bool comma;         /* something precedes in the object or array */
    bool shown;         /* the string of which more pieces come */
    bool opaque;        /* the value does not have the expected form */
    struct rd_buf text; /* a document */
};

struct ndjson {
    struct rd_sink *sink;
    struct ndjson_opts opts;
    struct json_text text; /* the string being written */
    const struct rdb_type *type;
    uint64_t slot;    /* RDB_UNKNOWN: none */
    uint64_t n_elems; /* number of elements in the current array or object */
    bool in_path;     /* the next field is the first one of a path */
    bool in_value;    /* between VALUE and VALUE_END of a key */
    bool has_ttl;     /* the type stores an expiry for each field */
    bool nomem;
    struct rd_buf ttl; /* fields with an expiry, escaped */
    size_t ttl_mark;   /* start of the current field in it */
    struct rd_buf slot_info;
    struct ndjson_stream stream;
    struct ndjson_module module;
    uint8_t *scratch; /* for a piece of text that does not fit in the sink's buffer */
};

#define NDJSON_LIT(lines, literal) rd_sink_write((lines)->sink, literal, sizeof(literal) - 1)

void ndjson_u64(struct ndjson *lines, uint64_t v);
void ndjson_i64(struct ndjson *lines, int64_t v);
/* A number, or one of the strings "inf", "-inf" and "nan". */
void ndjson_f64(struct ndjson *lines, double v);

/* Writes ,"name":value - `label` is everything before the value. */
void ndjson_put_u64(struct ndjson *lines, const char *label, uint64_t v);
void ndjson_put_i64(struct ndjson *lines, const char *label, int64_t v);

/* A piece of a string in the chosen form, without quotes. */
void ndjson_piece(struct ndjson *lines, struct rd_slice piece, bool more);

/* A whole string with quotes, to the sink or to the end of buf. */
void ndjson_string(struct ndjson *lines, struct rd_slice bytes);
void ndjson_string_to(struct ndjson *lines, struct rd_buf *buf, struct rd_slice bytes);

/* The piece to the end of buf, without quotes. Failures set lines->nomem. */
void ndjson_piece_to(struct ndjson *lines, struct rd_buf *buf, struct rd_slice piece, bool more);

/* "ms-seq" with quotes. */
void ndjson_id(struct ndjson *lines, struct rdb_stream_id id);

/* Handles the events between VALUE and VALUE_END of a stream, and VALUE_END. */
void ndjson_stream_begin(struct ndjson *lines);
void ndjson_entry_begin(struct ndjson *lines, struct rdb_stream_id id);
void ndjson_stream_put(struct ndjson *lines, const struct rdb_event *ev);
void ndjson_stream_end(struct ndjson *lines);

/* Handles the events of a module's value, after its name and encoding version. */
void ndjson_module_begin(struct ndjson *lines, uint64_t id);
void ndjson_module_put(struct ndjson *lines, const struct rdb_event *ev);
void ndjson_module_end(struct ndjson *lines);

#endif
