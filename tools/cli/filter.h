/* filter.h - the filter of keys (data/filter.h) as options of a tool: --db, --match, --match-regex,
 * --type, --prefix, --slot, --expired, --no-expired, --min-size, and --not before any.
 *
 *     struct filter filter;
 *     cli_filter_init(&filter, cli, cli_now_ms());
 *     const struct cli_opt opts[] = {
 *         FILTER_OPTIONS(&filter),
 *         {0},
 *     };
 *     ... cli_parse() ...
 *     filter_done(&filter);
 */
#ifndef TOOLS_CLI_FILTER_H
#define TOOLS_CLI_FILTER_H

#include "data/filter.h"
#include "tools/cli/cli.h"

/* filter_init() for a filter that ends the tool if memory is exhausted. */
void cli_filter_init(struct filter *filter, struct cli *cli, int64_t now_ms);

/* No key matched: reports that nothing was DONE ("compared", "written"), on stderr and, with
 * --json, as "nothing_matched". Returns CLI_FINDINGS: the user asked for keys that do not exist,
 * and exit status 0 would hide that. */
int cli_filter_nothing(struct cli *cli, const char *done);

#define FILTER_TYPES "string|list|set|zset|hash|stream|module|array"

#define FILTER_OPTION(option, argument, add, filter, text)                                         \
    {                                                                                              \
        .name = option, .kind = CLI_EACH, .arg = argument, .help = text, .brief = true,            \
        .each = add, .ctx = filter                                                                 \
    }

/* clang-format off */
#define FILTER_OPTIONS(f)                                                                          \
    FILTER_OPTION("db", "N", filter_add_db, f, "keys of database N"),                              \
    FILTER_OPTION("match", "GLOB", filter_add_match, f, "keys that match a KEYS pattern"),         \
    FILTER_OPTION("match-regex", "ERE", filter_add_match_regex, f, "keys that match a regex"),     \
    {.name = "type", .kind = CLI_EACH, .arg = "T", .words = FILTER_TYPES, .brief = true,           \
     .each = filter_add_type, .ctx = f, .help = "values of this type"},                            \
    FILTER_OPTION("prefix", "P", filter_add_prefix, f, "keys that begin with P"),                  \
    FILTER_OPTION("slot", "A[-B]", filter_add_slot, f, "keys of these cluster slots"),             \
    FILTER_OPTION("expired", NULL, filter_add_expired, f, "keys whose expiry has passed"),         \
    FILTER_OPTION("no-expired", NULL, filter_add_no_expired, f, "keys that have not expired"),     \
    FILTER_OPTION("min-size", "SIZE", filter_add_min_size, f, "values of SIZE bytes or more"),     \
    FILTER_OPTION("not", NULL, filter_add_not, f, "negate the next option")
/* clang-format on */

#endif
