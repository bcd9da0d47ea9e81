/* event_text.h - events as text, to be compared.
 *
 *     struct event_text t = {0};
 *     while (rdb_reader_next(r, &ev) == RDB_EVENT)
 *         event_text_add(&t, &ev);
 *     ... rd_buf_slice(&t.text) ...
 *     rd_buf_done(&t.text);
 *
 * One line an event: its offset (and + the inner offset), its kind, what it holds. Pieces of a
 * string are joined, so that the text does not depend on how the input was cut; for the same reason
 * elements that are not in a packed string come without offset.
 */
#ifndef TESTS_RDB_EVENT_TEXT_H
#define TESTS_RDB_EVENT_TEXT_H

#include "base/buf.h"
#include "rdb/event.h"

struct event_text {
    struct rd_buf text;
    bool open;          /* the last line is a string that continues */
    enum rdb_kind kind; /* of the value */
};

/* Aborts when memory is short. */
void event_text_add(struct event_text *t, const struct rdb_event *ev);

const char *event_text_kind(enum rdb_event_kind kind);

#endif
