/* scan.h - shared by SCAN, SSCAN, HSCAN and ZSCAN.
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
 * Values without a table are returned at once, with cursor 0.
 */
#ifndef ENGINE_CMD_SCAN_H
#define ENGINE_CMD_SCAN_H

#include "engine/call.h"

struct engine_scan_opts {
    uint64_t cursor;
    int64_t count; /* above 0; 10 by default */
    bool has_pattern;
    struct rd_slice pattern;
    bool has_type; /* SCAN ... TYPE: any word, even an unknown type */
    struct rd_slice type;
};

/* Parses the cursor and sets the defaults of the options. False: "ERR invalid cursor".
 */
bool engine_scan_cursor(struct engine_call *call, struct rd_slice arg,
                        struct engine_scan_opts *ret);

/* Parses the options, argv[first] to the last: MATCH and COUNT and, if first is 2 as for SCAN only,
 * TYPE. False: the error was replied. */
bool engine_scan_parse(struct engine_call *call, size_t first, struct engine_scan_opts *opts);

/* Whether a name matches the pattern, if there is one. */
bool engine_scan_matches(const struct engine_scan_opts *opts, struct rd_slice name);

struct engine_scan_items {
    void **list; /* items of the table, not to be freed before all are visited */
    size_t n;
    uint64_t cursor; /* for the next call */
    size_t cap;
};

/* Collects items from opts->cursor on until it has opts->count, has seen ten empty buckets for each
 * of them, or the table ends. *ret is zeroed before. */
void engine_scan_table(const struct engine_scan_opts *opts, struct engine_table *t,
                       struct engine_scan_items *ret);
void engine_scan_items_done(struct engine_scan_items *items);

/* Begins the reply, an array of two: the cursor, written here, and the array that follows. */
void engine_scan_reply_cursor(struct engine_call *call, uint64_t cursor);

/* The whole reply if the key does not exist. */
void engine_scan_reply_empty(struct engine_call *call);

#endif
