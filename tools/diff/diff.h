/* diff.h - private to tools/diff.
 *
 *     diff.c      options and the sequence of steps
 *     open.c      files, logs and servers
 *     read.c      reads both sides into records
 *     scan.c      joins the records and collects the differences
 *     names.c     gives the differences in the order of their names
 *     value.c     compares two values part by part
 *     group.c     two consumer groups with the same counts
 *     report.c    prints the differences
 *     html.c      writes them as a page
 *
 * A record of a key is a hash of database and name, a hash of its value, its type, its expiry and
 * its position. The records are sorted on disk. The first pass hashes the bytes in which a value is
 * stored; values whose bytes differ are read again and compared by content (rdb/content.h). Names
 * are read again only for keys that differ.
 */
#ifndef TOOLS_DIFF_DIFF_H
#define TOOLS_DIFF_DIFF_H

#include "rdb/content.h"
#include "jobs/again.h"
#include "tools/cli/watch.h"
#include "tools/input/live_in.h"
#include "tools/input/snapshot_in.h"
#include "tools/cli/peer_options.h"
#include "tools/cli/filter.h"
#include "data/sort.h"

enum {
    DIFF_MEMORY = 20 << 20,
    DIFF_ELEMENTS_DEFAULT = 10,
    DIFF_ELEMENTS_MAX = 1000,
    DIFF_TEXT_MAX = 200, /* bytes of an element that are shown */
    DIFF_NAME_SORTED = 1024,
    DIFF_FOUND_KEY_LEN = 18,
    DIFF_FOUND_LEN = 9 + 2 * DIFF_FOUND_KEY_LEN
};

enum diff_side { DIFF_A, DIFF_B };

enum diff_flag { DIFF_TYPE = 1, DIFF_EXPIRY = 2, DIFF_VALUE = 4 };

/* One key on one side. */
struct diff_key {
    bool present;
    enum rdb_kind kind;
    int64_t expire_ms;
    uint64_t record;
    struct rd_hash128 content; /* of the bytes of the value, or of its content: diff->stored */
};

struct diff_record {
    uint8_t hash[RD_HASH128_LEN]; /* of database and name */
    uint64_t db;
    struct diff_key key;
};

/* A key that differs between the sides. */
struct diff_found {
    uint64_t db;
    struct diff_key key[2];
    unsigned flags; /* enum diff_flag; set if both are present */
};

/* A part of a value that differs between the sides. */
struct diff_part {
    enum rdb_part_kind kind;
    bool present[2];
    uint64_t index[2]; /* in the values */
    int64_t expire_ms[2];
    bool expiry_only;
    /* With --values: the first bytes of its name and of its content. */
    struct rd_buf name;
    struct rd_buf text[2];
    bool name_cut;
    bool text_cut[2];
};

/* The result of comparing two values. */
struct diff_value {
    uint64_t changed;
    uint64_t only[2];
    uint64_t n_parts[2];
    uint64_t bytes[2]; /* strings: their lengths, and the first byte that differs */
    uint64_t first_byte;
    struct diff_part *parts; /* the first ones */
    size_t n_kept;
    struct rd_buf path; /* of a path hash, while it is read */
};

struct diff_counts {
    uint64_t keys[2];
    uint64_t only[2];
    uint64_t expired[2]; /* of these: keys that have expired, which servers drop */
    uint64_t different;
    uint64_t type;
    uint64_t expiry;
    uint64_t value;
};

struct diff {
    struct cli *cli;
    bool fast;
    bool values;
    bool lines;
    bool all;              /* list every difference on a terminal, too */
    const char *html_path; /* NULL: no page */
    const char *out_path;  /* -o; of --ndjson, or as html_path */
    bool force;
    bool ignore_expire;
    uint64_t tolerance_ms;
    uint64_t max_elements;
    struct filter filter;
    struct snapshot_in_opts log;
    struct peer_opts servers;

    const char *path[2];  /* as shown; NULL: the server that the options name */
    const char *url[2];   /* of a server, with its password */
    const char *shown[2]; /* names for messages, without passwords */
    struct client_target target[2];
    struct live_in_opts live[2];
    struct client_live_result live_result[2]; /* of a server */
    bool is_server[2];
    struct rd_watch watch; /* that of cli */
    struct snapshot_in_job job;
    struct live_in_job live_job[2];
    struct job_input input[2];
    struct again in[2];
    struct rdb_content_opts hashing;
    bool stored;           /* the records are about bytes, not about contents */
    struct sort keys[2];   /* hash -> record */
    struct sort closer[2]; /* position of a key whose content is compared -> hash */
    uint64_t n_closer;
    struct sort found; /* position of the key -> difference */
    struct sort named; /* database, name -> difference */
    struct sort parts; /* of two values: kind, name -> side, part */
    struct diff_counts counts;
    uint64_t listed[3]; /* on a terminal: keys only in A, only in B, different */
    uint64_t n_functions[2];
    struct rd_hash128 functions[2];
    /* With judge_due, a key or field that is on one side only is not a difference if it expires
     * there at due_ms or before: it has expired since. due_ms is set when both sides are open: of
     * B it is the current time, of A it is shift_ms earlier. */
    bool judge_due;
    int64_t shift_ms;
    int64_t due_ms[2];
    uint64_t n_due;    /* keys that were ignored for this reason */
    bool no_functions; /* do not compare functions */
    bool functions_differ;
    struct rd_buf name; /* of the key that is reported */
    struct rd_sink *out;
    struct json_write json; /* the output of --json and --ndjson */
    struct diff_page *page;
};

/* diff.c: the whole comparison, also for a tool that ends with one. The report goes to standard
 * output, or into the open JSON object. The caller zeroes *diff and fills in the options, path and
 * url. */
bool diff_work(struct diff *diff, struct rd_err *err);
bool diff_differs(const struct diff *diff);
/* Whether there is a filter that no key of either side matches. */
bool diff_is_void(const struct diff *diff);
void diff_done(struct diff *diff);

/* Opens both sides. Prints the notes about servers, and the hints for their errors. */
bool diff_open(struct diff *diff, struct rd_err *err);
void diff_close(struct diff *diff);

/* Whether keys were left out because they could not be read. */
bool diff_is_partial(const struct diff *diff);

/* read.c: the records of both sides, to be taken with diff_next_record() in the order of their
 * hashes. The second function reads the contents of those that diff_read_closer() collected. */
bool diff_read(struct diff *diff, struct rd_err *err);
bool diff_read_closer(struct diff *diff, enum diff_side side, const uint8_t *hash,
                      const struct diff_found *found, struct rd_err *err);
bool diff_read_contents(struct diff *diff, struct rd_err *err);
bool diff_next_record(struct diff *diff, enum diff_side side, struct diff_record *ret,
                      bool *ret_end, struct rd_err *err);
void diff_read_done(struct diff *diff);

/* Reads both sides and finds the differences. Counts them, except those that need a closer look
 * (diff_must_look). */
bool diff_scan(struct diff *diff, struct rd_err *err);

/* Counts a difference after the closer look. */
void diff_count_looked(struct diff *diff, const struct diff_found *found);

/* names.c */
void diff_found_put(uint8_t dst[DIFF_FOUND_LEN], const struct diff_found *found);

/* Calls each() for every difference, by database and name. `name` is valid during the call. */
typedef bool (*diff_each_fn)(struct diff *diff, struct diff_found *found, struct rd_slice name,
                             struct rd_err *err);
bool diff_each(struct diff *diff, diff_each_fn each, struct rd_err *err);

/* Whether values may be equal although their hashes differ: with a tolerance for the expiry times
 * of fields. */
bool diff_must_look(const struct diff *diff, const struct diff_found *found);

/* Whether a key has expired. Servers drop such keys when they load them or later. */
bool diff_is_expired(const struct diff *diff, const struct diff_key *key);

/* Whether a key or field on one side only, with this expiry, is due: see judge_due. */
bool diff_is_due(const struct diff *diff, enum diff_side side, int64_t expire_ms);

bool diff_same_expiry(const struct diff *diff, int64_t a, int64_t b);
/* The same for keys: some servers report their expiry approximately. */
bool diff_same_key_expiry(const struct diff *diff, int64_t a, int64_t b);

/* Compares two values of one kind; with diff->values also collects the texts. The caller frees
 * *ret with diff_value_done(), also after a failure. */
bool diff_value_compare(struct diff *diff, const struct diff_found *found, struct diff_value *ret,
                        struct rd_err *err);
/* group.c: puts the first difference of the pending entries before the texts of two groups of a
 * stream, if these texts are the same. */
bool diff_group_texts(struct diff *diff, const struct diff_found *found, struct diff_part *part,
                      struct rd_err *err);
void diff_value_done(struct diff_value *value);

/* Prints one difference; value is NULL if the values were not compared. */
void diff_report_key(struct diff *diff, const struct diff_found *found, struct rd_slice name,
                     const struct diff_value *value);
void diff_report_begin(struct diff *diff);
void diff_report_end(struct diff *diff);

/* The objects of JSON: one difference, and the members of the summary. */
void diff_put_key(struct diff *diff, struct json_write *json, const struct diff_found *found,
                  struct rd_slice name, const struct diff_value *value);
void diff_put_summary(const struct diff *diff, struct json_write *json);

/* html.c: the page of --html. It is opened and written at the end. */
bool diff_page_begin(struct diff *diff, struct rd_err *err);
void diff_page_key(struct diff *diff, const struct diff_found *found, struct rd_slice name,
                   const struct diff_value *value);
bool diff_page_write(struct diff *diff, struct rd_err *err);
void diff_page_done(struct diff *diff);

#endif
