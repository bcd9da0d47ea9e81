/* demo.c - `redoubt demo`: makes damaged files in a new folder, and rescues them with the tools. */
#include "tools/demo/demo.h"

#include "tools/tools.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    struct cli *cli;
    const char *folder;
    bool pause;
};

struct step {
    const char *title; /* of the part that begins with the step, or NULL */
    const char *text;
    const char *command;
    int status; /* which the command ends with */
};

enum { COMMAND_SIZE = 160 };

/* The offset of FLUSHALL takes the place of %s. */
static const struct step steps[] = {
    {"A snapshot that does not load",
     "dump.rdb has 23 wrong bytes in its middle: a server refuses the whole file.\n"
     "What is damaged?",
     "check-rdb dump.rdb", 1},
    {NULL,
     "Everything outside of the damage can be saved. Exit status 8 says that\n"
     "something was lost.",
     "check-rdb --salvage saved.rdb dump.rdb", 8},
    {NULL, "original.rdb is the snapshot before the damage. What is missing?",
     "diff original.rdb saved.rdb", 1},
    {"An append-only log (AOF) with a torn end",
     "The server was killed while it wrote. It does not start with this log.",
     "check-aof appendonlydir", 1},
    {NULL, "Cut the command that is incomplete. The file is copied first.",
     "check-aof --fix --yes appendonlydir", 0},
    {"FLUSHALL, by mistake", "The log has every command that was run. Where is the mistake?",
     "show --command FLUSHALL --before 1 appendonlydir", 0},
    {NULL, "The data as it was just before it, as a snapshot that a server loads:",
     "convert --to rdb --until-offset " DEMO_INCR ":%s appendonlydir -o before-flushall.rdb", 0},
    {NULL, "What is in it, and what needs the most memory?", "stat --top 3 before-flushall.rdb", 0},
};

static bool enter(struct run *run, struct rd_err *err)
{
    if (mkdir(run->folder, 0700) != 0 && errno == EEXIST) {
        cli_hint(run->cli, "name a folder that does not exist: redoubt demo FOLDER");
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "already exists");
    } else if (access(run->folder, F_OK) != 0 || chdir(run->folder) != 0) {
        rd_err_sys(err, errno, "cannot create the folder");
    }
    rd_err_origin(err, run->folder);
    return err->code == RD_ERR_OK;
}

/* ---- text ---- */

static void print_begin(const struct run *run)
{
    if (run->cli->json || run->cli->quiet)
        return;
    struct rd_shown_name folder = rd_show_plain(rd_slice_str(run->folder));
    printf("This makes damaged files in the new folder %s, and rescues them.\n"
           "Each command is shown and run. Nothing outside of the folder is changed.\n\n"
           "$ cd %s\n",
           folder.s, folder.s);
}

static void wait_for_enter(const struct run *run)
{
    int c;
    if (!run->pause)
        return;
    printf("%s[Enter: continue, Ctrl-C: stop]%s ", cli_color(run->cli, stdout, CLI_DIM),
           cli_color(run->cli, stdout, CLI_PLAIN));
    fflush(stdout);
    while ((c = getchar()) != '\n' && c != EOF)
        ;
}

static void print_step(const struct run *run, const struct step *step, const char *command)
{
    const char *bold = cli_color(run->cli, stdout, CLI_BOLD);
    const char *plain = cli_color(run->cli, stdout, CLI_PLAIN);
    if (run->cli->json)
        return;
    if (!run->cli->quiet) {
        printf("\n");
        if (step != steps)
            wait_for_enter(run);
        if (step->title != NULL)
            printf("%s%s%s\n\n", bold, step->title, plain);
        printf("%s\n\n", step->text);
    }
    printf("%s$ redoubt %s%s\n", bold, command, plain);
}

static void print_end(const struct run *run)
{
    if (run->cli->json || run->cli->quiet)
        return;
    printf("\nThe files are in %s. Try the tools on them, or on your own:\n"
           "  redoubt check-rdb dump.rdb           redoubt check-aof appendonlydir\n"
           "  redoubt help                         the list of the tools\n",
           rd_show_plain(rd_slice_str(run->folder)).s);
}

/* ---- steps ---- */

static void put_json(const struct run *run, const char *command, int status,
                     const struct rd_buf *output)
{
    struct json_write *json = &run->cli->out;
    json_obj(json);
    json_put_str(json, "command", command);
    json_put_int(json, "exit", status);
    json_key(json, "output");
    json_bytes(json, rd_buf_slice(output));
    json_end(json);
}

static bool run_step(const struct run *run, const struct step *step, const char *offset,
                     struct rd_err *err)
{
    char command[COMMAND_SIZE];
    struct rd_buf output = {0};
    int status = 0;
    const char *place = strstr(step->command, "%s");
    const int head = (int)(place != NULL ? (size_t)(place - step->command) : strlen(step->command));
    snprintf(command, sizeof command, "%.*s%s%s", head, step->command, place != NULL ? offset : "",
             place != NULL ? place + 2 : "");
    print_step(run, step, command);
    bool ok = demo_run(command, run->cli->json ? &output : NULL, &status, err);
    if (ok && run->cli->json)
        put_json(run, command, status, &output);
    rd_buf_done(&output);
    if (ok && status != step->status)
        ok = rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                        "redoubt %s: the exit status is %d instead of %d", command, status,
                        step->status);
    return ok;
}

static bool run_steps(const struct run *run, uint64_t flush_at, struct rd_err *err)
{
    char offset[24];
    bool ok = true;
    snprintf(offset, sizeof offset, "%llu", (unsigned long long)flush_at);
    if (run->cli->json) {
        json_put_str(&run->cli->out, "folder", run->folder);
        json_key(&run->cli->out, "steps");
        json_array(&run->cli->out);
    }
    for (size_t i = 0; ok && i < sizeof steps / sizeof *steps; i++)
        ok = run_step(run, &steps[i], offset, err);
    if (run->cli->json)
        json_end(&run->cli->out);
    return ok;
}

int tool_demo(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .folder = "redoubt-demo"};
    bool no_pause = false;
    const struct cli_opt opts[] = {
        {.name = "no-pause",
         .kind = CLI_FLAG,
         .flag = &no_pause,
         .help = "on a terminal, do not wait for Enter after each step"},
        {0},
    };
    const struct cli_usage usage = {
        .synopsis = "[OPTION…] [FOLDER]",
        .about = "Makes a damaged snapshot and a torn append-only log in a new folder, and\n"
                 "rescues them step by step. Each command is shown and run.",
        .opts = opts,
        .min_args = 0,
        .max_args = 1,
        .example = "redoubt demo rescue",
    };
    struct rd_err err = {0};
    uint64_t flush_at = 0;
    int status;
    if (!cli_parse(cli, &usage, argc, argv, &status))
        return status;
    if (cli->n_args > 0)
        run.folder = cli->args[0];
    run.pause = !no_pause && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!enter(&run, &err))
        return cli_fail(cli, &err);
    print_begin(&run);
    if (!demo_make_files(&flush_at, &err) || !run_steps(&run, flush_at, &err))
        return cli_fail(cli, &err);
    print_end(&run);
    return CLI_OK;
}
