/* version.c - redoubt version: what this program is, reads and was built with. */
#include "rdb/rdb.h"
#include "tools/libraries.h"
#include "tools/tools.h"

#include <stdio.h>

struct library {
    const char *name;
    const char *version;
};

/* Of the build: no library is asked, because each has one place that includes it. */
static const struct library libraries[] = {REDOUBT_LIBRARIES};

enum { N_LIBRARIES = sizeof libraries / sizeof *libraries };

static void print_text(void)
{
    cli_print_version();
    printf(
        "  snapshots:    Redis RDB versions %d to %d, Valkey RDB versions %d to %d; of those after "
        "%d and %d not every type\n",
        RDB_VERSION_MIN, RDB_VERSION_REDIS_MAX, RDB_VERSION_VALKEY_MIN, RDB_VERSION_VALKEY_MAX,
        RDB_VERSION_REDIS_WHOLE, RDB_VERSION_VALKEY_WHOLE);
    printf("  compression:  gzip, lz4, zstd\n"
           "  repositories: folder%s\n"
           "  heartbeats:   %s\n"
           "  linked:       %s\n"
           "  libraries:   ",
           REDOUBT_REMOTE ? ", SFTP, S3" : "", REDOUBT_REMOTE ? "yes" : "no",
           REDOUBT_STATIC ? "statically" : "dynamically");
    for (size_t i = 0; i < N_LIBRARIES; i++)
        printf("%s %s %s", i > 0 ? "," : "", libraries[i].name, libraries[i].version);
    printf("\n");
}

/* `whole`: the newest version of which every type is read. `written`: the newest one that is made.
 */
static void put_range(struct cli_json *out, const char *dialect, unsigned min, unsigned max,
                      unsigned whole, unsigned written)
{
    cli_json_key(out, dialect);
    cli_json_obj(out);
    cli_json_put_uint(out, "min", min);
    cli_json_put_uint(out, "max", max);
    cli_json_put_uint(out, "whole", whole);
    cli_json_put_uint(out, "written", written);
    cli_json_end(out);
}

static void put_list(struct cli_json *out, const char *key, const char *const *words)
{
    cli_json_key(out, key);
    cli_json_array(out);
    for (; *words != NULL; words++)
        cli_json_str(out, *words);
    cli_json_end(out);
}

static void put_json(struct cli_json *out)
{
    static const char *const compression[] = {"gzip", "lz4", "zstd", NULL};
    static const char *const repositories[] = {"folder", REDOUBT_REMOTE ? "sftp" : NULL, "s3",
                                               NULL};
    cli_json_put_str(out, "version", REDOUBT_VERSION_STRING);
    cli_json_key(out, "features");
    cli_json_obj(out);
    cli_json_key(out, "rdb_versions");
    cli_json_obj(out);
    put_range(out, "redis", RDB_VERSION_MIN, RDB_VERSION_REDIS_MAX, RDB_VERSION_REDIS_WHOLE,
              RDB_VERSION_REDIS_WRITTEN);
    put_range(out, "valkey", RDB_VERSION_VALKEY_MIN, RDB_VERSION_VALKEY_MAX,
              RDB_VERSION_VALKEY_WHOLE, RDB_VERSION_VALKEY_MAX);
    cli_json_end(out);
    put_list(out, "compression", compression);
    put_list(out, "repositories", repositories);
    cli_json_put_bool(out, "heartbeats", REDOUBT_REMOTE);
    cli_json_put_bool(out, "static", REDOUBT_STATIC);
    cli_json_end(out);
    cli_json_key(out, "libraries");
    cli_json_obj(out);
    for (size_t i = 0; i < N_LIBRARIES; i++)
        cli_json_put_str(out, libraries[i].name, libraries[i].version);
    cli_json_end(out);
}

int tool_version(struct cli *cli, int argc, char **argv)
{
    const struct cli_usage usage = {
        .synopsis = "[OPTION…]",
        .about = "Prints the version, the formats that the program reads, and the versions of\n"
                 "the libraries that it was built with.",
        .example = "redoubt version --json",
    };
    int status;
    if (!cli_parse(cli, &usage, argc, argv, &status))
        return status;
    if (cli->json)
        put_json(&cli->out);
    else
        print_text();
    return CLI_OK;
}
