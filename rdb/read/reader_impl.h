/* reader_impl.h - private to the reader.
 *
 *     record.c       opcodes and keys: everything outside of values
 *     value.c        the interpreter of shapes: walks a value of any type
 *     shape.c        the shapes: one small program for each value type
 *     string.c       strings: whole, in pieces, skipped or verified
 *     feed.c         the decoded bytes of one string, as a window
 *     packed.c       packed encodings, by element or as a blob
 *     stream.c       the parts that only streams have
 *     batch.c        checks deferred until the window is full
 *     skim.c         a fast walk over sound data; quick.h: the common encodings
 *     plain_text.c   short strings of a value, many at a time
 *     module.c       module values
 *     bitmap.c       bitmaps, which are strings
 *     template.c     field names that hashes share, and these hashes; templates.h: the names
 *     unique.c       finds duplicate members: rdb/hash.h by hash, duplicate.c by bytes
 *
 * A step returns an event, or continues (STEP_ON), or returns another status. Its state is in the
 * reader, so that it can be called again when there is more input.
 */
#ifndef RDB_READ_READER_IMPL_H
#define RDB_READ_READER_IMPL_H

#include "base/buf.h"
#include "base/mem.h"
#include "rdb/enc/len.h"
#include "rdb/enc/lzf.h"
#include "rdb/enc/pack_read.h"
#include "rdb/hash.h"
#include "rdb/read/templates.h"
#include "rdb/reader.h"

enum { STEP_ON = -1 }; /* in addition to enum rdb_status: continue without an event */

enum {
    WINDOW_MIN = 512,                  /* a source with a smaller window cannot be read */
    PIECE_MAX = 64 * 1024,             /* the longest piece of a string */
    NAME_MAX_DEFAULT = 16 << 20,       /* bytes of a name */
    FIELDS_MAX = 4 << 20,              /* bytes of a stream node's shared field names */
    TEMPLATES_MAX_DEFAULT = 256 << 20, /* bytes of all templates of hashes */
    LOOP_DEPTH = 4,
    KEY_SHOWN = 120 /* bytes of a key's name kept for errors */
};

/* One instruction of a shape. */
enum op {
    OP_END,
    OP_EACH, /* the body up to the matching OP_NEXT, reader.loop_count times */
    OP_NEXT,
    OP_STR,            /* a string; arg: role */
    OP_STR_SCORE,      /* a member and its score, a binary double */
    OP_STR_SCORE_TEXT, /* … as text */
    OP_STR_EXPIRE,     /* a hash value and its expiry, int64, -1: none */
    OP_TTL,     /* length: the expiry of the field that follows, relative to the value's minimum */
    OP_TTL_ABS, /* length: … absolute */
    OP_PACK,    /* a packed encoding; arg: PACK_ARG() */
    OP_CONTAINER,   /* length: the container of the quicklist node that follows */
    OP_NODE,        /* a quicklist 2 node */
    OP_STREAM_NODE, /* two strings: id, listpack */
    OP_STREAM_TAIL, /* length, ids, number of groups; arg: generation of the format */
    OP_GROUP,       /* arg: generation */
    OP_PENDING,
    OP_CONSUMERS, /* count of consumers */
    OP_CONSUMER,  /* arg: generation */
    OP_OWNED,
    OP_NACKS, /* count of nacked entries */
    OP_NACKED,
    OP_GROUP_END, /* compares the pending entries with the owned ones */
    OP_IDMP,      /* idempotency: duration, maximum, count of producers */
    OP_PRODUCER,
    OP_PRODUCED,
    OP_IDMP_END,
    OP_PATH,           /* path hash: path, count of fields */
    OP_ITEM,           /* array: index, tag, value */
    OP_BITMAP,         /* a string: the bits of a string */
    OP_TEMPLATE_PACK,  /* a listpack: the id of a template, then values */
    OP_TEMPLATE_FIELD, /* no bytes: the next name of the template */
    OP_MODULE          /* opcodes up to 0 */
};

struct instr {
    uint8_t op;
    uint8_t arg;
};

/* The layout at the beginning of a value, before its program. */
enum prelude {
    PRELUDE_NONE,
    PRELUDE_COUNT,     /* number of elements */
    PRELUDE_NODES,     /* number of nodes */
    PRELUDE_TTL_COUNT, /* 8 bytes minimum expiry, number of elements */
    PRELUDE_TTL,       /* 8 bytes minimum expiry */
    PRELUDE_MODULE,    /* module id */
    PRELUDE_TEMPLATE,  /* id of a template */
    PRELUDE_NAMES,     /* names of fields */
    PRELUDE_BITMAP,    /* bytes of the string */
    PRELUDE_ARRAY      /* count, flag, insert index */
};

struct shape {
    uint8_t prelude;
    const struct instr *body;
};

const struct shape *rdb_shape(enum rdb_type_id type);

/* How entries of a packed string form elements. */
enum layout {
    LAYOUT_LIST,
    LAYOUT_SET,
    LAYOUT_HASH,
    LAYOUT_ZSET,
    LAYOUT_HASH_TTL,
    LAYOUT_STREAM,
    LAYOUT_TEMPLATE, /* the id of a template, then values */
    LAYOUT_NAMES     /* names of fields */
};

#define PACK_ARG(codec, layout) ((uint8_t)((codec) << 4 | (layout)))

/* The decoded bytes of one string: [p, end) is available, `left` more can be read. */
struct feed {
    const uint8_t *p;
    const uint8_t *end;
    uint64_t left;
    uint64_t in_left; /* stored bytes not consumed from the source */
    uint64_t off;     /* of the string's header in the input */
    uint64_t total;
    bool lzf;
    struct rd_slice raw; /* the stored bytes consumed by the last call of rdb_feed_need() */
    uint8_t *wr;         /* LZF: the end of the decoded bytes in reader.out */
};

/* A string that arrives in pieces. */
struct pieces {
    bool active;
    bool first;
    uint8_t tail; /* enum tail: what follows the string in the same element */
    enum rdb_role role;
    enum rdb_event_kind kind; /* ELEM, AUX, FUNCTION, MODULE_ITEM */
    uint64_t total;
};

enum tail { TAIL_NONE, TAIL_SCORE, TAIL_SCORE_TEXT, TAIL_EXPIRE };

/* A packed string being walked. */
struct rdb_read_walk {
    bool active;
    bool started; /* its header was parsed */
    bool whole;   /* all of it is in memory */
    uint8_t layout;
    uint8_t part;   /* the part of an element that comes next */
    bool long_open; /* an entry longer than a piece is being returned */
    uint64_t long_left;
    struct rdb_pack_entry long_entry;
    struct rdb_pack pack;
    double score; /* of the previous element */
    int64_t num;  /* of the previous element (intset) */
    int64_t ttl;
    uint64_t elem_inner; /* where the element began */
    uint64_t n_before;   /* elements of the value before this string's */
};

/* The listpack of a stream node: the next entry, and the state from the previous ones. */
enum node_phase {
    NODE_COUNT,
    NODE_DELETED,
    NODE_N_FIELDS,
    NODE_FIELD, /* shared field names */
    NODE_ZERO,
    NODE_FLAGS,
    NODE_MS,
    NODE_SEQ,
    NODE_OWN_N,
    NODE_OWN_FIELD,
    NODE_VALUE,
    NODE_LP_COUNT
};

struct rdb_read_node {
    enum node_phase phase;
    struct rdb_stream_id base; /* the node's key */
    struct rdb_stream_id id;   /* of the entry */
    uint64_t live, deleted;    /* as declared */
    uint64_t seen_live, seen_deleted;
    uint64_t entry_at; /* position of the entry's flags */
    uint64_t n_shared; /* fields */
    uint64_t n_fields, i;
    int64_t flags;
    uint64_t lp_count;
    struct rd_buf shared; /* their names: u32 length (or 2^32-1: an integer follows) and bytes */
    size_t shared_at;
    bool give_field; /* the shared name for the next value was not returned yet */
};

struct stream {
    struct rdb_stream_id last; /* entry */
    bool any;
    uint64_t live;
    uint64_t n_nodes;
    struct rdb_stream_id group_last; /* pending entry of the group */
    uint64_t group;                  /* hash of its name */
    uint64_t sum_pending;            /* sums of hashed ids: the same set has the same sum */
    uint64_t sum_owned;
    uint64_t n_pending;
    uint64_t n_owned;
};

/* Members seen in a collection. */
struct unique {
    uint64_t *slots;
    size_t cap; /* power of two */
    size_t used;
    size_t mask;       /* of the part that is currently used */
    size_t limit;      /* of members in it */
    uint64_t expected; /* members, as declared; or RDB_UNKNOWN */
    bool full;         /* more members than the table can hold */
    bool proved;       /* a duplicate was found: the bytes are the same */
    unsigned chances;  /* equal hashes of different bytes, in all values */
};

/* A bitmap: what is read next, and the string that is made of it. */
enum bits_phase {
    BITS_BEGIN,
    BITS_COUNT,
    BITS_BUCKET,
    BITS_COOKIE,
    BITS_HEAD,
    BITS_OFFSETS,
    BITS_CONTAINER,
    BITS_MEMBERS,
    BITS_END
};

struct bits {
    enum bits_phase phase;
    uint64_t length; /* of the string */
    uint64_t buckets;
    uint32_t high;      /* of the current bucket */
    bool any;           /* there is one */
    uint32_t n, i;      /* its containers, and the current one */
    uint32_t flags_len; /* bytes of the flags in `head` */
    uint32_t offsets_left;
    uint16_t key;
    struct rd_buf head; /* flags, keys and numbers of members */
    uint32_t left;      /* members, runs or bytes of the container */
    uint32_t next;      /* the least member that may follow */
    uint32_t last;      /* the greatest member */
    uint32_t members;   /* so far */
    uint8_t *chunk;     /* the container as a part of the string */
    bool full;          /* it is complete */
    struct rd_buf piece;
    uint64_t given; /* bytes before the piece */
    bool shown;     /* the piece was returned */
    bool done;      /* the last one was */
};

/* A command among the keys, as far as it was parsed. */
struct update {
    uint64_t record; /* where it begins */
    size_t at;       /* bytes; 0: none */
    uint64_t left;   /* arguments */
};

/* Names that hashes share, and the hash being read. */
struct shared {
    struct rdb_templates *all; /* of the file; NULL: none yet */
    struct rdb_templates *own; /* those of a value that contains its names; NULL: none yet */
    size_t n_kept;             /* see rdb_shared_forget() */
    struct rdb_templates *to;  /* where the names that are being read belong */
    uint64_t id;               /* their template */
    uint64_t left;             /* how many of them follow */
    bool again;                /* they were read before */
    struct rdb_names names;    /* of the value */
    size_t i;                  /* its next field */
    size_t given;              /* bytes of the name that were returned */
    bool gave;                 /* the name was returned */
    bool has_id;               /* the id in the listpack was consumed */
};

struct rdb_read_loop {
    const struct instr *start;
    uint64_t left;
};

/* Attributes of a key that precede it. */
struct attributes {
    int64_t expire_ms;
    uint64_t idle_s;
    uint64_t freq;
    bool expire_in_s;
    bool own;              /* one of the above is set */
    uint64_t n_enterprise; /* opcodes of Redis Enterprise, which are skipped */
};

struct rdb_reader {
    struct rd_src *src;
    struct rdb_reader_opts opts;
    struct rd_err err;
    int (*step)(struct rdb_reader *r, struct rdb_event *ev);
    enum rdb_dialect dialect;
    int version;
    bool single; /* one value, no records */
    bool summing;
    uint64_t db;
    uint64_t record;             /* where the record begins */
    const struct rdb_type *type; /* of the value being read; NULL outside */
    const struct rdb_type *form; /* as it is stored: the same, or it refers to a template */
    uint8_t shown[KEY_SHOWN];
    size_t shown_len, name_len;
    enum rdb_detail detail; /* for the current value */
    struct rd_sink *tee;
    uint64_t value_off;

    const struct instr *pc;
    struct rdb_read_loop loops[LOOP_DEPTH];
    int depth;
    uint64_t loop_count;
    uint64_t n_elems;
    uint8_t tail_due; /* a string was consumed, but not its tail */
    int64_t min_expire;
    int64_t field_expire;
    uint64_t container;
    uint64_t index; /* array: of the item, and how it is stored */
    uint64_t tag;
    uint64_t ttl;            /* of a field, as it is stored */
    bool item_open;          /* an array item's index and tag were consumed, but not its string */
    uint64_t pass_left;      /* bytes of a string that remain to be skipped */
    const uint8_t *seen_cur; /* position of the window at the end of the last call */

    struct feed feed;
    struct pieces pieces;
    struct rdb_read_walk walk;
    struct rdb_read_node node;
    struct stream stream;
    struct unique unique;
    struct shared shared;
    struct rd_slice path; /* of a path hash; see path_op() */
    struct bits bits;
    struct update update;
    struct rdb_hash_key key; /* of the hashes in it */

    bool module_aux;      /* the module opcodes are an aux record's */
    uint64_t ranges_left; /* slot ranges of an import */
    uint64_t meta_left;   /* key metadata classes */

    struct attributes held; /* for the next key; read before another record */
    struct attributes meta_held;
    bool holds;
    bool held_apart;                      /* that record was not the metadata of the key */
    uint64_t n_enterprise, enterprise_at; /* opcodes of Redis Enterprise: their number, and the
                                             first */

    struct rdb_batch *batch;
    struct rd_buf notes; /* of the last batch, not returned yet */
    size_t notes_at;
    bool note_set; /* a note waits to be returned */
    struct rdb_event note;

    struct rd_buf big;   /* input larger than the window, collected */
    struct rd_buf text;  /* a decoded name */
    struct rd_buf text2; /* a second one in the same event */
    struct rd_buf meta;  /* opts.attach_meta: of the next key */
    uint64_t meta_at;    /* where its record begins */
    bool has_meta;
    uint8_t *out; /* decoder's output: reach, piece, room for a token, slack */
    size_t out_cap;
    size_t piece; /* the longest piece; at most PIECE_MAX */
};

/* -- input (record.c) -- */

/* Makes n bytes from here available, however many; *ret may be longer. RDB_EVENT: they are
 * available. */
int rdb_read_need_slow(struct rdb_reader *r, uint64_t n, struct rd_slice *ret);

static inline int rdb_read_need(struct rdb_reader *r, uint64_t n, struct rd_slice *ret)
{
    size_t have = rd_src_avail(r->src);
    if (RD_LIKELY(have >= n && r->big.len == 0)) {
        *ret = rd_slice(r->src->cur, have);
        return RDB_EVENT;
    }
    return rdb_read_need_slow(r, n, ret);
}

void rdb_read_consume_slow(struct rdb_reader *r, size_t n);

static inline void rdb_read_consume(struct rdb_reader *r, size_t n)
{
    if (RD_UNLIKELY(r->tee != NULL || r->big.len != 0))
        rdb_read_consume_slow(r, n);
    else
        rd_src_consume(r->src, n);
}

static inline uint64_t rdb_read_offset(const struct rdb_reader *r)
{
    return rd_src_offset(r->src) - r->big.len;
}

/* -- errors -- */

/* Each sets the error with its context and returns RDB_FAIL. */
int rdb_read_corrupt(struct rdb_reader *r, uint64_t off, const char *what);
int rdb_read_corrupt_in(struct rdb_reader *r, uint64_t off, uint64_t inner, const char *what);
int rdb_read_fail(struct rdb_reader *r, enum rd_err_code code, uint64_t off, const char *what);
int rdb_read_nomem(struct rdb_reader *r, size_t size);

/* Keeps a note to be returned before the next event (the first one wins until then). */
void rdb_read_note(struct rdb_reader *r, enum rdb_note_id id, uint64_t off, uint64_t inner,
                   uint64_t detail, const char *text);

/* -- parsing several things from memory: all or nothing -- */

/* Why bytes that are there were not accepted. */
enum cur_cause {
    CUR_DAMAGED,
    CUR_LIMIT, /* longer than this reader takes */
    CUR_NO_MEMORY,
    CUR_UNKNOWN, /* a value of an unknown type */
    CUR_APART    /* an opcode between the attributes of a key and its type */
};

struct cur {
    const uint8_t *base;
    const uint8_t *p;
    const uint8_t *end;
    uint64_t want;        /* after a failure: bytes from base that are needed; 0: the bytes at p are
                             not accepted */
    enum cur_cause cause; /* … because of this, */
    const char *why;      /* and as the text of an error */
};

static inline struct cur cur_of(struct rd_slice s)
{
    return (struct cur){.base = s.ptr, .p = s.ptr, .end = s.ptr + s.len};
}

static inline bool cur_take(struct cur *c, uint64_t n, const uint8_t **ret)
{
    if (RD_UNLIKELY((uint64_t)(c->end - c->p) < n)) {
        c->want = (uint64_t)(c->p - c->base) + n;
        return false;
    }
    *ret = c->p;
    c->p += n;
    return true;
}

/* The bytes at p are not accepted. Returns false. */
static inline bool rdb_cur_refuse(struct cur *c, const uint8_t *p, enum cur_cause cause,
                                  const char *why)
{
    c->p = p;
    c->want = 0;
    c->cause = cause;
    c->why = why;
    return false;
}

bool rdb_cur_len(struct cur *c, uint64_t *ret);
bool rdb_cur_u64le(struct cur *c, uint64_t *ret);
bool rdb_cur_id(struct cur *c, struct rdb_stream_id *ret);     /* 16 bytes big-endian */
bool rdb_cur_len_id(struct cur *c, struct rdb_stream_id *ret); /* two lengths */

/* A whole string. RAW is borrowed, others are rendered into buf. *ret is valid until the next call.
 */
bool rdb_cur_str(struct rdb_reader *r, struct cur *c, struct rd_buf *buf, struct rd_slice *ret);

/* For a step whose parse failed: reads more input (STEP_ON: parse again), or fails. */
int rdb_read_retry(struct rdb_reader *r, const struct cur *c, struct rd_slice *s);

/* Fills *ev, or a part of the reader, from the bytes in *c; `arg` belongs to the caller. It is
 * called again from the start when there is more input. */
typedef bool (*parse_fn)(struct rdb_reader *r, struct cur *c, uint8_t arg, struct rdb_event *ev);

/* Calls `parse` until it has enough input. STEP_ON: *ret is the next byte; nothing is consumed. */
static inline int rdb_read_parse(struct rdb_reader *r, parse_fn parse, uint8_t arg,
                                 struct rdb_event *ev, struct cur *ret)
{
    struct rd_slice s = rd_slice(r->src->cur, r->big.len > 0 ? 0 : rd_src_avail(r->src));
    *ret = cur_of(s);
    while (!parse(r, ret, arg, ev)) {
        int st = rdb_read_retry(r, ret, &s);
        if (st != STEP_ON)
            return st;
        *ret = cur_of(s);
    }
    return STEP_ON;
}

/* Drops attributes that wait for their key. */
void rdb_read_drop_attributes(struct rdb_reader *r);

/* -- strings (string.c) -- */

/* Begins the string at the current position: its pieces are returned as events of `kind`, the first
 * of them in *ev. STEP_ON is never returned. */
int rdb_read_string(struct rdb_reader *r, enum rdb_event_kind kind, enum rdb_role role,
                    enum tail tail, struct rdb_event *ev);
int rdb_read_piece(struct rdb_reader *r, struct rdb_event *ev);

/* Skips a string; `verify`: LZF must decode. STEP_ON: skipped. */
int rdb_read_pass(struct rdb_reader *r, bool verify);
int rdb_read_pass_rest(struct rdb_reader *r);

/* Skips a string like rdb_read_pass() and returns its bytes, which are valid until the next call
 * and are in tmp for an integer. If it is too long, the bytes are not returned (STEP_ON, *ret_known
 * false). */
int rdb_read_member(struct rdb_reader *r, char tmp[RD_NUM_I64_MAX], struct rd_slice *ret,
                    bool *ret_known);

/* Consumes the tail of a string. */
int rdb_read_pass_tail(struct rdb_reader *r, enum tail tail);

/* One whole string, if the window can hold it, after `prefix` bytes; see string.c. */
int rdb_read_prefixed(struct rdb_reader *r, enum rdb_event_kind kind, size_t prefix,
                      struct rdb_event *ev);

/* -- feed.c -- */

/* Begins to decode the string whose header is at the source's position, and consumes the header. */
int rdb_feed_begin(struct rdb_reader *r, const struct rdb_str_head *head, uint64_t off);

/* Makes at least n decoded bytes available in [p, end), n <= r->piece. RDB_END: the string has
 * fewer left. */
int rdb_feed_need(struct rdb_reader *r, size_t n);

/* Consumes the stored bytes that were used; they stay readable until more are needed. */
void rdb_feed_settle(struct rdb_reader *r);

/* Consumes the rest of the stored bytes. All decoded bytes were seen. */
int rdb_feed_end(struct rdb_reader *r);

static inline uint64_t rdb_feed_pos(const struct feed *f)
{
    return f->total - f->left - (uint64_t)(f->end - f->p);
}

/* -- values (value.c, packed.c, stream.c, module.c) -- */

int rdb_value_begin(struct rdb_reader *r, struct rdb_event *ev);
/* Begins the program; the numbers in ev->value are set, and all before the program is consumed. */
int rdb_value_open(struct rdb_reader *r, struct rdb_event *ev);
int rdb_value_run(struct rdb_reader *r, struct rdb_event *ev);

/* With opts.batch: defers the check of a value that is one string in the window, without events. */
int rdb_value_quick(struct rdb_reader *r, struct rdb_event *ev);

/* After a KEY: skips a value that is one string in the window, if it is. */
bool rdb_value_pass(struct rdb_reader *r);
int rdb_packed_begin(struct rdb_reader *r, enum rdb_codec codec, enum layout layout);
int rdb_packed_run(struct rdb_reader *r, struct rdb_event *ev);
int rdb_packed_bad(struct rdb_reader *r);
int rdb_node_run(struct rdb_reader *r, struct rdb_event *ev);
int rdb_stream_op(struct rdb_reader *r, const struct instr *in, struct rdb_event *ev);
int rdb_module_run(struct rdb_reader *r, struct rdb_event *ev);
int rdb_record_step(struct rdb_reader *r, struct rdb_event *ev);
int rdb_key_meta_step(struct rdb_reader *r, struct rdb_event *ev);
int rdb_payload_step(struct rdb_reader *r, struct rdb_event *ev); /* a type, then its value */

/* -- bitmap.c -- */

int rdb_bitmap_begin(struct rdb_reader *r, struct rdb_event *ev); /* PRELUDE_BITMAP */
int rdb_bitmap_run(struct rdb_reader *r, struct rdb_event *ev);
void rdb_bitmap_done(struct rdb_reader *r);

/* -- template.c -- */

/* The type of a value that contains its names, for one that refers to a template. */
const struct rdb_type *rdb_template_whole(const struct rdb_type *type);

/* The error of a value that refers to a template, in a payload. */
extern const char rdb_template_alone[];

int rdb_template_step(struct rdb_reader *r, struct rdb_event *ev);  /* a record */
int rdb_template_begin(struct rdb_reader *r, struct rdb_event *ev); /* PRELUDE_TEMPLATE */
int rdb_names_begin(struct rdb_reader *r, struct rdb_event *ev);    /* PRELUDE_NAMES */
int rdb_names_run(struct rdb_reader *r);
int rdb_template_run(struct rdb_reader *r, struct rdb_event *ev);
int rdb_template_pack(struct rdb_reader *r, struct rdb_event *ev);
int rdb_template_field(struct rdb_reader *r, struct rdb_event *ev);

/* For salvage, which reads bytes that may not be records: forgets the templates that were read
 * since the last call of rdb_shared_keep(), or from the offset `from` on. */
void rdb_shared_keep(struct rdb_reader *r);
void rdb_shared_forget(struct rdb_reader *r);
void rdb_shared_take_back(struct rdb_reader *r, uint64_t from);

/* The template of the value that was read last, or RDB_UNKNOWN: it contains its names. */
uint64_t rdb_shared_used(const struct rdb_reader *r);

/* The next entry of the walk, whole in memory: RDB_EVENT; RDB_END: the end, verified; STEP_ON with
 * walk.long_open: an entry longer than a piece, whose header was consumed. */
int rdb_walk_entry(struct rdb_reader *r, struct rdb_pack_entry *ret);
/* The next bytes of such an entry, at feed.p, with its tail if they are the last. */
int rdb_walk_long(struct rdb_reader *r, size_t *ret_len, bool *ret_last);
int rdb_walk_pass(struct rdb_reader *r, const struct rdb_pack_entry *e);

/* Whether elements or blobs are returned for the current value. */
static inline bool rdb_read_gives(const struct rdb_reader *r)
{
    return r->detail == RDB_DETAIL_ELEMENTS || r->detail == RDB_DETAIL_PACKED;
}

static inline bool rdb_read_checks(const struct rdb_reader *r)
{
    return r->detail == RDB_DETAIL_CHECK;
}

/* Skips sound elements of a whole listpack quickly, before the walk (skim.c). */
void rdb_skim(struct rdb_reader *r);
void rdb_skim_node(struct rdb_reader *r);

/* Returns the next string of a whole listpack, with its score; false: the walk must do it. */
bool rdb_skim_give(struct rdb_reader *r, struct rdb_event *ev);

/* Skips elements of a table with short strings quickly, except the last one. */
void rdb_skim_table(struct rdb_reader *r, struct rdb_read_loop *loop);

/* -- batch.c: STEP_ON, or RDB_FAIL when a job of the batch failed -- */

bool rdb_batch_new(struct rdb_reader *r, struct rd_err *err);
void rdb_batch_free(struct rdb_batch *b, struct rd_worker *worker);

/* The string is at the source's position, whole in the window; it is consumed. */
int rdb_batch_pack(struct rdb_reader *r, const struct rdb_str_head *head, const uint8_t *stored,
                   uint64_t off, uint8_t pack);
int rdb_batch_verify(struct rdb_reader *r, const struct rdb_str_head *head, const uint8_t *stored,
                     uint64_t off);

/* Call before the window moves: starts the jobs of this window when those of the last are done. */
int rdb_batch_turn(struct rdb_reader *r);

/* Finishes all jobs. */
int rdb_batch_run(struct rdb_reader *r);
bool rdb_batch_next_note(struct rdb_reader *r, struct rdb_event *ret);

/* -- unique.c -- */

/* Prepares for about n members (RDB_UNKNOWN: grows). */
bool rdb_unique_begin(struct unique *u, uint64_t n);

/* Adds a hash other than 0, if there is room for it; false: it exists. */
static inline bool rdb_unique_insert(struct unique *u, uint64_t hash)
{
    size_t i = hash & u->mask;
    while (u->slots[i] != 0) {
        if (u->slots[i] == hash)
            return false;
        i = (i + 1) & u->mask;
    }
    u->slots[i] = hash;
    u->used++;
    return true;
}

/* Adds a member; false: it exists. */
bool rdb_unique_add_slow(struct unique *u, uint64_t hash);

static inline bool rdb_unique_add(struct unique *u, uint64_t hash)
{
    hash += hash == 0;
    return RD_LIKELY(u->used < u->limit) ? rdb_unique_insert(u, hash)
                                         : rdb_unique_add_slow(u, hash);
}
void rdb_unique_done(struct unique *u);

/* -- duplicate.c: compares the bytes of members with equal hashes -- */

enum rdb_duplicate { RDB_DUPLICATE_SAME, RDB_DUPLICATE_OTHER, RDB_DUPLICATE_UNKNOWN };

/* The note for bytes that cannot be compared. */
extern const char rdb_duplicate_unproved[];

/* True: it is a duplicate and is to be reported. *ret_text changes if that is not proved. The
 * member is in the packed string being walked, with so many entries per element; or it is the
 * member (RDB_ELEM), group or consumer whose event is at `off`. One proof per value is enough. */
bool rdb_duplicate_packed(struct rdb_reader *r, const struct rdb_pack_entry *e, unsigned parts,
                          const char **ret_text);
bool rdb_duplicate_named(struct rdb_reader *r, enum rdb_event_kind kind, struct rd_slice name,
                         uint64_t off, const char **ret_text);

/* Prefetches the memory in which the hash will be searched. */
static inline void rdb_unique_fetch(const struct unique *u, uint64_t hash)
{
    __builtin_prefetch(&u->slots[hash & u->mask], 1);
}

#endif
