/* main.c - the program `redoubt`: finds the tool by its name and runs it.
 *
 * The program can also be started through a link named after a tool: a link called check-rdb runs
 * check-rdb, and one called redis-check-rdb runs it in compatible mode.
 */
#include "base/os.h"
#include "tools/cli/file_kind.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct tool {
    const char *name;
    const char *summary; /* at most 60 columns */
    int (*run)(struct cli *cli, int argc, char **argv);
};

static const struct tool tools[] = {
    {"archive", "continuously archive the replication stream of a server", tool_archive},
    {"backup", "take verified backups of servers, snapshots and logs", tool_backup},
    {"blame", "print which command wrote each element of a key", tool_blame},
    {"browse", "show files, servers and backups in a browser", tool_browse},
    {"capture", "record a master's snapshot and stream, as a replica", tool_capture},
    {"cluster", "check a cluster, and repair its nodes.conf files", tool_cluster},
    {"convert", "convert snapshots and logs to other formats and versions", tool_convert},
    {"copy", "copy backups from one repository to another", tool_copy},
    {"check-aof", "verify and repair append-only logs", tool_check_aof},
    {"check-config", "check the source, the key and the repository of backups", tool_check_config},
    {"check-rdb", "verify snapshots and salvage damaged ones", tool_check_rdb},
    {"demo", "make damaged files in a new folder, and rescue them", tool_demo},
    {"diff", "compare the data of snapshots, logs and servers", tool_diff},
    {"doctor", "check servers and their folders for risks to the data", tool_doctor},
    {"history", "print every version of a key, from a capture or a log", tool_history},
    {"list", "list the backups in a repository and their age", tool_list},
    {"merge", "merge several snapshots into one", tool_merge},
    {"migrate", "copy a server or cluster into another, continuously", tool_migrate},
    {"pause", "pause the backups of a target", tool_pause},
    {"prune", "remove old backups by retention rules", tool_prune},
    {"replay", "replay a capture into a server", tool_replay},
    {"restore", "restore a backup so that a server loads it", tool_restore},
    {"resume", "resume the backups of a target", tool_resume},
    {"seal", "encrypt and authenticate a stream", tool_seal},
    {"show", "print the commands of a log or a capture", tool_show},
    {"split", "split a snapshot by database, slots, prefix, size or shard", tool_split},
    {"stat", "report contents and memory use of a snapshot", tool_stat},
    {"sum", "print digests of files and verify CRC-64 checksums", tool_sum},
    {"undo", "take back what commands did to keys", tool_undo},
    {"unlock", "show and remove the locks of repositories", tool_unlock},
    {"unseal", "decrypt and verify a sealed stream", tool_unseal},
    {"verify", "verify that backups are intact", tool_verify},
    {"version", "print the version, its features and libraries", tool_version},
    {"help", "print this text, or the help of one tool", NULL},
};

enum { N_TOOLS = sizeof tools / sizeof tools[0] };

static const struct tool *find(const char *name)
{
    for (size_t i = 0; i < N_TOOLS; i++) {
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    }
    return NULL;
}

static void print_help(FILE *to)
{
    fprintf(to, "usage: redoubt TOOL [OPTION…] [ARGUMENT…]\n"
                "\n"
                "Tools for the RDB and AOF files of Redis and Valkey.\n"
                "\n");
    for (size_t i = 0; i < N_TOOLS; i++)
        fprintf(to, "  %-12s  %s\n", tools[i].name, tools[i].summary);
    fprintf(to, "\n"
                "Exit status: 0 clean, 1 damage or difference found, 2 usage error,\n"
                "3 input or output error, 4 not supported, 5 limit or memory, 6 network error,\n"
                "7 locked, 8 partial success, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.\n"
                "\n"
                "Use \"redoubt help TOOL\" for the options of a tool.\n");
}

/* The tool that checks a file or folder of this name, which was given instead of a tool; NULL: it
 * does not exist. */
static const char *checker_of(const char *name)
{
    struct stat st;
    uint8_t head[FILE_KIND_HEAD];
    size_t len = 0;
    if (stat(name, &st) != 0)
        return NULL;
    FILE *file = S_ISREG(st.st_mode) ? fopen(name, "rb") : NULL;
    if (file != NULL) {
        len = fread(head, 1, sizeof head, file);
        fclose(file);
    }
    const struct file_kind *kind = file_kind_of(rd_slice(head, len));
    bool log =
        kind != NULL && kind->readers != NULL && strstr(kind->readers, " check-aof ") != NULL;
    return S_ISDIR(st.st_mode) || log ? "check-aof" : "check-rdb";
}

static int unknown_tool(struct cli *cli, const char *name)
{
    const char *names[N_TOOLS];
    for (size_t i = 0; i < N_TOOLS; i++)
        names[i] = tools[i].name;
    char quoted[100];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(name));
    const char *near = cli_nearest(name, names, N_TOOLS);
    const char *checker = near == NULL ? checker_of(name) : NULL;
    cli->tool = NULL;
    if (checker != NULL) {
        struct rd_err err = {0};
        rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET, "missing tool: %s is a file", quoted);
        cli_hint(cli, "redoubt %s %s", checker, rd_show_plain(rd_slice_str(name)).s);
        return cli_fail(cli, &err);
    }
    if (near != NULL)
        return cli_usage_error(cli, "unknown tool %s; did you mean %s?", quoted, near);
    return cli_usage_error(cli, "unknown tool %s", quoted);
}

/* redoubt help [TOOL] */
static int help(struct cli *cli, int argc, char **argv)
{
    if (argc >= 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        cli_print_version();
        return CLI_OK;
    }
    if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    const struct tool *tool = find(argv[1]);
    if (tool == NULL)
        return unknown_tool(cli, argv[1]);
    char option[] = "--help";
    char *help_argv[] = {argv[1], option, NULL};
    cli->tool = tool->name;
    return tool->run(cli, 2, help_argv);
}

static int run_tool(struct cli *cli, const char *name, int argc, char **argv)
{
    const struct tool *tool = find(name);
    if (tool == NULL)
        return unknown_tool(cli, name);
    if (tool->run == NULL)
        return help(cli, argc, argv);
    cli->tool = tool->name;
    return tool->run(cli, argc, argv);
}

/* Handles options before the name of the tool. */
static int run_redoubt(struct cli *cli, int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        cli_print_version();
        return CLI_OK;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        return help(cli, argc - 1, argv + 1);
    return run_tool(cli, first, argc - 1, argv + 1);
}

/* Returns the tool that a link is named after, or NULL: redis-check-rdb is check-rdb, compatible
* mode. */
static const char *tool_of_link(const char *path, bool *ret_compat)
{
    static const char *const servers[] = {"redis-", "valkey-"};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    *ret_compat = false;
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        size_t len = strlen(servers[i]);
        if (strncmp(name, servers[i], len) == 0) {
            *ret_compat = true;
            name += len;
            break;
        }
    }
    if (strcmp(name, "check-rdb") == 0 || strcmp(name, "check-aof") == 0)
        return name;
    return NULL;
}

int tools_main(int argc, char **argv)
{
    struct cli cli;
    bool compat = false;
    const char *link = argc > 0 ? tool_of_link(argv[0], &compat) : NULL;
    cli_begin(&cli, link);
    cli.compat = compat;
    cli_catch_signals();
    int status = link != NULL ? run_tool(&cli, link, argc, argv) : run_redoubt(&cli, argc, argv);
    return cli_end(&cli, status);
}

int main(int argc, char **argv)
{
    rd_os_begin();
    return tools_main(argc, argv);
}
