/* main.c - the tools of the page: as in the program, the first argument is the name of one. */
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
    struct cli cli;
    for (size_t i = 0; argc > 1 && i < sizeof tools / sizeof *tools; i++) {
        if (strcmp(argv[1], tools[i].name) != 0)
            continue;
        cli_begin(&cli, tools[i].name);
        return cli_end(&cli, tools[i].run(&cli, argc - 1, argv + 1));
    }
    return CLI_USAGE;
}
