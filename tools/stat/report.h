/* report.h - what was found, as text, CSV, JSON or a page.
 */
#ifndef TOOLS_STAT_REPORT_H
#define TOOLS_STAT_REPORT_H

#include "tools/stat/read.h"

/* Text of at most 80 columns on `out`. `n` rows at most in each list. */
void stat_text_print(const struct cli *cli, FILE *out, const struct stat_read *read,
                     const char *path, size_t n);

/* The fields of an object that is open. */
void stat_json_put(struct cli_json *json, const struct stat_read *read, size_t n_keys,
                   size_t n_prefixes);

/* The line with the names of the columns, and one for each key; a stat_row_fn over a sink. Bytes
 * that are not printable stand as \xHH, and a backslash is doubled. */
bool stat_csv_begin(struct rd_sink *out, struct rd_err *err);
bool stat_csv_row(void *sink, const struct stat_key *key, struct rd_err *err);

/* One page with everything in it. `path` is the name of the snapshot. */
bool stat_html_write(struct rd_sink *out, const struct stat_read *read, const char *path,
                     struct rd_err *err);

enum { STAT_HTML_KEYS = 500, STAT_HTML_PREFIXES = 4000 };

/* Digits of a share of a whole, as in "12.5 %"; "0 %" where the whole is nothing. */
struct cli_text stat_percent(uint64_t part, uint64_t whole);

#endif
