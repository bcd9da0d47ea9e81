/* version.c - redoubt version: what this program is, reads and was built with. */
#include "rdb/rdb.h"
#include "rdb/version.h"
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
           REDOUBT_REMOTE ? ", SFTP, S3, Google, Azure, WebDAV" : "", REDOUBT_REMOTE ? "yes" : "no",
           REDOUBT_STATIC ? "statically" : "dynamically");
    for (size_t i = 0; i < N_LIBRARIES; i++)
        printf("%s %s %s", i > 0 ? "," : "", libraries[i].name, libraries[i].version);
    printf("\n");
}

static bool is_type(enum rdb_dialect dialect, int version, uint8_t number)
{
    return rdb_type_find(dialect, version, number) != NULL;
}

/* The numbers of the newest version that are read. */
static void put_numbers(struct json_write *out, const char *key, enum rdb_dialect dialect,
                        bool (*is_read)(enum rdb_dialect, int, uint8_t))
{
    int newest = dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_MAX;
    json_key(out, key);
    json_array(out);
    for (unsigned number = 0; number <= UINT8_MAX; number++)
        if (is_read(dialect, newest, (uint8_t)number))
            json_uint(out, number);
    json_end(out);
}

/* `whole`: the newest version of which every type is read. `written`: the newest one that is made.
 */
static void put_dialect(struct json_write *out, enum rdb_dialect dialect)
{
    bool valkey = dialect == RDB_VALKEY;
    json_key(out, rdb_dialect_name(dialect));
    json_obj(out);
    json_put_uint(out, "min", valkey ? RDB_VERSION_VALKEY_MIN : RDB_VERSION_MIN);
    json_put_uint(out, "max", valkey ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_MAX);
    json_put_uint(out, "whole", valkey ? RDB_VERSION_VALKEY_WHOLE : RDB_VERSION_REDIS_WHOLE);
    json_put_uint(out, "written", valkey ? RDB_VERSION_VALKEY_MAX : RDB_VERSION_REDIS_WRITTEN);
    put_numbers(out, "types", dialect, is_type);
    put_numbers(out, "opcodes", dialect, rdb_opcode_is_read);
    json_end(out);
}

static void put_list(struct json_write *out, const char *key, const char *const *words)
{
    json_key(out, key);
    json_array(out);
    for (; *words != NULL; words++)
        json_str(out, *words);
    json_end(out);
}

static void put_json(struct json_write *out)
{
    static const char *const compression[] = {"gzip", "lz4", "zstd", NULL};
    static const char *const repositories[] = {
        "folder", REDOUBT_REMOTE ? "sftp" : NULL, "s3", "gs", "azure", "webdav", NULL};
    json_put_str(out, "version", REDOUBT_VERSION_STRING);
    json_key(out, "features");
    json_obj(out);
    json_key(out, "rdb_versions");
    json_obj(out);
    put_dialect(out, RDB_REDIS);
    put_dialect(out, RDB_VALKEY);
    json_end(out);
    put_list(out, "compression", compression);
    put_list(out, "repositories", repositories);
    json_put_bool(out, "heartbeats", REDOUBT_REMOTE);
    json_put_bool(out, "static", REDOUBT_STATIC);
    json_end(out);
    json_key(out, "libraries");
    json_obj(out);
    for (size_t i = 0; i < N_LIBRARIES; i++)
        json_put_str(out, libraries[i].name, libraries[i].version);
    json_end(out);
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
