/* scan.h - what SCAN, SSCAN, HSCAN and ZSCAN have in common.
 *
 *     struct engine_scan_opts opts;
 *     if (!engine_scan_cursor(call, call->argv[2], &opts))
 *         return;                                            // the error was answered
 *     ... the key: absent is engine_scan_reply_empty(), before options are looked at ...
 *     if (!engine_scan_parse(call, 3, &opts))
 *         return;
 *     struct engine_scan_items items = {0};
 *     engine_scan_table(&opts, &set->members, &items);
 *     engine_scan_reply_cursor(call, items.cursor);
 *     size_t mark = engine_reply_mark(call->reply);
 *     for (size_t i = 0; i < items.n; i++)
 *         if (engine_scan_matches(&opts, name_of(items.list[i])))
 *             engine_reply_bulk(...), n++;
 *     engine_reply_mark_array(call->reply, mark, n);
 *     engine_scan_items_done(&items);
 *
 * Values without a table are given in one go, with the cursor 0 for an answer.
 */
#ifndef ENGINE_CMD_SCAN_H
#define ENGINE_CMD_SCAN_H

#include "engine/call.h"

struct engine_scan_opts {
    uint64_t cursor;
    int64_t count; /* above 0; 10 unless given */
    bool has_pattern;
    struct rd_slice pattern;
    bool has_type; /* SCAN ... TYPE: any word, also those that name no type */
    struct rd_slice type;
};

/* Parses the cursor and sets all else to what it is without options. False: "ERR invalid cursor".
 */
bool engine_scan_cursor(struct engine_call *call, struct rd_slice arg,
                        struct engine_scan_opts *ret);

/* Parses the options, argv[first] to the last: MATCH and COUNT and, where first is 2 as it is for
 * SCAN alone, TYPE. False: the error was answered. */
bool engine_scan_parse(struct engine_call *call, size_t first, struct engine_scan_opts *opts);

/* Whether a name is asked for: it matches the pattern, or there is none. */
bool engine_scan_matches(const struct engine_scan_opts *opts, struct rd_slice name);

struct engine_scan_items {
    void **list; /* the items of the table, which are not to be freed before all are looked at */
    size_t n;
    uint64_t cursor; /* for the next call */
    size_t cap;
};

/* Collects items from opts->cursor on until it has opts->count, or has seen ten empty buckets for
 * each of them, or the table is at its end. *ret is zeroed before. */
void engine_scan_table(const struct engine_scan_opts *opts, struct engine_table *t,
                       struct engine_scan_items *ret);
void engine_scan_items_done(struct engine_scan_items *items);

/* Begins the answer, an array of two: the cursor, which this gives, and the array that follows. */
void engine_scan_reply_cursor(struct engine_call *call, uint64_t cursor);

/* The whole answer where there is no such key. */
void engine_scan_reply_empty(struct engine_call *call);

#endif
