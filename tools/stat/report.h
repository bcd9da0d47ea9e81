/* report.h - prints the result as text, CSV, JSON or an HTML page.
 */
#ifndef TOOLS_STAT_REPORT_H
#define TOOLS_STAT_REPORT_H

#include "tools/stat/read.h"

/* Prints text of at most 80 columns to `out`, with at most `n` rows in each list. */
void stat_text_print(const struct cli *cli, FILE *out, const struct stat_read *read,
                     const char *path, size_t n);

/* Writes the fields of an open object. */
void stat_json_put(struct cli_json *json, const struct stat_read *read, size_t n_keys,
                   size_t n_prefixes);

/* Writes the line with the column names, and one line for each key; the latter is a stat_row_fn for
 * a sink. Bytes that are not printable are written as \xHH; a backslash is doubled. */
bool stat_csv_begin(struct rd_sink *out, struct rd_err *err);
bool stat_csv_row(void *sink, const struct stat_key *key, struct rd_err *err);

/* Writes a self-contained HTML page. `path` is the name of the snapshot. */
bool stat_html_write(struct rd_sink *out, const struct stat_read *read, const char *path,
                     struct rd_err *err);

enum { STAT_HTML_KEYS = 500, STAT_HTML_PREFIXES = 4000 };

/* Formats a share of a whole, as in "12.5 %"; "0 %" if the whole is zero. */
struct cli_text stat_percent(uint64_t part, uint64_t whole);

#endif
