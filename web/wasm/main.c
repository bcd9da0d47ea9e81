/* main.c - the tools of the page: as in the program, the first argument is the name of one. Before
 * it there may be --whole-lines: the page breaks the lines of a report itself. */
#include "tools/tools.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv);
} tools[] = {
    {"check-aof", tool_check_aof}, {"check-rdb", tool_check_rdb}, {"convert", tool_convert},
    {"diff", tool_diff},           {"show", tool_show},           {"stat", tool_stat},
};

int main(int argc, char **argv)
{
    static const char option[] = "--whole-lines";
    struct cli cli;
    bool whole_lines = argc > 1 && strcmp(argv[1], option) == 0;
    if (whole_lines)
        argc--, argv++;
    for (size_t i = 0; argc > 1 && i < sizeof tools / sizeof *tools; i++) {
        if (strcmp(argv[1], tools[i].name) != 0)
            continue;
        cli_begin(&cli, tools[i].name);
        cli.whole_lines = whole_lines;
        return cli_end(&cli, tools[i].run(&cli, argc - 1, argv + 1));
    }
    return CLI_USAGE;
}
