/* report.h - prints the result as text, CSV, JSON or an HTML page.
 */
#ifndef TOOLS_STAT_REPORT_H
#define TOOLS_STAT_REPORT_H

#include "stat/read.h"
#include "tools/cli/cli.h"

/* Prints text of at most 80 columns to `out`, with at most `n` rows in each list. replayed: the
 * snapshot was made from a log or a capture. */
bool stat_text_print(const struct cli *cli, FILE *out, const struct stat_read *read,
                     const char *path, bool replayed, size_t n, struct rd_err *err);

/* Writes the fields of an open object; lists have at most `n` elements. */
bool stat_json_put(struct json_write *json, const struct stat_read *read, size_t n,
                   struct rd_err *err);
/* The same without the lists of keys, prefixes and patterns. */
void stat_json_sums(struct json_write *json, const struct stat_read *read);

/* The hash tables of all databases, which belong to no key. */
uint64_t stat_json_tables(const struct stat_read *read);

/* What changed between two snapshots: `read` continues the sums of `old`. */
bool stat_change_print(const struct cli *cli, FILE *out, const struct stat_read *read,
                       const char *path, const struct stat_read *old, const char *old_path,
                       size_t n, struct rd_err *err);
/* Adds the members "old" and "changes" to an open object. */
bool stat_change_json(struct json_write *json, const struct stat_read *read,
                      const struct stat_read *old, const char *old_path, size_t n,
                      struct rd_err *err);

/* Bytes of a name, escaped and without quotation marks; the middle is cut to fit the columns. */
enum { STAT_NAME_MAX = 400 };
struct stat_name {
    char s[STAT_NAME_MAX];
};
struct stat_name stat_fit(struct rd_slice bytes, size_t width);
/* The same, with blanks at its end to fill the columns. */
struct stat_name stat_column(struct rd_slice bytes, size_t width);

/* Writes the line with the column names, and one line for each key; the latter is a stat_row_fn for
 * a sink. Bytes that are not printable are written as \xHH; a backslash is doubled. */
bool stat_csv_begin(struct rd_sink *out, struct rd_err *err);
bool stat_csv_row(void *sink, const struct stat_key *key, struct rd_err *err);

/* Writes a self-contained HTML page of less than 1 MB: lists end where their part of it is used up,
 * and the page says so. `path` is the name of the snapshot. `old` (with `old_path`) is the read
 * whose sums `read` continues, or NULL. */
bool stat_html_write(struct rd_sink *out, const struct stat_read *read, const char *path,
                     const struct stat_read *old, const char *old_path, struct rd_err *err);

enum { STAT_HTML_KEYS = 300 };

/* Formats a share of a whole, as in "12.5 %"; "0 %" if the whole is zero. */
struct rd_shown stat_percent(uint64_t part, uint64_t whole);

#endif
