/* runs.h - tools that run inside of a test, again and again, and what each run leaves.
 *
 *     TestSuite(memory, .init = runs_begin, .fini = runs_end);
 *
 *     int status = runs_tool("convert --to csv a.rdb -o out/x");
 *
 * runs_begin() makes a folder, enters it and fills it:
 *
 *     a.rdb b.rdb c.rdb   snapshots; a and b share keys that differ, with c they share nothing
 *     damaged.rdb         a.rdb with a list that is damaged
 *     lines               a.rdb as lines of JSON
 *     log.aof cut.aof     a log of six commands; without its end
 *     out/                empty: the place for what the tools write
 */
#ifndef TESTS_TOOLS_RUNS_H
#define TESTS_TOOLS_RUNS_H

#include "base/buf.h"

struct runs_outcome {
    int status;
    struct rd_buf printed;  /* stdout */
    struct rd_buf reported; /* stderr, with a NUL at its end */
    struct rd_buf left;     /* names and bytes of all that was under out/, which is empty again */
};

void runs_begin(void);
void runs_end(void);

/* a.rdb, which is also what standard input gives. */
struct rd_slice runs_a(void);

/* Runs a tool. The line has a single space between words. The standard streams are the test's. */
int runs_tool(const char *line);

/* Makes a snapshot of lines of JSON. */
void runs_make_snapshot(const char *lines, const char *name);

void runs_write_file(const char *path, struct rd_slice bytes);

/* Runs a tool between `before` and `after`, which may be NULL, with streams of its own: standard
 * input is a pipe with a.rdb. Asserts that no descriptor is left. */
struct runs_outcome runs_attempt(const char *line, void (*before)(void *ctx),
                                 void (*after)(void *ctx), void *ctx);
void runs_outcome_done(struct runs_outcome *o);

/* Whether two runs left the same files. */
bool runs_left_same(const struct runs_outcome *a, const struct runs_outcome *b);

#endif
